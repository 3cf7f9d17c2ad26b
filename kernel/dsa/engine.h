/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_DSA_ENGINE_H
#define MEMSLUICE_DSA_ENGINE_H

#include "kernel/dsa/queue.h"

/* Lists of fewer bytes are left to the CPU. */
extern unsigned int memsluice_dsa_least_bytes;
/* Whether the CPU compares all that was copied. */
extern bool memsluice_dsa_verify;

/**
 * memsluice_dsa_engine_test() - copy through one queue, a page and a batch, and compare
 * @queue: one that nobody else copies through
 *
 * Context: process, may sleep; memsluice_dsa_queues_lock is held.
 * Return: 0; -EIO when a descriptor failed, -ETIMEDOUT when one is late, -EBADMSG when data differs.
 */
int memsluice_dsa_engine_test(struct memsluice_dsa_queue *queue);

/* Offers the engine `dsa`, whatever queues there are now or later. Context: process, may sleep. */
int memsluice_dsa_engine_start(void);
void memsluice_dsa_engine_stop(void);

#endif
