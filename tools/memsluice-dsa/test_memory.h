// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "daemon/base/fd.h"
#include "tools/memsluice-dsa/guest_memory.h"

namespace memsluice::dsa {

// A guest's memory for one test, with the test's own sight of its bytes.
class TestMemory {
 public:
  TestMemory() = default;
  TestMemory(const TestMemory&) = delete;
  TestMemory& operator=(const TestMemory&) = delete;
  ~TestMemory() {
    for (const auto& [data, bytes] : seen_) munmap(data, bytes);
  }

  // Zeros that the guest has at @address. Return: where the test has them, to read and to write
  // even if the device may not.
  uint8_t* add(uint64_t address, uint64_t bytes, bool writable = true) {
    const Fd file(memfd_create("test-memory", MFD_CLOEXEC));
    if (!file.valid() || ftruncate(file.get(), static_cast<off_t>(bytes))) std::abort();
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (data == MAP_FAILED) std::abort();
    seen_.emplace_back(data, bytes);
    if (!memory_.map(address, bytes, file.get(), 0, writable).ok()) std::abort();
    return static_cast<uint8_t*>(data);
  }

  GuestMemory& memory() { return memory_; }

 private:
  GuestMemory memory_;
  std::vector<std::pair<void*, size_t>> seen_;
};

}  // namespace memsluice::dsa
