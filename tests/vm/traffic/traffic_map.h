// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <span>
#include <string>
#include <utility>

#include "daemon/base/fd.h"
#include "daemon/base/result.h"
#include "tests/vm/traffic/traffic_file.h"

namespace memsluice::traffic {

// kFileBytes of a file or of a PCI resource, mapped shared and writable. The size is checked: a
// mapping beyond the end of a file kills whoever touches it.
class Mapping {
 public:
  static Result<Mapping> open(const std::string& path) {
    const Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!fd.valid()) return errno_error(errno, "open", path);
    struct stat status;
    if (fstat(fd.get(), &status) != 0) return errno_error(errno, "fstat", path);
    if (static_cast<uint64_t>(status.st_size) < kFileBytes) {
      return Error{ErrorCode::kBadRequest, path, "too short for a traffic file", {}, 0, {}};
    }
    void* base = mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (base == MAP_FAILED) return errno_error(errno, "mmap", path);
    return Mapping(base);
  }

  Mapping(Mapping&& other) noexcept : base_(std::exchange(other.base_, nullptr)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(base_, other.base_);
    return *this;
  }
  ~Mapping() {
    if (base_ != nullptr) munmap(base_, kFileBytes);
  }

  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(base_), kFileBytes}; }

 private:
  explicit Mapping(void* base) : base_(base) {}

  void* base_;
};

}  // namespace memsluice::traffic
