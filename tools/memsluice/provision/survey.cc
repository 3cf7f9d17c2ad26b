// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/provision/survey.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "daemon/base/units.h"

namespace memsluice::provision {
namespace {

// Below 1 MiB the kernel keeps for itself what it likes, as the firmware does; elsewhere it keeps
// small pieces, for tables and what it boots with.
constexpr uint64_t kLegacyEnd = 1 << 20;
constexpr uint64_t kPieceBytesMax = 1 << 20;

struct PlacedClaim {
  PhysicalRange range;
  Claim claim;
};
using PlacedClaims = std::vector<PlacedClaim>;

bool is_memory(const std::string& firmware_type) {
  return firmware_type == "System RAM" || firmware_type == "Soft Reserved" ||
         firmware_type.starts_with("Persistent Memory");
}

void claim_firmware_map(const Evidence& evidence, PlacedClaims& claims) {
  for (const FirmwareRange& known : evidence.firmware_map)
    if (is_memory(known.type)) claims.push_back({known.range, {"e820", known.type}});
}

void claim_srat(const Evidence& evidence, PlacedClaims& claims) {
  if (!evidence.srat) return;
  for (const SratMemory& memory : evidence.srat->memory)
    claims.push_back({memory.range,
                      {"SRAT", fmt::format("domain {}{}", memory.domain,
                                           memory.hot_pluggable ? ", hot-pluggable" : "")}});
}

void claim_cedt(const Evidence& evidence, PlacedClaims& claims) {
  if (!evidence.cedt) return;
  for (const CxlWindow& window : evidence.cedt->windows) {
    const std::string ways = window.ways == 1 ? std::string("not interleaved")
                                              : fmt::format("interleaved over {}", window.ways);
    claims.push_back({window.range,
                      {"CEDT", fmt::format("CXL window, {}, {}, host bridge {}",
                                           window.is_volatile ? "volatile" : "not volatile", ways,
                                           fmt::join(window.bridges, ", "))}});
  }
}

std::string interleaving(const SmbiosModuleMapping& mapping) {
  if (mapping.interleave_position == 0) return "not interleaved";
  if (mapping.interleave_position == 0xff) return "interleaving not known";
  return fmt::format("position {} of an interleaving", mapping.interleave_position);
}

void claim_smbios(const Evidence& evidence, PlacedClaims& claims) {
  if (!evidence.smbios) return;
  for (const SmbiosArrayMapping& mapping : evidence.smbios->array_mappings)
    claims.push_back({mapping.range,
                      {"SMBIOS 19", fmt::format("array {:#x}, {} modules a row", mapping.array,
                                                mapping.modules_per_row)}});
  for (const SmbiosModuleMapping& mapping : evidence.smbios->module_mappings) {
    const SmbiosModule* known = evidence.smbios->module(mapping.module);
    const std::string name =
        known != nullptr ? known->locator : fmt::format("module {:#x}", mapping.module);
    claims.push_back({mapping.range, {"SMBIOS 20", name + ", " + interleaving(mapping)}});
  }
}

void claim_kernel(const Evidence& evidence, PlacedClaims& claims) {
  for (const IomemEntry& entry : evidence.iomem)
    if (entry.name.starts_with("System RAM") || entry.name == "Soft Reserved" ||
        entry.name.starts_with("Persistent Memory"))
      claims.push_back({entry.range, {"/proc/iomem", entry.name}});
  for (const KernelNode& node : evidence.nodes)
    for (const PhysicalRange& range : node.memory)
      claims.push_back({range, {"kernel", fmt::format("node {}", node.id)}});
  for (const DaxDevice& device : evidence.dax)
    claims.push_back({device.range, {"DAX", device.name}});
  for (const Withheld& withheld : withheld_by(evidence.command_line))
    claims.push_back({withheld.range, {"command line", withheld.argument}});
}

std::vector<uint64_t> cut_points(const PlacedClaims& claims) {
  std::set<uint64_t> points;
  for (const PlacedClaim& placed : claims) {
    points.insert(placed.range.start);
    points.insert(placed.range.end());
  }
  return {points.begin(), points.end()};
}

std::vector<Claim> claims_at(const PlacedClaims& claims, const PhysicalRange& range) {
  std::vector<Claim> found;
  for (const PlacedClaim& placed : claims)
    if (placed.range.contains(range)) found.push_back(placed.claim);
  return found;
}

// Blocks of the kernel reach over holes of the firmware: alone they say nothing of memory.
bool say_memory(const std::vector<Claim>& claims) {
  return std::any_of(claims.begin(), claims.end(), [](const Claim& claim) {
    return claim.source != "kernel" && claim.source != "command line";
  });
}

std::vector<SurveyedRange> cut(const PlacedClaims& claims) {
  const std::vector<uint64_t> points = cut_points(claims);
  std::vector<SurveyedRange> ranges;
  for (size_t i = 0; i + 1 < points.size(); i++) {
    const PhysicalRange range{points[i], points[i + 1] - points[i]};
    std::vector<Claim> said = claims_at(claims, range);
    if (!say_memory(said)) continue;
    if (!ranges.empty() && ranges.back().range.end() == range.start && ranges.back().claims == said)
      ranges.back().range.bytes += range.bytes;
    else
      ranges.push_back({range, std::move(said)});
  }
  return ranges;
}

std::vector<std::string> said_by(const SurveyedRange& range, std::string_view source) {
  std::vector<std::string> said;
  for (const Claim& claim : range.claims)
    if (claim.source == source) said.push_back(claim.says);
  return said;
}

void find_srat_conflicts(const Evidence& evidence, SurveyedRange& range) {
  if (!evidence.srat) return;
  std::set<uint32_t> domains;
  for (const SratMemory& memory : evidence.srat->memory)
    if (memory.range.contains(range.range)) domains.insert(memory.domain);
  if (domains.size() > 1)
    range.conflicts.push_back(
        fmt::format("SRAT has it in domains {}", fmt::join(domains, " and ")));
  if (domains.size() != 1) return;
  const auto expected = evidence.srat->node_of(*domains.begin());
  for (const KernelNode& node : evidence.nodes)
    for (const PhysicalRange& memory : node.memory)
      // A block of the kernel may hold the end of one domain and the begin of the next.
      if (memory.contains(range.range) && node.id != expected &&
          range.range.bytes >= evidence.block_bytes)
        range.conflicts.push_back(fmt::format("SRAT makes it node {}, the kernel node {}",
                                              expected.value_or(-1), node.id));
}

void find_conflicts(const Evidence& evidence, SurveyedRange& range) {
  find_srat_conflicts(evidence, range);
  const auto e820 = said_by(range, "e820");
  if (e820 != std::vector<std::string>{"System RAM"} || range.range.end() <= kLegacyEnd) return;
  if (!evidence.iomem.empty() && said_by(range, "/proc/iomem").empty() &&
      said_by(range, "command line").empty() && range.range.bytes > kPieceBytesMax)
    range.conflicts.emplace_back("e820 says RAM, and the kernel does not use it");
  if (evidence.srat && said_by(range, "SRAT").empty())
    range.conflicts.emplace_back("e820 says RAM, and SRAT knows nothing of it");
  if (evidence.smbios && !evidence.smbios->array_mappings.empty() &&
      said_by(range, "SMBIOS 19").empty())
    range.conflicts.emplace_back("e820 says RAM, and SMBIOS maps no modules there");
  const auto modules = said_by(range, "SMBIOS 20");
  if (std::count_if(modules.begin(), modules.end(), [](const std::string& module) {
        return module.ends_with(", not interleaved");
      }) > 1)
    range.conflicts.emplace_back("SMBIOS maps more than one module there that is not interleaved");
}

void survey_modules(const Evidence& evidence, Survey& result) {
  if (!evidence.smbios) return;
  uint64_t mapped_bytes = 0;
  for (const SmbiosArrayMapping& mapping : evidence.smbios->array_mappings)
    mapped_bytes += mapping.range.bytes;
  for (const SmbiosArray& array : evidence.smbios->arrays)
    result.host.push_back(
        {"SMBIOS 16", fmt::format("array {:#x}: {} slots, at most {}", array.handle, array.slots,
                                  format_bytes(array.capacity_bytes))});
  for (const SmbiosModule& known : evidence.smbios->modules)
    if (known.bytes)
      result.host.push_back(
          {"SMBIOS 17", fmt::format("{} ({}): {}, {} MT/s", known.locator, known.bank,
                                    format_bytes(*known.bytes), known.speed_mt_per_s)});
  const uint64_t module_bytes = evidence.smbios->module_bytes();
  const uint64_t ram_bytes = total_bytes(evidence.firmware_ram());
  if (module_bytes < ram_bytes)
    result.conflicts.push_back(fmt::format("SMBIOS has modules of {}, and e820 has RAM of {}",
                                           format_bytes(module_bytes), format_bytes(ram_bytes)));
  if (mapped_bytes != 0 && mapped_bytes != module_bytes)
    result.conflicts.push_back(fmt::format("SMBIOS has modules of {}, and maps {}",
                                           format_bytes(module_bytes), format_bytes(mapped_bytes)));
}

void survey_edac(const Evidence& evidence, Survey& result) {
  uint64_t bytes = 0;
  for (const EdacModule& known : evidence.edac) {
    bytes += known.bytes;
    result.host.push_back({"EDAC", fmt::format("{} {}: {}, {}", known.controller, known.location,
                                               known.label, format_bytes(known.bytes))});
  }
  if (evidence.edac.empty())
    result.host.push_back({"EDAC", "no driver knows these memory controllers"});
  const uint64_t module_bytes = evidence.smbios ? evidence.smbios->module_bytes() : 0;
  if (bytes != 0 && module_bytes != 0 && bytes != module_bytes)
    result.conflicts.push_back(fmt::format("EDAC has modules of {}, and SMBIOS of {}",
                                           format_bytes(bytes), format_bytes(module_bytes)));
  result.host.push_back({"ADXL", evidence.adxl
                                     ? "the firmware decodes addresses, for the kernel's EDAC alone"
                                     : "the firmware decodes no addresses"});
}

void survey_hmat(const Evidence& evidence, Survey& result) {
  if (!evidence.hmat) return;
  std::set<uint32_t> unknown;
  for (const HmatSpeeds& known : evidence.hmat->speeds) {
    const ChannelSpeeds& speeds = known.speeds;
    result.host.push_back(
        {"HMAT", fmt::format("domain {} from {}: read {} MB/s, {} ns, write {} MB/s, {} ns",
                             known.target, known.initiator, speeds.read_mib_per_s.value_or(0),
                             speeds.read_latency_ns.value_or(0), speeds.write_mib_per_s.value_or(0),
                             speeds.write_latency_ns.value_or(0))});
    if (!evidence.srat || !evidence.srat->node_of(known.target)) unknown.insert(known.target);
  }
  if (!unknown.empty())
    result.conflicts.push_back(
        fmt::format("HMAT has domains that SRAT does not have: {}", fmt::join(unknown, ", ")));
}

}  // namespace

Survey survey(const Evidence& evidence) {
  PlacedClaims claims;
  claim_firmware_map(evidence, claims);
  claim_srat(evidence, claims);
  claim_cedt(evidence, claims);
  claim_smbios(evidence, claims);
  claim_kernel(evidence, claims);
  Survey result{.ranges = cut(claims), .host = {}, .conflicts = {}};
  for (SurveyedRange& range : result.ranges) find_conflicts(evidence, range);
  survey_modules(evidence, result);
  survey_edac(evidence, result);
  survey_hmat(evidence, result);
  for (const SourceProblem& problem : evidence.problems)
    result.conflicts.push_back(fmt::format("{}: {}", problem.source, problem.message));
  return result;
}

}  // namespace memsluice::provision
