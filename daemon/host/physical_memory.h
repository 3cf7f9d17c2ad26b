// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/result.h"

namespace memsluice {

// The widest physical address of any x86 CPU has 52 bits: what ends above is no memory.
inline constexpr uint64_t kPhysicalEnd = uint64_t{1} << 52;

// Bytes of physical address space, not empty.
struct PhysicalRange {
  uint64_t start = 0;
  uint64_t bytes = 0;

  uint64_t end() const { return start + bytes; }
  bool overlaps(const PhysicalRange& other) const {
    return start < other.end() && other.start < end();
  }
  bool contains(const PhysicalRange& other) const {
    return start <= other.start && other.end() <= end();
  }
  bool operator==(const PhysicalRange&) const = default;
  auto operator<=>(const PhysicalRange&) const = default;
};

using PhysicalRanges = std::vector<PhysicalRange>;

// Sets of ranges, in any order and overlapping as they like; results are sorted and disjoint, and
// what touches is one range.
PhysicalRanges united(PhysicalRanges ranges);
PhysicalRanges without(PhysicalRanges ranges, PhysicalRanges taken);
PhysicalRanges common(const PhysicalRanges& a, const PhysicalRanges& b);
uint64_t total_bytes(const PhysicalRanges& ranges);

// What is left of each when it begins and ends at multiples of `unit_bytes`.
PhysicalRanges aligned(const PhysicalRanges& ranges, uint64_t unit_bytes);

// "0x100000000+2G", also with a decimal start: as parse_bytes() for the length.
Result<PhysicalRange> parse_physical_range(std::string_view text);
// For parse_physical_range().
std::string format_exact(const PhysicalRange& range);
// With commas between them.
std::string format_exact(const PhysicalRanges& ranges);

// A line of /proc/iomem.
struct IomemEntry {
  PhysicalRange range;
  std::string name;
  unsigned depth = 0;  // how many lines it stands inside of
};

// To all but root the kernel shows zeros for addresses: then there are none.
std::vector<IomemEntry> parse_iomem(std::string_view text);

// What the kernel uses as RAM, whoever has added it.
PhysicalRanges system_ram(const std::vector<IomemEntry>& entries);

}  // namespace memsluice
