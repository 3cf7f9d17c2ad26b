// SPDX-License-Identifier: GPL-2.0
/*
 * How long the tasks of each tenant were held up by page faults, migrations and reclaim.
 *
 * Whoever enters one of them notes the time and its tenant, the nearest cgroup at or above its own
 * that is in the map `tenants`; whoever leaves it adds what has passed. One of them within the
 * other (reclaim in a page fault) counts for both; one within itself from its inner beginning.
 */
#include <linux/bpf.h>

/* After it, whose types they want. */
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "daemon/bpf/lost_time_map.h"

/* What is used of the kernel's structures. libbpf finds out where it lies in the running kernel. */
struct cgroup {
  int level;
} __attribute__((preserve_access_index));

struct css_set {
  struct cgroup* dfl_cgrp;
} __attribute__((preserve_access_index));

struct task_struct {
  struct css_set* cgroups;
} __attribute__((preserve_access_index));

/* Deeper trees of cgroups are looked at from below up to here. */
#define LEVELS_MAX 32

/* By cgroup id. The daemon says who is a tenant. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, LOST_TIME_TENANTS_MAX);
  __type(key, __u64);
  __type(value, struct lost_time);
} tenants SEC(".maps");

struct begun {
  __u64 tenant;
  __u64 at_ns[LOST_TIME_CAUSES]; /* 0: not in it */
};

struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct begun);
} tasks SEC(".maps");

/* 0: none. */
static __always_inline __u64 tenant_of_current(void) {
  struct task_struct* task = bpf_get_current_task_btf();
  const int own = BPF_CORE_READ(task, cgroups, dfl_cgrp, level);

  for (int up = 0; up < LEVELS_MAX && up <= own; up++) {
    __u64 id = bpf_get_current_ancestor_cgroup_id(own - up);

    if (bpf_map_lookup_elem(&tenants, &id)) return id;
  }
  return 0;
}

static __always_inline int begin(enum lost_time_cause cause) {
  const __u64 tenant = tenant_of_current();
  struct begun* begun;

  if (!tenant) return 0;
  begun =
      bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
  if (!begun) return 0;
  begun->tenant = tenant;
  begun->at_ns[cause] = bpf_ktime_get_ns();
  return 0;
}

static __always_inline __u32 bin_of(__u64 ns) {
  __u64 us = ns / 1000;
  __u32 bin = 0;

  for (int i = 0; i < LOST_TIME_BINS - 1 && us; i++) {
    us >>= 1;
    bin++;
  }
  return bin;
}

static __always_inline int end(enum lost_time_cause cause) {
  struct begun* begun = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
  struct lost_time_histogram* histogram;
  struct lost_time* lost;
  __u64 tenant, ns;
  __u32 bin;

  if (!begun || !begun->at_ns[cause]) return 0;
  ns = bpf_ktime_get_ns() - begun->at_ns[cause];
  begun->at_ns[cause] = 0;
  tenant = begun->tenant;
  lost = bpf_map_lookup_elem(&tenants, &tenant);
  if (!lost) return 0;
  histogram = &lost->causes[cause];
  bin = bin_of(ns);
  if (bin >= LOST_TIME_BINS) return 0;
  /* Atomic, because another task may come in between on this CPU. */
  __sync_fetch_and_add(&histogram->total_ns, ns);
  __sync_fetch_and_add(&histogram->count[bin], 1);
  return 0;
}

#define BEGINS(section, name, cause)     \
  SEC(section) int name(void* context) { \
    return begin(cause);                 \
  }
#define ENDS(section, name, cause)       \
  SEC(section) int name(void* context) { \
    return end(cause);                   \
  }

BEGINS("fentry/handle_mm_fault", fault_begins, LOST_TIME_PAGE_FAULT)
ENDS("fexit/handle_mm_fault", fault_ends, LOST_TIME_PAGE_FAULT)

/* Waiting for somebody else to move a page, and moving pages oneself. */
BEGINS("fentry/migration_entry_wait", wait_begins, LOST_TIME_MIGRATION)
ENDS("fexit/migration_entry_wait", wait_ends, LOST_TIME_MIGRATION)
BEGINS("fentry/pmd_migration_entry_wait", huge_wait_begins, LOST_TIME_MIGRATION)
ENDS("fexit/pmd_migration_entry_wait", huge_wait_ends, LOST_TIME_MIGRATION)
BEGINS("tp_btf/mm_migrate_pages_start", migrate_begins, LOST_TIME_MIGRATION)
ENDS("tp_btf/mm_migrate_pages", migrate_ends, LOST_TIME_MIGRATION)

BEGINS("tp_btf/mm_vmscan_direct_reclaim_begin", direct_reclaim_begins, LOST_TIME_RECLAIM)
ENDS("tp_btf/mm_vmscan_direct_reclaim_end", direct_reclaim_ends, LOST_TIME_RECLAIM)
BEGINS("tp_btf/mm_vmscan_memcg_reclaim_begin", memcg_reclaim_begins, LOST_TIME_RECLAIM)
ENDS("tp_btf/mm_vmscan_memcg_reclaim_end", memcg_reclaim_ends, LOST_TIME_RECLAIM)

char LICENSE[] SEC("license") = "GPL";
