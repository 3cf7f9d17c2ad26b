// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <sched.h>

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

namespace memsluice::traffic {

struct CacheGeometry {
  uint64_t bytes = 2 << 20;
  uint64_t ways = 16;
  uint64_t line_bytes = 64;

  uint64_t sets() const { return bytes / (ways * line_bytes); }
  // Sets and lines are found by masks and shifts, and the tag keeps three bits for its state.
  bool valid() const {
    return line_bytes >= 16 && line_bytes <= 4096 && std::has_single_bit(line_bytes) && ways >= 1 &&
           ways <= 64 && bytes % (ways * line_bytes) == 0 && std::has_single_bit(sets());
  }
};

// A last-level cache shared by all vCPUs: set-associative, write-back, write-allocate, exact LRU.
//
// The ways of a set are kept in the order of their last use, so the first way answers most
// accesses; an access that changes nothing there (a load, or a store to a line already dirty)
// needs no lock and is still exact, because it reads a single word. Everything else holds the
// set's lock, a bit of that same word, which keeps the first way readable while the others move.
class LastLevelCache {
 public:
  struct Outcome {
    bool miss = false;
    bool wrote_back = false;
    uint64_t victim = 0;  // the line that was written back
  };

  explicit LastLevelCache(const CacheGeometry& geometry)
      : ways_(geometry.ways),
        set_mask_(geometry.sets() - 1),
        entries_(std::make_unique<std::atomic<uint64_t>[]>(geometry.sets() * geometry.ways)) {}

  // A line is a physical address divided by the line size. Any number of threads may call this.
  Outcome access(uint64_t line, bool is_store) {
    std::atomic<uint64_t>* set = &entries_[(line & set_mask_) * ways_];
    const uint64_t clean = line << kStateBits | kValid;
    const uint64_t first = set[0].load(std::memory_order_relaxed);
    if ((first & ~(kDirty | kLocked)) == clean && (!is_store || (first & kDirty) != 0)) return {};
    return access_locked(set, lock(set[0]), clean, is_store);
  }

  // Empties the cache and hands every dirty line to `written_back`. No access may run meanwhile.
  template <typename Function>
  void flush(Function written_back) {
    for (uint64_t i = 0; i < (set_mask_ + 1) * ways_; ++i) {
      const uint64_t entry = entries_[i].exchange(0, std::memory_order_relaxed);
      if ((entry & kDirty) != 0) written_back(entry >> kStateBits);
    }
  }

 private:
  static constexpr uint64_t kValid = 1, kDirty = 2, kLocked = 4;
  static constexpr int kStateBits = 3;

  static uint64_t lock(std::atomic<uint64_t>& word) {
    for (unsigned tries = 1;; ++tries) {
      const uint64_t seen = word.fetch_or(kLocked, std::memory_order_acquire);
      if ((seen & kLocked) == 0) return seen;
      // The holder needs some ten instructions, unless the host has taken its core away.
      if (tries % 64 == 0) {
        sched_yield();
      } else {
        __builtin_ia32_pause();
      }
    }
  }

  // Moves the accessed line to the front; the store to set[0] comes last because it unlocks.
  Outcome access_locked(std::atomic<uint64_t>* set, uint64_t first, uint64_t clean, bool is_store) {
    const uint64_t wanted_state = is_store ? kDirty : 0;
    if ((first & ~kDirty) == clean) {
      set[0].store(first | wanted_state, std::memory_order_release);
      return {};
    }
    uint64_t moved = first;
    for (uint64_t way = 1; way < ways_; ++way) {
      const uint64_t here = set[way].load(std::memory_order_relaxed);
      set[way].store(moved, std::memory_order_relaxed);
      if ((here & ~kDirty) == clean) {
        set[0].store(here | wanted_state, std::memory_order_release);
        return {};
      }
      moved = here;
    }
    set[0].store(clean | wanted_state, std::memory_order_release);
    return {true, (moved & kDirty) != 0, moved >> kStateBits};
  }

  uint64_t ways_;
  uint64_t set_mask_;
  std::unique_ptr<std::atomic<uint64_t>[]> entries_;
};

}  // namespace memsluice::traffic
