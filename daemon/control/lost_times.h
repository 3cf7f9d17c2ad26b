// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>

#include "daemon/base/log.h"
#include "daemon/bpf/lost_time.h"

namespace memsluice {

// The counters of the time that tenants lose, while the configuration wants them.
class LostTimes {
 public:
  // The log must outlive it.
  LostTimes(LoadLostTimeCounters load, const Log& log) : load_(std::move(load)), log_(log) {}

  void configure(bool wanted);
  void set_tenants(const std::set<uint64_t>& tenants);

  // Nothing if it is not counted.
  std::optional<lost_time> of(uint64_t tenant) const;
  bool wanted() const { return wanted_; }
  // Why nothing is counted although it is wanted.
  const std::optional<Error>& error() const { return error_; }

 private:
  void fail(Error error);

  const LoadLostTimeCounters load_;
  const Log& log_;
  bool wanted_ = false;
  std::optional<Error> error_;
  std::unique_ptr<LostTimeCounters> counters_;
};

}  // namespace memsluice
