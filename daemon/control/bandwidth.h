// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/background.h"
#include "daemon/base/event_loop.h"
#include "daemon/base/log.h"
#include "daemon/host/counters/channel_counters.h"
#include "daemon/host/paths.h"

namespace memsluice {

struct ChannelRate {
  double read_bytes_per_s = 0;
  double write_bytes_per_s = 0;

  bool operator==(const ChannelRate&) const = default;
};

// By channel. One that is left out was not counted, whatever it moved.
using BandwidthSample = std::map<std::string, ChannelRate>;

// Turns readings into rates, each since the last time that the channel was read.
class ChannelRates {
 public:
  BandwidthSample next(const CountersReading& reading);

 private:
  struct Last {
    Nanoseconds time{0};
    ChannelCounts counts = {};
  };
  std::map<std::string, Last> last_;
};

// Reads the counters once a second, beside the loop, and keeps the last five minutes.
class Bandwidth {
 public:
  static constexpr Milliseconds kPeriod{1000};
  static constexpr size_t kSamplesMax = 300;
  using MakeCounters = std::function<std::unique_ptr<ChannelCounters>(const CounterSettings&)>;

  // The loop and the log must outlive it.
  static Result<std::unique_ptr<Bandwidth>> create(EventLoop& loop, const Log& log,
                                                   MakeCounters make_counters);

  // Begins anew if they differ from those before.
  void configure(const CounterSettings& settings);

  const CounterSettings& settings() const { return settings_; }
  // The last one: an error says why there is nothing.
  const Result<CountersReading>& reading() const { return reading_; }
  // Oldest first, one a second; an empty one says that nothing was read then.
  const std::deque<BandwidthSample>& samples() const { return samples_; }
  bool busy() const { return background_->running() != 0; }

 private:
  Bandwidth(EventLoop& loop, const Log& log, MakeCounters make_counters,
            std::unique_ptr<Background> background);
  void sample();
  void take(const Result<CountersReading>& reading);
  void keep(BandwidthSample sample);
  void tell(const Result<CountersReading>& reading);

  EventLoop& loop_;
  const Log& log_;
  const MakeCounters make_counters_;
  CounterSettings settings_ = {.source = ""};
  // Also held by a reading that is under way.
  std::shared_ptr<ChannelCounters> counters_;
  ChannelRates rates_;
  Result<CountersReading> reading_;
  std::deque<BandwidthSample> samples_;
  std::vector<std::string> told_;
  EventLoop::Timer timer_;
  std::unique_ptr<Background> background_;
};

}  // namespace memsluice
