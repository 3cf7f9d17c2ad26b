// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/engines.h"

#include <algorithm>

namespace memsluice::dsa {
namespace {

template <typename Function>
void each(QueueMask queues, size_t count, Function what) {
  for (unsigned i = 0; i < count; i++)
    if (queues >> i & 1) what(i);
}

}  // namespace

Engines::Engines(unsigned engines, unsigned queues, Work work)
    : work_(std::move(work)), queues_(queues), engines_(engines) {
  for (unsigned i = 0; i < engines; i++) engines_[i].thread = std::thread([this, i] { serve(i); });
}

Engines::~Engines() {
  reset();
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (Engine& engine : engines_) engine.thread.join();
}

void Engines::set_group(unsigned engine, unsigned group) {
  {
    const std::lock_guard lock(mutex_);
    engines_[engine].group = group;
  }
  changed_.notify_all();
}

void Engines::open(unsigned queue, unsigned entries, unsigned group, unsigned priority) {
  const std::lock_guard lock(mutex_);
  queues_[queue].open = true;
  queues_[queue].entries = entries;
  queues_[queue].group = group;
  queues_[queue].priority = static_cast<int>(priority);
  queues_[queue].turn = 0;
}

Engines::Accepted Engines::submit(unsigned queue, const Descriptor& descriptor) {
  {
    const std::lock_guard lock(mutex_);
    Queue& into = queues_[queue];
    if (!into.open) return Accepted::kClosed;
    if (into.jobs.size() >= into.entries) return Accepted::kFull;
    into.jobs.push_back({.queue = queue,
                         .sequence = into.next_sequence++,
                         .generation = generation_,
                         .descriptor = descriptor});
  }
  changed_.notify_all();
  return Accepted::kYes;
}

void Engines::close(QueueMask queues) {
  const std::lock_guard lock(mutex_);
  each(queues, queues_.size(), [&](unsigned i) { queues_[i].open = false; });
}

void Engines::drop_waiting(QueueMask queues) {
  {
    const std::lock_guard lock(mutex_);
    each(queues, queues_.size(), [&](unsigned i) { queues_[i].jobs.clear(); });
  }
  changed_.notify_all();
}

// Jobs leave a queue in order: the first that waits is the oldest.
bool Engines::is_pending(unsigned queue, uint64_t before) const {
  const std::deque<Job>& jobs = queues_[queue].jobs;
  if (!jobs.empty() && jobs.front().sequence < before) return true;
  return std::any_of(engines_.begin(), engines_.end(), [&](const Engine& engine) {
    return engine.job && engine.job->queue == queue && engine.job->sequence < before;
  });
}

bool Engines::drain(QueueMask queues) {
  std::unique_lock lock(mutex_);
  const uint64_t generation = generation_;
  std::vector<uint64_t> before;
  for (const Queue& queue : queues_) before.push_back(queue.next_sequence);
  changed_.wait(lock, [&] {
    bool pending = false;
    each(queues, queues_.size(), [&](unsigned i) { pending |= is_pending(i, before[i]); });
    return !pending || generation_ != generation;
  });
  return generation_ == generation;
}

void Engines::abandon() {
  {
    const std::lock_guard lock(mutex_);
    generation_++;
    for (Queue& queue : queues_) {
      queue.open = false;
      queue.jobs.clear();
    }
    for (Engine& engine : engines_) engine.held = false;
  }
  changed_.notify_all();
}

void Engines::reset() {
  abandon();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return std::none_of(engines_.begin(), engines_.end(),
                        [](const Engine& engine) { return engine.job.has_value(); });
  });
}

bool Engines::is_wanted(const Job& job) const {
  return generation_ == job.generation;
}

bool Engines::wait_for_earlier(const Job& job) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !is_wanted(job) || !is_pending(job.queue, job.sequence); });
  return is_wanted(job);
}

bool Engines::wait_while_held(const Job& job) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !is_wanted(job) || !engines_[job.engine].held; });
  return is_wanted(job);
}

bool Engines::wait(const Job& job, std::chrono::nanoseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [&] { return !is_wanted(job); });
  return is_wanted(job);
}

void Engines::hold(unsigned engine, bool held) {
  {
    const std::lock_guard lock(mutex_);
    engines_[engine].held = held;
  }
  changed_.notify_all();
}

bool Engines::is_held(unsigned engine) const {
  const std::lock_guard lock(mutex_);
  return engines_[engine].held;
}

size_t Engines::waiting(unsigned queue) const {
  const std::lock_guard lock(mutex_);
  return queues_[queue].jobs.size();
}

size_t Engines::running() const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::count_if(engines_.begin(), engines_.end(),
                                           [](const Engine& engine) { return !!engine.job; }));
}

std::optional<Job> Engines::take(unsigned number) {
  const Engine& engine = engines_[number];
  Queue* next = nullptr;
  int weights = 0;
  if (engine.held || engine.group == kNoGroup) return {};
  for (Queue& queue : queues_) {
    if (queue.group != engine.group || queue.jobs.empty()) continue;
    queue.turn += queue.priority;
    weights += queue.priority;
    if (!next || queue.turn > next->turn) next = &queue;
  }
  if (!next) return {};
  next->turn -= weights;
  Job job = next->jobs.front();
  next->jobs.pop_front();
  job.engine = number;
  return job;
}

void Engines::serve(unsigned number) {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    Engine& engine = engines_[number];
    engine.job = take(number);
    if (!engine.job) {
      changed_.wait(lock);
      continue;
    }
    const Job job = *engine.job;
    lock.unlock();
    work_(job);
    lock.lock();
    engine.job.reset();
    changed_.notify_all();
  }
}

}  // namespace memsluice::dsa
