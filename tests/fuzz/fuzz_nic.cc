// SPDX-License-Identifier: GPL-2.0
// Whatever is posted to the emulated NIC, it touches nothing but what was registered, and goes on.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "daemon/lending/nic/emulated/emulated_nic.h"
#include "daemon/lending/nic/emulated/random_work.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace memsluice::nic;
  if (size < 16) return 0;
  size_t at = 0;
  uint64_t mixed = 0;
  // Bytes of the input, stretched: the work ends with them.
  const auto draw = [&] {
    uint16_t bytes = 0;
    if (at + 2 <= size) std::memcpy(&bytes, data + at, 2);
    at += 2;
    mixed = (mixed ^ bytes) * 0x9E3779B97F4A7C15;
    return bytes % 4 ? uint64_t{bytes} >> 2 : mixed;
  };
  EmulatedNic nic({.max_queue_pairs = 64,
                   .max_completion_queues = 16,
                   .max_keys = 128,
                   .schedule_seed = data[0],
                   .key_seed = data[1]});
  RandomWork work(nic, draw, true);
  while (at < size) work.act();
  for (int turn = 0; turn < 1000 && nic.progress(); turn++) {
  }
  if (!work.untouched()) std::abort();
  return 0;
}
