// SPDX-License-Identifier: GPL-2.0
#include "tests/vm/traffic/cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace memsluice::traffic {
namespace {

// The same cache, written for clarity: a list of (line, dirty) per set, last used first.
class ReferenceCache {
 public:
  explicit ReferenceCache(const CacheGeometry& geometry)
      : ways_(geometry.ways), sets_(geometry.sets()) {}

  LastLevelCache::Outcome access(uint64_t line, bool is_store) {
    auto& set = sets_[line % sets_.size()];
    const auto found =
        std::find_if(set.begin(), set.end(), [&](const auto& way) { return way.first == line; });
    if (found != set.end()) {
      set.emplace_front(line, found->second || is_store);
      set.erase(found);
      return {};
    }
    LastLevelCache::Outcome outcome{true, false, 0};
    if (set.size() == ways_) {
      outcome.wrote_back = set.back().second;
      outcome.victim = set.back().first;
      set.pop_back();
    }
    set.emplace_front(line, is_store);
    return outcome;
  }

  std::set<uint64_t> dirty_lines() const {
    std::set<uint64_t> lines;
    for (const auto& set : sets_) {
      for (const auto& [line, dirty] : set) {
        if (dirty) lines.insert(line);
      }
    }
    return lines;
  }

 private:
  size_t ways_;
  std::vector<std::list<std::pair<uint64_t, bool>>> sets_;
};

std::set<uint64_t> flush(LastLevelCache& cache) {
  std::set<uint64_t> lines;
  cache.flush([&](uint64_t line) { EXPECT_TRUE(lines.insert(line).second) << "flushed twice"; });
  return lines;
}

class CacheTest : public testing::TestWithParam<CacheGeometry> {};

TEST_P(CacheTest, EqualsTheReferenceOnRandomTraces) {
  LastLevelCache cache(GetParam());
  ReferenceCache reference(GetParam());
  std::mt19937_64 random(7);
  const uint64_t lines = GetParam().bytes / GetParam().line_bytes;
  for (int i = 0; i < 200'000; ++i) {
    // Most accesses go to a part that fits, so that hits, misses and dirty victims all abound;
    // the high bits show whether tags are kept whole.
    const uint64_t line =
        (random() % 4 != 0 ? random() % (lines / 2 + 1) : random() % (lines * 4)) |
        (random() % 8 == 0 ? uint64_t{1} << 44 : 0);
    const bool is_store = random() % 3 == 0;
    const auto expected = reference.access(line, is_store);
    const auto outcome = cache.access(line, is_store);
    ASSERT_EQ(outcome.miss, expected.miss) << i;
    ASSERT_EQ(outcome.wrote_back, expected.wrote_back) << i;
    if (outcome.wrote_back) {
      ASSERT_EQ(outcome.victim, expected.victim) << i;
    }
  }
  EXPECT_EQ(flush(cache), reference.dirty_lines());
  EXPECT_TRUE(flush(cache).empty());
  EXPECT_TRUE(cache.access(0, false).miss) << "a flush empties the cache";
}

TEST_P(CacheTest, KeepsEveryStoreWhenThreadsShareIt) {
  LastLevelCache cache(GetParam());
  const uint64_t lines = 4 * GetParam().bytes / GetParam().line_bytes;
  std::vector<std::map<uint64_t, int64_t>> balance(3);  // line: misses - write-backs
  std::vector<std::thread> threads;
  for (size_t t = 0; t < balance.size(); ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 100'000; ++i) {
        const uint64_t line = random() % lines;
        const auto outcome = cache.access(line, true);
        if (outcome.miss) ++balance[t][line];
        if (outcome.wrote_back) --balance[t][outcome.victim];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // Only stores, so every line that came in is written back once, or is still there.
  std::map<uint64_t, int64_t> total;
  for (const auto& part : balance) {
    for (const auto& [line, count] : part) total[line] += count;
  }
  for (const uint64_t line : flush(cache)) --total[line];
  for (const auto& [line, count] : total) EXPECT_EQ(count, 0) << "line " << line;
}

INSTANTIATE_TEST_SUITE_P(Geometries, CacheTest,
                         testing::Values(CacheGeometry{4096, 1, 64}, CacheGeometry{4096, 64, 64},
                                         CacheGeometry{32768, 8, 64}, CacheGeometry{12288, 3, 128},
                                         CacheGeometry{64, 1, 64}));

TEST(CacheGeometry, RefusesWhatMasksCannotFind) {
  EXPECT_TRUE(CacheGeometry{}.valid());
  EXPECT_FALSE((CacheGeometry{3 << 20, 16, 64}).valid());
  EXPECT_FALSE((CacheGeometry{1 << 20, 16, 48}).valid());
  EXPECT_FALSE((CacheGeometry{1 << 20, 0, 64}).valid());
  EXPECT_FALSE((CacheGeometry{1 << 20, 16, 0}).valid());
  EXPECT_FALSE((CacheGeometry{0, 16, 64}).valid());
  EXPECT_FALSE((CacheGeometry{1 << 20, uint64_t{1} << 60, 64}).valid());
}

}  // namespace
}  // namespace memsluice::traffic
