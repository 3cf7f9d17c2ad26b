// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "tools/memsluice-dsa/descriptor.h"

namespace memsluice::dsa {

// A descriptor that an engine has taken from a work queue.
struct Job {
  unsigned engine = 0;
  unsigned queue = 0;
  uint64_t sequence = 0;    // among those of its queue
  uint64_t generation = 0;  // resets that the device had gone through
  Descriptor descriptor = {};
};

// A set of work queues, a bit for each.
using QueueMask = uint64_t;

// Work queues, and engines that empty them: a thread each, so that jobs end in any order. Queues
// and engines meet in groups; among the queues of a group, priorities are weights.
class Engines {
 public:
  using Work = std::function<void(const Job& job)>;
  enum class Accepted { kYes, kClosed, kFull };

  static constexpr unsigned kNoGroup = ~0U;

  // @work is called by any engine's thread, by several at once.
  Engines(unsigned engines, unsigned queues, Work work);
  Engines(const Engines&) = delete;
  Engines& operator=(const Engines&) = delete;
  ~Engines();

  void set_group(unsigned engine, unsigned group);
  // @priority: 1 to 15.
  void open(unsigned queue, unsigned entries, unsigned group, unsigned priority);
  Accepted submit(unsigned queue, const Descriptor& descriptor);
  // Nothing more is accepted; what waits is still executed.
  void close(QueueMask queues);
  // Forgets what waits.
  void drop_waiting(QueueMask queues);
  // Waits until what these queues had accepted before has ended. Return: false if a reset came in
  // between.
  [[nodiscard]] bool drain(QueueMask queues);
  // Closes everything, forgets what waits, lets go of held engines. No running job is wanted any
  // more.
  void abandon();
  // The same, and waits until nobody works.
  void reset();

  // For use in @work.
  // Whether no reset has come since the job was taken.
  [[nodiscard]] bool is_wanted(const Job& job) const;
  // Wait, as long as the job is wanted. Return: whether it still is.
  [[nodiscard]] bool wait_for_earlier(const Job& job);
  [[nodiscard]] bool wait_while_held(const Job& job);
  [[nodiscard]] bool wait(const Job& job, std::chrono::nanoseconds time);

  // An engine that is held stops before its next job, or in the middle of one if its work asks.
  void hold(unsigned engine, bool held);
  [[nodiscard]] bool is_held(unsigned engine) const;
  // Jobs that wait in the queue.
  [[nodiscard]] size_t waiting(unsigned queue) const;
  // Jobs that engines have taken and not ended.
  [[nodiscard]] size_t running() const;

 private:
  struct Queue {
    bool open = false;
    size_t entries = 0;
    unsigned group = kNoGroup;
    int priority = 1;
    int turn = 0;  // of smooth weighted round robin: the highest is next
    uint64_t next_sequence = 0;
    std::deque<Job> jobs;
  };
  struct Engine {
    unsigned group = kNoGroup;
    bool held = false;
    std::optional<Job> job;
    std::thread thread;
  };

  void serve(unsigned number);
  std::optional<Job> take(unsigned number);
  bool is_pending(unsigned queue, uint64_t before) const;

  const Work work_;
  mutable std::mutex mutex_;  // everything below
  std::condition_variable changed_;
  std::vector<Queue> queues_;
  std::vector<Engine> engines_;
  std::atomic<uint64_t> generation_ = 0;
  bool ending_ = false;
};

}  // namespace memsluice::dsa
