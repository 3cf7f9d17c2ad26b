// SPDX-License-Identifier: GPL-2.0
#include <linux/kobject.h>
#include <linux/sysfs.h>

#include "kernel/abi/abi.h"
#include "kernel/copy/assist.h"
#include "kernel/hotness/scan.h"
#include "kernel/migrate/batch.h"
#include "kernel/migrate/destinations.h"
#include "kernel/tier/threads.h"

/* /sys/kernel/memsluice: docs/abi/sysfs-kernel-memsluice */

static struct kobject *directory;
static DEFINE_MUTEX(change); /* two knobs that bound one another */

static int set_bounded(const char *text, unsigned int *value, unsigned int least, unsigned int most)
{
	unsigned int wanted;
	int err = kstrtouint(text, 10, &wanted);

	if (err)
		return err;
	if (wanted < least || wanted > most)
		return -EINVAL;
	WRITE_ONCE(*value, wanted);
	return 0;
}

/* Bounds may name other knobs: they are evaluated with @change held. */
#define MEMSLUICE_KNOB(name, value, least, most)                                                   \
	static ssize_t name##_show(struct kobject *kobject, struct kobj_attribute *attribute,      \
				   char *text)                                                     \
	{                                                                                          \
		return sysfs_emit(text, "%u\n", READ_ONCE(value));                                 \
	}                                                                                          \
	static ssize_t name##_store(struct kobject *kobject, struct kobj_attribute *attribute,     \
				    const char *text, size_t length)                               \
	{                                                                                          \
		int err;                                                                           \
                                                                                                   \
		mutex_lock(&change);                                                               \
		err = set_bounded(text, &(value), least, most);                                    \
		mutex_unlock(&change);                                                             \
		return err ?: length;                                                              \
	}                                                                                          \
	static struct kobj_attribute name##_attribute = __ATTR_RW(name)

MEMSLUICE_KNOB(scan_period_ms, memsluice_scan_period_ms, 10, 600000);
MEMSLUICE_KNOB(scan_cpu_percent, memsluice_scan_cpu_percent, 1, 100);
MEMSLUICE_KNOB(cooling_scans, memsluice_cooling_scans, 1, 10000);
MEMSLUICE_KNOB(batch_stall_us, memsluice_batch_stall_us, 10, 1000000);
MEMSLUICE_KNOB(pool_mib, memsluice_pool_mib, 0, 65536);
MEMSLUICE_KNOB(tier_period_ms, memsluice_tier_period_ms, 10, 600000);
MEMSLUICE_KNOB(fast_free_low_percent, memsluice_fast_free_low_percent, 0,
	       memsluice_fast_free_high_percent);
MEMSLUICE_KNOB(fast_free_high_percent, memsluice_fast_free_high_percent,
	       memsluice_fast_free_low_percent, 50);

static ssize_t assist_show(struct kobject *kobject, struct kobj_attribute *attribute, char *text)
{
	return memsluice_assist_get(text);
}

static ssize_t assist_store(struct kobject *kobject, struct kobj_attribute *attribute,
			    const char *text, size_t length)
{
	return memsluice_assist_set(text) ?: length;
}
static struct kobj_attribute assist_attribute = __ATTR_RW(assist);

static ssize_t release_show(struct kobject *kobject, struct kobj_attribute *attribute, char *text)
{
	return sysfs_emit(text, "%s\n", MEMSLUICE_RELEASE);
}
static struct kobj_attribute release_attribute = __ATTR_RO(release);

static struct attribute *attributes[] = {
	&release_attribute.attr,
	&scan_period_ms_attribute.attr,
	&scan_cpu_percent_attribute.attr,
	&cooling_scans_attribute.attr,
	&batch_stall_us_attribute.attr,
	&pool_mib_attribute.attr,
	&tier_period_ms_attribute.attr,
	&fast_free_low_percent_attribute.attr,
	&fast_free_high_percent_attribute.attr,
	&assist_attribute.attr,
	NULL,
};

static const struct attribute_group group = { .attrs = attributes };

int memsluice_sysfs_start(void)
{
	int err;

	directory = kobject_create_and_add("memsluice", kernel_kobj);
	if (!directory)
		return -ENOMEM;
	err = sysfs_create_group(directory, &group);
	if (err)
		kobject_put(directory);
	return err;
}

void memsluice_sysfs_stop(void)
{
	kobject_put(directory);
}
