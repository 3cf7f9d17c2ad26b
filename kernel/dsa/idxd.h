/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_DSA_IDXD_H
#define MEMSLUICE_DSA_IDXD_H

#include <linux/device.h>
#include <linux/mutex.h>
#include <linux/percpu-refcount.h>
#include <linux/types.h>
#include <uapi/linux/idxd.h>

/*
 * What idxd exports, and of its structures the members that are used here. The in-tree users have
 * drivers/dma/idxd/idxd.h; we have what layout/generate has read from BTF.
 */

struct idxd_desc;
struct idxd_dev;
struct pci_dev;

/* sparse takes some of the kernel's structures for larger than they are. */
#ifdef __CHECKER__
#define memsluice_layout_assert(condition)
#else
#define memsluice_layout_assert(condition) static_assert(condition)
#endif

#include "idxd_layout.h"

/*
 * -EAGAIN: all descriptors of the queue are in use (IDXD_OP_NONBLOCK); -EIO: the device has been
 * halted. Descriptor and record are zero.
 */
struct idxd_desc *idxd_alloc_desc(struct idxd_wq *wq, enum idxd_op_type how);
void idxd_free_desc(struct idxd_wq *wq, struct idxd_desc *desc);
/* May sleep. */
int idxd_submit_desc(struct idxd_wq *wq, struct idxd_desc *desc);

/* With wq_lock held, all of these. */
int idxd_drv_enable_wq(struct idxd_wq *wq);
void idxd_drv_disable_wq(struct idxd_wq *wq);
void __idxd_wq_quiesce(struct idxd_wq *wq);

int __idxd_driver_register(struct idxd_device_driver *driver, struct module *owner,
			   const char *module_name);
void idxd_driver_unregister(struct idxd_device_driver *driver);

#endif
