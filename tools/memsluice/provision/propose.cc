// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/provision/propose.h"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/base/units.h"

namespace memsluice::provision {
namespace {

constexpr uint64_t kDevicesEnd = uint64_t{4} << 30;

void sort_by_address(std::vector<Proposal>& proposals) {
  std::sort(proposals.begin(), proposals.end(),
            [](const Proposal& a, const Proposal& b) { return a.ranges < b.ranges; });
}

// Why the mappings of modules say nothing; empty if they do.
std::string against_mappings(const Evidence& evidence) {
  if (!evidence.smbios || evidence.smbios->module_mappings.empty())
    return "SMBIOS 20: does not say where modules are mapped";
  PhysicalRanges seen;
  for (const SmbiosModuleMapping& mapping : evidence.smbios->module_mappings) {
    if (mapping.interleave_position != 0)
      return "SMBIOS 20: modules are interleaved, or it does not know; the firmware's setup "
             "can switch channel interleaving off";
    if (!common({mapping.range}, seen).empty())
      return "SMBIOS 20: maps two modules to the same memory";
    seen.push_back(mapping.range);
  }
  return {};
}

void propose_mapped_modules(const Evidence& evidence, Proposals& result) {
  if (const std::string against = against_mappings(evidence); !against.empty()) {
    result.unusable.push_back(against);
    return;
  }
  const PhysicalRanges ram = evidence.firmware_ram();
  for (const SmbiosModuleMapping& mapping : evidence.smbios->module_mappings) {
    const SmbiosModule* known = evidence.smbios->module(mapping.module);
    PhysicalRanges ranges = common({mapping.range}, ram);
    if (ranges.empty()) continue;
    result.channels.push_back(
        {std::move(ranges),
         fmt::format("SMBIOS 20: {}", known != nullptr ? known->locator : "a module")});
  }
}

void propose_domains(const Evidence& evidence, Proposals& result) {
  if (!evidence.srat) {
    result.unusable.emplace_back("SRAT: there is none");
    return;
  }
  const PhysicalRanges ram = evidence.firmware_ram();
  for (const uint32_t domain : evidence.srat->domains_in_node_order) {
    if (evidence.srat->cpus.contains(domain) || evidence.srat->initiators.contains(domain))
      continue;
    PhysicalRanges memory;
    for (const SratMemory& known : evidence.srat->memory)
      if (known.domain == domain) memory.push_back(known.range);
    PhysicalRanges ranges = common(memory, ram);
    if (!ranges.empty())
      result.channels.push_back({std::move(ranges), fmt::format("SRAT: domain {}", domain)});
  }
  if (result.channels.empty()) result.unusable.emplace_back("SRAT: no domain is without CPUs");
}

// Where memory lies that the firmware has moved from below 4 GiB, for devices, to the end: memory
// of `bytes` is at 0 and at 4 GiB. Empty if the RAM there is cannot be so.
PhysicalRanges extents(const PhysicalRanges& ram, uint64_t bytes) {
  uint64_t low_end = 0;
  uint64_t high_end = kDevicesEnd;
  for (const PhysicalRange& range : ram)
    (range.start < kDevicesEnd ? low_end : high_end) =
        std::max(range.start < kDevicesEnd ? low_end : high_end, range.end());
  if (low_end > kDevicesEnd || bytes < high_end - kDevicesEnd) return {};
  const uint64_t low_bytes = bytes - (high_end - kDevicesEnd);
  if (low_bytes < low_end || low_bytes > kDevicesEnd) return {};
  PhysicalRanges result = {{0, low_bytes}};
  if (high_end > kDevicesEnd) result.push_back({kDevicesEnd, high_end - kDevicesEnd});
  return result;
}

// The bytes of the extents from `skipped` on.
PhysicalRanges piece(const PhysicalRanges& extents, uint64_t skipped, uint64_t bytes) {
  PhysicalRanges result;
  for (const PhysicalRange& extent : extents) {
    const uint64_t skip = std::min(skipped, extent.bytes);
    skipped -= skip;
    const uint64_t take = std::min(bytes, extent.bytes - skip);
    bytes -= take;
    if (take != 0) result.push_back({extent.start + skip, take});
  }
  return result;
}

void propose_by_sizes(const Evidence& evidence, Proposals& result) {
  const uint64_t bytes = evidence.smbios ? evidence.smbios->module_bytes() : 0;
  const PhysicalRanges ram = evidence.firmware_ram();
  const PhysicalRanges places = bytes == 0 ? PhysicalRanges{} : extents(ram, bytes);
  if (places.empty()) {
    result.unusable.push_back(
        bytes == 0 ? "SMBIOS 17: knows no modules"
                   : fmt::format("SMBIOS 17: modules of {} do not explain the RAM that e820 has",
                                 format_bytes(bytes)));
    return;
  }
  uint64_t skipped = 0;
  for (const SmbiosModule& known : evidence.smbios->modules) {
    if (!known.bytes) continue;
    PhysicalRanges ranges = common(piece(places, skipped, *known.bytes), ram);
    skipped += *known.bytes;
    if (!ranges.empty())
      result.channels.push_back(
          {std::move(ranges), fmt::format("size of {} in SMBIOS 17", known.locator)});
  }
  result.assumed = true;
}

}  // namespace

Proposals propose_channels(const Evidence& evidence) {
  Proposals result;
  for (auto* propose : {propose_mapped_modules, propose_domains, propose_by_sizes}) {
    propose(evidence, result);
    if (!result.channels.empty()) break;
  }
  sort_by_address(result.channels);
  return result;
}

}  // namespace memsluice::provision
