// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
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
