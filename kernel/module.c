// SPDX-License-Identifier: GPL-2.0
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#include "kernel/abi/abi.h"
#include "kernel/channel/nodes.h"
#include "kernel/channel/placement.h"
#include "kernel/compat/memory_tiers.h"
#include "kernel/compat/no_access.h"
#include "kernel/compat/symbols.h"
#include "kernel/copy/assist.h"
#include "kernel/hotness/scan.h"
#include "kernel/migrate/move.h"
#include "kernel/migrate/requests.h"
#include "kernel/tenant/tenant.h"
#include "kernel/tier/threads.h"

static bool allow_unchecked;
module_param(allow_unchecked, bool, 0444);
MODULE_PARM_DESC(allow_unchecked,
		 "load on a kernel without BTF, whose functions cannot be checked");

u64 memsluice_features;

static const struct {
	u64 bit;
	const char *name;
} feature_names[] = {
	{ MEMSLUICE_FEATURE_MIGRATE, "migrate" },
	{ MEMSLUICE_FEATURE_MIGRATE_TENANT, "migrate_tenant" },
	{ MEMSLUICE_FEATURE_HOTNESS_SCAN, "hotness_scan" },
	{ MEMSLUICE_FEATURE_HOTNESS_SECONDARY, "hotness_secondary" },
	{ MEMSLUICE_FEATURE_TIERING, "tiering" },
	{ MEMSLUICE_FEATURE_TENANT_EVENTS, "tenant_events" },
	{ MEMSLUICE_FEATURE_MIGRATE_BATCH, "migrate_batch" },
	{ MEMSLUICE_FEATURE_ENGINES, "engines" },
	{ MEMSLUICE_FEATURE_CENSUS, "census" },
	{ MEMSLUICE_FEATURE_PLACEMENT, "placement" },
	{ MEMSLUICE_FEATURE_HOTPLUG, "hotplug" },
	{ MEMSLUICE_FEATURE_REDISTRIBUTE, "redistribute" },
};

static void log_features(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(feature_names); i++)
		pr_info("%s: %s\n", feature_names[i].name,
			memsluice_features & feature_names[i].bit ? "on" : "off");
	if (!memsluice_has_tiers())
		pr_info("all memory is in one tier: nothing is promoted or demoted until a slower node appears\n");
}

static u64 known_features(void)
{
	u64 known = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(feature_names); i++)
		known |= feature_names[i].bit;
	return known;
}

static bool scans(void)
{
	return memsluice_features & MEMSLUICE_FEATURE_HOTNESS_SCAN;
}

static bool tiers(void)
{
	return memsluice_features & MEMSLUICE_FEATURE_TIERING;
}

static int __init memsluice_start(void)
{
	bool events;
	int err;

	err = memsluice_symbols_bind(allow_unchecked);
	if (err)
		return err;
	memsluice_features = memsluice_symbols_features(known_features());
	if (!(memsluice_features & (MEMSLUICE_FEATURE_MIGRATE | MEMSLUICE_FEATURE_HOTNESS_SCAN))) {
		pr_err("nothing that this module does works on this kernel\n");
		return -EOPNOTSUPP;
	}
	if (!memsluice_no_access_start())
		memsluice_features &= ~MEMSLUICE_FEATURE_REDISTRIBUTE;
	err = memsluice_tenants_start(&events, memsluice_placement_tenant_ended);
	if (err)
		return err;
	if (!events)
		memsluice_features &= ~MEMSLUICE_FEATURE_TENANT_EVENTS;
	err = memsluice_move_start(memsluice_features & MEMSLUICE_FEATURE_MIGRATE_BATCH);
	if (err)
		goto stop_tenants;
	err = memsluice_requests_start();
	if (err)
		goto stop_move;
	err = scans() ? memsluice_scan_start(memsluice_features &
					     MEMSLUICE_FEATURE_HOTNESS_SECONDARY) :
			0;
	if (err)
		goto stop_requests;
	err = tiers() ? memsluice_tier_start() : 0;
	if (err)
		goto stop_scan;
	err = memsluice_channels_start();
	if (err)
		goto stop_tier;
	err = memsluice_sysfs_start();
	if (err)
		goto stop_channels;
	err = memsluice_procfs_start();
	if (err)
		goto stop_sysfs;
	err = memsluice_chardev_start();
	if (err)
		goto stop_procfs;
	log_features();
	return 0;

stop_procfs:
	memsluice_procfs_stop();
stop_sysfs:
	memsluice_sysfs_stop();
	memsluice_assist_stop();
stop_channels:
	memsluice_channels_stop();
stop_tier:
	if (tiers())
		memsluice_tier_stop();
stop_scan:
	if (scans())
		memsluice_scan_stop();
stop_requests:
	memsluice_requests_stop();
stop_move:
	memsluice_move_stop();
stop_tenants:
	memsluice_tenants_stop();
	return err;
}

static void __exit memsluice_stop(void)
{
	memsluice_chardev_stop();
	memsluice_procfs_stop();
	memsluice_sysfs_stop();
	memsluice_assist_stop();
	memsluice_channels_stop();
	if (tiers())
		memsluice_tier_stop();
	if (scans())
		memsluice_scan_stop();
	memsluice_requests_stop();
	memsluice_move_stop();
	memsluice_tenants_stop();
	memsluice_placement_stop();
}

module_init(memsluice_start);
module_exit(memsluice_stop);

MODULE_DESCRIPTION("Memory of many tiers and channels, per tenant");
MODULE_AUTHOR("The memsluice maintainers");
MODULE_LICENSE("GPL");
MODULE_VERSION(MEMSLUICE_RELEASE);
