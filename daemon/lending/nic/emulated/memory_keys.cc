// SPDX-License-Identifier: GPL-2.0
#include "daemon/lending/nic/emulated/memory_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "daemon/lending/nic/emulated/checks.h"

namespace memsluice::nic {
namespace {

constexpr Rights kWindowRights = kRemoteAll | kZeroBased;

bool within(uint64_t address, uint64_t bytes, uint64_t begin, uint64_t length) {
  return address >= begin && bytes <= length && address - begin <= length - bytes;
}

Error no_such_key(Key key) {
  return {ErrorCode::kNotFound, fmt::format("key {:#x}", key), "is not of this NIC"};
}

}  // namespace

MemoryKeys::MemoryKeys(uint32_t max_keys, uint64_t seed) : entries_(max_keys), random_(seed) {
  free_.resize(max_keys);
  std::iota(free_.begin(), free_.end(), 0);
  std::shuffle(free_.begin(), free_.end(), random_);
}

const MemoryKeys::Entry* MemoryKeys::find(Key key) const {
  const uint32_t index = key >> 8;
  if (index >= entries_.size() || entries_[index].kind == Kind::kNone) return nullptr;
  return &entries_[index];
}

Result<Key> MemoryKeys::add(Entry entry) {
  if (free_.empty())
    return Error{ErrorCode::kUnavailable, "memory keys",
                 fmt::format("all {} are in use", entries_.size())};
  const uint32_t index = free_.back();
  free_.pop_back();
  entry.tag = static_cast<uint8_t>(random_());
  entries_[index] = entry;
  return index << 8 | entry.tag;
}

Result<Key> MemoryKeys::add_region(ProtectionDomain domain, std::span<std::byte> memory,
                                   Rights rights) {
  if (memory.empty()) return Error{ErrorCode::kBadRequest, "memory region", "is empty"};
  if (rights & kZeroBased)
    return Error{ErrorCode::kBadRequest, "memory region", "cannot be zero-based"};
  // man ibv_reg_mr: remote write or atomic needs local write, too.
  if ((rights & (kRemoteWrite | kRemoteAtomic)) && !(rights & kLocalWrite))
    return Error{ErrorCode::kBadRequest, "memory region",
                 "may be written remotely but not locally"};
  return add({.kind = Kind::kRegion,
              .rights = rights,
              .domain = domain,
              .address = reinterpret_cast<uint64_t>(memory.data()),
              .length = memory.size(),
              .memory = memory.data()});
}

Result<Key> MemoryKeys::add_window(ProtectionDomain domain, WindowType type) {
  return add(
      {.kind = type == WindowType::kType1 ? Kind::kWindow1 : Kind::kWindow2, .domain = domain});
}

void MemoryKeys::remove(Key key) {
  entries_[key >> 8] = {};
  free_.push_back(key >> 8);
  std::swap(free_.back(), free_[random_() % free_.size()]);
}

Result<void> MemoryKeys::remove_region(Key key) {
  Entry* entry = find(key);
  if (!entry || entry->kind != Kind::kRegion) return no_such_key(key);
  if (fails(Check::region_in_use, entry->windows == 0))
    return Error{ErrorCode::kConflict, fmt::format("region {:#x}", key),
                 fmt::format("{} windows are bound to it", entry->windows)};
  remove(key);
  return {};
}

Result<MemoryKeys::Entry*> MemoryKeys::window(Key key) {
  Entry* entry = find(key);
  if (!entry || entry->kind == Kind::kRegion) return no_such_key(key);
  return entry;
}

Result<void> MemoryKeys::remove_window(Key key) {
  Result<void> revoked = revoke_window(key);
  if (revoked.ok()) remove(key);
  return revoked;
}

Result<void> MemoryKeys::revoke_window(Key key) {
  Result<Entry*> entry = window(key);
  if (!entry.ok()) return std::move(entry).error();
  release(**entry);
  return {};
}

void MemoryKeys::release(Entry& window) {
  if (!window.bound) return;
  Entry& region = entries_[window.region];
  if (region.windows > 0) region.windows--;
  window.bound = false;
}

bool MemoryKeys::uses(ProtectionDomain domain) const {
  return std::ranges::any_of(entries_, [&](const Entry& entry) {
    return entry.kind != Kind::kNone && entry.domain == domain;
  });
}

bool MemoryKeys::uses(QueuePair queue_pair) const {
  return std::ranges::any_of(entries_, [&](const Entry& entry) {
    return entry.kind == Kind::kWindow2 && entry.bound && entry.queue_pair == queue_pair;
  });
}

std::byte* MemoryKeys::remote(const Accessor& server, Key key, uint64_t address, uint64_t bytes,
                              Rights right) const {
  const Entry* entry = find(key);
  if (!entry) return nullptr;
  if (fails(Check::key_tag, entry->tag == (key & kTagMask))) return nullptr;
  if (fails(Check::queue_pair_rights, server.rights & right)) return nullptr;
  if (entry->kind == Kind::kRegion) {
    if (fails(Check::region_domain, entry->domain == server.domain)) return nullptr;
    if (fails(Check::region_rights, entry->rights & right)) return nullptr;
    if (fails(Check::region_bounds, within(address, bytes, entry->address, entry->length)))
      return nullptr;
    return entry->memory + (address - entry->address);
  }
  if (fails(Check::window_bound, entry->bound) || !entry->memory) return nullptr;
  if (fails(Check::window_domain, entry->domain == server.domain)) return nullptr;
  if (entry->kind == Kind::kWindow2 &&
      fails(Check::window_queue_pair, entry->queue_pair == server.queue_pair))
    return nullptr;
  if (fails(Check::window_rights, entry->rights & right)) return nullptr;
  if (fails(Check::window_bounds, within(address, bytes, entry->address, entry->length)))
    return nullptr;
  return entry->memory + (address - entry->address);
}

std::byte* MemoryKeys::local(ProtectionDomain domain, const ScatterEntry& scatter,
                             bool writes) const {
  const Entry* entry = find(scatter.key);
  if (!entry || !entry->memory || entry->tag != (scatter.key & kTagMask)) return nullptr;
  if (fails(Check::local_is_region, entry->kind == Kind::kRegion)) return nullptr;
  if (fails(Check::local_domain, entry->domain == domain)) return nullptr;
  if (writes && fails(Check::local_write, entry->rights & kLocalWrite)) return nullptr;
  if (fails(Check::local_bounds,
            within(scatter.address, scatter.bytes, entry->address, entry->length)))
    return nullptr;
  return entry->memory + (scatter.address - entry->address);
}

bool MemoryKeys::may_bind(const Entry& window, const Entry* region, const RequestBlock& block,
                          ProtectionDomain poster, ProtectionDomain target_domain) const {
  const bool type2 = window.kind == Kind::kWindow2;
  if (fails(Check::bind_rights, (block.rights & ~kWindowRights) == 0)) return false;
  if (type2) {
    if (fails(Check::bind_free, !window.bound)) return false;        // o10-37.2.30
    if (fails(Check::bind_length, block.operand > 0)) return false;  // o10-37.2.40
  } else if (fails(Check::bind_type1_based, !(block.rights & kZeroBased))) {
    return false;  // o10-36.2.2
  }
  // C10-72
  if (fails(Check::bind_domain, window.domain == poster && window.domain == target_domain))
    return false;
  if (block.operand == 0) return true;  // unbinds type 1
  if (!region || region->kind != Kind::kRegion) return false;
  if (fails(Check::bind_region_key, region->tag == (block.region_key & kTagMask))) return false;
  if (fails(Check::bind_region_domain, region->domain == window.domain)) return false;  // C10-72
  if (fails(Check::bind_allowed, region->rights & kWindowBind)) return false;           // C10-73
  const bool writes = block.rights & (kRemoteWrite | kRemoteAtomic);
  if (writes && fails(Check::bind_writable, region->rights & kLocalWrite)) return false;  // C10-74
  // The two words of mlx5 say the same, or the window would show other memory than it names.
  if (fails(Check::bind_same_address, block.remote_address == block.swap)) return false;
  return !fails(Check::bind_range,
                within(block.swap, block.operand, region->address, region->length));  // C10-75
}

bool MemoryKeys::bind(const RequestBlock& block, ProtectionDomain poster,
                      ProtectionDomain target_domain) {
  Entry* window = find(block.key);
  if (!window || window->kind == Kind::kRegion) return false;
  if (fails(Check::bind_key, window->tag == (block.key & kTagMask))) return false;
  const Entry* region = find(block.region_key);
  if (!may_bind(*window, region, block, poster, target_domain)) return false;
  release(*window);
  window->tag = block.new_tag;
  if (block.operand == 0) return true;
  window->bound = true;
  window->region = block.region_key >> 8;
  entries_[window->region].windows++;
  window->queue_pair = static_cast<QueuePair>(block.queue & kQueuePairMask);
  window->rights = block.rights;
  window->length = block.operand;
  window->address = block.rights & kZeroBased ? 0 : block.remote_address;
  window->memory = region->memory + (block.swap - region->address);
  return true;
}

bool MemoryKeys::invalidate(Key key, ProtectionDomain domain, QueuePair posted_on,
                            bool any_queue_pair) {
  Entry* window = find(key);
  if (!window || window->kind == Kind::kRegion) return false;
  if (fails(Check::invalidate_key, window->tag == (key & kTagMask))) return false;
  if (fails(Check::invalidate_type, window->kind == Kind::kWindow2)) return false;  // o10-37.2.26
  if (fails(Check::invalidate_domain, window->domain == domain)) return false;
  // rxe takes a free window for a bound one here, and the kernel dies of it.
  if (fails(Check::invalidate_bound, window->bound)) return false;
  if (!any_queue_pair && fails(Check::invalidate_queue_pair, window->queue_pair == posted_on))
    return false;
  release(*window);
  return true;
}

}  // namespace memsluice::nic
