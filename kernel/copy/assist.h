/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_COPY_ASSIST_H
#define MEMSLUICE_COPY_ASSIST_H

#include <linux/types.h>

struct seq_file;

/*
 * The kernel's own migrations (demotion by reclaim, NUMA balancing, compaction, ...) copy a folio at
 * a time with folio_mc_copy(). For the reasons that are asked for, the copy engine copies instead:
 * what is large enough for it, which for DSA is a huge page rather than a small one.
 */

/**
 * memsluice_assist_set() - whose copies go through the engine
 * @text: names of reasons, as the tracepoint mm_migrate_pages prints them, with white space or
 * commas between; "none"
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for a word that is no reason; -EBUSY when something else (a livepatch) has
 * replaced folio_mc_copy(); -EOPNOTSUPP when this kernel cannot replace functions.
 */
int memsluice_assist_set(const char *text);

/* The same words. Return: how many bytes, as sysfs_emit(). */
int memsluice_assist_get(char *text);

/* A line for each reason whose copies an engine has made. */
void memsluice_assist_show(struct seq_file *file);

/* Nothing of it runs any more, nor will. */
void memsluice_assist_stop(void);

#endif
