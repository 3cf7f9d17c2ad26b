/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_DSA_CALL_H
#define MEMSLUICE_DSA_CALL_H

#include <linux/completion.h>

#include "kernel/copy/engines.h"
#include "kernel/copy/plan.h"
#include "kernel/dsa/queue.h"

/* How long descriptors may take, from the first one that is submitted. */
extern unsigned int memsluice_dsa_deadline_us;
/* For how long a CPU is kept busy waiting; who waits longer sleeps until an interrupt. */
extern unsigned int memsluice_dsa_spin_us;

struct memsluice_dsa_call_result {
	u64 bytes; /* of folios that were copied whole */
	u64 submit_ns; /* until all descriptors were submitted */
	unsigned int failed; /* folios */
	unsigned int late; /* of these: folios that a queue may still write to */
	bool slept;
};

/* One list of folios on its way through some queues. */
struct memsluice_dsa_call {
	/* Set by who calls: */
	struct memsluice_copy *copies;
	unsigned int count;
	unsigned int queue_count;
	struct memsluice_dsa_queue *queues[MEMSLUICE_PLAN_QUEUES_MAX];
	u64 expected_ns; /* what it will take, by what is known */
	/* private: */
	struct memsluice_dsa_call_result result;
	struct memsluice_plan plan;
	struct memsluice_plan_queue limits[MEMSLUICE_PLAN_QUEUES_MAX];
	struct memsluice_dsa_list *open[MEMSLUICE_PLAN_QUEUES_MAX];
	struct memsluice_dsa_slot *drains[MEMSLUICE_PLAN_QUEUES_MAX];
	struct list_head under_way;
	struct completion woken;
	u64 deadline_ns;
	bool interrupts_come; /* from each of the queues */
};

/**
 * memsluice_dsa_call_run() - copy folios through queues
 * @call: with what is to be set set; anything else is not looked at
 *
 * Sets the error of every copy, and which of them are late: their descriptors, lists and
 * destinations are the queue's until they have ended. Returns at the deadline at the latest, but
 * for the time that the scheduler takes.
 *
 * Context: process, may sleep, allocates nothing; memsluice_dsa_queues_lock is held.
 */
struct memsluice_dsa_call_result memsluice_dsa_call_run(struct memsluice_dsa_call *call);

/* Compares a part of two folios, a whole number of pages. Context: process, may sleep. */
bool memsluice_dsa_differs(struct folio *one, struct folio *other, size_t offset_bytes,
			   size_t bytes);

/* For idxd: a descriptor with an interrupt, which is always a DRAIN, has ended. */
void memsluice_dsa_drained(struct memsluice_dsa_queue *queue, struct idxd_desc *desc);

#endif
