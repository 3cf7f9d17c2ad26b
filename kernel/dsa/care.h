/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_DSA_CARE_H
#define MEMSLUICE_DSA_CARE_H

#include "kernel/dsa/queue.h"

/*
 * What is done for queues that do not work: what a late descriptor may still write to is released
 * when it has ended, and a queue that has rested is tested, and copies again when it passes.
 */

/* It fails: it copies nothing for a while, longer each time. With the queue's lock held. */
void memsluice_dsa_rest(struct memsluice_dsa_queue *queue);

/* The state of a queue has changed. Context: any. */
void memsluice_dsa_care_soon(void);

/* It is late: the queue has it, and the module stays, until it ends. With the queue's lock held. */
void memsluice_dsa_keep_late(struct memsluice_dsa_slot *slot);

/*
 * Waits, for two seconds at most, until nothing is late any more, and ends what has ended. Return:
 * whether that is so. Context: process; nobody copies through the queue.
 */
bool memsluice_dsa_wait_for_late(struct memsluice_dsa_queue *queue);

/* The device has forgotten all descriptors, and idxd has freed them. */
void memsluice_dsa_release_all(struct memsluice_dsa_queue *queue);

/* MEMSLUICE_ENGINE_TEST and _DRAIN. Context: process, may sleep. Return: what they say. */
int memsluice_dsa_test_queue(const char *name);
int memsluice_dsa_drain_queue(const char *name);

void memsluice_dsa_care_stop(void);

#endif
