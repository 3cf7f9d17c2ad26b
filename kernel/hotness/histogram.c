// SPDX-License-Identifier: GPL-2.0
#include "kernel/hotness/histogram.h"

#include <linux/log2.h>
#include <linux/minmax.h>

u32 memsluice_bin(u32 count)
{
	return min_t(u32, ilog2(count + 1), MEMSLUICE_BINS - 1);
}

u32 memsluice_count_observe(u32 count)
{
	return min_t(u32, count + MEMSLUICE_OBSERVATION, MEMSLUICE_COUNT_MAX);
}

u32 memsluice_count_cool(u32 count, u32 ticks)
{
	return ticks < 32 ? count >> ticks : 0;
}

void memsluice_histogram_add(struct memsluice_histogram *histogram, u32 count, u64 pages)
{
	histogram->pages[memsluice_bin(count)] += pages;
}

u64 memsluice_histogram_pages(const struct memsluice_histogram *histogram)
{
	return memsluice_histogram_between(histogram, 0, MEMSLUICE_BINS - 1);
}

u64 memsluice_histogram_between(const struct memsluice_histogram *histogram, u32 first, u32 last)
{
	u64 pages = 0;
	u32 bin;

	for (bin = first; bin <= last && bin < MEMSLUICE_BINS; bin++)
		pages += histogram->pages[bin];
	return pages;
}

void memsluice_histogram_move(struct memsluice_histogram *from, struct memsluice_histogram *to,
			      u64 pages, bool hottest_first)
{
	u32 i, bin;
	u64 now;

	for (i = 0; i < MEMSLUICE_BINS && pages; i++) {
		bin = hottest_first ? MEMSLUICE_BINS - 1 - i : i;
		now = min(pages, from->pages[bin]);
		from->pages[bin] -= now;
		to->pages[bin] += now;
		pages -= now;
	}
}
