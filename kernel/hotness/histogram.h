/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_HOTNESS_HISTOGRAM_H
#define MEMSLUICE_HOTNESS_HISTOGRAM_H

#include <linux/types.h>

#include "include/uapi/memsluice.h"

/*
 * Access counts and their histogram, after MEMTIS (SOSP '23, section 4). Pure: values in, values
 * out; also compiled into the tests on the host.
 *
 * A count is a density: how often a page of the unit is accessed, whatever the unit's size. One
 * observation of a unit weighs the same for a base page and for a huge page, because an accessed
 * bit says of either just that it was touched since the last look. In the histogram a unit weighs
 * as many pages as it has.
 */

/* What one observation adds; halved log2 of it times before it is forgotten. */
#define MEMSLUICE_OBSERVATION 512U
#define MEMSLUICE_COUNT_MAX 65535U

struct memsluice_histogram {
	u64 pages[MEMSLUICE_BINS];
};

/* Bin of a count: floor(log2(count + 1)), at most the last. */
u32 memsluice_bin(u32 count);

/* One observation more; stays at MEMSLUICE_COUNT_MAX. */
u32 memsluice_count_observe(u32 count);

/* The count after @ticks coolings, each of which halves it. */
u32 memsluice_count_cool(u32 count, u32 ticks);

void memsluice_histogram_add(struct memsluice_histogram *histogram, u32 count, u64 pages);

/* Pages in all bins. */
u64 memsluice_histogram_pages(const struct memsluice_histogram *histogram);

/* Pages in bins first to last, both included; none if first > last. */
u64 memsluice_histogram_between(const struct memsluice_histogram *histogram, u32 first, u32 last);

/*
 * Moves pages from one histogram to another, bin for bin: the coldest first, or the hottest. What
 * has been migrated since a scan counts so until the next one sees it.
 */
void memsluice_histogram_move(struct memsluice_histogram *from, struct memsluice_histogram *to,
			      u64 pages, bool hottest_first);

#endif
