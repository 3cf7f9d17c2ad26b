/* SPDX-License-Identifier: GPL-2.0 */
/* What the BPF programs of lost_time.bpf.c count, for them and for the daemon. */
#pragma once

#include <linux/types.h>

/* NOLINTBEGIN(readability-identifier-naming): C of the kernel */
enum {
  LOST_TIME_TENANTS_MAX = 16384,
  LOST_TIME_BINS = 24,
};

enum lost_time_cause {
  LOST_TIME_PAGE_FAULT,
  LOST_TIME_MIGRATION,
  LOST_TIME_RECLAIM,
  LOST_TIME_CAUSES,
};

struct lost_time_histogram {
  __u64 total_ns;
  /* How often it took less than 1 us, less than 2, less than 4, and so on; the last: longer. */
  __u64 count[LOST_TIME_BINS];
};

/* Of one tenant, by cause. */
struct lost_time {
  struct lost_time_histogram causes[LOST_TIME_CAUSES];
};
/* NOLINTEND(readability-identifier-naming) */
