/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_DSA_TRIAL_H
#define MEMSLUICE_DSA_TRIAL_H

#include "kernel/dsa/queue.h"

/**
 * memsluice_dsa_trial() - copy through one queue, a page and a batch, and compare
 * @queue: others may copy through it as well
 *
 * Context: process, may sleep; memsluice_dsa_queues_lock is held.
 * Return: 0; -EIO when a descriptor failed, -ETIMEDOUT when one is late, -EBADMSG when data differs.
 */
int memsluice_dsa_trial(struct memsluice_dsa_queue *queue);

/*
 * How many bytes it takes until a queue is no slower than the CPU, of those that were measured last;
 * what DSA-2LM says in section 3 until one was.
 */
extern unsigned int memsluice_dsa_measured_least_bytes;

/* Finds that out with one queue. Context: as for memsluice_dsa_trial(). */
void memsluice_dsa_measure(struct memsluice_dsa_queue *queue);

#endif
