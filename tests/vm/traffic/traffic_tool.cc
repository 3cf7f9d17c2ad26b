// SPDX-License-Identifier: GPL-2.0
// memsluice-traffic: reads and steers the traffic plugin, from the guest or from its host.
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "daemon/base/units.h"
#include "daemon/base/unix_socket.h"
#include "daemon/host/counters/counters_text.h"
#include "tests/vm/traffic/node_blocks.h"
#include "tests/vm/traffic/traffic_control.h"

namespace memsluice::traffic {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string file;
  bool json = false;
  bool nodes = false;
  std::vector<std::string> blocks;
  int node = -1;
  uint32_t latency_ns = 0;
  uint32_t channel = 0;
  uint64_t bytes_per_second = 0;
  std::string socket;
};

Json to_json(const Traffic& traffic) {
  return {{"read_bytes", traffic.read_bytes}, {"write_bytes", traffic.write_bytes}};
}

Json vcpu_json(const TrafficFile& file, uint32_t vcpu) {
  const SlotCounters& slot = file.slot(vcpu);
  return {{"accesses", slot.accesses.load()},
          {"misses", slot.misses.load()},
          {"io_accesses", slot.io_accesses.load()},
          {"other_accesses", slot.other_accesses.load()},
          {"delay_ns", slot.delay_ps.load() / kPicosecondsPerNanosecond}};
}

Json blocks_json(const TrafficFile& file) {
  Json blocks = Json::array();
  for (uint32_t block = 0; block < file.layout().blocks; ++block) {
    const Traffic traffic = traffic_of_block(file, block);
    const uint32_t latency_ns = file.settings(block).latency_ns;
    const uint32_t channel = file.settings(block).channel;
    if (traffic == Traffic{} && latency_ns == 0 && channel == kNoChannel) continue;
    Json entry{{"block", block}};
    entry.update(to_json(traffic));
    entry["latency_ns"] = latency_ns;
    entry["channel"] = channel == kNoChannel ? Json() : Json(channel);
    blocks.push_back(entry);
  }
  return blocks;
}

Json channels_json(const TrafficFile& file) {
  Json channels = Json::array();
  for (uint32_t channel = 0; channel < file.layout().channels; ++channel) {
    const uint64_t rate = file.bytes_per_second(channel);
    if (rate != 0) channels.push_back({{"channel", channel}, {"bytes_per_second", rate}});
  }
  return channels;
}

Json nodes_json(const TrafficFile& file, const NodeBlocks& nodes) {
  Json list = Json::array();
  for (const auto& [node, blocks] : nodes) {
    Json entry{{"node", node}};
    entry.update(to_json(traffic_of_blocks(file, blocks)));
    entry["blocks"] = blocks;
    list.push_back(entry);
  }
  return list;
}

Json describe(const TrafficFile& file) {
  const Layout& layout = file.layout();
  Json vcpus = Json::array();
  for (uint32_t vcpu = 0; vcpu < layout.vcpus; ++vcpu) vcpus.push_back(vcpu_json(file, vcpu));
  Traffic other_agents;
  for (uint32_t block = 0; block < layout.blocks; ++block) {
    other_agents += file.counters(file.other_agents_slot(), block);
  }
  return {{"counting", file.control().counting.load() != 0},
          {"block_bytes", layout.block_bytes},
          {"line_bytes", layout.line_bytes},
          {"cache_bytes", layout.cache_bytes},
          {"cache_ways", layout.cache_ways},
          {"vcpus", vcpus},
          {"blocks", blocks_json(file)},
          {"channels", channels_json(file)},
          {"other_agents", to_json(other_agents)}};
}

void print_table(const Json& report, const char* key, const char* title) {
  fmt::print("{:>8} {:>16} {:>16}\n", title, "read bytes", "written bytes");
  for (const Json& row : report.at(key)) {
    fmt::print("{:>8} {:>16} {:>16}\n", row.at(title).get<uint32_t>(),
               row.at("read_bytes").get<uint64_t>(), row.at("write_bytes").get<uint64_t>());
  }
}

Result<void> show(const TrafficFile& file, const Options& options) {
  Json report = describe(file);
  if (options.nodes) {
    const auto nodes = read_node_blocks(kSysfsSystem, file.layout().block_bytes);
    if (!nodes.ok()) return nodes.error();
    report["nodes"] = nodes_json(file, *nodes);
  }
  if (options.json) {
    fmt::print("{}\n", report.dump(2));
    return {};
  }
  uint64_t accesses = 0, misses = 0;
  for (const Json& vcpu : report["vcpus"]) {
    accesses += vcpu["accesses"].get<uint64_t>();
    misses += vcpu["misses"].get<uint64_t>();
  }
  fmt::print("counting {}; {} accesses, {} misses of a {} cache of {} ways\n",
             report["counting"].get<bool>() ? "on" : "off", accesses, misses,
             format_bytes(file.layout().cache_bytes), file.layout().cache_ways);
  print_table(report, options.nodes ? "nodes" : "blocks", options.nodes ? "node" : "block");
  return {};
}

// What memsluiced reads in place of a memory controller's counters.
Result<std::string> counters_text(const TrafficFile& file) {
  const auto nodes = read_node_blocks(kSysfsSystem, file.layout().block_bytes);
  if (!nodes.ok()) return nodes.error();
  std::vector<ChannelCounts> channels;
  for (const auto& [node, blocks] : *nodes) {
    const Traffic traffic = traffic_of_blocks(file, blocks);
    channels.push_back({.name = fmt::format("node{}", node),
                        .node = static_cast<int>(node),
                        .read_bytes = traffic.read_bytes,
                        .write_bytes = traffic.write_bytes});
  }
  return format_counters_text(channels);
}

// Tells it to everybody who connects, until it is ended.
Result<void> serve(const TrafficFile& file, const Options& options) {
  const auto listening = listen_at(options.socket, 0600);
  if (!listening.ok()) return listening.error();
  fmt::print("listening\n");
  std::fflush(stdout);
  for (;;) {
    pollfd waiting = {.fd = listening->get(), .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, -1) < 0 && errno != EINTR)
      return errno_error(errno, "poll", options.socket);
    const Fd peer(accept4(listening->get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer.valid()) continue;
    const auto text = counters_text(file);
    if (!text.ok()) return text.error();
    set_send_timeout(peer.get(), Milliseconds(1000));
    // Who has gone does not want it.
    (void)send_all(peer.get(), *text);
  }
}

// "4" or "4-7".
Result<void> add_range(const std::string& text, uint32_t limit, std::vector<uint32_t>& blocks) {
  const size_t dash = text.find('-');
  const auto first = parse_number(text.substr(0, dash), 0, limit - 1);
  if (!first.ok()) return first.error();
  const auto last =
      dash == std::string::npos ? first : parse_number(text.substr(dash + 1), *first, limit - 1);
  if (!last.ok()) return last.error();
  for (uint64_t block = *first; block <= *last; ++block) {
    blocks.push_back(static_cast<uint32_t>(block));
  }
  return {};
}

Result<std::vector<uint32_t>> chosen_blocks(const TrafficFile& file, const Options& options) {
  std::vector<uint32_t> blocks;
  for (const std::string& range : options.blocks) {
    auto added = add_range(range, file.layout().blocks, blocks);
    if (!added.ok()) return std::move(added).with_context("--blocks").error();
  }
  if (options.node < 0) return blocks;
  const auto nodes = read_node_blocks(kSysfsSystem, file.layout().block_bytes);
  if (!nodes.ok()) return nodes.error();
  const auto node = nodes->find(static_cast<uint32_t>(options.node));
  if (node == nodes->end()) {
    return Error{
        ErrorCode::kNotFound, fmt::format("node {}", options.node), "no such node", {}, 0, {}};
  }
  for (const uint32_t block : node->second) {
    if (block < file.layout().blocks) blocks.push_back(block);
  }
  return blocks;
}

Result<void> set_latency(const TrafficFile& file, const Options& options) {
  const auto blocks = chosen_blocks(file, options);
  if (!blocks.ok()) return blocks.error();
  for (const uint32_t block : *blocks) file.settings(block).latency_ns = options.latency_ns;
  return request(file);
}

Result<void> set_channel(const TrafficFile& file, const Options& options) {
  if (options.channel >= file.layout().channels) {
    return Error{ErrorCode::kBadRequest,
                 fmt::format("channel {}", options.channel),
                 "no such channel",
                 fmt::format("there are {}", file.layout().channels),
                 0,
                 {}};
  }
  const auto blocks = chosen_blocks(file, options);
  if (!blocks.ok()) return blocks.error();
  file.bytes_per_second(options.channel) = options.bytes_per_second;
  for (const uint32_t block : *blocks) file.settings(block).channel = options.channel;
  return request(file);
}

Result<void> clear(const TrafficFile& file) {
  for (uint32_t block = 0; block < file.layout().blocks; ++block) {
    file.settings(block).latency_ns = 0;
    file.settings(block).channel = kNoChannel;
  }
  for (uint32_t channel = 0; channel < file.layout().channels; ++channel) {
    file.bytes_per_second(channel) = 0;
  }
  return request(file);
}

using Command = Result<void> (*)(const TrafficFile& file, const Options& options);

Result<void> run(const Options& options, Command command) {
  auto opened = OpenTrafficFile::open(options.file);
  if (!opened.ok()) return opened.error();
  return command(opened->file, options);
}

void add_blocks(CLI::App* command, Options& options) {
  auto* group = command->add_option_group("which");
  group->add_option("--blocks", options.blocks, "blocks, as 4 or 4-7")->delimiter(',');
  group->add_option("--node", options.node, "the blocks of a NUMA node of this machine")
      ->check(CLI::NonNegativeNumber);
  group->require_option(1);
}

}  // namespace
}  // namespace memsluice::traffic

int main(int argc, char** argv) {
  using namespace memsluice::traffic;
  Options options;
  Command chosen = nullptr;
  CLI::App app(
      "Reads and steers the counting of memory traffic by the traffic plugin of a "
      "test bed's QEMU.");
  app.add_option("--file", options.file, "the plugin's file (default: the ivshmem device)");
  app.require_subcommand(1);
  const auto add = [&](const char* name, const char* help, Command command) {
    CLI::App* subcommand = app.add_subcommand(name, help);
    subcommand->callback([&chosen, command] { chosen = command; });
    return subcommand;
  };

  CLI::App* command = add("show", "print the counters", show);
  command->add_flag("--json", options.json, "as JSON");
  command->add_flag("--nodes", options.nodes, "by NUMA node of this machine");
  command = add("serve", "tell the counts of each node at a unix socket, for memsluiced", serve);
  command->add_option("SOCKET", options.socket)->required();
  add("on", "start counting and delaying, with an empty cache",
      [](const TrafficFile& file, const Options&) { return set_counting(file, true); });
  add("off", "write the cache back and stop",
      [](const TrafficFile& file, const Options&) { return set_counting(file, false); });
  add("reset", "zero all counters",
      [](const TrafficFile& file, const Options&) { return reset_counters(file); });
  add("clear", "remove all latencies and service rates",
      [](const TrafficFile& file, const Options&) { return clear(file); });
  command = add("latency", "delay each miss in some blocks", set_latency);
  command->add_option("NANOSECONDS", options.latency_ns)->required();
  add_blocks(command, options);
  command =
      add("channel", "put some blocks behind a channel and set its service rate", set_channel);
  command->add_option("CHANNEL", options.channel)->required();
  command->add_option("--bytes-per-second", options.bytes_per_second, "0: no limit")->required();
  add_blocks(command, options);
  CLI11_PARSE(app, argc, argv);

  const auto done = run(options, chosen);
  if (done.ok()) return 0;
  fmt::print(stderr, "memsluice-traffic: {}\n", done.error().describe());
  return 1;
}
