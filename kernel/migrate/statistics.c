// SPDX-License-Identifier: GPL-2.0
#include "kernel/migrate/statistics.h"

#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/spinlock.h>
#include <linux/time64.h>
#include <linux/vmstat.h>

#include "kernel/compat/memory_tiers.h"

static struct memsluice_statistics statistics;
static DEFINE_SPINLOCK(lock);

static enum memsluice_size size_of(unsigned int order)
{
	if (!order)
		return MEMSLUICE_SIZE_BASE;
	return order == HPAGE_PMD_ORDER ? MEMSLUICE_SIZE_HUGE : MEMSLUICE_SIZE_LARGE;
}

void memsluice_moved_add(struct memsluice_moved *moved, unsigned int order)
{
	enum memsluice_size size = size_of(order);

	moved->folios[size]++;
	moved->pages[size] += 1ULL << order;
}

/* As the kernel's own migration counts. */
static void count_events(const struct memsluice_moved *moved)
{
	u64 pages = 0;
	int size;

	for (size = 0; size < MEMSLUICE_SIZES; size++)
		pages += moved->pages[size];
	count_vm_events(PGMIGRATE_SUCCESS, pages);
	count_vm_events(THP_MIGRATION_SUCCESS, moved->folios[MEMSLUICE_SIZE_HUGE]);
}

void memsluice_statistics_kernel_moved(enum memsluice_why why, u64 pages)
{
	spin_lock(&lock);
	statistics.kernel_pages[why] += pages;
	spin_unlock(&lock);
}

static void add_latency(struct memsluice_latencies *latencies, u64 ns)
{
	u64 us = div_u64(ns, NSEC_PER_USEC);
	int bin = us ? ilog2(us) + 1 : 0;

	latencies->count[min(bin, MEMSLUICE_LATENCY_BINS - 1)]++;
}

void memsluice_statistics_batch(const struct memsluice_batch_sample *sample)
{
	bool fast = memsluice_node_is_fast(sample->target_node);
	struct memsluice_moved *moved = &statistics.moved[sample->why][fast];
	int size;

	count_events(&sample->moved);
	spin_lock(&lock);
	for (size = 0; size < MEMSLUICE_SIZES; size++) {
		moved->folios[size] += sample->moved.folios[size];
		moved->pages[size] += sample->moved.pages[size];
	}
	statistics.batches++;
	statistics.largest_batch_bytes = max(statistics.largest_batch_bytes, sample->bytes);
	statistics.flushes += sample->flushes;
	statistics.copied_bytes += sample->bytes;
	statistics.unmap_ns += sample->flushed_ns - sample->began_ns;
	statistics.copy_ns += sample->copied_ns - sample->flushed_ns;
	statistics.map_ns += sample->mapped_ns - sample->copied_ns;
	statistics.fell_back_folios += sample->copy.fell_back;
	statistics.uncopied_folios += sample->copy.failed;
	add_latency(&statistics.stall, sample->mapped_ns - sample->began_ns);
	add_latency(&statistics.first, sample->first_ns - sample->began_ns);
	spin_unlock(&lock);
}

void memsluice_statistics_read(struct memsluice_statistics *out)
{
	spin_lock(&lock);
	*out = statistics;
	spin_unlock(&lock);
}
