// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "daemon/base/event_loop.h"
#include "daemon/base/fd.h"
#include "daemon/base/result.h"

namespace memsluice {

// Runs what may wait for long on threads of its own, and tells the loop's thread when it has ended.
// Its end waits for them; the loop must outlive it.
class Background {
 public:
  static constexpr size_t kRunningMax = 16;

  static Result<std::unique_ptr<Background>> create(EventLoop& loop);
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // `work` must not touch what the loop's thread does; `done` gets its result there.
  template <typename T>
  Result<void> run(std::function<Result<T>()> work, std::function<void(const Result<T>&)> done) {
    auto result = std::make_shared<std::optional<Result<T>>>();
    return start([result, work = std::move(work)] { result->emplace(work()); },
                 [result, done = std::move(done)] { done(**result); });
  }
  size_t running() const { return jobs_.size(); }

 private:
  struct Job {
    std::thread thread;
    std::function<void()> done;
  };

  explicit Background(Fd ended_event) : ended_event_(std::move(ended_event)) {}
  Result<void> start(std::function<void()> work, std::function<void()> done);
  void on_ended();

  Fd ended_event_;
  EventLoop::Watch watch_;
  uint64_t next_id_ = 1;
  std::map<uint64_t, Job> jobs_;
  std::mutex lock_;
  std::vector<uint64_t> ended_;  // under lock_
};

}  // namespace memsluice
