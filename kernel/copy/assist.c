// SPDX-License-Identifier: GPL-2.0
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "kernel/copy/assist.h"

#include <linux/delay.h>
#include <linux/hash.h>
#include <linux/migrate_mode.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "kernel/compat/hook.h"
#include "kernel/compat/symbols.h"
#include "kernel/copy/cpu.h"
#include "kernel/copy/engines.h"

#define NOTES_BITS 10
#define REASON_MASK 15UL /* tasks are aligned to more than that */
#define REASON_ARGUMENT 5 /* of migrate_pages() */
#define LOOK_MS 10

static const char *const reason_names[] = {
	[MR_COMPACTION] = "compaction",
	[MR_MEMORY_FAILURE] = "memory_failure",
	[MR_MEMORY_HOTPLUG] = "memory_hotplug",
	[MR_SYSCALL] = "syscall_or_cpuset",
	[MR_MEMPOLICY_MBIND] = "mempolicy_mbind",
	[MR_NUMA_MISPLACED] = "numa_misplaced",
	[MR_CONTIG_RANGE] = "contig_range",
	[MR_LONGTERM_PIN] = "longterm_pin",
	[MR_DEMOTION] = "demotion",
	[MR_DAMON] = "damon",
};
static_assert(ARRAY_SIZE(reason_names) <= REASON_MASK + 1);

static DEFINE_MUTEX(lock); /* what is hooked */
static unsigned long reasons; /* bits of enum migrate_reason; 0: nothing is hooked */

/*
 * What each task migrates for: the task, and the reason in the bits that its address leaves. Two
 * tasks that meet at one place only take each other's assistance away.
 */
static unsigned long notes[1 << NOTES_BITS];

static atomic_t copying; /* tasks on their way through copy() */

static struct {
	atomic64_t folios;
	atomic64_t bytes;
} counts[ARRAY_SIZE(reason_names)];

static unsigned long *note_of(struct task_struct *task)
{
	return &notes[hash_ptr(task, NOTES_BITS)];
}

/* Return: why the current task migrates; -1: nobody knows. */
static int reason_of_current(void)
{
	unsigned long note = READ_ONCE(*note_of(current));

	return (note & ~REASON_MASK) == (unsigned long)current ? note & REASON_MASK : -1;
}

static void count(int reason, u64 bytes)
{
	if (reason < 0) /* another task has come to the same place */
		return;
	atomic64_inc(&counts[reason].folios);
	atomic64_add(bytes, &counts[reason].bytes);
}

static int copy_by_engine(struct memsluice_copy *copy)
{
	/* Who reclaims may hold this already, so nobody waits for it. */
	const struct memsluice_copy_engine *engine = memsluice_copy_try_begin();
	struct memsluice_copy_outcome outcome;

	if (!engine)
		return folio_mc_copy(copy->destination, copy->source);
	outcome = memsluice_copy(engine, copy, 1);
	if (engine != &memsluice_copy_cpu && !outcome.declined && !outcome.fell_back &&
	    !outcome.failed)
		count(reason_of_current(), folio_size(copy->destination));
	memsluice_copy_end();
	/* Not to be tried again with the same destination, which the engine may write to still. */
	return copy->late ? -EIO : copy->error;
}

/* In the place of folio_mc_copy(). */
static int copy(struct folio *destination, struct folio *source)
{
	struct memsluice_copy one = { .source = source, .destination = destination };
	int err = copy_by_engine(&one);

	/* What follows is short and does not sleep: memsluice_assist_stop() waits for it, too. */
	atomic_dec(&copying);
	return err;
}

static void notrace on_migrate_pages(unsigned long address, unsigned long caller,
				     struct ftrace_ops *ops, struct ftrace_regs *registers)
{
	unsigned long reason = ftrace_regs_get_argument(registers, REASON_ARGUMENT);

	WRITE_ONCE(*note_of(current), (unsigned long)current | (reason & REASON_MASK));
}

static void notrace on_copy(unsigned long address, unsigned long caller, struct ftrace_ops *ops,
			    struct ftrace_regs *registers)
{
	int reason = reason_of_current();

	/* An engine's own, where the CPU copies what it could not. */
	if (within_module(caller, THIS_MODULE))
		return;
	if (reason < 0 || !(READ_ONCE(reasons) & BIT(reason)))
		return;
	atomic_inc(&copying);
	ftrace_regs_set_instruction_pointer(registers, (unsigned long)copy);
}

static struct ftrace_ops migrate_hook = { .func = on_migrate_pages };
static struct ftrace_ops copy_hook = { .func = on_copy, .flags = FTRACE_OPS_FL_IPMODIFY };

static unsigned long migrate_pages_address(void)
{
	return (unsigned long)memsluice_symbol_address("migrate_pages");
}

static int start(void)
{
	int err;

	lockdep_assert_held(&lock);
	if (!migrate_pages_address())
		return -EOPNOTSUPP;
	err = memsluice_hook(&migrate_hook, migrate_pages_address());
	if (err)
		return err;
	err = memsluice_hook(&copy_hook, (unsigned long)folio_mc_copy);
	if (err) {
		pr_err("folio_mc_copy() cannot be replaced (%d)%s\n", err,
		       err == -EBUSY ? ": something else has replaced it, a livepatch perhaps" :
				       "");
		memsluice_unhook(&migrate_hook, migrate_pages_address());
	}
	return err;
}

static void stop(void)
{
	lockdep_assert_held(&lock);
	memsluice_unhook(&copy_hook, (unsigned long)folio_mc_copy);
	memsluice_unhook(&migrate_hook, migrate_pages_address());
	while (atomic_read(&copying))
		msleep(LOOK_MS);
	/* Whoever has counted himself out has left when he sleeps for the next time. */
	synchronize_rcu_tasks();
}

static int parse(char *text, unsigned long *wanted)
{
	const char *word;
	int reason;

	*wanted = 0;
	while ((word = strsep(&text, ", \t\n"))) {
		if (!*word || !strcmp(word, "none"))
			continue;
		reason = match_string(reason_names, ARRAY_SIZE(reason_names), word);
		if (reason < 0)
			return -EINVAL;
		*wanted |= BIT(reason);
	}
	return 0;
}

int memsluice_assist_set(const char *text)
{
	char *words = kstrdup(text, GFP_KERNEL);
	unsigned long wanted;
	int err;

	if (!words)
		return -ENOMEM;
	err = parse(words, &wanted);
	kfree(words);
	if (err)
		return err;
	mutex_lock(&lock);
	if (wanted && !reasons)
		err = start();
	else if (!wanted && reasons)
		stop();
	if (!err)
		WRITE_ONCE(reasons, wanted);
	mutex_unlock(&lock);
	return err;
}

int memsluice_assist_get(char *text)
{
	unsigned long now = READ_ONCE(reasons);
	int reason, length = 0;

	for (reason = 0; reason < ARRAY_SIZE(reason_names); reason++) {
		if (now & BIT(reason))
			length += sysfs_emit_at(text, length, "%s%s", length ? " " : "",
						reason_names[reason]);
	}
	return length + sysfs_emit_at(text, length, "%s\n", length ? "" : "none");
}

void memsluice_assist_show(struct seq_file *file)
{
	int reason;

	for (reason = 0; reason < ARRAY_SIZE(reason_names); reason++) {
		u64 folios = atomic64_read(&counts[reason].folios);

		if (folios)
			seq_printf(file, "assisted %s folios %llu bytes %llu\n",
				   reason_names[reason], folios,
				   (u64)atomic64_read(&counts[reason].bytes));
	}
}

void memsluice_assist_stop(void)
{
	mutex_lock(&lock);
	if (reasons)
		stop();
	reasons = 0;
	mutex_unlock(&lock);
}
