// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/provision/render.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "daemon/base/units.h"
#include "tools/memsluice/format.h"
#include "tools/memsluice/provision/output.h"

namespace memsluice::provision {
namespace {

// What is smaller is told to programs, and only counted for people.
constexpr uint64_t kShownBytesMin = 1 << 20;

Json json_of(const PhysicalRanges& ranges) {
  Json list = Json::array();
  for (const PhysicalRange& range : ranges)
    list.push_back({{"start", range.start}, {"bytes", range.bytes}});
  return list;
}

Json json_of(const std::vector<Claim>& claims) {
  Json list = Json::array();
  for (const Claim& claim : claims)
    list.push_back({{"source", claim.source}, {"says", claim.says}});
  return list;
}

template <typename T>
Json json_of(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json json_of(const Survey& survey) {
  Json ranges = Json::array();
  for (const SurveyedRange& range : survey.ranges)
    ranges.push_back({{"start", range.range.start},
                      {"bytes", range.range.bytes},
                      {"claims", json_of(range.claims)},
                      {"conflicts", range.conflicts}});
  return {{"ranges", std::move(ranges)},
          {"host", json_of(survey.host)},
          {"conflicts", survey.conflicts}};
}

Json json_of(const Proposals& proposals) {
  Json channels = Json::array();
  for (const Proposal& proposal : proposals.channels)
    channels.push_back({{"ranges", json_of(proposal.ranges)}, {"source", proposal.source}});
  return {{"channels", std::move(channels)},
          {"assumed", proposals.assumed},
          {"unusable", proposals.unusable}};
}

Json json_of(const PlannedChannel& channel) {
  const ChannelDefinition& definition = channel.definition;
  return {{"name", definition.name},
          {"group", definition.group},
          {"start", definition.range ? Json(definition.range->start) : Json(nullptr)},
          {"bytes", definition.range ? Json(definition.range->bytes) : Json(nullptr)},
          {"node", json_of(definition.node)},
          {"read_mib_per_s", json_of(definition.speeds.read_mib_per_s)},
          {"write_mib_per_s", json_of(definition.speeds.write_mib_per_s)},
          {"read_latency_ns", json_of(definition.speeds.read_latency_ns)},
          {"write_latency_ns", json_of(definition.speeds.write_latency_ns)},
          {"source", channel.source}};
}

Json json_of(const Plan& plan) {
  Json channels = Json::array();
  for (const PlannedChannel& channel : plan.channels) channels.push_back(json_of(channel));
  return {{"channels", std::move(channels)},
          {"host_bytes", plan.host_bytes},
          {"kernel_arguments", plan.kernel_arguments},
          {"grub", plan.kernel_arguments.empty() ? Json(nullptr) : Json(grub_line(plan))},
          {"srat_oem_revision", plan.srat ? Json(plan.srat->table.oem_revision()) : Json(nullptr)},
          {"warnings", plan.warnings}};
}

std::string line(std::string_view label, std::string_view text) {
  return fmt::format("    {:<13} {}\n", label, printable(text));
}

std::string survey_text(const Survey& survey) {
  std::string text = "Memory, and who says so:\n";
  size_t left_out = 0;
  for (const SurveyedRange& range : survey.ranges) {
    if (range.range.bytes < kShownBytesMin && range.conflicts.empty()) {
      left_out++;
      continue;
    }
    text += fmt::format("  {:#x}-{:#x}  {}\n", range.range.start, range.range.end() - 1,
                        format_bytes(range.range.bytes));
    for (const Claim& claim : range.claims) text += line(claim.source, claim.says);
    for (const std::string& conflict : range.conflicts) text += line("CONFLICT", conflict);
  }
  if (survey.ranges.empty()) text += "  nobody says anything\n";
  if (left_out != 0) text += fmt::format("  and {} pieces smaller than 1 MiB\n", left_out);
  text += "Of the host:\n";
  for (const Claim& claim : survey.host) text += line(claim.source, claim.says);
  for (const std::string& conflict : survey.conflicts) text += line("CONFLICT", conflict);
  return text;
}

std::string proposals_text(const Proposals& proposals) {
  std::string text;
  if (proposals.channels.empty()) {
    text += "Nothing says where channels begin and end:\n";
    for (const std::string& reason : proposals.unusable) text += "  " + printable(reason) + '\n';
    return text;
  }
  text += proposals.assumed ? "Channels, if nothing is interleaved:\n" : "Channels:\n";
  for (const Proposal& proposal : proposals.channels)
    text += fmt::format("  {}  {} ({})\n", format_exact(proposal.ranges),
                        format_bytes(total_bytes(proposal.ranges)), printable(proposal.source));
  return text;
}

std::string channels_text(const Plan& plan) {
  Table table({{"CHANNEL"}, {"GROUP"}, {"NODE", Align::kRight}, {"MEMORY"}, {"FROM"}});
  for (const PlannedChannel& channel : plan.channels) {
    const ChannelDefinition& definition = channel.definition;
    table.add_row({definition.name, definition.group,
                   definition.node ? fmt::format("{}", *definition.node) : "-",
                   definition.range ? format_exact(*definition.range) : "-",
                   printable(channel.source)});
  }
  return table.render();
}

std::string plan_text(const Plan& plan) {
  std::string text =
      fmt::format("\n{}The host keeps {}.\n", channels_text(plan), format_bytes(plan.host_bytes));
  if (!plan.kernel_arguments.empty())
    text += fmt::format(
        "\nFor the kernel command line:\n  {}\n"
        "The same for GRUB, in /etc/default/grub.d:\n  {}\n",
        fmt::join(plan.kernel_arguments, " "), grub_line(plan));
  if (plan.srat)
    text +=
        fmt::format("\nThe SRAT is replaced (OEM revision {}): nodes get ids for the channels.\n",
                    plan.srat->table.oem_revision());
  for (const std::string& warning : plan.warnings) text += "WARNING " + printable(warning) + '\n';
  return text;
}

}  // namespace

Json to_json(const Report& report) {
  return {{"evidence", json_of(report.survey)},
          {"proposals", json_of(report.proposals)},
          {"plan", report.plan ? json_of(*report.plan) : Json(nullptr)},
          {"written", report.written}};
}

std::string to_text(const Report& report) {
  std::string text = survey_text(report.survey) + proposals_text(report.proposals);
  if (!report.plan) return text;
  text += plan_text(*report.plan);
  if (report.written.empty())
    return text + "Nothing has been written: --write DIRECTORY does that.\n";
  for (const std::string& path : report.written) text += "written: " + printable(path) + '\n';
  return text;
}

}  // namespace memsluice::provision
