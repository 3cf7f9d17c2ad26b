// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/provision/cedt.h"

#include "tools/memsluice/provision/little_endian.h"

namespace memsluice::provision {
namespace {

constexpr StructureLayout kCedtLayout = {.first = kAcpiHeaderBytes,
                                         .header_bytes = 4,
                                         .type_bytes = 1,
                                         .length_offset = 2,
                                         .length_bytes = 2};

// CXL Fixed Memory Window Structure.
constexpr uint16_t kWindow = 1;
constexpr size_t kBridgesOffset = 36;
constexpr uint16_t kVolatile = 1 << 2;

unsigned ways_of(uint8_t encoded) {
  if (encoded <= 4) return 1U << encoded;
  if (encoded >= 8 && encoded <= 10) return 3U << (encoded - 8);
  return 0;
}

void read_window(Cedt& cedt, std::string_view entry) {
  CxlWindow window{.range = {little_endian<uint64_t>(entry, 8), little_endian<uint64_t>(entry, 16)},
                   .ways = ways_of(little_endian<uint8_t>(entry, 24)),
                   .is_volatile = (little_endian<uint16_t>(entry, 32) & kVolatile) != 0,
                   .bridges = {}};
  if (window.range.bytes == 0 || window.range.start >= kPhysicalEnd ||
      window.range.bytes > kPhysicalEnd - window.range.start)
    return;
  for (size_t at = kBridgesOffset; at + 4 <= entry.size(); at += 4)
    window.bridges.push_back(little_endian<uint32_t>(entry, at));
  cedt.windows.push_back(std::move(window));
}

}  // namespace

Result<Cedt> parse_cedt(std::string_view bytes) {
  auto table = parse_acpi_table(bytes, "CEDT", kCedtLayout.first);
  if (!table.ok()) return table.error();
  Cedt cedt{.table = *std::move(table), .windows = {}};
  auto read = each_structure(cedt.table, kCedtLayout, [&](uint16_t type, std::string_view entry) {
    if (type == kWindow) read_window(cedt, entry);
  });
  if (!read.ok()) return read.error();
  return cedt;
}

}  // namespace memsluice::provision
