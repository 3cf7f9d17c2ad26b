// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/provision/srat.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/memsluice/provision/little_endian.h"

namespace memsluice::provision {
namespace {

constexpr StructureLayout kSratLayout = {
    .first = 48, .header_bytes = 2, .type_bytes = 1, .length_offset = 1, .length_bytes = 1};

constexpr uint16_t kCpu = 0;
constexpr size_t kCpuBytes = 16;
constexpr uint16_t kMemory = 1;
constexpr size_t kMemoryBytes = 40;
constexpr uint16_t kX2Apic = 2;
constexpr size_t kX2ApicBytes = 24;
constexpr uint16_t kInitiator = 5;
constexpr size_t kInitiatorBytes = 32;

constexpr size_t kMemoryDomainOffset = 2;
constexpr size_t kMemoryStartOffset = 8;
constexpr size_t kMemoryLengthOffset = 16;
constexpr size_t kMemoryFlagsOffset = 28;
constexpr uint32_t kEnabled = 1;
constexpr uint32_t kHotPluggable = 2;

// Linux has room for as many domains as for nodes. Tables before revision 2 have one byte for them.
constexpr uint32_t kDomainsMax = 1024;
constexpr uint32_t kOldDomainsMax = 255;

uint32_t domain_mask(uint8_t revision) {
  return revision < 2 ? 0xff : UINT32_MAX;
}

uint32_t cpu_domain(std::string_view entry, uint8_t revision) {
  const uint32_t high = little_endian<uint32_t>(entry, 8) & 0xffffff00;
  return (little_endian<uint8_t>(entry, 2) | high) & domain_mask(revision);
}

bool is_enabled_memory(uint16_t type, std::string_view entry) {
  return type == kMemory && entry.size() >= kMemoryBytes &&
         (little_endian<uint32_t>(entry, kMemoryFlagsOffset) & kEnabled) != 0;
}

PhysicalRange memory_range(std::string_view entry) {
  return {little_endian<uint64_t>(entry, kMemoryStartOffset),
          little_endian<uint64_t>(entry, kMemoryLengthOffset)};
}

bool is_possible(const PhysicalRange& range) {
  return range.bytes != 0 && range.start < kPhysicalEnd &&
         range.bytes <= kPhysicalEnd - range.start;
}

void meet(Srat& srat, uint32_t domain) {
  auto& order = srat.domains_in_node_order;
  if (std::find(order.begin(), order.end(), domain) == order.end()) order.push_back(domain);
}

// Linux reads CPUs and devices before it reads memory.
void read_initiator(Srat& srat, uint16_t type, std::string_view entry) {
  const uint8_t revision = srat.table.revision();
  if (type == kCpu && entry.size() >= kCpuBytes &&
      (little_endian<uint32_t>(entry, 4) & kEnabled) != 0) {
    srat.cpus[cpu_domain(entry, revision)]++;
    meet(srat, cpu_domain(entry, revision));
  } else if (type == kX2Apic && entry.size() >= kX2ApicBytes &&
             (little_endian<uint32_t>(entry, 12) & kEnabled) != 0) {
    srat.cpus[little_endian<uint32_t>(entry, 4)]++;
    meet(srat, little_endian<uint32_t>(entry, 4));
  } else if (type == kInitiator && entry.size() >= kInitiatorBytes &&
             (little_endian<uint32_t>(entry, 24) & kEnabled) != 0) {
    srat.initiators[little_endian<uint32_t>(entry, 4)]++;
    meet(srat, little_endian<uint32_t>(entry, 4));
  }
}

void read_memory(Srat& srat, uint16_t type, std::string_view entry) {
  if (!is_enabled_memory(type, entry) || !is_possible(memory_range(entry))) return;
  const uint32_t flags = little_endian<uint32_t>(entry, kMemoryFlagsOffset);
  const uint32_t domain =
      little_endian<uint32_t>(entry, kMemoryDomainOffset) & domain_mask(srat.table.revision());
  srat.memory.push_back({domain, memory_range(entry), (flags & kHotPluggable) != 0});
  meet(srat, domain);
}

std::string memory_entry(std::string_view like, uint32_t domain, const PhysicalRange& range) {
  std::string entry(like.substr(0, kMemoryBytes));
  put_little_endian<uint32_t>(entry, kMemoryDomainOffset, domain);
  put_little_endian<uint64_t>(entry, kMemoryStartOffset, range.start);
  put_little_endian<uint64_t>(entry, kMemoryLengthOffset, range.bytes);
  return entry;
}

std::string new_memory_entry() {
  std::string entry(kMemoryBytes, '\0');
  entry[0] = static_cast<char>(kMemory);
  entry[1] = static_cast<char>(kMemoryBytes);
  put_little_endian<uint32_t>(entry, kMemoryFlagsOffset, kEnabled);
  return entry;
}

}  // namespace

std::optional<int> Srat::node_of(uint32_t domain) const {
  const auto& order = domains_in_node_order;
  const auto found = std::find(order.begin(), order.end(), domain);
  if (found == order.end()) return std::nullopt;
  return static_cast<int>(found - order.begin());
}

Result<Srat> parse_srat(std::string_view bytes) {
  auto table = parse_acpi_table(bytes, "SRAT", kSratLayout.first);
  if (!table.ok()) return table.error();
  Srat srat{.table = *std::move(table),
            .memory = {},
            .cpus = {},
            .initiators = {},
            .domains_in_node_order = {}};
  auto read = each_structure(srat.table, kSratLayout, [&](uint16_t type, std::string_view entry) {
    read_initiator(srat, type, entry);
  });
  if (!read.ok()) return read.error();
  read = each_structure(srat.table, kSratLayout, [&](uint16_t type, std::string_view entry) {
    read_memory(srat, type, entry);
  });
  if (!read.ok()) return read.error();
  return srat;
}

std::vector<uint32_t> free_domains(const Srat& srat, size_t count) {
  std::vector<uint32_t> free;
  for (uint32_t domain = 0; free.size() < count; domain++)
    if (!srat.node_of(domain)) free.push_back(domain);
  return free;
}

Result<Srat> changed(const Srat& srat, const std::vector<SratChange>& changes) {
  const uint32_t most = srat.table.revision() < 2 ? kOldDomainsMax : kDomainsMax;
  PhysicalRanges moved;
  for (const SratChange& change : changes) {
    if (change.domain >= most)
      return Error{
          .code = ErrorCode::kConflict,
          .object = "SRAT",
          .message = fmt::format("has room for {} domains, and {} is needed", most, change.domain)};
    moved.insert(moved.end(), change.ranges.begin(), change.ranges.end());
  }
  AcpiTable table = srat.table;
  table.bytes.resize(kSratLayout.first);
  const std::string like = new_memory_entry();
  auto copied = each_structure(srat.table, kSratLayout, [&](uint16_t type, std::string_view entry) {
    if (!is_enabled_memory(type, entry) || !is_possible(memory_range(entry)) ||
        common({memory_range(entry)}, moved).empty()) {
      table.bytes += entry;
      return;
    }
    const uint32_t domain = little_endian<uint32_t>(entry, kMemoryDomainOffset);
    for (const PhysicalRange& kept : without({memory_range(entry)}, moved))
      table.bytes += memory_entry(entry, domain, kept);
  });
  if (!copied.ok()) return copied.error();
  for (const SratChange& change : changes)
    for (const PhysicalRange& range : change.ranges)
      table.bytes += memory_entry(like, change.domain, range);
  auto replacement = as_replacement(std::move(table));
  if (!replacement.ok()) return replacement.error();
  return parse_srat(replacement->bytes);
}

}  // namespace memsluice::provision
