// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/base/json.h"
#include "daemon/base/result.h"

// How long devices of hardware would take for what the emulated ones have done. Pure.
namespace memsluice::dsa {

// What is known of the hardware; the defaults, and where they come from:
struct TimingConstants {
  // DSA-2LM (ATC '25), 2: "about 32 GB/s a device".
  double device_bytes_per_ns = 32;
  // The same: four devices of a socket reach about 110 GB/s together.
  double all_bytes_per_ns = 110;
  // For so long an engine is busy with a descriptor beside its data. Kuper and others (ASPLOS '24):
  // a device overtakes a core at 256 B to 1 KiB a descriptor when these are pipelined; at 512 B,
  // and 7.4 GB/s of a core.
  double descriptor_ns = 70;
  // What cannot be overlapped: from the submission to the first byte, and from the last byte until
  // the record is seen. The same: when each is waited for, a device overtakes a core at about 4
  // KiB.
  double latency_ns = 400;
  // DSA-2LM, 3: a core needs about 6 ns a page to submit by physical address.
  double submit_ns = 6;
  unsigned engines = 4;  // of a device, as on Sapphire Rapids
};

// What a queue was given as one: a descriptor, or a batch of them.
struct Submission {
  unsigned device = 0;
  unsigned queue = 0;           // of the device
  std::vector<uint64_t> bytes;  // of each copy, in order
};

struct ModelledTime {
  double ns = 0;       // from the first submission until the last record is seen
  double peak_ns = 0;  // if nothing but bandwidth mattered, with all the devices that were used
  uint64_t bytes = 0;
  uint64_t submissions = 0;
  uint64_t copies = 0;
};

/*
 * One core submits in the given order. An engine that is free takes the next submission of its
 * device's queues, which take turns; the copies of a batch follow one another in it. Engines that
 * move data share their device's bandwidth, and all of them the memory's.
 */
ModelledTime model_time(const std::vector<Submission>& submissions,
                        const TimingConstants& constants);

// The copies of traces, one for each device, as its method read-trace prints them. Queues are taken
// to have been filled in turn: what had the same place in each goes together.
Result<std::vector<Submission>> submissions_of(const std::vector<Json>& traces);

}  // namespace memsluice::dsa
