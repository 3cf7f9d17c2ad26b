// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

extern "C" {
#include "kernel/copy/plan.h"
}

namespace memsluice::test {

constexpr uint32_t kPage = MEMSLUICE_PLAN_PAGE_BYTES;

// What a plan puts into the queues, and what is wrong with it.
struct PlannedQueue {
  std::vector<memsluice_plan_piece> alone;
  std::vector<std::vector<memsluice_plan_piece>> groups;
  std::vector<memsluice_plan_piece> open;
  uint64_t bytes = 0;
};

struct Planned {
  std::vector<PlannedQueue> queues;
  uint64_t calls = 0;
  uint64_t widest_gap_bytes = 0;  // between any two queues, after any folio
  std::string wrong;              // what it said of a group that was not so
};

Planned plan(const std::vector<memsluice_plan_queue>& queues, const std::vector<uint32_t>& folios,
             uint32_t alone_bytes);

// Empty if the plan keeps every promise of plan.h: each byte once, no limit exceeded, queues within
// one page of each other, groups as large as they can be, and no more calls than it says.
std::string what_is_wrong(const Planned& planned, const std::vector<memsluice_plan_queue>& queues,
                          const std::vector<uint32_t>& folios, uint32_t alone_bytes);

}  // namespace memsluice::test
