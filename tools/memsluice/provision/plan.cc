// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/provision/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "daemon/base/units.h"

namespace memsluice::provision {
namespace {

constexpr uint64_t kGib = uint64_t{1} << 30;
constexpr uint64_t kFourGib = 4 * kGib;
// For devices that know 32 bits of address, the kernel, its initrd, a crash kernel.
constexpr uint64_t kLeastLowBytes = kGib / 2;
// The kernel itself, and what it needs before it can choose.
constexpr uint64_t kLowestStart = kGib / 2;
constexpr uint64_t kLeastHostBytes = kGib / 2;
constexpr uint64_t kDefaultHostBytes = 4 * kGib;
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kPageDescriptionBytes = 64;
// The kernel drops what is longer, and places itself without KASLR if there are more of these.
constexpr size_t kCommandLineBytesMax = 2047;
constexpr size_t kMemmapsForKaslr = 4;

Error refusal(std::string object, std::string message, std::string hint = {}) {
  return {.code = ErrorCode::kConflict,
          .object = std::move(object),
          .message = std::move(message),
          .hint = std::move(hint)};
}

class Planner {
 public:
  Planner(const Evidence& evidence, const Proposals& proposals, const Wish& wish)
      : evidence_(evidence), proposals_(proposals), wish_(wish), ram_(evidence.firmware_ram()) {}

  Result<Plan> run() {
    if (ram_.empty())
      return Error{.code = ErrorCode::kUnavailable,
                   .object = "RAM",
                   .message = "neither /sys/firmware/memmap nor /proc/iomem shows any",
                   .hint = "try again as root"};
    for (auto step : {&Planner::choose_proposals, &Planner::choose_ranges, &Planner::choose_nodes,
                      &Planner::check_host, &Planner::name_channels, &Planner::describe_channels,
                      &Planner::assign_nodes, &Planner::add_arguments})
      if (auto done = (this->*step)(); !done.ok()) return done.error();
    warn();
    return std::move(plan_);
  }

 private:
  Result<void> choose_proposals();
  Result<void> choose_ranges();
  Result<void> choose_nodes();
  Result<void> check_host();
  Result<void> name_channels();
  Result<void> describe_channels();
  Result<void> assign_nodes();
  Result<void> add_arguments();
  void warn();

  Result<void> withhold(const PhysicalRange& range, std::string source);
  Result<void> check_range(const PhysicalRange& range) const;
  Result<void> check_override() const;
  std::vector<uint32_t> domains_of(const PhysicalRanges& ranges) const;
  bool leave_nothing_of(uint32_t domain, const PhysicalRanges& ranges) const;
  bool may_keep(uint32_t domain) const;
  Result<std::vector<SratChange>> choose_domains();
  std::optional<uint32_t> domain_of_node(int node) const;
  uint32_t home_domain(const ChannelDefinition& channel) const;
  bool is_cxl(const PhysicalRanges& ranges) const;
  PhysicalRanges memory_of(int node) const;

  const Evidence& evidence_;
  const Proposals& proposals_;
  const Wish& wish_;
  const PhysicalRanges ram_;
  Plan plan_ = {};
};

Result<void> Planner::check_range(const PhysicalRange& range) const {
  const PhysicalRanges inner = aligned({range}, evidence_.block_bytes);
  if (inner != PhysicalRanges{range})
    return refusal(format_exact(range),
                   fmt::format("has to begin and end at multiples of {}, the memory block of this "
                               "host",
                               format_bytes(evidence_.block_bytes)),
                   inner.empty() ? "" : fmt::format("{} does", format_exact(inner.front())));
  if (const PhysicalRanges holes = without({range}, ram_); !holes.empty())
    return refusal(format_exact(range), fmt::format("{} of it is no RAM", format_exact(holes)),
                   "memsluice provision shows what is where");
  if (range.start < kLowestStart)
    return refusal(format_exact(range), fmt::format("begins below {}, where the kernel lies",
                                                    format_bytes(kLowestStart)));
  return {};
}

Result<void> Planner::withhold(const PhysicalRange& range, std::string source) {
  if (auto checked = check_range(range); !checked.ok()) return checked;
  if (const PhysicalRanges twice = common({range}, plan_.withheld); !twice.empty())
    return refusal(format_exact(range),
                   fmt::format("{} belongs to two channels", format_exact(twice)));
  plan_.withheld.push_back(range);
  plan_.withheld = united(std::move(plan_.withheld));
  plan_.channels.push_back({{.range = range}, std::move(source)});
  return {};
}

Result<void> Planner::choose_proposals() {
  if (!wish_.channels) return {};
  // The largest piece of each: a node is made of one range.
  std::vector<std::pair<PhysicalRange, std::string>> usable;
  for (const Proposal& proposal : proposals_.channels) {
    const PhysicalRanges pieces =
        aligned(without(proposal.ranges, {{0, kLowestStart}}), evidence_.block_bytes);
    const auto largest = std::max_element(
        pieces.begin(), pieces.end(),
        [](const PhysicalRange& a, const PhysicalRange& b) { return a.bytes < b.bytes; });
    if (largest != pieces.end()) usable.emplace_back(*largest, proposal.source);
  }
  if (usable.empty())
    return refusal(
        "--channels", "nothing on this host says where channels begin and end",
        fmt::format("{}; name them: --range START+LENGTH", fmt::join(proposals_.unusable, "; ")));
  if (*wish_.channels > usable.size())
    return refusal("--channels", fmt::format("the evidence shows {} channels", usable.size()),
                   "memsluice provision lists them");
  for (auto chosen = usable.end() - *wish_.channels; chosen != usable.end(); ++chosen)
    if (auto done = withhold(chosen->first, chosen->second); !done.ok()) return done;
  return {};
}

Result<void> Planner::choose_ranges() {
  for (const PhysicalRange& range : wish_.ranges)
    if (auto done = withhold(range, "named"); !done.ok()) return done;
  return {};
}

PhysicalRanges Planner::memory_of(int id) const {
  for (const KernelNode& node : evidence_.nodes)
    if (node.id == id) return node.memory;
  return {};
}

Result<void> Planner::choose_nodes() {
  std::set<int> chosen;
  for (const int node : wish_.nodes) {
    const std::string object = fmt::format("--node {}", node);
    const PhysicalRanges memory = memory_of(node);
    if (memory.empty()) return refusal(object, "no such node has memory");
    if (!chosen.insert(node).second) return refusal(object, "is there twice");
    if (!common(memory, plan_.withheld).empty())
      return refusal(object, "its memory is among the ranges");
    ChannelDefinition channel{.node = node};
    plan_.channels.push_back({std::move(channel), "a node that is there"});
  }
  return {};
}

Result<void> Planner::check_host() {
  PhysicalRanges taken = plan_.withheld;
  for (const int node : wish_.nodes)
    for (const PhysicalRange& range : memory_of(node)) taken.push_back(range);
  const PhysicalRanges left = without(ram_, taken);
  plan_.host_bytes = total_bytes(left);
  const uint64_t channel_bytes = total_bytes(united(taken));
  const uint64_t wanted =
      std::max(wish_.host_bytes.value_or(kDefaultHostBytes), least_host_bytes(channel_bytes));
  if (plan_.host_bytes < wanted)
    return refusal("host",
                   fmt::format("would keep {} of {}, and needs {}", format_bytes(plan_.host_bytes),
                               format_bytes(total_bytes(ram_)), format_bytes(wanted)),
                   wish_.host_bytes ? "fewer channels" : "fewer channels, or --host SIZE");
  const PhysicalRange low{0, kFourGib};
  const uint64_t low_bytes = total_bytes(common(left, {low}));
  if (low_bytes < kLeastLowBytes)
    return refusal("host", fmt::format("would keep {} below 4 GiB, and needs {} there",
                                       format_bytes(low_bytes), format_bytes(kLeastLowBytes)));
  return {};
}

std::vector<uint32_t> Planner::domains_of(const PhysicalRanges& ranges) const {
  std::set<uint32_t> domains;
  if (evidence_.srat)
    for (const SratMemory& memory : evidence_.srat->memory)
      if (!common({memory.range}, ranges).empty()) domains.insert(memory.domain);
  return {domains.begin(), domains.end()};
}

// What of a domain's RAM is left without some ranges.
bool Planner::leave_nothing_of(uint32_t domain, const PhysicalRanges& ranges) const {
  PhysicalRanges memory;
  for (const SratMemory& known : evidence_.srat->memory)
    if (known.domain == domain) memory.push_back(known.range);
  return without(common(memory, ram_), ranges).empty();
}

// The first channel of a domain keeps it, if only channels are in it. It must: a domain that
// nothing is left of would be gone, and the nodes behind it would have other ids.
bool Planner::may_keep(uint32_t domain) const {
  const Srat& srat = *evidence_.srat;
  return !srat.cpus.contains(domain) && !srat.initiators.contains(domain) &&
         leave_nothing_of(domain, plan_.withheld);
}

std::optional<uint32_t> Planner::domain_of_node(int node) const {
  if (!evidence_.srat || node >= static_cast<int>(evidence_.srat->domains_in_node_order.size()))
    return std::nullopt;
  return evidence_.srat->domains_in_node_order[node];
}

// The domain whose CPUs are nearest: channels of one of these are a group.
uint32_t Planner::home_domain(const ChannelDefinition& channel) const {
  std::optional<uint32_t> own;
  if (channel.node) own = domain_of_node(*channel.node);
  if (channel.range)
    for (const uint32_t domain : domains_of({*channel.range})) own = domain;
  if (!own || evidence_.srat->cpus.contains(*own)) return own.value_or(0);
  if (!evidence_.hmat) return 0;
  std::optional<HmatSpeeds> best;
  for (const HmatSpeeds& known : evidence_.hmat->speeds)
    if (known.target == *own && known.speeds.read_latency_ns &&
        (!best || known.speeds.read_latency_ns < best->speeds.read_latency_ns))
      best = known;
  return best ? best->initiator : 0;
}

bool Planner::is_cxl(const PhysicalRanges& ranges) const {
  if (!evidence_.cedt) return false;
  PhysicalRanges windows;
  for (const CxlWindow& window : evidence_.cedt->windows) windows.push_back(window.range);
  return !common(ranges, windows).empty();
}

// "dram" and "cxl", with the number of the socket's domain behind it if there are several.
Result<void> Planner::name_channels() {
  std::set<uint32_t> homes;
  for (const PlannedChannel& channel : plan_.channels)
    homes.insert(home_domain(channel.definition));
  for (PlannedChannel& channel : plan_.channels) {
    ChannelDefinition& definition = channel.definition;
    const PhysicalRanges memory =
        definition.range ? PhysicalRanges{*definition.range} : memory_of(*definition.node);
    definition.group = is_cxl(memory) ? "cxl" : "dram";
    if (homes.size() > 1) definition.group += fmt::format("{}", home_domain(definition));
    const auto same = std::count_if(
        plan_.channels.begin(), plan_.channels.end(), [&](const PlannedChannel& other) {
          return !other.definition.name.empty() && other.definition.group == definition.group;
        });
    if (same == 0) plan_.groups.push_back(definition.group);
    definition.name = fmt::format("{}-{}", definition.group, same);
  }
  return {};
}

// Bandwidth is that of all channels of a domain together, so it is this one's if it has all of it.
Result<void> Planner::describe_channels() {
  if (!evidence_.hmat || !evidence_.srat) return {};
  for (PlannedChannel& channel : plan_.channels) {
    ChannelDefinition& definition = channel.definition;
    const PhysicalRanges ranges =
        definition.range ? PhysicalRanges{*definition.range} : memory_of(*definition.node);
    const auto from = domains_of(ranges);
    if (from.size() != 1) continue;
    definition.speeds = evidence_.hmat->nearest(from.front());
    if (leave_nothing_of(from.front(), ranges)) continue;
    definition.speeds.read_mib_per_s = std::nullopt;
    definition.speeds.write_mib_per_s = std::nullopt;
  }
  return {};
}

Result<void> Planner::check_override() const {
  const Srat& srat = *evidence_.srat;
  if (!srat.table.checksum_is_right())
    return refusal("SRAT", "its checksum is wrong: nothing can be built upon it");
  if (evidence_.table_upgrade == false)
    return refusal("kernel",
                   fmt::format("{} takes no tables from the initrd (CONFIG_ACPI_TABLE_UPGRADE)",
                               evidence_.kernel_release));
  if (evidence_.lockdown && !evidence_.lockdown->starts_with("[none]"))
    return refusal("lockdown", *evidence_.lockdown + ": the kernel takes no tables from the initrd",
                   "Secure Boot switches it on");
  return {};
}

// Sets the domain of each channel that is a range; the result is what SRAT lacks.
Result<std::vector<SratChange>> Planner::choose_domains() {
  std::vector<SratChange> changes;
  const std::vector<uint32_t> free = free_domains(*evidence_.srat, plan_.channels.size());
  std::set<uint32_t> kept;
  for (PlannedChannel& channel : plan_.channels) {
    if (!channel.definition.range) continue;
    const PhysicalRanges ranges = {*channel.definition.range};
    const auto from = domains_of(ranges);
    if (from.size() > 1)
      return refusal(
          format_exact(ranges.front()),
          fmt::format("lies in domains {} of SRAT: that is no one channel", fmt::join(from, ", ")));
    if (from.size() == 1 && may_keep(from.front()) && kept.insert(from.front()).second) {
      channel.domain = from.front();
    } else {
      channel.domain = free[changes.size()];
      changes.push_back({channel.domain, ranges});
    }
  }
  return changes;
}

Result<void> Planner::assign_nodes() {
  if (plan_.withheld.empty() || wish_.use == Use::kDevices) return {};
  if (!evidence_.srat)
    return refusal("SRAT", "there is none, so the kernel has one node and no ids for more",
                   "some firmware makes one when NUMA is switched on in its setup");
  auto changes = choose_domains();
  if (!changes.ok()) return changes.error();
  const Srat* srat = &*evidence_.srat;
  // The ids of a replacement are gone with it: whoever has ids from one needs one again.
  if (!changes->empty() || srat->table.is_replacement()) {
    if (auto checked = check_override(); !checked.ok()) return checked;
    auto made = changed(*evidence_.srat, *changes);
    if (!made.ok()) return made.error();
    plan_.srat = *std::move(made);
    srat = &*plan_.srat;
  }
  for (PlannedChannel& channel : plan_.channels)
    if (channel.definition.range) channel.definition.node = srat->node_of(channel.domain);
  return {};
}

Result<void> Planner::add_arguments() {
  for (const PhysicalRange& range : plan_.withheld) {
    const std::string start = fmt::format("{:#x}", range.start);
    const std::string bytes = format_bytes_exact(range.bytes);
    plan_.kernel_arguments.push_back(wish_.use == Use::kNodes
                                         ? fmt::format("memmap={}${}", bytes, start)
                                         // RAM becomes "soft reserved", E820_TYPE_SOFT_RESERVED.
                                         : fmt::format("memmap={}%{}-1+0xefffffff", bytes, start));
  }
  const std::string added = fmt::format("{}", fmt::join(plan_.kernel_arguments, " "));
  if (evidence_.command_line.size() + 1 + added.size() > kCommandLineBytesMax)
    return refusal("command line", fmt::format("would be longer than {} bytes: channels that touch "
                                               "each other need less of it",
                                               kCommandLineBytesMax));
  std::istringstream words(evidence_.command_line);
  for (std::string word; words >> word;)
    if (wish_.use == Use::kNodes && word == "numa=off")
      return refusal("command line", "numa=off is on it: the kernel would make no nodes");
  return {};
}

void Planner::warn() {
  auto& warnings = plan_.warnings;
  const auto before = withheld_by(evidence_.command_line);
  for (const Withheld& known : before)
    warnings.push_back(
        fmt::format("{} is on the command line already: what is printed here is added "
                    "to it, unless you take it away",
                    known.argument));
  if (!plan_.withheld.empty() && before.size() + plan_.withheld.size() > kMemmapsForKaslr)
    warnings.push_back(
        fmt::format("more than {} memmap=: the kernel will not choose a random place "
                    "for itself in physical memory",
                    kMemmapsForKaslr));
  if (plan_.host_bytes < evidence_.used_bytes)
    warnings.push_back(
        fmt::format("the host uses {} now, and would keep {}: what runs on the "
                    "channels later has to come from that",
                    format_bytes(evidence_.used_bytes), format_bytes(plan_.host_bytes)));
  if (wish_.channels && proposals_.assumed)
    warnings.emplace_back(
        "where channels begin and end follows from the sizes of modules, if nothing is "
        "interleaved: "
        "only traffic and the counters of memory controllers can prove it");
  if (plan_.srat && !evidence_.table_upgrade)
    warnings.emplace_back(
        "whether this kernel takes tables from the initrd is not known: it needs "
        "CONFIG_ACPI_TABLE_UPGRADE");
  if (plan_.srat && evidence_.srat->table.is_replacement())
    warnings.emplace_back(
        "SRAT is one of memsluice's, and what it has split stays split: boot "
        "without it to begin from the firmware's");
  const size_t more = plan_.srat ? plan_.srat->domains_in_node_order.size() -
                                       evidence_.srat->domains_in_node_order.size()
                                 : 0;
  if (more != 0 && evidence_.cedt && !evidence_.cedt->windows.empty())
    warnings.push_back(
        fmt::format("nodes of CXL windows that SRAT does not know move up by {}", more));
}

}  // namespace

ChannelsFile Plan::channels_file() const {
  ChannelsFile file{.groups = groups, .channels = {}};
  for (const PlannedChannel& channel : channels) file.channels.push_back(channel.definition);
  return file;
}

uint64_t least_host_bytes(uint64_t channel_bytes) {
  return kLeastHostBytes + channel_bytes / kPageBytes * kPageDescriptionBytes;
}

Result<Plan> make_plan(const Evidence& evidence, const Proposals& proposals, const Wish& wish) {
  return Planner(evidence, proposals, wish).run();
}

}  // namespace memsluice::provision
