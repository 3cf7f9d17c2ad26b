// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace memsluice::test {

// Fills a range, then writes to each of its pages all the time, in a thread, and checks that it
// reads what it has written.
class Life {
 public:
  Life(char* data, size_t bytes);
  ~Life();
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  // Stops writing, and looks at every byte.
  [[nodiscard]] bool intact();
  // Rounds over all pages so far.
  [[nodiscard]] uint64_t rounds() const { return rounds_; }

 private:
  void run();
  [[nodiscard]] bool page_is_whole(size_t page) const;

  char* data_;
  size_t bytes_;
  std::vector<uint64_t> written_;  // how often, by page
  std::atomic<bool> stop_{false};
  std::atomic<bool> torn_{false};
  std::atomic<uint64_t> rounds_{0};
  std::thread thread_;
};

class Cgroup;

// A process in a cgroup, with Life on memory of the slow node, until it is asked to end.
class LivingProcess {
 public:
  LivingProcess(const Cgroup& cgroup, size_t bytes);
  ~LivingProcess();
  LivingProcess(const LivingProcess&) = delete;
  LivingProcess& operator=(const LivingProcess&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }

  // Asks it to end. Return: whether its memory was as it should be.
  [[nodiscard]] bool ended_intact();

 private:
  std::string asked_;  // a file that is there when it shall end
  pid_t pid_ = -1;
};

// Does something again and again in a thread, until it goes out of scope.
class Meanwhile {
 public:
  explicit Meanwhile(std::function<void()> what);
  ~Meanwhile();
  Meanwhile(const Meanwhile&) = delete;
  Meanwhile& operator=(const Meanwhile&) = delete;
  [[nodiscard]] uint64_t times() const { return times_; }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> times_{0};
  std::thread thread_;
};

}  // namespace memsluice::test
