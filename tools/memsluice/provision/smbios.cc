// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/provision/smbios.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/memsluice/provision/little_endian.h"

namespace memsluice::provision {
namespace {

constexpr size_t kStructureBytesMin = 4;
constexpr uint8_t kEndOfTable = 127;
constexpr uint64_t kKib = 1 << 10;
constexpr uint64_t kMib = 1 << 20;
constexpr uint8_t kSystemMemory = 3;
// In the old fields of 32 bits: look into the new one of 64.
constexpr uint32_t kExtendedAddress = 0xffffffff;
constexpr uint32_t kExtendedCapacity = 0x80000000;
constexpr uint16_t kExtendedSize = 0x7fff;
constexpr uint16_t kUnknownSize = 0xffff;
constexpr uint16_t kSizeInKib = 0x8000;

// A structure: the formatted part, and the strings behind it.
struct Structure {
  std::string_view formatted;
  std::string_view strings;

  // Strings are counted from 1; 0 is none.
  std::string text(size_t offset) const {
    std::string_view rest = strings;
    for (unsigned number = little_endian<uint8_t>(formatted, offset); number != 0; number--) {
      const size_t length = std::min(rest.find('\0'), rest.size());
      if (number == 1) return std::string(rest.substr(0, length));
      rest.remove_prefix(std::min(length + 1, rest.size()));
    }
    return {};
  }
  uint16_t word(size_t offset) const { return little_endian<uint16_t>(formatted, offset); }
  uint8_t byte(size_t offset) const { return little_endian<uint8_t>(formatted, offset); }
};

// Types 19 and 20 tell the first and the last KiB or, in newer fields, byte.
std::optional<PhysicalRange> mapped_range(std::string_view bytes, size_t extended_offset) {
  uint64_t first = little_endian<uint32_t>(bytes, 4);
  uint64_t last = little_endian<uint32_t>(bytes, 8);
  uint64_t unit = kKib;
  if (first == kExtendedAddress) {
    first = little_endian<uint64_t>(bytes, extended_offset);
    last = little_endian<uint64_t>(bytes, extended_offset + 8);
    unit = 1;
  }
  if (last < first || last >= kPhysicalEnd / unit) return std::nullopt;
  const PhysicalRange range{first * unit, (last - first + 1) * unit};
  return range;
}

SmbiosArray read_array(uint16_t handle, const Structure& structure) {
  uint64_t bytes = little_endian<uint32_t>(structure.formatted, 7) * kKib;
  if (bytes == kExtendedCapacity * kKib) bytes = little_endian<uint64_t>(structure.formatted, 15);
  return {.handle = handle,
          .is_system_memory = structure.byte(5) == kSystemMemory,
          .capacity_bytes = bytes,
          .slots = structure.word(13)};
}

std::optional<uint64_t> module_size(const Structure& structure) {
  const uint16_t size = structure.word(12);
  if (size == 0 || size == kUnknownSize) return std::nullopt;
  if (size == kExtendedSize)
    return (little_endian<uint32_t>(structure.formatted, 28) & 0x7fffffff) * kMib;
  return (size & kSizeInKib) != 0 ? (size & ~kSizeInKib) * kKib : size * kMib;
}

SmbiosModule read_module(uint16_t handle, const Structure& structure) {
  return {.handle = handle,
          .array = structure.word(4),
          .bytes = module_size(structure),
          .locator = structure.text(16),
          .bank = structure.text(17),
          .speed_mt_per_s = structure.word(32) != 0 ? structure.word(32) : structure.word(21)};
}

void read_structure(Smbios& smbios, uint8_t type, uint16_t handle, const Structure& structure) {
  if (type == 16) smbios.arrays.push_back(read_array(handle, structure));
  if (type == 17) smbios.modules.push_back(read_module(handle, structure));
  if (type == 19)
    if (auto range = mapped_range(structure.formatted, 15))
      smbios.array_mappings.push_back({*range, structure.word(12), structure.byte(14)});
  if (type == 20)
    if (auto range = mapped_range(structure.formatted, 19))
      smbios.module_mappings.push_back(
          {*range, structure.word(12), structure.byte(17), structure.byte(18)});
}

}  // namespace

const SmbiosModule* Smbios::module(uint16_t handle) const {
  const auto found = std::find_if(modules.begin(), modules.end(), [&](const SmbiosModule& known) {
    return known.handle == handle;
  });
  return found == modules.end() ? nullptr : &*found;
}

uint64_t Smbios::module_bytes() const {
  uint64_t bytes = 0;
  for (const SmbiosModule& known : modules) {
    const auto array = std::find_if(arrays.begin(), arrays.end(), [&](const SmbiosArray& other) {
      return other.handle == known.array;
    });
    // Flash and video memory have arrays, too.
    if (array == arrays.end() || array->is_system_memory) bytes += known.bytes.value_or(0);
  }
  return bytes;
}

Result<Smbios> parse_smbios(std::string_view bytes) {
  Smbios smbios;
  for (size_t at = 0; at < bytes.size();) {
    const std::string_view rest = bytes.substr(at);
    const size_t length = little_endian<uint8_t>(rest, 1);
    // Two zeros end the strings, even if there are none.
    const size_t end =
        length > rest.size() ? rest.npos : rest.find(std::string_view("\0\0", 2), length);
    if (rest.size() < kStructureBytesMin || length < kStructureBytesMin || end == rest.npos)
      return Error{.code = ErrorCode::kFailed,
                   .object = "SMBIOS",
                   .message = fmt::format("the structure at {:#x} is cut off", at)};
    const auto type = little_endian<uint8_t>(rest, 0);
    read_structure(smbios, type, little_endian<uint16_t>(rest, 2),
                   {rest.substr(0, length), rest.substr(length, end - length)});
    if (type == kEndOfTable) break;
    at += end + 2;
  }
  return smbios;
}

}  // namespace memsluice::provision
