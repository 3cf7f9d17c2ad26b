// SPDX-License-Identifier: GPL-2.0
#include "tests/vm/module/life.h"

#include <unistd.h>

#include <iostream>

#include "tests/vm/module/world.h"

namespace memsluice::test {
namespace {

constexpr size_t kWords = kPageBytes / sizeof(uint64_t);

uint64_t pattern(size_t page, size_t word) {
  return (page * kWords + word) * 0x9e3779b97f4a7c15ULL + 1;
}

// Volatile: these are real accesses, one after another.
volatile uint64_t* words_of(char* data, size_t page) {
  return reinterpret_cast<volatile uint64_t*>(data + page * kPageBytes);
}

}  // namespace

Life::Life(char* data, size_t bytes) : data_(data), bytes_(bytes), written_(bytes / kPageBytes) {
  for (size_t page = 0; page < written_.size(); page++) {
    volatile uint64_t* words = words_of(data_, page);
    words[0] = 0;
    words[kWords - 1] = ~uint64_t{0};
    for (size_t word = 1; word < kWords - 1; word++) words[word] = pattern(page, word);
  }
  thread_ = std::thread([this] { run(); });
}

Life::~Life() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void Life::run() {
  while (!stop_) {
    for (size_t page = 0; page < written_.size() && !stop_; page++) {
      volatile uint64_t* words = words_of(data_, page);
      uint64_t& count = written_[page];
      if (words[0] != count || words[kWords - 1] != ~count) torn_ = true;
      count++;
      words[0] = count;
      words[kWords - 1] = ~count;
    }
    rounds_++;
  }
}

bool Life::page_is_whole(size_t page) const {
  const volatile uint64_t* words = words_of(data_, page);
  if (words[0] != written_[page] || words[kWords - 1] != ~written_[page]) return false;
  for (size_t word = 1; word < kWords - 1; word++)
    if (words[word] != pattern(page, word)) return false;
  return true;
}

bool Life::intact() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  size_t broken = 0;
  for (size_t page = 0; page < written_.size(); page++) broken += !page_is_whole(page);
  if (broken) std::cerr << broken << " of " << written_.size() << " pages are broken\n";
  return !broken && !torn_;
}

LivingProcess::LivingProcess(const Cgroup& cgroup, size_t bytes)
    : asked_("/tmp/ends-" + std::to_string(getpid())) {
  pid_ = start_ready_child([&](auto ready) {
    cgroup.enter(getpid());
    Pages pages(bytes, kSlow);
    Life life(pages.data(), pages.bytes());
    ready();
    while (access(asked_.c_str(), F_OK)) usleep(20000);
    return life.intact() ? 0 : 1;
  });
}

LivingProcess::~LivingProcess() {
  if (pid_ > 0) (void)ended_intact();
}

bool LivingProcess::ended_intact() {
  touch(asked_);
  const bool intact = wait_child(pid_) == 0;
  unlink(asked_.c_str());
  pid_ = -1;
  return intact;
}

Meanwhile::Meanwhile(std::function<void()> what) {
  thread_ = std::thread([this, what = std::move(what)] {
    while (!stop_) {
      what();
      times_++;
    }
  });
}

Meanwhile::~Meanwhile() {
  stop_ = true;
  thread_.join();
}

}  // namespace memsluice::test
