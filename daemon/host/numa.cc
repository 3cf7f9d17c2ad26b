// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/numa.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

#include "daemon/host/files.h"

namespace memsluice {
namespace {

constexpr std::string_view kTierPrefix = "memory_tier";

// The kernel numbers its tiers by abstract distance: memory_tier4, memory_tier22. Ours count.
std::map<int, int> read_tier_of_node(const std::string& directory_path) {
  std::map<int, std::vector<int>> nodes_by_kernel_tier;
  auto directory = open_directory(AT_FDCWD, directory_path);
  if (!directory.ok()) return {};
  auto names = list_directory(*directory);
  if (!names.ok()) return {};
  for (const std::string& name : *names) {
    if (!name.starts_with(kTierPrefix)) continue;
    int number = 0;
    const char* end = name.data() + name.size();
    auto parsed = std::from_chars(name.data() + kTierPrefix.size(), end, number);
    auto nodelist = read_file(directory->get(), name + "/nodelist");
    if (parsed.ec != std::errc() || parsed.ptr != end || !nodelist.ok()) continue;
    if (auto nodes = parse_id_list(*nodelist); !nodes.empty())
      nodes_by_kernel_tier[number] = std::move(nodes);
  }

  std::map<int, int> tier_of_node;
  int tier = 0;
  for (const auto& [number, nodes] : nodes_by_kernel_tier) {
    for (int node : nodes) tier_of_node[node] = tier;
    tier++;
  }
  return tier_of_node;
}

std::vector<int> parse_distances(std::string_view text) {
  std::vector<int> distances;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    int distance = 0;
    auto parsed = std::from_chars(at, end, distance);
    if (parsed.ec == std::errc()) {
      distances.push_back(distance);
      at = parsed.ptr;
    } else {
      at++;
    }
  }
  return distances;
}

// In MiB/s there; the kernel leaves 0 or no file where the HMAT says nothing.
std::optional<uint64_t> read_bandwidth(const Fd& node, const char* name) {
  auto text = read_file(node.get(), fmt::format("access0/initiators/{}", name));
  if (!text.ok()) return std::nullopt;
  const uint64_t mib_per_s = number_after(*text, "");
  return mib_per_s == 0 ? std::nullopt : std::optional(mib_per_s << 20);
}

Result<NumaNode> read_node(const Fd& nodes, int id) {
  auto directory = open_directory(nodes.get(), fmt::format("node{}", id));
  if (!directory.ok()) return std::move(directory).error();
  NumaNode node{.id = id};
  auto meminfo = read_file(directory->get(), "meminfo");
  if (!meminfo.ok()) return std::move(meminfo).error();
  node.total_bytes = number_after(*meminfo, "MemTotal:") * 1024;
  node.free_bytes = number_after(*meminfo, "MemFree:") * 1024;
  if (auto list = read_file(directory->get(), "cpulist"); list.ok())
    node.cpus = static_cast<int>(parse_id_list(*list).size());
  node.read_bandwidth_bytes_per_s = read_bandwidth(*directory, "read_bandwidth");
  node.write_bandwidth_bytes_per_s = read_bandwidth(*directory, "write_bandwidth");
  if (auto distance = read_file(directory->get(), "distance"); distance.ok())
    node.distance = parse_distances(*distance);
  return node;
}

}  // namespace

Result<std::vector<NumaNode>> read_numa_nodes(const Paths& paths) {
  auto directory = open_directory(AT_FDCWD, paths.nodes);
  if (!directory.ok()) return std::move(directory).error();
  auto ids = read_file(directory->get(), "has_memory");
  if (!ids.ok()) return std::move(ids).error();

  const std::map<int, int> tier_of_node = read_tier_of_node(paths.memory_tiers);
  std::vector<NumaNode> nodes;
  for (int id : parse_id_list(*ids)) {
    auto node = read_node(*directory, id);
    // It has been taken offline since.
    if (!node.ok()) continue;
    if (auto tier = tier_of_node.find(id); tier != tier_of_node.end()) node->tier = tier->second;
    nodes.push_back(*std::move(node));
  }
  return nodes;
}

uint64_t tier_0_bytes(const std::vector<NumaNode>& nodes) {
  uint64_t bytes = 0;
  for (const NumaNode& node : nodes)
    if (node.tier == 0) bytes += node.total_bytes;
  return bytes;
}

}  // namespace memsluice
