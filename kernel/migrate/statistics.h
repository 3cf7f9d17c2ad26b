/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_MIGRATE_STATISTICS_H
#define MEMSLUICE_MIGRATE_STATISTICS_H

#include "kernel/copy/engines.h"
#include "kernel/migrate/move.h"

/* What moved, and how long it was out of reach. Counted from the load of the module. */

enum memsluice_size {
	MEMSLUICE_SIZE_BASE,
	MEMSLUICE_SIZE_LARGE, /* between */
	MEMSLUICE_SIZE_HUGE, /* what one PMD maps */
	MEMSLUICE_SIZES,
};

struct memsluice_moved {
	u64 folios[MEMSLUICE_SIZES];
	u64 pages[MEMSLUICE_SIZES];
};

/* What one batch went through. Times as of ktime_get_ns(). */
struct memsluice_batch_sample {
	enum memsluice_why why;
	int target_node;
	unsigned int folios; /* that were copied */
	u64 bytes;
	unsigned int flushes; /* of TLBs: one for the batch, one for each huge mapping */
	struct memsluice_copy_outcome copy;
	struct memsluice_moved moved;
	u64 began_ns; /* before the first folio was unmapped */
	u64 flushed_ns;
	u64 copied_ns;
	u64 first_ns; /* the first folio was mapped again */
	u64 mapped_ns; /* and the last */
};

#define MEMSLUICE_WHYS (MEMSLUICE_WHY_PLACEMENT + 1)
#define MEMSLUICE_LATENCY_BINS 24

/* How often something took [2^(n-1), 2^n) us; bin 0: less than 1 us; the last: all that is longer. */
struct memsluice_latencies {
	u64 count[MEMSLUICE_LATENCY_BINS];
};

struct memsluice_statistics {
	struct memsluice_moved moved[MEMSLUICE_WHYS][2]; /* by batches; [1]: to a fast node */
	u64 kernel_pages[MEMSLUICE_WHYS]; /* moved by the kernel's own migration */
	u64 batches;
	u64 largest_batch_bytes;
	u64 flushes;
	u64 copied_bytes;
	u64 unmap_ns; /* the phases of all batches: to the flush of the TLBs, */
	u64 copy_ns; /* to the end of the copy, */
	u64 map_ns; /* to the last folio that was mapped again */
	u64 fell_back_folios; /* copied by the CPU after the engine had failed */
	u64 uncopied_folios; /* whose source could not be read */
	struct memsluice_latencies stall; /* of a batch, from unmapping to the last remapping */
	struct memsluice_latencies first; /* until its first folio was mapped again */
};

void memsluice_moved_add(struct memsluice_moved *moved, unsigned int order);

/* Pages were moved by the kernel's own migration. */
void memsluice_statistics_kernel_moved(enum memsluice_why why, u64 pages);
void memsluice_statistics_batch(const struct memsluice_batch_sample *sample);
void memsluice_statistics_read(struct memsluice_statistics *statistics);

#endif
