/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_COPY_ENGINES_H
#define MEMSLUICE_COPY_ENGINES_H

#include <linux/list.h>

#include "include/uapi/memsluice.h"

struct folio;
struct module;
struct seq_file;

/* One folio to copy; nobody else writes to either side meanwhile. */
struct memsluice_copy {
	struct folio *source;
	struct folio *destination; /* of the same size */
	int error; /* out: 0 or a negative errno; -EAGAIN: the engine has not tried */
	/*
	 * out: with an error, the engine may still write to the destination, and has a reference of
	 * its own to it. Whoever gave the folio drops his, and never looks at it again.
	 */
	bool late;
};

/* What copies folios. Another module may bring one. */
struct memsluice_copy_engine {
	const char *name;
	struct module *owner;
	int rank; /* the registered engine of the highest rank copies; `cpu` has 0 */
	/*
	 * Copies as many folios as it can and sets every error, in whatever order. When it returns,
	 * nothing of it writes to any destination any more, but to those that it says are late.
	 *
	 * Context: process; the folios are locked and unmapped: whoever touches them waits. May
	 * sleep, must not allocate memory with reclaim.
	 */
	void (*copy)(struct memsluice_copy *copies, unsigned int count);
	/* Lines about it for /proc/memsluice/engines; may be NULL. Context: process, may sleep. */
	void (*show)(struct seq_file *file);
	/*
	 * For an engine with queues, all three of them. Context: process, may sleep.
	 * Fills in how many queues it has, and its counts.
	 */
	void (*status)(struct memsluice_engine_status *status);
	/* Fills in the queue that stands at its index. Return: false when there is none. */
	bool (*queue)(struct memsluice_engine_queue *queue);
	/* Return: what enum memsluice_engine_action says; -EINVAL when it is none. */
	int (*act)(enum memsluice_engine_action action, const char *queue);
	/* private: */
	struct list_head link;
};

/**
 * memsluice_copy_engine_register() - offer an engine
 * @engine: stays the caller's, and in place until it is unregistered
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL when something is missing or the rank is below 1; -EEXIST when there is one of
 * that name or rank.
 */
int memsluice_copy_engine_register(struct memsluice_copy_engine *engine);

/* Returns when no copy uses the engine any more. Context: process, may sleep. */
void memsluice_copy_engine_unregister(struct memsluice_copy_engine *engine);

/* What the copies of one batch went through. */
struct memsluice_copy_outcome {
	unsigned int declined; /* folios that the engine left to the CPU */
	unsigned int fell_back; /* folios that the engine failed and the CPU copied */
	unsigned int failed; /* folios that could not be copied at all */
};

/*
 * The engine that copies now. It cannot go away until memsluice_copy_end(), which the same task
 * calls; taken before anything is unmapped, since it may wait for an engine that leaves.
 */
const struct memsluice_copy_engine *memsluice_copy_begin(void);
/* The same for who must not wait; NULL: an engine comes or goes. */
const struct memsluice_copy_engine *memsluice_copy_try_begin(void);
void memsluice_copy_end(void);

/**
 * memsluice_copy() - copy a batch of folios
 * @engine: of memsluice_copy_begin()
 * @copies: what to copy; every error is set
 * @count: number of @copies
 *
 * What the engine fails is copied again by the CPU, that alone, unless it is late: that is the
 * caller's, who has to find another destination. What fails there, too, has a source that cannot be
 * read.
 */
struct memsluice_copy_outcome memsluice_copy(const struct memsluice_copy_engine *engine,
					     struct memsluice_copy *copies, unsigned int count);

/* The ioctls of these names, but for who may. Context: process, may sleep. Return: what they say. */
int memsluice_copy_engine_status(struct memsluice_engine_status *status);
int memsluice_copy_engine_queue(struct memsluice_engine_queue *queue);
int memsluice_copy_engine_act(const struct memsluice_engine_act *act);

/* Every engine with its rank, and what it says of itself. Context: process, may sleep. */
void memsluice_copy_engines_show(struct seq_file *file);

#endif
