// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace memsluice::traffic {

// Times are picoseconds since the plugin was loaded: a line of a fast channel takes a few
// nanoseconds, and whole ones would round its bandwidth. 64 bits last for 213 days.
inline constexpr uint64_t kPicosecondsPerNanosecond = 1000;
inline constexpr uint64_t kPicosecondsPerSecond = 1'000'000'000'000;

// A longer queue than this is a scribble in the shared file, not a load.
inline constexpr uint64_t kMaxBacklogPs = kPicosecondsPerSecond / 10;

// A service rate below 1 MB/s would let one miss stall a vCPU for longer than the guest bears.
inline constexpr uint64_t kMinBytesPerSecond = 1'000'000;

inline uint64_t service_time_ps(uint64_t bytes, uint64_t bytes_per_second) {
  return bytes * kPicosecondsPerSecond / bytes_per_second;
}

// Puts a transfer into a channel's queue and returns when it is done. `next_free_ps` is the
// channel's whole state, so agents in several processes may share it.
inline uint64_t occupy_channel(std::atomic<uint64_t>& next_free_ps, uint64_t arrival_ps,
                               uint64_t service_ps) {
  uint64_t next_free = next_free_ps.load(std::memory_order_relaxed);
  uint64_t done;
  do {
    done = std::clamp(next_free, arrival_ps, arrival_ps + kMaxBacklogPs) + service_ps;
  } while (!next_free_ps.compare_exchange_weak(next_free, done, std::memory_order_relaxed));
  return done;
}

// How long one vCPU must be held back. A clock gives now_ps() and relax(), which passes a little
// of the spinning core's time.
//
// Delays too small to spin for are summed up and paid in one go, so totals are exact whatever
// the clock's grain: time() is where the vCPU would be had it paid, and queues are entered at
// that time. What a payment overshoots is given back, up to the grain at which debts are paid;
// more than that was the host taking the core away, which is no service to the guest.
template <typename Clock>
class Delay {
 public:
  static constexpr int64_t kPayAtPs = 2'000'000;
  // Lines that may wait in the channel's write queue before the vCPU has to wait as well.
  static constexpr uint64_t kWriteQueueLines = 64;

  explicit Delay(Clock& clock) : clock_(clock) {}

  // A load or a read for ownership: the vCPU waits for its turn, the transfer and the latency.
  // Returns that wait.
  uint64_t read(std::atomic<uint64_t>* next_free_ps, uint64_t service_ps, uint64_t latency_ps) {
    uint64_t wait_ps = latency_ps;
    if (next_free_ps != nullptr) {
      const uint64_t now = time();
      wait_ps += occupy_channel(*next_free_ps, now, service_ps) - now;
    }
    return owe(wait_ps);
  }

  // A write-back is posted: the vCPU waits only for room in the channel's write queue.
  uint64_t write_back(std::atomic<uint64_t>* next_free_ps, uint64_t service_ps) {
    if (next_free_ps == nullptr) return 0;
    const uint64_t now = time();
    const uint64_t accepted = now + kWriteQueueLines * service_ps;
    const uint64_t done = occupy_channel(*next_free_ps, now, service_ps);
    return done > accepted ? owe(done - accepted) : 0;
  }

 private:
  uint64_t time() { return clock_.now_ps() + static_cast<uint64_t>(debt_ps_); }

  uint64_t owe(uint64_t wait_ps) {
    debt_ps_ += static_cast<int64_t>(wait_ps);
    if (debt_ps_ >= kPayAtPs) pay();
    return wait_ps;
  }

  void pay() {
    const uint64_t end = clock_.now_ps() + static_cast<uint64_t>(debt_ps_);
    uint64_t now;
    while ((now = clock_.now_ps()) < end) clock_.relax();
    debt_ps_ = -std::min(static_cast<int64_t>(now - end), kPayAtPs);
  }

  Clock& clock_;
  int64_t debt_ps_ = 0;
};

}  // namespace memsluice::traffic
