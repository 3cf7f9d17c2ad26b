// SPDX-License-Identifier: GPL-2.0
// Whatever a firmware says, or stands in the file of channels, nothing reads beyond it, what is
// planned keeps its promises, and what is written can be read again. The first byte says as what
// the rest is read.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "daemon/host/channels_file.h"
#include "tools/memsluice/provision/plan.h"
#include "tools/memsluice/provision/render.h"

namespace memsluice::provision {
namespace {

constexpr uint64_t kGib = uint64_t{1} << 30;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_plan(const Plan& plan, const Evidence& evidence) {
  require(without(plan.withheld, evidence.firmware_ram()).empty());
  require(plan.host_bytes >= least_host_bytes(total_bytes(plan.withheld)));
  const auto file = plan.channels_file();
  const auto again = parse_channels_file(format_channels_file(file, "fuzz"), "fuzz");
  require(again.problems.empty() && again.file.channels.size() == file.channels.size());
  if (plan.srat) {
    require(plan.srat->table.checksum_is_right());
    for (size_t node = 0; node < evidence.srat->domains_in_node_order.size(); node++)
      require(plan.srat->domains_in_node_order[node] == evidence.srat->domains_in_node_order[node]);
  }
}

// A host with this one source, and with RAM.
void look_at(Evidence evidence) {
  evidence.firmware_map = {{{0, 2 * kGib}, "System RAM"}, {{4 * kGib, 14 * kGib}, "System RAM"}};
  evidence.iomem = {{{0, 2 * kGib}, "System RAM"}};
  Report report{.survey = survey(evidence), .proposals = propose_channels(evidence)};
  for (const Wish& wish :
       {Wish{.ranges = {{10 * kGib, kGib}, {12 * kGib, kGib}}}, Wish{.channels = 1},
        Wish{.ranges = {{12 * kGib, 4 * kGib}}, .use = Use::kDevices}}) {
    auto plan = make_plan(evidence, report.proposals, wish);
    if (!plan.ok()) {
      require(!plan.error().message.empty());
      continue;
    }
    check_plan(*plan, evidence);
    report.plan = *std::move(plan);
  }
  to_text(report);
  to_line(to_json(report));
}

// With the checksum that a plan wants.
std::string mended(std::string_view bytes) {
  constexpr size_t kChecksumOffset = 9;
  std::string table(bytes);
  if (table.size() <= kChecksumOffset) return table;
  uint8_t sum = 0;
  for (const char byte : table) sum = static_cast<uint8_t>(sum + static_cast<uint8_t>(byte));
  table[kChecksumOffset] = static_cast<char>(table[kChecksumOffset] - sum);
  return table;
}

void check_channels_text(std::string_view text) {
  const LoadedChannels loaded = parse_channels_file(text, "fuzz.toml");
  for (const ConfigProblem& problem : loaded.problems)
    require(problem.position.line > 0 && !problem.message.empty());
  if (!loaded.problems.empty()) return;
  const std::string written = format_channels_file(loaded.file, "fuzz");
  const LoadedChannels again = parse_channels_file(written, "fuzz.toml");
  require(again.problems.empty() && format_channels_file(again.file, "fuzz") == written);
  check_channels(loaded.file, HostMemory{});
}

void run(char kind, std::string_view bytes) {
  Evidence evidence;
  if (kind == 's') {
    auto srat = parse_srat(mended(bytes));
    if (srat.ok()) evidence.srat = *std::move(srat);
  } else if (kind == 'h') {
    auto hmat = parse_hmat(bytes);
    if (hmat.ok()) evidence.hmat = *std::move(hmat);
  } else if (kind == 'c') {
    auto cedt = parse_cedt(bytes);
    if (cedt.ok()) evidence.cedt = *std::move(cedt);
  } else if (kind == 'd') {
    auto smbios = parse_smbios(bytes);
    if (smbios.ok()) evidence.smbios = *std::move(smbios);
  } else if (kind == 'i') {
    system_ram(parse_iomem(bytes));
    evidence.command_line = bytes;
  } else {
    return check_channels_text(bytes);
  }
  look_at(std::move(evidence));
}

}  // namespace
}  // namespace memsluice::provision

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size != 0)
    memsluice::provision::run(static_cast<char>(data[0]),
                              {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
