/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_DSA_ENGINE_H
#define MEMSLUICE_DSA_ENGINE_H

#include "kernel/dsa/queue.h"

/* Lists of fewer bytes are left to the CPU; AUTO: of fewer than was measured. */
#define MEMSLUICE_DSA_LEAST_AUTO UINT_MAX
extern unsigned int memsluice_dsa_least_bytes;
/* What a queue copies at once. */
extern unsigned int memsluice_dsa_most_bytes;
/* Whether the CPU compares all that was copied. */
extern bool memsluice_dsa_verify;

struct memsluice_dsa_engine_counts {
	u64 calls;
	u64 bytes;
	u64 declined_small; /* calls that were left to the CPU: too few bytes, */
	u64 declined_busy; /* queues coming or going, */
	u64 declined_share; /* the tenant has its share, or the queues have all they may, */
	u64 declined_no_queue; /* no queue that works */
	u64 failed_folios;
	u64 late_folios;
	u64 differing_folios; /* found by verify */
	u64 submit_ns; /* spent before all descriptors of a call were submitted */
	u64 slept; /* calls that waited for an interrupt */
	u64 ns_per_mib; /* of one queue, as learned from the last calls */
};

struct memsluice_dsa_engine_counts memsluice_dsa_engine_counts(void);

/* What the CPU is left with now. */
u64 memsluice_dsa_least_bytes_now(void);

/* Offers the engine `dsa`, whatever queues there are now or later. Context: process, may sleep. */
int memsluice_dsa_engine_start(void);
void memsluice_dsa_engine_stop(void);

#endif
