// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/lost_times.h"

namespace memsluice {

void LostTimes::configure(bool wanted) {
  // What could not be loaded is tried again whenever the configuration is.
  if (wanted == wanted_ && !error_) return;
  wanted_ = wanted;
  error_.reset();
  counters_.reset();
  if (!wanted) return;
  auto loaded = load_();
  if (!loaded.ok()) return fail(std::move(loaded).error());
  counters_ = *std::move(loaded);
  log_.info("the time that tenants lose is counted");
}

void LostTimes::set_tenants(const std::set<uint64_t>& tenants) {
  if (counters_ == nullptr) return;
  auto set = counters_->set_tenants(tenants);
  if (set.ok())
    error_.reset();
  else if (!error_)
    fail(std::move(set).error());
}

std::optional<lost_time> LostTimes::of(uint64_t tenant) const {
  if (counters_ == nullptr) return std::nullopt;
  auto lost = counters_->of(tenant);
  return lost.ok() ? std::optional(*lost) : std::nullopt;
}

void LostTimes::fail(Error error) {
  log_.warning("the time that tenants lose is not counted: {}", error.describe());
  error_ = std::move(error);
}

}  // namespace memsluice
