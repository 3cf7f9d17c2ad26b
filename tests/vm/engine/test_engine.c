// SPDX-License-Identifier: GPL-2.0
/*
 * A copy engine that fails on purpose: what it is told to, and it leaves rubbish behind where it
 * does. As modest a user of the registry as another module can be.
 */
#include <linux/delay.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/module.h>

#include "kernel/copy/engines.h"

static unsigned int fail_every;
module_param(fail_every, uint, 0644);
MODULE_PARM_DESC(fail_every, "every so manieth folio fails, its destination half written; 0: none");

static unsigned int hold_every;
module_param(hold_every, uint, 0644);
MODULE_PARM_DESC(hold_every, "so often a reference on the source is taken and kept; 0: never");

static unsigned int delay_us;
module_param(delay_us, uint, 0644);
MODULE_PARM_DESC(delay_us, "how long each call takes longer than it has to");

static unsigned long calls;
module_param(calls, ulong, 0444);
static unsigned long folios;
module_param(folios, ulong, 0444);
static unsigned int largest;
module_param(largest, uint, 0444);
MODULE_PARM_DESC(largest, "folios in the largest call");

static struct folio *held[64];
static unsigned int held_count;
static DEFINE_MUTEX(lock);

static void let_go(void)
{
	while (held_count)
		folio_put(held[--held_count]);
}

/* Writing anything lets go of what hold_every has taken. */
static int release_set(const char *text, const struct kernel_param *parameter)
{
	mutex_lock(&lock);
	let_go();
	mutex_unlock(&lock);
	return 0;
}
static const struct kernel_param_ops release_ops = { .set = release_set };
module_param_cb(release, &release_ops, NULL, 0200);

static bool is_due(unsigned int every, unsigned long number)
{
	return every && number % every == 0;
}

static void copy_one(struct memsluice_copy *copy)
{
	folios++;
	if (is_due(fail_every, folios)) {
		memset(page_address(&copy->destination->page), 0xdb, PAGE_SIZE / 2);
		copy->error = -EIO;
		return;
	}
	copy->error = folio_mc_copy(copy->destination, copy->source);
	if (is_due(hold_every, folios) && held_count < ARRAY_SIZE(held)) {
		folio_get(copy->source);
		held[held_count++] = copy->source;
	}
}

/* Last first: nobody may count on an order. */
static void copy_all(struct memsluice_copy *copies, unsigned int count)
{
	mutex_lock(&lock);
	calls++;
	largest = max(largest, count);
	while (count--)
		copy_one(&copies[count]);
	if (delay_us)
		fsleep(delay_us);
	mutex_unlock(&lock);
}

static struct memsluice_copy_engine engine = {
	.name = "test",
	.owner = THIS_MODULE,
	.rank = 1,
	.copy = copy_all,
};

static int __init test_engine_start(void)
{
	return memsluice_copy_engine_register(&engine);
}

static void __exit test_engine_stop(void)
{
	memsluice_copy_engine_unregister(&engine);
	let_go();
}

module_init(test_engine_start);
module_exit(test_engine_stop);

MODULE_DESCRIPTION("A copy engine for memsluice's tests");
MODULE_LICENSE("GPL");
