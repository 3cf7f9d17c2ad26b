// SPDX-License-Identifier: GPL-2.0
// A copy plan for queues and folios that nobody would think of: it keeps its promises, or this
// ends.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/unit/kernel/plan_check.h"

using namespace memsluice::test;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t queue_count = 1 + data[0] % MEMSLUICE_PLAN_QUEUES_MAX;
  const uint32_t alone_bytes = data[1] * kPage;
  std::vector<memsluice_plan_queue> queues;
  size_t at = 2;
  for (; queues.size() < queue_count && at + 2 <= size; at += 2)
    queues.push_back({.max_transfer_bytes = (1U + data[at]) * kPage, .max_batch = data[at + 1]});
  if (queues.empty()) return 0;
  std::vector<uint32_t> folios;
  // Of any size, or of the size that a folio may have.
  for (; at < size && folios.size() < 4096; at++)
    folios.push_back(data[at] < 128 ? (1U + data[at]) * kPage : kPage << (data[at] % 12));
  const std::string wrong =
      what_is_wrong(plan(queues, folios, alone_bytes), queues, folios, alone_bytes);
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "%s\n", wrong.c_str());
  std::abort();
}
