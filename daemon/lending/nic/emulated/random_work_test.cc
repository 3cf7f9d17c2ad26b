// SPDX-License-Identifier: GPL-2.0
#include "daemon/lending/nic/emulated/random_work.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "daemon/lending/nic/emulated/emulated_nic.h"

namespace memsluice::nic {
namespace {

std::function<uint64_t()> numbers(uint64_t seed) {
  return [random = std::mt19937_64(seed)]() mutable { return random(); };
}

TEST(RandomWorkTest, NothingOutsideIsTouched) {
  for (uint64_t seed = 1; seed <= 40; seed++) {
    EmulatedOptions options{.key_seed = seed};
    if (seed % 2) options.schedule_seed = seed;
    EmulatedNic nic(options);
    RandomWork work(nic, numbers(seed), true);
    for (int i = 0; i < 2000; i++) work.act();
    ASSERT_TRUE(work.untouched()) << "seed " << seed;
  }
}

TEST(RandomWorkTest, NorByWorkOfManyThreads) {
  EmulatedNic nic({.own_thread = true, .key_seed = 1});
  std::vector<std::unique_ptr<RandomWork>> work;
  for (uint64_t seed = 1; seed <= 3; seed++)
    work.push_back(std::make_unique<RandomWork>(nic, numbers(seed), false));
  std::vector<std::thread> threads;
  for (const auto& one : work)
    threads.emplace_back([&one] {
      for (int i = 0; i < 3000; i++) one->act();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(nic.counters().requests, 0U);
  for (const auto& one : work) EXPECT_TRUE(one->untouched());
}

}  // namespace
}  // namespace memsluice::nic
