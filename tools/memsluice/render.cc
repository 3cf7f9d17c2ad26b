// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/render.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "tools/memsluice/format.h"

namespace memsluice {
namespace {

constexpr size_t kBarColumns = 30;

std::string size_of_pages(std::optional<uint64_t> pages, uint64_t page_bytes) {
  if (!pages) return "-";
  return human_bytes(static_cast<double>(*pages) * static_cast<double>(page_bytes));
}

std::string bytes(const Json& object, std::string_view key) {
  return human_bytes(real(object, key));
}

std::string count(const Json& object, std::string_view key) {
  return human_count(number(object, key));
}

std::string on_off(std::optional<bool> value) {
  return !value ? "-" : *value ? "on" : "off";
}

std::string name(const Json& object, std::string_view key) {
  return printable(text(object, key));
}

std::string fast_limit(const Json& policy) {
  if (policy.is_object() && member(policy, "fast_limit_bytes").is_null()) return "none";
  return bytes(policy, "fast_limit_bytes");
}

std::string values(const Json& list) {
  std::vector<std::string> words;
  if (!list.is_array()) return "-";
  for (const Json& value : list) {
    words.push_back(value.is_string() ? printable(value.get<std::string>()) : to_line(value));
    if (words.back().ends_with('\n')) words.back().pop_back();
  }
  return fmt::format("{}", fmt::join(words, " "));
}

std::string refused_text(const Json& reasons) {
  const uint64_t total = sum(reasons);
  if (total == 0) return "none";
  std::vector<std::string> parts;
  for (const auto& [reason, pages] : reasons.items()) {
    if (number(reasons, reason).value_or(0) == 0) continue;
    parts.push_back(fmt::format("{} {}", count(reasons, reason), printable(reason)));
  }
  return fmt::format("{} pages: {}", total, fmt::join(parts, ", "));
}

std::string render_nodes(const Json& nodes) {
  Table table({{"NODE", Align::kRight},
               {"TIER", Align::kRight},
               {"SIZE", Align::kRight},
               {"FREE", Align::kRight},
               {"CPUS", Align::kRight},
               {"DISTANCE"}});
  for (const Json& node : nodes) {
    table.add_row({count(node, "id"), count(node, "tier"), bytes(node, "total_bytes"),
                   bytes(node, "free_bytes"), count(node, "cpus"),
                   values(member(node, "distance"))});
  }
  return table.render();
}

std::string render_tenants(const Json& tenants, uint64_t page_bytes) {
  if (tenants.empty()) return "no tenant: memsluice tenant set --help\n";
  Table table({{"TENANT"},
               {"ORIGIN"},
               {"TIERING"},
               {"FAST", Align::kRight},
               {"LIMIT", Align::kRight},
               {"SLOW", Align::kRight},
               {"PROMOTED", Align::kRight},
               {"DEMOTED", Align::kRight},
               {"REFUSED", Align::kRight}});
  for (const Json& tenant : tenants) {
    const Json& policy = member(tenant, "policy");
    table.add_row({name(tenant, "cgroup"), name(tenant, "origin"), on_off(flag(policy, "tiering")),
                   bytes(tenant, "fast_bytes"), fast_limit(policy), bytes(tenant, "slow_bytes"),
                   size_of_pages(number(tenant, "promoted_pages"), page_bytes),
                   size_of_pages(number(tenant, "demoted_pages"), page_bytes),
                   size_of_pages(sum(member(tenant, "refused_pages")), page_bytes)});
  }
  return table.render();
}

std::string render_channels(const Json& policy) {
  const std::string channels = text(policy, "channels", "none");
  if (channels == "none") return "";
  return fmt::format(", channels {}, granule {}", printable(channels),
                     bytes(policy, "granule_bytes"));
}

std::string render_policy(const Json& tenant) {
  const Json& policy = member(tenant, "policy");
  return fmt::format("tiering {}, fast limit {}, promote {} MiB/s, demote {} MiB/s",
                     on_off(flag(policy, "tiering")), fast_limit(policy),
                     count(policy, "promote_mib_per_s"), count(policy, "demote_mib_per_s")) +
         render_channels(policy);
}

std::string accesses_of_bin(size_t bin, size_t bins) {
  const uint64_t low = (uint64_t{1} << std::min<size_t>(bin, 62)) - 1;
  if (bin + 1 == bins) return fmt::format("{} and more", low);
  const uint64_t high = 2 * low;
  return low == high ? fmt::format("{}", low) : fmt::format("{} to {}", low, high);
}

std::string bin_mark(size_t bin, const Json& tenant) {
  if (const auto hot = number(tenant, "hot_bin"); hot && bin >= *hot) return "hot";
  if (const auto cold = number(tenant, "cold_bin"); cold && *cold < 16 && bin <= *cold)
    return "cold";
  return "";
}

std::string render_histogram(const Json& tenant, uint64_t page_bytes) {
  const Json& fast = member(member(tenant, "histogram_pages"), "fast");
  const Json& slow = member(member(tenant, "histogram_pages"), "slow");
  if (!fast.is_array() || fast.size() != slow.size()) return "";
  Table table({{"BIN", Align::kRight},
               {"ACCESSES", Align::kRight},
               {"FAST", Align::kRight},
               {"SLOW", Align::kRight},
               {""}});
  for (size_t bin = 0; bin < fast.size(); ++bin) {
    const auto size = [&](const Json& pages) {
      return size_of_pages(number({{"pages", pages[bin]}}, "pages"), page_bytes);
    };
    table.add_row({fmt::format("{}", bin), accesses_of_bin(bin, fast.size()), size(fast),
                   slow.is_array() ? size(slow) : "-", bin_mark(bin, tenant)});
  }
  return "\n" + table.render();
}

std::string node_sizes(const Json& node_bytes) {
  std::string result;
  for (const auto& [node, size] : node_bytes.items()) {
    result += fmt::format(", {} on node {}", bytes(node_bytes, node), printable(node));
  }
  return result;
}

std::string render_tenant(const Json& tenant, uint64_t page_bytes) {
  const auto pages = [&](const char* key) {
    const auto value = number(tenant, key);
    return fmt::format("{} ({} pages)", size_of_pages(value, page_bytes), human_count(value));
  };
  std::string result;
  const auto add = [&](const char* title, const std::string& value) {
    result += fmt::format("{:<10} {}\n", title, value);
  };
  add("tenant", name(tenant, "cgroup"));
  add("cgroup id", count(tenant, "cgroup_id"));
  add("policy", fmt::format("{} (from {})", render_policy(tenant), name(tenant, "origin")));
  add("scanned",
      fmt::format("fast {}, slow {}", bytes(tenant, "fast_bytes"), bytes(tenant, "slow_bytes")));
  add("charged", bytes(tenant, "memory_current_bytes") + node_sizes(member(tenant, "node_bytes")));
  add("promoted", pages("promoted_pages"));
  add("demoted", pages("demoted_pages"));
  add("refused", refused_text(member(tenant, "refused_pages")));
  if (!render_channels(member(tenant, "policy")).empty())
    add("overflow", fmt::format("{} folios to channels of weight 0, {} where the kernel chose",
                                count(tenant, "fallback_folios"), count(tenant, "spilled_folios")));
  add("scans",
      fmt::format("{} of {} processes, {:.1f} s of CPU in all", count(tenant, "scans"),
                  count(tenant, "processes"), real(tenant, "scan_cpu_us").value_or(0) / 1e6));
  return result + render_histogram(tenant, page_bytes);
}

std::string render_requests(const Json& requests, uint64_t page_bytes) {
  if (requests.empty()) return "no request\n";
  Table table({{"ID", Align::kRight},
               {"STATE"},
               {"OBJECT"},
               {"TO", Align::kRight},
               {"TOTAL", Align::kRight},
               {"SEEN", Align::kRight},
               {"MOVED", Align::kRight},
               {"REFUSED", Align::kRight}});
  for (const Json& request : requests) {
    const auto pages = [&](const char* key) {
      return size_of_pages(number(request, key), page_bytes);
    };
    table.add_row({count(request, "id"), name(request, "state"), name(request, "object"),
                   count(request, "target_node"), pages("total_pages"), pages("seen_pages"),
                   pages("moved_pages"),
                   size_of_pages(sum(member(request, "refused_pages")), page_bytes)});
  }
  return table.render();
}

std::string rank_of(const Json& engine) {
  const Json& rank = member(engine, "rank");
  return rank.is_number_integer() ? fmt::format("{}", rank.get<int64_t>()) : "-";
}

std::string render_queues(const Json& engines) {
  Table table({{"QUEUE"},
               {"NODE", Align::kRight},
               {"STATE"},
               {"DEPTH", Align::kRight},
               {"BATCH", Align::kRight},
               {"TRANSFER", Align::kRight},
               {"DESCRIPTORS", Align::kRight},
               {"BATCHES", Align::kRight},
               {"COPIED", Align::kRight},
               {"ERRORS", Align::kRight},
               {"LATE", Align::kRight},
               {"QUARANTINED", Align::kRight}});
  for (const Json& engine : engines) {
    for (const Json& queue : items(engine, "queues")) {
      table.add_row({name(engine, "name") + '/' + name(queue, "name"), count(queue, "node"),
                     name(queue, "state"), count(queue, "depth"), count(queue, "max_batch"),
                     bytes(queue, "max_transfer_bytes"), count(queue, "descriptors"),
                     count(queue, "batches"), bytes(queue, "bytes"), count(queue, "errors"),
                     count(queue, "late"), count(queue, "quarantined")});
    }
  }
  return table.render();
}

std::string render_engines(const Json& engines) {
  if (engines.empty()) return "no copy engine\n";
  Table table({{"ENGINE"},
               {"RANK", Align::kRight},
               {"BATCHES", Align::kRight},
               {"COPIED", Align::kRight},
               {"DECLINED", Align::kRight},
               {"FAILED", Align::kRight},
               {"LATE", Align::kRight},
               {"DIFFERING", Align::kRight}});
  bool queues = false;
  for (const Json& engine : engines) {
    const bool counts = !items(engine, "queues").empty() || number(engine, "batches") > 0U;
    // The CPU's own copies are not counted by engine.
    const auto shown = [&](const char* key) { return counts ? count(engine, key) : "-"; };
    table.add_row({name(engine, "name"), rank_of(engine), shown("batches"),
                   counts ? bytes(engine, "bytes") : "-", shown("declined"), shown("failed_folios"),
                   shown("late_folios"), shown("differing_folios")});
    queues = queues || !items(engine, "queues").empty();
  }
  return table.render() + '\n' + (queues ? render_queues(engines) : "no queue\n");
}

std::string render_reset(const Json& reset) {
  const std::string whose = text(reset, "configuration") == "file"
                                ? "has the configuration that was saved"
                                : "has its configuration again";
  std::vector<std::string> queues;
  for (const Json& queue : items(reset, "queues")) {
    if (queue.is_string()) queues.push_back(printable(queue.get<std::string>()));
  }
  return fmt::format("{}: reset, {}; queues enabled: {}\n", name(reset, "device"), whose,
                     queues.empty() ? "none" : fmt::format("{}", fmt::join(queues, ", ")));
}

// In a census: what is in use.
constexpr std::array kUsedKinds = {"anon", "shmem", "file", "hugetlb", "kernel"};

uint64_t used_pages(const Json& line) {
  uint64_t pages = 0;
  for (const char* kind : kUsedKinds) pages += number(member(line, "pages"), kind).value_or(0);
  return pages;
}

std::string census_name(const Json& line, bool tenants) {
  const std::string cgroup = text(line, "cgroup", "");
  if (!cgroup.empty()) return printable(cgroup);
  if (member(line, "cgroup_id").is_null()) return tenants ? "(no tenant's)" : "(nobody's)";
  return fmt::format("(removed: {})", count(line, "cgroup_id"));
}

std::string render_charged(std::vector<const Json*> lines, bool tenants, uint64_t page_bytes) {
  std::stable_sort(lines.begin(), lines.end(), [](const Json* left, const Json* right) {
    const auto node = [](const Json* line) { return number(*line, "node").value_or(0); };
    return std::pair(node(left), used_pages(*right)) < std::pair(node(right), used_pages(*left));
  });
  Table table({{"NODE", Align::kRight},
               {tenants ? "TENANT" : "CGROUP"},
               {"ANON", Align::kRight},
               {"SHMEM", Align::kRight},
               {"FILE", Align::kRight},
               {"HUGETLB", Align::kRight},
               {"KERNEL", Align::kRight},
               {"HELD", Align::kRight}});
  for (const Json* line : lines) {
    if (used_pages(*line) == 0) continue;
    std::vector<std::string> cells = {count(*line, "node"), census_name(*line, tenants)};
    for (const char* kind : kUsedKinds)
      cells.push_back(size_of_pages(number(member(*line, "pages"), kind), page_bytes));
    cells.push_back(size_of_pages(sum(member(*line, "held_pages")), page_bytes));
    table.add_row(std::move(cells));
  }
  return table.render();
}

std::string render_node_totals(const std::vector<const Json*>& lines, uint64_t page_bytes) {
  struct Total {
    uint64_t all = 0, used = 0;
    std::map<std::string, uint64_t> rest;
  };
  constexpr std::array kRest = {"free", "pool", "poisoned", "reserved"};
  std::map<uint64_t, Total> totals;
  for (const Json* line : lines) {
    Total& total = totals[number(*line, "node").value_or(0)];
    total.all += sum(member(*line, "pages"));
    total.used += used_pages(*line);
    for (const char* kind : kRest)
      total.rest[kind] += number(member(*line, "pages"), kind).value_or(0);
  }
  Table table({{"NODE", Align::kRight},
               {"ALL", Align::kRight},
               {"USED", Align::kRight},
               {"FREE", Align::kRight},
               {"POOL", Align::kRight},
               {"POISONED", Align::kRight},
               {"RESERVED", Align::kRight}});
  for (const auto& [node, total] : totals) {
    std::vector<std::string> cells = {fmt::format("{}", node), size_of_pages(total.all, page_bytes),
                                      size_of_pages(total.used, page_bytes)};
    for (const char* kind : kRest) cells.push_back(size_of_pages(total.rest.at(kind), page_bytes));
    table.add_row(std::move(cells));
  }
  return table.render();
}

std::string render_census(const Json& census, bool tenants, uint64_t page_bytes) {
  std::vector<const Json*> lines;
  for (const Json& line : census) {
    if (line.is_object()) lines.push_back(&line);
  }
  return render_charged(lines, tenants, page_bytes) + '\n' + render_node_totals(lines, page_bytes);
}

std::string render_channel_table(const Json& channels) {
  if (channels.empty()) return "no channel\n";
  Table table({{"NAME"},
               {"GROUP"},
               {"NODE", Align::kRight},
               {"STATE"},
               {"MEMORY"},
               {"BLOCKS", Align::kRight},
               {"MOVABLE", Align::kRight},
               {"BY"}});
  for (const Json& channel : channels) {
    const auto start = number(channel, "start"), length = number(channel, "length_bytes");
    const std::string onlined_by = values(member(channel, "onlined_by"));
    table.add_row({name(channel, "name"), printable(text(channel, "group", "-")),
                   count(channel, "node"), name(channel, "state"),
                   start && length ? fmt::format("{} at {:#x}", human_bytes(*length), *start)
                                   : std::string("was there"),
                   fmt::format("{}/{}", count(channel, "online_blocks"), count(channel, "blocks")),
                   count(channel, "movable_blocks"), onlined_by.empty() ? "-" : onlined_by});
  }
  return table.render();
}

std::string render_channel(const Json& channel) {
  return fmt::format("channel {}: node {}\n", name(channel, "name"), count(channel, "node"));
}

std::string module_line(const Json& module) {
  if (flag(module, "loaded") != false) {
    return fmt::format("{}, ABI {}: {}", name(module, "version"), count(module, "abi_version"),
                       values(member(module, "features")));
  }
  const auto error = error_from_json(member(module, "error"));
  if (!error) return "not loaded";
  return printable(error->hint.empty() ? error->message : error->message + "; " + error->hint);
}

std::string render_status(const Json& status, uint64_t page_bytes) {
  const Json& daemon = member(status, "daemon");
  std::string result = fmt::format("daemon  {}, up {}, configuration {}\n", name(daemon, "version"),
                                   human_duration(number(daemon, "uptime_s").value_or(0)),
                                   name(daemon, "config_path"));
  result += fmt::format("module  {}\n", module_line(member(status, "module")));
  return result + '\n' + render_nodes(member(status, "nodes")) + '\n' +
         render_tenants(member(status, "tenants"), page_bytes);
}

}  // namespace

std::string target_of(const Json& request) {
  if (const auto node = number(request, "target_node")) return fmt::format("to node {}", *node);
  return flag(request, "on_touch") == true ? "to its channels, when touched" : "to its channels";
}

std::string render_request(const Json& request, uint64_t page_bytes) {
  const bool marks = flag(request, "on_touch") == true;
  const auto pages = [&](const char* key) {
    const auto value = number(request, key);
    return fmt::format("{} ({} pages)", size_of_pages(value, page_bytes), human_count(value));
  };
  std::string result =
      fmt::format("request {}: {} {}: {}\n", count(request, "id"), name(request, "object"),
                  target_of(request), name(request, "state"));
  const Json& error = member(request, "error");
  if (error.is_object()) result += fmt::format("  error         {}\n", name(error, "message"));
  result += fmt::format("  looked at     {} of {}\n", pages("seen_pages"), pages("total_pages"));
  result += fmt::format("  {:<13} {}\n", marks ? "marked" : "moved", pages("moved_pages"));
  result += fmt::format("  already there {}\n", pages("already_there_pages"));
  result += fmt::format("  refused       {}\n", refused_text(member(request, "refused_pages")));
  return result;
}

std::string render_moved(const Json& result, uint64_t page_bytes) {
  std::string text = render_request(member(result, "request"), page_bytes);
  for (const Json& line : items(result, "elsewhere")) {
    const auto of_processes = [&](const char* key) {
      const Json& pages = member(line, key);
      return number(pages, "anon").value_or(0) + number(pages, "shmem").value_or(0);
    };
    if (of_processes("pages") == 0) continue;
    text += fmt::format("  on node {:<5} {} are left", count(line, "node"),
                        size_of_pages(of_processes("pages"), page_bytes));
    if (of_processes("held_pages") > 0)
      text += fmt::format(", {} of it held", size_of_pages(of_processes("held_pages"), page_bytes));
    text += '\n';
  }
  return text;
}

std::string render_result(std::string_view method, const Json& params, const Json& result,
                          uint64_t page_bytes) {
  if (method == "status") return render_status(result, page_bytes);
  if (method == "tenant.list") return render_tenants(member(result, "tenants"), page_bytes);
  if (method == "tenant.get") return render_tenant(member(result, "tenant"), page_bytes);
  if (method == "tenant.set") {
    const Json& tenant = member(result, "tenant");
    return fmt::format("tenant {}: {}\n", name(tenant, "cgroup"), render_policy(tenant));
  }
  if (method == "tenant.clear") return fmt::format("tenant {}: cleared\n", name(params, "cgroup"));
  if (method == "request.list") return render_requests(member(result, "requests"), page_bytes);
  if (method == "engine.list") return render_engines(items(result, "engines"));
  if (method == "census") {
    return render_census(items(result, "census"), flag(params, "by_tenant") == true, page_bytes);
  }
  if (method == "channel.list") return render_channel_table(items(result, "channels"));
  if (method == "channel.add") return render_channel(member(result, "channel"));
  if (method == "channel.remove") {
    const Json& removed = member(result, "removed");
    return fmt::format("channel {}: gone, {} moved off node {}\n", name(removed, "name"),
                       size_of_pages(number(removed, "moved_pages"), page_bytes),
                       count(removed, "node"));
  }
  if (method == "metrics") return text(result, "text", "");
  if (method == "engine.reset") return render_reset(member(result, "reset"));
  if (method == "config.reload") {
    return flag(result, "changed") == true ? "the configuration has been loaded\n"
                                           : "the configuration has not changed\n";
  }
  return render_request(member(result, "request"), page_bytes);
}

std::string progress_line(const Json& request, double elapsed_s, size_t columns,
                          uint64_t page_bytes) {
  const auto seen = static_cast<double>(number(request, "seen_pages").value_or(0));
  const auto total = static_cast<double>(number(request, "total_pages").value_or(0));
  const double share = total > 0 ? std::clamp(seen / total, 0.0, 1.0) : 0;
  const auto filled = static_cast<size_t>(share * kBarColumns);
  std::string line = fmt::format("[{}{}] {:>3.0f}%  {} of {}", std::string(filled, '#'),
                                 std::string(kBarColumns - filled, '-'), share * 100,
                                 size_of_pages(number(request, "seen_pages"), page_bytes),
                                 size_of_pages(number(request, "total_pages"), page_bytes));
  if (share > 0 && elapsed_s > 0) {
    const double left_s = std::min(elapsed_s * (1 - share) / share, 1e9);
    line += fmt::format(", {} left", human_duration(static_cast<uint64_t>(left_s + 0.5)));
  }
  return shortened(line, columns);
}

std::string channel_progress_line(const Json& channel, size_t columns, uint64_t page_bytes) {
  return shortened(fmt::format("{}: {} of {} memory blocks left, {} moved", name(channel, "name"),
                               count(channel, "online_blocks"), count(channel, "blocks"),
                               size_of_pages(number(channel, "moved_pages"), page_bytes)),
                   columns);
}

}  // namespace memsluice
