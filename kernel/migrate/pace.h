/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_MIGRATE_PACE_H
#define MEMSLUICE_MIGRATE_PACE_H

#include <linux/types.h>

/*
 * How long the pages of a batch stay unmapped, learned from the batches before. Pure: values in,
 * values out; also compiled into the tests on the host.
 */
struct memsluice_pace {
	u64 folio_ns; /* to unmap and remap one folio, whatever its size */
	u64 mib_ns; /* to copy 1 MiB */
};

/* What one batch took: less than four hours. */
struct memsluice_pace_sample {
	u64 folios;
	u64 bytes;
	u64 copy_ns;
	u64 total_ns; /* from unmapping the first folio to remapping the last, the copy included */
};

/* A start that is too slow for any machine: the first batches are small. */
struct memsluice_pace memsluice_pace_initial(void);

/* How long a batch of at most 2^33 bytes will take. */
u64 memsluice_pace_ns(const struct memsluice_pace *pace, u64 folios, u64 bytes);

/*
 * One eighth of what a sample says is believed; and a sample that is more than twice as slow as
 * expected, because a CPU was taken away meanwhile, counts as twice as slow. Values stay between 1
 * ns and 1 s.
 */
struct memsluice_pace memsluice_pace_learn(const struct memsluice_pace *pace,
					   const struct memsluice_pace_sample *sample);

#endif
