// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "daemon/lending/nic/emulated/request_layout.h"

namespace memsluice::nic {

// One side of an access: which queue pair of which protection domain makes or serves it.
struct Accessor {
  ProtectionDomain domain = {};
  QueuePair queue_pair = {};
  Rights rights = 0;
};

// Regions and windows, by key. Indices are dealt out at random and tags begin at random, so that no
// key says anything about another. Not for more than one thread.
class MemoryKeys {
 public:
  MemoryKeys(uint32_t max_keys, uint64_t seed);

  Result<Key> add_region(ProtectionDomain domain, std::span<std::byte> memory, Rights rights);
  Result<Key> add_window(ProtectionDomain domain, WindowType type);
  Result<void> remove_region(Key key);
  Result<void> remove_window(Key key);
  Result<void> revoke_window(Key key);
  bool uses(ProtectionDomain domain) const;
  bool uses(QueuePair queue_pair) const;

  // Memory that a request from a peer may touch; nullptr: it may not. @bytes > 0.
  std::byte* remote(const Accessor& server, Key key, uint64_t address, uint64_t bytes,
                    Rights right) const;
  // Memory that a queue pair's own requests name; nullptr: they may not.
  std::byte* local(ProtectionDomain domain, const ScatterEntry& entry, bool writes) const;

  // @target_domain: of the queue pair that the window shall serve. By what the block says.
  bool bind(const RequestBlock& block, ProtectionDomain poster, ProtectionDomain target_domain);
  // @posted_on: the queue pair whose LOCAL_INVALIDATE it is, or that a peer's SEND came to.
  // @any_queue_pair: whomever the window serves.
  bool invalidate(Key key, ProtectionDomain domain, QueuePair posted_on, bool any_queue_pair);

 private:
  enum class Kind : uint8_t { kNone, kRegion, kWindow1, kWindow2 };
  struct Entry {
    Kind kind = Kind::kNone;
    uint8_t tag = 0;
    Rights rights = 0;
    bool bound = false;  // of a window; a window that is not is free
    ProtectionDomain domain = {};
    QueuePair queue_pair = {};
    uint32_t windows = 0;  // bound to this region
    uint32_t region = 0;   // index of what this window is bound to
    uint64_t address = 0;  // as requests give it
    uint64_t length = 0;
    std::byte* memory = nullptr;  // of @address
  };

  Entry* find(Key key) { return const_cast<Entry*>(std::as_const(*this).find(key)); }
  const Entry* find(Key key) const;
  Result<Entry*> window(Key key);
  Result<Key> add(Entry entry);
  void remove(Key key);
  void release(Entry& window);
  bool may_bind(const Entry& window, const Entry* region, const RequestBlock& block,
                ProtectionDomain poster, ProtectionDomain target_domain) const;

  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;
  std::mt19937_64 random_;
};

}  // namespace memsluice::nic
