// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/bandwidth.h"

#include <algorithm>

namespace memsluice {
namespace {

Error not_read_yet() {
  return {
      .code = ErrorCode::kUnavailable, .object = "counters", .message = "have not been read yet"};
}

Error switched_off() {
  return {.code = ErrorCode::kUnavailable,
          .object = "counters",
          .message = "are switched off",
          .hint = "[counters] source says where they are read"};
}

double per_second(uint64_t now, uint64_t earlier, Nanoseconds interval) {
  return static_cast<double>(now - earlier) / std::chrono::duration<double>(interval).count();
}

}  // namespace

BandwidthSample ChannelRates::next(const CountersReading& reading) {
  BandwidthSample sample;
  std::map<std::string, Last> seen;
  for (const ChannelCounts& counts : reading.channels) {
    seen[counts.name] = {reading.time, counts};
    auto last = last_.find(counts.name);
    if (last == last_.end()) continue;
    const ChannelCounts& earlier = last->second.counts;
    const Nanoseconds interval = reading.time - last->second.time;
    // A source that was not written again has nothing new to say; one that has begun anew is only
    // good for the next time.
    if (interval <= Nanoseconds(0)) continue;
    if (counts.read_bytes < earlier.read_bytes || counts.write_bytes < earlier.write_bytes)
      continue;
    sample[counts.name] = {per_second(counts.read_bytes, earlier.read_bytes, interval),
                           per_second(counts.write_bytes, earlier.write_bytes, interval)};
  }
  // What is not in this reading may come back, with what it has counted meanwhile.
  for (auto& [name, last] : seen) last_[name] = std::move(last);
  return sample;
}

Result<std::unique_ptr<Bandwidth>> Bandwidth::create(EventLoop& loop, const Log& log,
                                                     MakeCounters make_counters) {
  auto background = Background::create(loop);
  if (!background.ok()) return std::move(background).error();
  return std::unique_ptr<Bandwidth>(
      new Bandwidth(loop, log, std::move(make_counters), *std::move(background)));
}

Bandwidth::Bandwidth(EventLoop& loop, const Log& log, MakeCounters make_counters,
                     std::unique_ptr<Background> background)
    : loop_(loop),
      log_(log),
      make_counters_(std::move(make_counters)),
      reading_(not_read_yet()),
      background_(std::move(background)) {}

void Bandwidth::configure(const CounterSettings& settings) {
  if (settings == settings_) return;
  settings_ = settings;
  counters_ = make_counters_(settings);
  rates_ = {};
  samples_.clear();
  told_.clear();
  reading_ = counters_ ? not_read_yet() : switched_off();
  timer_.stop();
  if (!counters_) return;
  timer_ = loop_.every(kPeriod, [this] { sample(); });
  sample();
}

void Bandwidth::sample() {
  // One that takes longer than a second: nothing is known of this one.
  if (busy()) return keep({});
  auto begun = background_->run<CountersReading>(
      [counters = counters_] { return counters->read(); },
      [this, counters = counters_](const Result<CountersReading>& reading) {
        if (counters == counters_) take(reading);
      });
  if (!begun.ok()) take(std::move(begun).error());
}

void Bandwidth::take(const Result<CountersReading>& reading) {
  reading_ = reading;
  keep(reading.ok() ? rates_.next(*reading) : BandwidthSample());
  tell(reading);
}

void Bandwidth::keep(BandwidthSample sample) {
  samples_.push_back(std::move(sample));
  if (samples_.size() > kSamplesMax) samples_.pop_front();
}

// Each thing when it begins.
void Bandwidth::tell(const Result<CountersReading>& reading) {
  std::vector<std::string> now =
      reading.ok() ? reading->notices : std::vector{reading.error().describe()};
  // A host without counters is no fault.
  const bool absent = !reading.ok() && reading.error().code == ErrorCode::kUnavailable;
  for (const std::string& notice : now) {
    if (std::find(told_.begin(), told_.end(), notice) != told_.end()) continue;
    if (absent)
      log_.info("bandwidth of channels: {}", notice);
    else
      log_.warning("bandwidth of channels: {}", notice);
  }
  if (now.empty() && !told_.empty()) log_.info("bandwidth of channels: all are counted");
  told_ = std::move(now);
}

}  // namespace memsluice
