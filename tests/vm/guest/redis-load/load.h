// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/result.h"
#include "tests/vm/guest/redis-load/connection.h"
#include "tests/vm/guest/redis-load/distribution.h"
#include "tests/vm/guest/redis-load/latency_histogram.h"

namespace memsluice::guest {

// The data set, as `fill` notes it in the server for the commands that follow.
struct DataSet {
  uint64_t keys = 0;
  uint64_t value_bytes = 0;
};

struct Errors {
  uint64_t missing = 0;  // a key that is not there, such as one the server has evicted
  uint64_t wrong = 0;    // a value that is not the one last written, or not right in every byte
  uint64_t refused = 0;  // an error that the server replied

  uint64_t total() const { return missing + wrong + refused; }
};

struct RunOptions {
  double seconds = 10;
  Skew skew;
  bool scatter = false;
  double shift_every_seconds = 0;
  uint64_t first_shift = 0;  // as if so many shifts were over when the load begins
  unsigned clients = 4;
  unsigned pipeline = 1;
  unsigned write_percent = 10;
  uint64_t seed = 1;
};

struct RunReport {
  uint64_t reads = 0;
  uint64_t writes = 0;
  double seconds = 0;
  LatencyHistogram latency;                 // from when a pipeline was sent to each of its replies
  std::vector<double> requests_per_second;  // for each second of the run
  Errors errors;
};

struct VerifyReport {
  uint64_t keys = 0;
  bool versions_known = false;  // false after a run that was cut short
  Errors errors;
};

Result<void> fill(const Server& server, const DataSet& data);

// Reads and writes keys and verifies every value read. The keys' versions are in the server
// between runs, so only one run may use a server at a time.
Result<RunReport> run(const Server& server, const RunOptions& options);

Result<VerifyReport> verify(const Server& server);

}  // namespace memsluice::guest
