// SPDX-License-Identifier: GPL-2.0
#include "kernel/channel/blocks.h"

#include <linux/device.h>
#include <linux/ioport.h>
#include <linux/memory.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "include/uapi/memsluice.h"
#include "kernel/compat/symbols.h"

/* In /proc/iomem. The kernel keeps the address: it has to stay as long as the memory does. */
static const char resource_name[] = "System RAM (memsluice)";

static u64 block_bytes(void)
{
	return memory_block_size_bytes();
}

/* The first page of a block that is online; NULL: it is not, or not of this node. */
static struct page *online_page(int nid, u64 start)
{
	struct page *page = pfn_to_online_page(PHYS_PFN(start));

	return page && (nid == NUMA_NO_NODE || page_to_nid(page) == nid) ? page : NULL;
}

bool memsluice_block_is_online(u64 start)
{
	return online_page(NUMA_NO_NODE, start);
}

struct memsluice_blocks memsluice_blocks_count(int nid, u64 start, u64 end)
{
	struct memsluice_blocks blocks = {};
	u64 at;

	for (at = start; at < end; at += block_bytes()) {
		struct page *page = online_page(nid, at);

		if (!page)
			continue;
		blocks.online++;
		blocks.movable += page_zonenum(page) == ZONE_MOVABLE;
	}
	return blocks;
}

/* The kernel would add anything: what is no memory would be found out by who uses it. */
static bool firmware_says_memory(u64 start, u64 end)
{
	u64 at;

	for (at = start; at < end; at += PAGE_SIZE) {
		if (!memsluice_call(e820__mapped_raw_any)(at, at + PAGE_SIZE, E820_TYPE_RAM))
			return false;
		if (IS_ALIGNED(at, PMD_SIZE))
			cond_resched();
	}
	return !memsluice_call(e820__mapped_raw_any)(start, end, E820_TYPE_RESERVED) &&
	       !memsluice_call(e820__mapped_raw_any)(start, end, E820_TYPE_ACPI) &&
	       !memsluice_call(e820__mapped_raw_any)(start, end, E820_TYPE_NVS) &&
	       !memsluice_call(e820__mapped_raw_any)(start, end, E820_TYPE_UNUSABLE);
}

int memsluice_blocks_check(u64 start, u64 length)
{
	struct range usable = mhp_get_pluggable_range(true);
	u64 last;

	if (!length || !IS_ALIGNED(start, block_bytes()) || !IS_ALIGNED(length, block_bytes()) ||
	    check_add_overflow(start, length - 1, &last) || start < usable.start ||
	    last > usable.end)
		return -ERANGE;
	if (region_intersects(start, length, IORESOURCE_SYSTEM_RAM, IORES_DESC_NONE) !=
	    REGION_DISJOINT)
		return -EADDRINUSE;
	return firmware_says_memory(start, last + 1) ? 0 : -EADDRNOTAVAIL;
}

static int online_one(struct memory_block *block, void *unused)
{
	block->online_type = MMOP_ONLINE_MOVABLE;
	return memsluice_call(device_online)(&block->dev);
}

static int offline_one(struct memory_block *block, void *unused)
{
	return memsluice_call(device_offline)(&block->dev);
}

/* Return: what the call returned, which is 1 when the block is so already. */
static int call_for_block(u64 start, walk_memory_blocks_func_t call)
{
	int ret;

	memsluice_call(lock_device_hotplug)();
	ret = memsluice_call(walk_memory_blocks)(start, block_bytes(), NULL, call);
	memsluice_call(unlock_device_hotplug)();
	return ret;
}

int memsluice_block_offline(u64 start)
{
	return min(call_for_block(start, offline_one), 0);
}

int memsluice_block_online(u64 start)
{
	return min(call_for_block(start, online_one), 0);
}

int memsluice_blocks_add(int nid, u64 start, u64 length)
{
	int err = add_memory_driver_managed(nid, start, length, resource_name, MHP_NONE);

	/* Somebody else has taken it since it was checked. */
	return err == -EEXIST ? -EADDRINUSE : err;
}

int memsluice_blocks_online(u64 start, u64 length, u32 *onlined_by)
{
	u64 at;
	int ret;

	*onlined_by = 0;
	for (at = start; at < start + length; at += block_bytes()) {
		if (memsluice_block_is_online(at)) {
			*onlined_by |= MEMSLUICE_ONLINED_BY_KERNEL;
			continue;
		}
		ret = call_for_block(at, online_one);
		if (ret < 0)
			return ret;
		*onlined_by |= ret ? MEMSLUICE_ONLINED_BY_OTHERS : MEMSLUICE_ONLINED_BY_MODULE;
	}
	return 0;
}

int memsluice_blocks_remove(u64 start, u64 length)
{
	return offline_and_remove_memory(start, length);
}
