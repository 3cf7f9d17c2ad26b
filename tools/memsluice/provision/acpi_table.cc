// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/provision/acpi_table.h"

#include <fmt/format.h>

#include <numeric>

#include "tools/memsluice/provision/little_endian.h"

namespace memsluice::provision {
namespace {

constexpr size_t kLengthOffset = 4;
constexpr size_t kChecksumOffset = 9;
constexpr size_t kOemIdOffset = 10;
constexpr size_t kOemIdBytes = 6;
constexpr size_t kOemTableIdOffset = 16;
constexpr size_t kOemTableIdBytes = 8;
constexpr size_t kOemRevisionOffset = 24;
constexpr size_t kCreatorOffset = 28;
constexpr std::string_view kCreator = "MSLC";

Error broken(std::string_view signature, std::string message) {
  return {
      .code = ErrorCode::kFailed, .object = std::string(signature), .message = std::move(message)};
}

uint8_t sum(std::string_view bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), uint8_t{0}, [](uint8_t total, char byte) {
    return static_cast<uint8_t>(total + static_cast<uint8_t>(byte));
  });
}

// Names of the firmware are padded with spaces or zeros.
std::string name_at(std::string_view bytes, size_t offset, size_t length) {
  const std::string_view name = bytes.substr(offset, length);
  const size_t last = name.find_last_not_of(std::string_view(" \0", 2));
  return last == name.npos ? std::string() : std::string(name.substr(0, last + 1));
}

uint64_t number_at(std::string_view bytes, size_t offset, size_t length) {
  if (length == 1) return little_endian<uint8_t>(bytes, offset);
  if (length == 2) return little_endian<uint16_t>(bytes, offset);
  return little_endian<uint32_t>(bytes, offset);
}

}  // namespace

std::string AcpiTable::oem_id() const {
  return name_at(bytes, kOemIdOffset, kOemIdBytes);
}

std::string AcpiTable::oem_table_id() const {
  return name_at(bytes, kOemTableIdOffset, kOemTableIdBytes);
}

uint32_t AcpiTable::oem_revision() const {
  return little_endian<uint32_t>(bytes, kOemRevisionOffset);
}

bool AcpiTable::checksum_is_right() const {
  return sum(bytes) == 0;
}

bool AcpiTable::is_replacement() const {
  return std::string_view(bytes).substr(kCreatorOffset).starts_with(kCreator);
}

Result<AcpiTable> parse_acpi_table(std::string_view bytes, std::string_view signature,
                                   size_t minimum_bytes) {
  if (bytes.size() < kAcpiHeaderBytes) return broken(signature, "is shorter than a table's header");
  if (!bytes.starts_with(signature)) return broken(signature, "has another signature");
  const uint32_t length = little_endian<uint32_t>(bytes, kLengthOffset);
  if (length > bytes.size() || length < minimum_bytes || length < kAcpiHeaderBytes)
    return broken(signature,
                  fmt::format("says that it has {} bytes, and has {}", length, bytes.size()));
  return AcpiTable{std::string(bytes.substr(0, length))};
}

Result<AcpiTable> as_replacement(AcpiTable table) {
  const uint32_t revision = table.oem_revision();
  if (revision == UINT32_MAX)
    return broken(table.signature(), "has the highest OEM revision: nothing can replace it");
  put_little_endian<uint32_t>(table.bytes, kOemRevisionOffset, revision + 1);
  table.bytes.replace(kCreatorOffset, kCreator.size(), kCreator);
  put_little_endian<uint32_t>(table.bytes, kLengthOffset,
                              static_cast<uint32_t>(table.bytes.size()));
  table.bytes[kChecksumOffset] = 0;
  table.bytes[kChecksumOffset] = static_cast<char>(-sum(table.bytes));
  return table;
}

Result<void> each_structure(const AcpiTable& table, const StructureLayout& layout,
                            const std::function<void(uint16_t, std::string_view)>& visit) {
  for (size_t at = layout.first; at < table.bytes.size();) {
    const std::string_view rest = std::string_view(table.bytes).substr(at);
    const uint64_t length = number_at(rest, layout.length_offset, layout.length_bytes);
    if (rest.size() < layout.header_bytes || length < layout.header_bytes || length > rest.size())
      return broken(table.signature(),
                    fmt::format("the structure at {:#x} says that it has {} bytes", at, length));
    visit(static_cast<uint16_t>(number_at(rest, 0, layout.type_bytes)), rest.substr(0, length));
    at += length;
  }
  return {};
}

}  // namespace memsluice::provision
