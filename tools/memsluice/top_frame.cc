// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/top_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <iterator>
#include <utility>

#include "tools/memsluice/format.h"

namespace memsluice {
namespace {

constexpr size_t kBins = 16;
constexpr size_t kTenantColumnMin = 16;
constexpr size_t kBarMax = 40;
constexpr size_t kBarMin = 5;

using Levels = std::array<const char*, 9>;
constexpr Levels kUnicodeLevels = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr Levels kAsciiLevels = {" ", ".", ",", ":", "-", "=", "+", "*", "#"};

struct FrameColumn {
  const char* title;
  size_t width;
  int rank;  // the highest goes first when the terminal is narrow
  std::function<std::string(const Json&, const FrameOptions&)> cell;
};

std::string bytes_cell(const Json& tenant, const char* key) {
  return human_bytes(real(tenant, key));
}

std::string limit_cell(const Json& tenant) {
  const Json& policy = member(tenant, "policy");
  if (flag(policy, "tiering") == false) return "off";
  if (member(policy, "fast_limit_bytes").is_null() && policy.is_object()) return "none";
  return bytes_cell(policy, "fast_limit_bytes");
}

std::string rate_cell(const Json& tenant, const char* key, const FrameOptions& options) {
  const auto pages = real(tenant, key);
  if (!pages) return "-";
  return human_bytes(*pages * static_cast<double>(options.page_bytes));
}

const std::vector<FrameColumn>& tenant_columns() {
  static const std::vector<FrameColumn> columns = {
      {"FAST", 8, 0, [](const Json& t, auto&) { return bytes_cell(t, "fast_bytes"); }},
      {"LIMIT", 8, 4, [](const Json& t, auto&) { return limit_cell(t); }},
      {"SLOW", 8, 1, [](const Json& t, auto&) { return bytes_cell(t, "slow_bytes"); }},
      {"PROMOTE/s", 9, 2,
       [](const Json& t, auto& o) { return rate_cell(t, "promoted_pages_per_s", o); }},
      {"DEMOTE/s", 8, 3,
       [](const Json& t, auto& o) { return rate_cell(t, "demoted_pages_per_s", o); }},
      {"REFUSED/s", 9, 5,
       [](const Json& t, auto& o) { return rate_cell(t, "refused_pages_per_s", o); }},
  };
  return columns;
}

// Those that fit beside a legible name.
std::vector<const FrameColumn*> fitting_columns(size_t columns) {
  std::vector<const FrameColumn*> fitting;
  for (int ranks = 6; ranks > 0; --ranks) {
    size_t width = kTenantColumnMin;
    fitting.clear();
    for (const FrameColumn& column : tenant_columns()) {
      if (column.rank >= ranks) continue;
      fitting.push_back(&column);
      width += 2 + column.width;
    }
    if (width <= columns) return fitting;
  }
  return {};
}

std::string tenant_line(const std::string& name, const std::vector<std::string>& cells,
                        const std::vector<const FrameColumn*>& shown, size_t columns) {
  size_t width = 0;
  for (const FrameColumn* column : shown) width += 2 + column->width;
  const size_t name_width = columns > width ? columns - width : columns;
  std::string line = padded_right(shortened(name, name_width), name_width);
  for (size_t i = 0; i < shown.size(); ++i) line += "  " + padded_left(cells[i], shown[i]->width);
  return line;
}

// Both the bins and the bars are logarithmic: a few hot pages still show beside many cold ones.
size_t bar_level(uint64_t pages, uint64_t most) {
  if (pages == 0) return 0;
  if (most <= 1) return 8;
  const auto log2 = [](uint64_t value) { return static_cast<size_t>(std::bit_width(value)) - 1; };
  return 1 + 7 * log2(pages) / log2(most);
}

std::vector<uint64_t> bins(const Json& tenant, const char* tier) {
  std::vector<uint64_t> pages;
  const Json& histogram = member(member(tenant, "histogram_pages"), tier);
  if (!histogram.is_array()) return pages;
  for (const Json& bin : histogram) {
    if (pages.size() == kBins) break;
    pages.push_back(bin.is_number_unsigned() ? bin.get<uint64_t>() : 0);
  }
  return pages;
}

// The mark stands before the first bin that belongs in tier 0.
std::string histogram_bars(const std::vector<uint64_t>& pages, uint64_t most, uint64_t hot_bin,
                           bool unicode) {
  const Levels& levels = unicode ? kUnicodeLevels : kAsciiLevels;
  std::string bars;
  for (size_t bin = 0; bin <= pages.size(); ++bin) {
    if (bin == hot_bin) bars += unicode ? "│" : "|";
    if (bin < pages.size()) bars += levels[bar_level(pages[bin], most)];
  }
  return bars;
}

std::string histogram_line(const Json& tenant, const FrameOptions& options) {
  const auto fast = bins(tenant, "fast");
  const auto slow = bins(tenant, "slow");
  if (fast.empty() || slow.empty()) return "  no scan yet";
  const uint64_t most = std::max(*std::max_element(fast.begin(), fast.end()),
                                 *std::max_element(slow.begin(), slow.end()));
  const uint64_t hot = number(tenant, "hot_bin").value_or(kBins);
  const std::string line =
      fmt::format("  fast {}  slow {}", histogram_bars(fast, most, hot, options.unicode),
                  histogram_bars(slow, most, hot, options.unicode));
  const std::string bounds = fmt::format(
      "  hot bin {}  cold bin {}  scan {}", human_count(number(tenant, "hot_bin")),
      number(tenant, "cold_bin") == kBins ? "-" : human_count(number(tenant, "cold_bin")),
      human_count(number(tenant, "scans")));
  return line + bounds;
}

std::string usage_bar(double share, size_t width, bool unicode) {
  const auto filled = static_cast<size_t>(share * static_cast<double>(width) + 0.5);
  std::string bar;
  for (size_t i = 0; i < width; ++i) {
    bar += i < filled ? (unicode ? "█" : "#") : (unicode ? "░" : "-");
  }
  return bar;
}

std::string node_line(const Json& node, const FrameOptions& options) {
  const auto total = real(node, "total_bytes");
  const auto free = real(node, "free_bytes");
  std::string line =
      fmt::format("{:>4}  {:>4}  {:>8}  {:>8}  ", human_count(number(node, "id")),
                  human_count(number(node, "tier")), human_bytes(total), human_bytes(free));
  if (!total || !free || !(*total > 0)) return line + "   -";
  const double used = std::clamp(1 - *free / *total, 0.0, 1.0);
  line += fmt::format("{:>3.0f}%", used * 100);
  const size_t width = line.size() + 2;
  if (options.columns < width + kBarMin) return line;
  return line + "  " + usage_bar(used, std::min(kBarMax, options.columns - width), options.unicode);
}

// What one side of a channel moves, and of how much if the firmware says.
std::string bandwidth_cell(const Json& node, const char* rate, const char* most,
                           const FrameOptions& options, size_t bar) {
  const auto now = real(node, rate);
  const auto room = real(node, most);
  std::string cell = fmt::format("{:>8}", human_bytes(now));
  if (!now || !room || !(*room > 0)) return cell + std::string(bar == 0 ? 0 : 7 + bar, ' ');
  const double share = std::clamp(*now / *room, 0.0, 1.0);
  if (bar == 0) return cell;
  return cell + fmt::format(" {:>3.0f}%  ", share * 100) + usage_bar(share, bar, options.unicode);
}

// The columns of each of the two bars; 0: there is no room for them.
size_t bandwidth_bar(size_t name_width, const FrameOptions& options) {
  // Two numbers, two shares in per cent, and spaces.
  const size_t fixed = name_width + 2 * (2 + 8 + 7);
  if (options.columns < fixed + 2 * kBarMin) return 0;
  return std::min(kBarMax / 2, (options.columns - fixed) / 2);
}

std::string bandwidth_line(const std::string& name, size_t name_width, const Json& node,
                           const FrameOptions& options) {
  const size_t bar = bandwidth_bar(name_width, options);
  return padded_right(shortened(name, name_width), name_width) + "  " +
         bandwidth_cell(node, "read_bytes_per_s", "read_bandwidth_bytes_per_s", options, bar) +
         "  " +
         bandwidth_cell(node, "write_bytes_per_s", "write_bandwidth_bytes_per_s", options, bar);
}

// By node; channels of which nobody knows the node by themselves.
void add_bandwidth(const Json& sample, const FrameOptions& options,
                   std::vector<std::string>* lines) {
  const Json& counters = member(sample, "counters");
  const auto why = error_from_json(member(counters, "error"));
  if (why && text(counters, "source") != "none")
    lines->push_back("bandwidth not known: " + printable(why->message));
  if (items(sample, "channels").empty()) return;
  std::vector<std::pair<std::string, const Json*>> rows;
  for (const Json& node : items(sample, "nodes"))
    rows.emplace_back("node " + human_count(number(node, "id")), &node);
  for (const Json& channel : items(sample, "channels"))
    if (member(channel, "node").is_null())
      rows.emplace_back(printable(text(channel, "name")), &channel);
  size_t width = 7;
  for (const auto& row : rows) width = std::max(width, std::min<size_t>(row.first.size(), 24));
  lines->emplace_back();
  const size_t bar = bandwidth_bar(width, options);
  lines->push_back(padded_right("CHANNEL", width) + "    READ/s" +
                   std::string(bar == 0 ? 0 : 7 + bar, ' ') + "   WRITE/s");
  for (const auto& [name, row] : rows) lines->push_back(bandwidth_line(name, width, *row, options));
}

// How a tenant's memory lies on the channels.
std::string channels_line(const Json& tenant, const FrameOptions& options) {
  constexpr size_t kBar = 10;
  const Json& bytes = member(tenant, "node_bytes");
  const uint64_t total = sum(bytes);
  if (!bytes.is_object() || total == 0) return {};
  std::string line;
  for (const auto& [node, held] : bytes.items()) {
    if (!held.is_number_unsigned() || held.get<uint64_t>() == 0) continue;
    const auto here = static_cast<double>(held.get<uint64_t>());
    line += fmt::format("{}node {} {} {}", line.empty() ? "" : "  ", printable(node),
                        usage_bar(here / static_cast<double>(total), kBar, options.unicode),
                        human_bytes(here));
  }
  return "  " + line;
}

// Time that the tenant's tasks were held up, all together, each second.
std::string lost_line(const Json& tenant) {
  const Json& lost = member(tenant, "lost_ns_per_s");
  const auto ms = [&](const char* cause) {
    const auto nanoseconds = real(lost, cause);
    return nanoseconds ? fmt::format("{:.1f}", *nanoseconds / 1e6) : std::string("-");
  };
  if (!lost.is_object()) return {};
  return fmt::format("  lost ms/s: {} page faults, {} migrations, {} reclaim", ms("page_fault"),
                     ms("migration"), ms("reclaim"));
}

std::vector<const Json*> by_size(const Json& tenants) {
  std::vector<const Json*> sorted;
  for (const Json& tenant : tenants) sorted.push_back(&tenant);
  const auto held = [](const Json* tenant) {
    return number(*tenant, "fast_bytes").value_or(0) + number(*tenant, "slow_bytes").value_or(0);
  };
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Json* a, const Json* b) {
    if (held(a) != held(b)) return held(a) > held(b);
    return text(*a, "cgroup") < text(*b, "cgroup");
  });
  return sorted;
}

std::string title_line(const Json& sample, const FrameOptions& options) {
  const Json& daemon = member(sample, "daemon");
  const Json& module = member(sample, "module");
  std::string line = fmt::format("memsluiced {}", printable(text(daemon, "version")));
  if (const auto uptime = number(daemon, "uptime_s")) line += "  up " + human_duration(*uptime);
  line += flag(module, "loaded") == false ? "  module not loaded"
                                          : "  module " + printable(text(module, "version"));
  if (!options.notice.empty()) line = printable(options.notice) + "  " + line;
  return line;
}

void add_tenants(const Json& sample, const FrameOptions& options, std::vector<std::string>* lines) {
  const auto shown = fitting_columns(options.columns);
  std::vector<std::string> titles;
  for (const FrameColumn* column : shown) titles.emplace_back(column->title);
  lines->push_back(tenant_line("TENANT", titles, shown, options.columns));

  const auto tenants = by_size(member(sample, "tenants"));
  if (tenants.empty()) lines->push_back("no tenant: memsluice tenant set --help");
  std::vector<std::vector<std::string>> blocks;
  for (const Json* tenant : tenants) {
    std::vector<std::string> cells;
    for (const FrameColumn* column : shown) cells.push_back(column->cell(*tenant, options));
    blocks.push_back(
        {tenant_line(printable(text(*tenant, "cgroup")), cells, shown, options.columns),
         histogram_line(*tenant, options)});
    if (std::string line = channels_line(*tenant, options); !line.empty())
      blocks.back().push_back(std::move(line));
    if (std::string line = lost_line(*tenant); !line.empty())
      blocks.back().push_back(std::move(line));
  }
  size_t left = 0;
  for (const auto& block : blocks) left += block.size();
  for (size_t i = 0; i < blocks.size(); ++i) {
    const size_t room =
        options.rows == 0 ? SIZE_MAX : options.rows - std::min(options.rows, lines->size());
    if (room < left && room < blocks[i].size() + 1) {
      lines->push_back(fmt::format("... and {} more", blocks.size() - i));
      return;
    }
    left -= blocks[i].size();
    std::move(blocks[i].begin(), blocks[i].end(), std::back_inserter(*lines));
  }
}

}  // namespace

std::vector<std::string> top_frame(const Json& sample, const FrameOptions& options) {
  std::vector<std::string> lines = {title_line(sample, options), "",
                                    "NODE  TIER      SIZE      FREE  USED"};
  for (const Json& node : member(sample, "nodes")) lines.push_back(node_line(node, options));
  add_bandwidth(sample, options, &lines);
  lines.emplace_back();
  add_tenants(sample, options, &lines);

  if (options.rows > 0 && lines.size() > options.rows) lines.resize(options.rows);
  for (std::string& line : lines) {
    line = shortened(line, options.columns);
    line.erase(line.find_last_not_of(' ') + 1);
  }
  return lines;
}

}  // namespace memsluice
