// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/physical_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "daemon/base/units.h"

namespace memsluice {
namespace {

// Reads digits at the front of text and takes them away.
bool take_digits(std::string_view& text, int base, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc()) return false;
  text.remove_prefix(end - text.data());
  return true;
}

// "  100000000-27fffffff : System RAM", two spaces for each line that it stands inside of.
bool parse_iomem_line(std::string_view line, IomemEntry& entry) {
  constexpr std::string_view kSeparator = " : ";
  const size_t indent = std::min(line.find_first_not_of(' '), line.size());
  line.remove_prefix(indent);
  uint64_t first = 0;
  uint64_t last = 0;
  if (!take_digits(line, 16, first) || !line.starts_with('-')) return false;
  line.remove_prefix(1);
  if (!take_digits(line, 16, last) || !line.starts_with(kSeparator)) return false;
  if (last <= first || last >= kPhysicalEnd) return false;
  entry.range = {first, last - first + 1};
  entry.name = line.substr(kSeparator.size());
  entry.depth = static_cast<unsigned>(indent / 2);
  return true;
}

}  // namespace

PhysicalRanges united(PhysicalRanges ranges) {
  std::sort(ranges.begin(), ranges.end());
  PhysicalRanges result;
  for (const PhysicalRange& range : ranges) {
    if (range.bytes == 0) continue;
    if (result.empty() || result.back().end() < range.start)
      result.push_back(range);
    else
      result.back().bytes = std::max(result.back().end(), range.end()) - result.back().start;
  }
  return result;
}

PhysicalRanges without(PhysicalRanges ranges, PhysicalRanges taken) {
  PhysicalRanges result;
  const PhysicalRanges holes = united(std::move(taken));
  for (const PhysicalRange& range : united(std::move(ranges))) {
    uint64_t at = range.start;
    for (const PhysicalRange& hole : holes) {
      if (!hole.overlaps(range)) continue;
      if (hole.start > at) result.push_back({at, hole.start - at});
      at = hole.end();
    }
    if (at < range.end()) result.push_back({at, range.end() - at});
  }
  return result;
}

PhysicalRanges common(const PhysicalRanges& a, const PhysicalRanges& b) {
  return without(a, without(a, b));
}

uint64_t total_bytes(const PhysicalRanges& ranges) {
  uint64_t bytes = 0;
  for (const PhysicalRange& range : ranges) bytes += range.bytes;
  return bytes;
}

PhysicalRanges aligned(const PhysicalRanges& ranges, uint64_t unit_bytes) {
  PhysicalRanges result;
  for (const PhysicalRange& range : ranges) {
    const uint64_t start = (range.start + unit_bytes - 1) / unit_bytes * unit_bytes;
    const uint64_t end = range.end() / unit_bytes * unit_bytes;
    if (start < end) result.push_back({start, end - start});
  }
  return result;
}

Result<PhysicalRange> parse_physical_range(std::string_view text) {
  const Error error = {.code = ErrorCode::kBadRequest,
                       .message = fmt::format("\"{}\" is no range of memory", text),
                       .hint = "write it as START+LENGTH: 0x140000000+2G"};
  std::string_view rest = text;
  const int base = rest.starts_with("0x") ? 16 : 10;
  if (base == 16) rest.remove_prefix(2);
  PhysicalRange range;
  if (!take_digits(rest, base, range.start) || !rest.starts_with('+')) return error;
  auto bytes = parse_bytes(rest.substr(1));
  if (!bytes.ok()) return error;
  range.bytes = *bytes;
  if (range.bytes != 0 && range.start < kPhysicalEnd && range.bytes <= kPhysicalEnd - range.start)
    return range;
  return Error(error).with_hint("it has to end within 52 bits of address, and not to be empty");
}

std::string format_exact(const PhysicalRange& range) {
  return fmt::format("{:#x}+{}", range.start, format_bytes_exact(range.bytes));
}

std::string format_exact(const PhysicalRanges& ranges) {
  std::string text;
  for (const PhysicalRange& range : ranges) text += (text.empty() ? "" : ",") + format_exact(range);
  return text;
}

std::vector<IomemEntry> parse_iomem(std::string_view text) {
  std::vector<IomemEntry> entries;
  while (!text.empty()) {
    const size_t length = std::min(text.find('\n'), text.size());
    IomemEntry entry;
    if (parse_iomem_line(text.substr(0, length), entry)) entries.push_back(std::move(entry));
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return entries;
}

PhysicalRanges system_ram(const std::vector<IomemEntry>& entries) {
  PhysicalRanges ranges;
  for (const IomemEntry& entry : entries)
    if (entry.name.starts_with("System RAM")) ranges.push_back(entry.range);
  return united(std::move(ranges));
}

}  // namespace memsluice
