// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <utility>

#include "daemon/base/result.h"

namespace memsluice::dsa {

// The memory that the device may reach, by the addresses that the guest gives it.
//
// Mappings come and go while engines copy: who unmaps waits until no View is held.
class GuestMemory {
 public:
  enum class Access { kRead, kWrite };

  // Addresses stay where they are while it lives. Short: it keeps mappings from changing.
  class View {
   public:
    explicit View(const GuestMemory& memory) : memory_(memory), lock_(memory.read()) {}

    // As many of the @bytes that begin at @address as lie together; none if that is not mapped, or
    // not for this.
    std::span<uint8_t> from(uint64_t address, uint64_t bytes, Access access) const;
    // The same of the bytes that end before @end.
    std::span<uint8_t> before(uint64_t end, uint64_t bytes, Access access) const;
    // All of it, together, or nothing.
    std::span<uint8_t> all(uint64_t address, uint64_t bytes, Access access) const;

   private:
    const GuestMemory& memory_;
    std::shared_lock<std::shared_mutex> lock_;
  };

  GuestMemory() = default;
  GuestMemory(const GuestMemory&) = delete;
  GuestMemory& operator=(const GuestMemory&) = delete;
  ~GuestMemory() { clear(); }

  // @file stays the caller's. A range without a file (-1) is known, and cannot be reached. A file
  // must not shrink while it is mapped.
  Result<void> map(uint64_t address, uint64_t bytes, int file, uint64_t offset, bool writable);
  // What was mapped whole within the range. Return: how many bytes that was.
  uint64_t unmap(uint64_t address, uint64_t bytes);
  void clear();

 private:
  struct Mapping {
    uint64_t bytes = 0;
    uint8_t* data = nullptr;
    bool writable = false;
    void* base = nullptr;  // of what munmap(2) takes
    size_t base_bytes = 0;
  };

  // The mapping that @address is in, if it may be accessed so.
  const std::pair<const uint64_t, Mapping>* find(uint64_t address, Access access) const;

  std::shared_lock<std::shared_mutex> read() const;
  std::unique_lock<std::shared_mutex> write();

  mutable std::mutex turn_;  // whoever wants to change something comes before new readers
  mutable std::shared_mutex change_;
  std::map<uint64_t, Mapping> mappings_;
};

}  // namespace memsluice::dsa
