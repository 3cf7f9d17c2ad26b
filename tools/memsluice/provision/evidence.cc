// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/provision/evidence.h"

#include <charconv>
#include <sstream>

namespace memsluice::provision {
namespace {

// As the kernel's memparse(): 0x10, 2G, 512m. Takes it away from the front.
bool take_memory_number(std::string_view& text, uint64_t& number) {
  const int base = text.starts_with("0x") || text.starts_with("0X") ? 16 : 10;
  if (base == 16) text.remove_prefix(2);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc()) return false;
  text.remove_prefix(end - text.data());
  constexpr std::string_view kUnits = "KMGTPEkmgtpe";
  const size_t unit = text.empty() ? kUnits.npos : kUnits.find(text.front());
  if (unit == kUnits.npos) return true;
  text.remove_prefix(1);
  return !__builtin_mul_overflow(number, uint64_t{1} << (10 * (unit % 6 + 1)), &number);
}

// SIZE$START, SIZE!START, SIZE%START-OLD+NEW: reserved, persistent, of another kind.
std::optional<PhysicalRange> withheld_range(std::string_view text) {
  PhysicalRange range;
  if (!take_memory_number(text, range.bytes) || text.empty()) return std::nullopt;
  if (std::string_view("$!%").find(text.front()) == std::string_view::npos) return std::nullopt;
  text.remove_prefix(1);
  if (!take_memory_number(text, range.start)) return std::nullopt;
  if (range.bytes == 0 || range.start >= kPhysicalEnd || range.bytes > kPhysicalEnd - range.start)
    return std::nullopt;
  return range;
}

}  // namespace

PhysicalRanges Evidence::firmware_ram() const {
  PhysicalRanges ranges;
  for (const FirmwareRange& known : firmware_map)
    if (known.type == "System RAM") ranges.push_back(known.range);
  return ranges.empty() ? system_ram(iomem) : united(std::move(ranges));
}

HostMemory Evidence::host_memory() const {
  HostMemory host{.block_bytes = block_bytes,
                  .ram = system_ram(iomem),
                  .possible_nodes = possible_nodes,
                  .nodes = {}};
  for (const KernelNode& node : nodes)
    if (!node.memory.empty()) host.nodes[node.id] = node.memory;
  return host;
}

std::vector<Withheld> withheld_by(const std::string& command_line) {
  constexpr std::string_view kKey = "memmap=";
  std::vector<Withheld> found;
  std::istringstream words(command_line);
  for (std::string word; words >> word;) {
    if (!word.starts_with(kKey)) continue;
    for (std::string_view rest = std::string_view(word).substr(kKey.size()); !rest.empty();) {
      const size_t length = std::min(rest.find(','), rest.size());
      const std::string_view part = rest.substr(0, length);
      if (auto range = withheld_range(part))
        found.push_back({"memmap=" + std::string(part), *range});
      rest.remove_prefix(std::min(length + 1, rest.size()));
    }
  }
  return found;
}

}  // namespace memsluice::provision
