/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_MIGRATE_REQUESTS_H
#define MEMSLUICE_MIGRATE_REQUESTS_H

#include <linux/mm_types.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "kernel/migrate/collect.h"

struct cgroup;

struct memsluice_request;

/* What a request shall move. Rights have been checked; the request takes over the references. */
struct memsluice_request_spec {
	enum memsluice_migrate_kind kind;
	bool all_mappings;
	bool in_tree; /* by the kernel's own migration only */
	u32 mib_per_s; /* 0: no limit */
	int source_node; /* TENANT_NODE; TENANT_PLACED: or NUMA_NO_NODE, all */
	int target_node; /* not TENANT_PLACED */
	struct mm_struct *mm; /* RANGE, ADDRESSES: mmgrab()ed */
	pid_t pid; /* of that mm, for people */
	unsigned long start, end; /* RANGE */
	u64 *addresses; /* ADDRESSES: kvmalloc()ed */
	s32 *results; /* NULL, or as many, kvmalloc()ed */
	unsigned long count;
	struct cgroup *cgroup; /* TENANT_NODE, TENANT_PLACED */
	u64 cgroup_id; /* of that cgroup */

	/* TENANT_PLACED. Which folios are the tenant's, and where each goes; by @cgroup_id. */
	bool (*is_of)(struct folio *folio, void *cgroup_id);
	memsluice_target_of_t *target_of;
	/* Instead of moving: what else is done. Calls memsluice_request_goes_on() now and then. */
	int (*do_instead)(u64 cgroup_id, struct memsluice_request *request);
};

struct memsluice_request {
	u64 id;
	struct memsluice_request_spec spec;
	refcount_t references;
	struct list_head link;
	struct work_struct work;
	wait_queue_head_t ended;
	bool cancel;
	u64 begun_ns;

	spinlock_t lock; /* what follows */
	enum memsluice_request_state state;
	int error;
	u64 total_pages;
	struct memsluice_counts counts;
};

/**
 * memsluice_request_new() - a request that has not begun
 * @spec: what is to be moved; its references are the request's from now on, also on failure
 *
 * Return: the request, with one reference; ERR_PTR(-ENOMEM).
 */
struct memsluice_request *memsluice_request_new(struct memsluice_request_spec *spec);
void memsluice_request_put(struct memsluice_request *request);

/* Runs to the end in the caller's context; a fatal or other signal cancels. */
void memsluice_request_run(struct memsluice_request *request);
/* Runs in a worker. */
void memsluice_request_start(struct memsluice_request *request);
/* Returns at once; the request ends soon. Harmless when it has ended. */
void memsluice_request_cancel(struct memsluice_request *request);
/* Waits until a started request has ended. */
void memsluice_request_wait(struct memsluice_request *request);
bool memsluice_request_has_ended(struct memsluice_request *request);

/*
 * For who does a request's work: adds what has been done, and clears it. Return: false when the
 * request is to end now.
 */
bool memsluice_request_goes_on(struct memsluice_request *request, struct memsluice_counts *counts);

void memsluice_request_status(struct memsluice_request *request,
			      struct memsluice_request_status *status);

/*
 * Calls @show for each request that runs and for the last that have ended, oldest first, with the
 * list locked: it must not sleep.
 */
void memsluice_requests_each(void (*show)(struct memsluice_request *request, void *private),
			     void *private);

int memsluice_requests_start(void);
void memsluice_requests_stop(void);

#endif
