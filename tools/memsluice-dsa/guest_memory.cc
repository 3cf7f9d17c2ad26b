// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/guest_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace memsluice::dsa {
namespace {

Error bad_mapping(uint64_t address, uint64_t bytes, std::string what) {
  return {.code = ErrorCode::kBadRequest,
          .object = fmt::format("{:#x}+{:#x}", address, bytes),
          .message = std::move(what)};
}

}  // namespace

std::span<uint8_t> GuestMemory::View::from(uint64_t address, uint64_t bytes, Access access) const {
  const auto* found = memory_.find(address, access);
  if (!found) return {};
  const uint64_t offset = address - found->first;
  return {found->second.data + offset, std::min(bytes, found->second.bytes - offset)};
}

std::span<uint8_t> GuestMemory::View::before(uint64_t end, uint64_t bytes, Access access) const {
  const auto* found = bytes ? memory_.find(end - 1, access) : nullptr;
  if (!found) return {};
  const uint64_t offset = end - found->first;
  const uint64_t together = std::min(bytes, offset);
  return {found->second.data + (offset - together), together};
}

std::span<uint8_t> GuestMemory::View::all(uint64_t address, uint64_t bytes, Access access) const {
  const std::span<uint8_t> together = from(address, bytes, access);
  return together.size() == bytes ? together : std::span<uint8_t>();
}

const std::pair<const uint64_t, GuestMemory::Mapping>* GuestMemory::find(uint64_t address,
                                                                         Access access) const {
  auto after = mappings_.upper_bound(address);
  if (after == mappings_.begin()) return nullptr;
  const auto& found = *std::prev(after);
  if (address - found.first >= found.second.bytes || !found.second.data) return nullptr;
  return access == Access::kWrite && !found.second.writable ? nullptr : &found;
}

std::shared_lock<std::shared_mutex> GuestMemory::read() const {
  const std::lock_guard turn(turn_);
  return std::shared_lock(change_);
}

std::unique_lock<std::shared_mutex> GuestMemory::write() {
  const std::lock_guard turn(turn_);
  return std::unique_lock(change_);
}

Result<void> GuestMemory::map(uint64_t address, uint64_t bytes, int file, uint64_t offset,
                              bool writable) {
  if (bytes == 0 || address + bytes - 1 < address)
    return bad_mapping(address, bytes, "is not a range of addresses");
  Mapping mapping{.bytes = bytes, .writable = writable};
  if (file >= 0) {
    struct stat status {};
    if (fstat(file, &status)) return errno_error(errno, "fstat", "a mapping's file");
    const auto file_bytes = static_cast<uint64_t>(std::max<off_t>(status.st_size, 0));
    if (offset > file_bytes || bytes > file_bytes - offset)
      return bad_mapping(address, bytes, "reaches beyond the end of its file");
    const uint64_t into_page = offset % static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    mapping.base_bytes = bytes + into_page;
    mapping.base = mmap(nullptr, mapping.base_bytes, PROT_READ | (writable ? PROT_WRITE : 0),
                        MAP_SHARED, file, static_cast<off_t>(offset - into_page));
    if (mapping.base == MAP_FAILED) return errno_error(errno, "mmap", "a mapping's file");
    mapping.data = static_cast<uint8_t*>(mapping.base) + into_page;
  }
  const auto lock = write();
  auto next = mappings_.upper_bound(address);
  const bool over_next = next != mappings_.end() && next->first - address < bytes;
  const bool over_previous =
      next != mappings_.begin() && address - std::prev(next)->first < std::prev(next)->second.bytes;
  if (over_next || over_previous) {
    if (mapping.base) munmap(mapping.base, mapping.base_bytes);
    return bad_mapping(address, bytes, "overlaps what is mapped already");
  }
  mappings_.emplace(address, mapping);
  return {};
}

uint64_t GuestMemory::unmap(uint64_t address, uint64_t bytes) {
  const auto lock = write();
  uint64_t unmapped = 0;
  for (auto it = mappings_.lower_bound(address);
       it != mappings_.end() && it->first - address < bytes &&
       it->second.bytes <= bytes - (it->first - address);
       it = mappings_.erase(it)) {
    unmapped += it->second.bytes;
    if (it->second.base) munmap(it->second.base, it->second.base_bytes);
  }
  return unmapped;
}

void GuestMemory::clear() {
  const auto lock = write();
  for (auto& [address, mapping] : mappings_)
    if (mapping.base) munmap(mapping.base, mapping.base_bytes);
  mappings_.clear();
}

}  // namespace memsluice::dsa
