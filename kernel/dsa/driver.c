// SPDX-License-Identifier: GPL-2.0
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/crc32.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>

#include "kernel/compat/import_idxd.h"
#include "kernel/dsa/call.h"
#include "kernel/dsa/care.h"
#include "kernel/dsa/engine.h"
#include "kernel/dsa/queue.h"
#include "kernel/dsa/trial.h"

/* What an administrator sets as the driver of a queue, with accel-config. */
#define DRIVER_NAME "memsluice"
#define IDXD_BTF "/sys/kernel/btf/idxd"

/* Knobs: docs/abi/sysfs-module-memsluice_dsa */
#define MEMSLUICE_DSA_KNOB(name, variable, least, most)                                            \
	static int name##_set(const char *text, const struct kernel_param *knob)                   \
	{                                                                                          \
		return param_set_uint_minmax(text, knob, least, most);                             \
	}                                                                                          \
	static const struct kernel_param_ops name##_operations = {                                 \
		.set = name##_set,                                                                 \
		.get = param_get_uint,                                                             \
	};                                                                                         \
	module_param_cb(name, &name##_operations, &(variable), 0644)

MEMSLUICE_DSA_KNOB(deadline_us, memsluice_dsa_deadline_us, 100, 10000000);
MODULE_PARM_DESC(deadline_us, "how long a call may take; then the CPU copies what is left");
MEMSLUICE_DSA_KNOB(spin_us, memsluice_dsa_spin_us, 0, 10000);
MODULE_PARM_DESC(spin_us, "waits that are expected to be longer than this are slept through");
MEMSLUICE_DSA_KNOB(most_bytes, memsluice_dsa_most_bytes, 1U << 16, 1U << 30);
MODULE_PARM_DESC(most_bytes, "what a queue copies at once, for all tenants");

static int least_bytes_set(const char *text, const struct kernel_param *knob)
{
	if (!sysfs_streq(text, "auto"))
		return param_set_uint_minmax(text, knob, 0, 1U << 30);
	WRITE_ONCE(memsluice_dsa_least_bytes, MEMSLUICE_DSA_LEAST_AUTO);
	return 0;
}

static int least_bytes_get(char *text, const struct kernel_param *knob)
{
	if (READ_ONCE(memsluice_dsa_least_bytes) == MEMSLUICE_DSA_LEAST_AUTO)
		return sysfs_emit(text, "auto\n");
	return param_get_uint(text, knob);
}

static const struct kernel_param_ops least_bytes_operations = {
	.set = least_bytes_set,
	.get = least_bytes_get,
};
module_param_cb(least_bytes, &least_bytes_operations, &memsluice_dsa_least_bytes, 0644);
MODULE_PARM_DESC(least_bytes, "lists of fewer bytes are left to the CPU; auto: as measured");
module_param_named(verify, memsluice_dsa_verify, bool, 0644);
MODULE_PARM_DESC(verify, "let the CPU compare all that was copied");

/* Is the running idxd the one that idxd_layout.h describes? */
static int check_layout(void)
{
	struct file *file = filp_open(IDXD_BTF, O_RDONLY, 0);
	size_t bytes = 0;
	u32 crc = ~0U;
	loff_t at = 0;
	ssize_t got;
	u8 *part;

	if (IS_ERR(file)) {
		pr_err("%s: %ld: without BTF the running idxd cannot be compared with the one that this module was built for\n",
		       IDXD_BTF, PTR_ERR(file));
		return -EOPNOTSUPP;
	}
	part = kmalloc(PAGE_SIZE, GFP_KERNEL);
	while (part && (got = kernel_read(file, part, PAGE_SIZE, &at)) > 0) {
		crc = crc32_le(crc, part, got);
		bytes += got;
	}
	fput(file);
	if (!part)
		return -ENOMEM;
	kfree(part);
	if (bytes == MEMSLUICE_IDXD_BTF_BYTES && ~crc == MEMSLUICE_IDXD_BTF_CRC32)
		return 0;
	pr_err("the running idxd is not the one that this module was built for; build it for this kernel\n");
	return -ENOEXEC;
}

static struct idxd_wq *wq_of(struct idxd_dev *idxd_dev)
{
	return container_of(idxd_dev, struct idxd_wq, idxd_dev);
}

static struct memsluice_dsa_queue *start_queue(struct idxd_wq *wq)
{
	struct memsluice_dsa_queue *queue;
	int err;

	lockdep_assert_held(&wq->wq_lock);
	wq->type = IDXD_WQT_KERNEL;
	err = idxd_drv_enable_wq(wq);
	if (err) {
		wq->type = IDXD_WQT_NONE;
		return ERR_PTR(err);
	}
	queue = memsluice_dsa_queue_new(wq);
	if (IS_ERR(queue)) {
		__idxd_wq_quiesce(wq);
		idxd_drv_disable_wq(wq);
		wq->type = IDXD_WQT_NONE;
		return queue;
	}
	dev_set_drvdata(&wq->idxd_dev.conf_dev, queue);
	wq->idxd->cmd_status = 0;
	return queue;
}

static int probe(struct idxd_dev *idxd_dev)
{
	struct idxd_wq *wq = wq_of(idxd_dev);
	struct memsluice_dsa_queue *queue;
	const char *name = dev_name(&idxd_dev->conf_dev);
	int err;

	/* Every queue that has no driver comes by, also those of others. */
	if (wq->idxd->state != IDXD_DEV_ENABLED || wq->idxd->data->type != IDXD_TYPE_DSA)
		return -ENODEV;
	mutex_lock(&wq->wq_lock);
	if (strcmp(wq->driver_name, DRIVER_NAME)) {
		mutex_unlock(&wq->wq_lock);
		return -ENODEV;
	}
	if (!test_bit(WQ_FLAG_DEDICATED, &wq->flags)) {
		mutex_unlock(&wq->wq_lock);
		pr_err("%s: a shared queue; set its mode to dedicated\n", name);
		return -EINVAL;
	}
	queue = start_queue(wq);
	mutex_unlock(&wq->wq_lock);
	if (IS_ERR(queue)) {
		pr_err("%s: cannot be used: %ld\n", name, PTR_ERR(queue));
		return PTR_ERR(queue);
	}

	/* Not up before it has shown that it copies what it is told to. */
	queue->state = MEMSLUICE_QUEUE_RESTING;
	queue->test_at = jiffies;
	down_read(&memsluice_dsa_queues_lock);
	err = memsluice_dsa_trial(queue);
	if (!err && READ_ONCE(memsluice_dsa_least_bytes) == MEMSLUICE_DSA_LEAST_AUTO)
		memsluice_dsa_measure(queue);
	up_read(&memsluice_dsa_queues_lock);
	if (err)
		pr_err("%s: failed its test (%d): it does not copy until it passes one\n", name,
		       err);
	else
		queue->state = MEMSLUICE_QUEUE_UP;
	down_write(&memsluice_dsa_queues_lock);
	list_add_tail(&queue->link, &memsluice_dsa_queues);
	up_write(&memsluice_dsa_queues_lock);
	memsluice_dsa_care_soon();
	pr_info("%s: %u descriptors, batches of %u, transfers of %u bytes, node %d\n", name,
		queue->slot_count, queue->max_batch, queue->max_transfer_bytes, queue->node);
	return 0;
}

/* Has everything that the queue got ended? */
static bool is_drained(struct memsluice_dsa_queue *queue)
{
	struct memsluice_dsa_slot *slot = memsluice_dsa_slot_get(queue);

	if (!IS_ERR(slot)) {
		slot->desc->hw->opcode = DSA_OPCODE_DRAIN;
		if (idxd_submit_desc(queue->wq, slot->desc)) {
			memsluice_dsa_slot_free(slot);
		} else {
			spin_lock(&queue->lock);
			memsluice_dsa_keep_late(slot);
			spin_unlock(&queue->lock);
		}
	}
	return memsluice_dsa_wait_for_late(queue);
}

/*
 * Without idxd's callbacks, which on newer kernels would come back to remove(). idxd will find the
 * device disabled, and its commands end.
 */
static int reset_device(struct pci_dev *pdev)
{
	int err;

	pci_save_state(pdev);
	err = pcie_reset_flr(pdev, false);
	pci_restore_state(pdev);
	return err;
}

static void remove(struct idxd_dev *idxd_dev)
{
	struct memsluice_dsa_queue *queue = dev_get_drvdata(&idxd_dev->conf_dev);
	const char *name = dev_name(&idxd_dev->conf_dev);
	struct idxd_wq *wq = wq_of(idxd_dev);
	int err = 0;

	down_write(&memsluice_dsa_queues_lock);
	list_del(&queue->link);
	up_write(&memsluice_dsa_queues_lock);

	mutex_lock(&wq->wq_lock);
	/* idxd waits for the queue without a bound: it must not begin before that can end. */
	if (!is_drained(queue)) {
		pr_err("%s: does not end what it was given: its device is reset, for all who use it\n",
		       name);
		err = reset_device(wq->idxd->pdev);
		if (err)
			pr_err("%s: its device cannot be reset (%d): what it may still write to stays out of use\n",
			       name, err);
	}
	/* A device that has halted has done this already. */
	if (!percpu_ref_is_dying(&wq->wq_active))
		__idxd_wq_quiesce(wq);
	idxd_drv_disable_wq(wq);
	dev_set_drvdata(&idxd_dev->conf_dev, NULL);
	mutex_unlock(&wq->wq_lock);
	if (err)
		return; /* nothing of it is ever freed */
	memsluice_dsa_release_all(queue);
	memsluice_dsa_queue_free(queue);
	pr_info("%s: gone\n", name);
}

static void complete_descriptor(struct idxd_desc *desc, enum idxd_complete_type unused, bool free,
				void *unused_context, u32 *unused_status)
{
	struct memsluice_dsa_queue *queue = dev_get_drvdata(&desc->wq->idxd_dev.conf_dev);

	if (queue)
		memsluice_dsa_drained(queue, desc);
	if (free)
		idxd_free_desc(desc->wq, desc);
}

static enum idxd_dev_type types[] = { IDXD_DEV_WQ, IDXD_DEV_NONE };
static struct idxd_device_driver driver;

static int __init memsluice_dsa_start(void)
{
	int err;

	err = check_layout();
	if (err)
		return err;
	err = memsluice_dsa_engine_start();
	if (err)
		return err;
	driver.name = DRIVER_NAME;
	driver.type = types;
	driver.probe = probe;
	driver.remove = remove;
	driver.desc_complete = complete_descriptor;
	err = __idxd_driver_register(&driver, THIS_MODULE, KBUILD_MODNAME);
	if (err)
		memsluice_dsa_engine_stop();
	return err;
}

static void __exit memsluice_dsa_stop(void)
{
	memsluice_dsa_engine_stop();
	idxd_driver_unregister(&driver);
	memsluice_dsa_care_stop();
}

module_init(memsluice_dsa_start);
module_exit(memsluice_dsa_stop);

MEMSLUICE_IMPORT_IDXD;
MODULE_SOFTDEP("pre: idxd");
MODULE_DESCRIPTION("memsluice: pages are copied by Intel DSA");
MODULE_AUTHOR("The memsluice maintainers");
MODULE_LICENSE("GPL");
