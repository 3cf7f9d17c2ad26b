// SPDX-License-Identifier: GPL-2.0
#include "daemon/api/wire.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace memsluice {
namespace {

Json refusals_to_json(const __u64 (&pages)[MEMSLUICE_REFUSALS_ROOM]) {
  Json reasons = Json::object();
  for (size_t i = 0; i < MEMSLUICE_REFUSALS_ROOM; i++)
    if (i < MEMSLUICE_REFUSALS || pages[i] != 0)
      reasons[refusal_name(i)] = static_cast<uint64_t>(pages[i]);
  return reasons;
}

// A newer module may have kinds that this daemon has no name for.
Json kinds_to_json(const __u64 (&pages)[MEMSLUICE_FRAME_KINDS_ROOM], size_t always) {
  Json kinds = Json::object();
  for (size_t kind = 0; kind < MEMSLUICE_FRAME_KINDS_ROOM; kind++)
    if (kind < always || pages[kind] != 0)
      kinds[frame_kind_name(kind)] = static_cast<uint64_t>(pages[kind]);
  return kinds;
}

Json bins_to_json(const __u64 (&pages)[MEMSLUICE_BINS]) {
  Json bins = Json::array();
  for (uint64_t count : pages) bins.push_back(count);
  return bins;
}

const char* state_name(uint32_t state) {
  switch (state) {
    case MEMSLUICE_REQUEST_RUNNING:
      return "running";
    case MEMSLUICE_REQUEST_DONE:
      return "done";
    case MEMSLUICE_REQUEST_CANCELLED:
      return "cancelled";
    default:
      return "failed";
  }
}

std::string queue_state_name(uint32_t state) {
  switch (state) {
    case MEMSLUICE_QUEUE_UP:
      return "up";
    case MEMSLUICE_QUEUE_RESTING:
      return "resting";
    case MEMSLUICE_QUEUE_STUCK:
      return "stuck";
    case MEMSLUICE_QUEUE_DRAINED:
      return "drained";
    default:
      // A newer module may have states that this daemon has no name for.
      return "state_" + std::to_string(state);
  }
}

const char* kind_name(memsluice_migrate_kind kind) {
  if (kind == MEMSLUICE_MIGRATE_TENANT_PLACED) return "tenant_placed";
  return kind == MEMSLUICE_MIGRATE_TENANT_NODE ? "tenant_node" : "range";
}

std::string channel_state_name(uint32_t state) {
  switch (state) {
    case MEMSLUICE_CHANNEL_ONLINE:
      return "online";
    case MEMSLUICE_CHANNEL_ADDING:
      return "adding";
    case MEMSLUICE_CHANNEL_REMOVING:
      return "removing";
    default:
      return "state_" + std::to_string(state);
  }
}

Json onliners_to_json(uint32_t onlined_by) {
  Json names = Json::array();
  for (const auto& [bit, name] : {std::pair{MEMSLUICE_ONLINED_BY_KERNEL, "kernel"},
                                  std::pair{MEMSLUICE_ONLINED_BY_MODULE, "module"},
                                  std::pair{MEMSLUICE_ONLINED_BY_OTHERS, "others"}})
    if (onlined_by & bit) names.push_back(name);
  return names;
}

Json queue_to_json(const memsluice_engine_queue& queue) {
  return {{"name", engine_name(queue.name)},
          {"node", queue.node < 0 ? Json(nullptr) : Json(queue.node)},
          {"state", queue_state_name(queue.state)},
          {"depth", queue.depth},
          {"max_batch", queue.max_batch},
          {"max_transfer_bytes", queue.max_transfer_bytes},
          {"descriptors", uint64_t{queue.descriptors}},
          {"batches", uint64_t{queue.batches}},
          {"bytes", uint64_t{queue.bytes}},
          {"errors", uint64_t{queue.errors}},
          {"late", uint64_t{queue.late}},
          {"quarantined", uint64_t{queue.quarantined}}};
}

Json lost_to_json(const lost_time& lost) {
  Json causes = Json::object();
  for (size_t cause = 0; cause < LOST_TIME_CAUSES; cause++) {
    const lost_time_histogram& histogram = lost.causes[cause];
    Json bins = Json::array();
    for (const uint64_t count : histogram.count) bins.push_back(count);
    causes[kLostTimeCauses[cause]] = {{"total_ns", uint64_t{histogram.total_ns}},
                                      {"histogram_us", std::move(bins)}};
  }
  return causes;
}

Json number_or_null(const std::optional<uint64_t>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json rate_to_json(const ChannelRate& rate) {
  return {{"read_bytes_per_s", rate.read_bytes_per_s},
          {"write_bytes_per_s", rate.write_bytes_per_s}};
}

}  // namespace

Json to_json(const Policy& policy) {
  Json limit = policy.fast_limit_bytes;
  if (policy.fast_limit_bytes == MEMSLUICE_NO_LIMIT) limit = nullptr;
  return {{"tiering", policy.tiering},
          {"fast_limit_bytes", limit},
          {"promote_mib_per_s", policy.promote_mib_per_s},
          {"demote_mib_per_s", policy.demote_mib_per_s},
          {"channels", format_channels(policy.placement.channels)},
          {"granule_bytes", granule_bytes(policy.placement.granule_order)}};
}

Json to_json(const NumaNode& node) {
  return {{"id", node.id},
          {"tier", node.tier},
          {"total_bytes", node.total_bytes},
          {"free_bytes", node.free_bytes},
          {"cpus", node.cpus},
          {"read_bandwidth_bytes_per_s", number_or_null(node.read_bandwidth_bytes_per_s)},
          {"write_bandwidth_bytes_per_s", number_or_null(node.write_bandwidth_bytes_per_s)},
          {"distance", node.distance}};
}

Json to_json(const TenantView& tenant) {
  const memsluice_tenant_status& status = tenant.status;
  Policy policy = from_kernel(status.policy);
  policy.placement = tenant.placed.placement;
  Json json = {{"cgroup", tenant.cgroup.path},
               {"cgroup_id", tenant.cgroup.id},
               {"origin", origin_name(tenant.origin)},
               {"policy", to_json(policy)},
               {"fallback_folios", tenant.placed.fallback_folios},
               {"spilled_folios", tenant.placed.spilled_folios},
               {"fast_bytes", uint64_t{status.fast_bytes}},
               {"slow_bytes", uint64_t{status.slow_bytes}},
               {"promoted_pages", uint64_t{status.promoted_pages}},
               {"demoted_pages", uint64_t{status.demoted_pages}},
               {"refused_pages", refusals_to_json(status.refused_pages)},
               {"histogram_pages",
                {{"fast", bins_to_json(status.fast_histogram_pages)},
                 {"slow", bins_to_json(status.slow_histogram_pages)}}},
               {"hot_bin", status.hot_bin},
               {"cold_bin", status.cold_bin},
               {"scans", uint64_t{status.scans}},
               {"scanned_pages", uint64_t{status.scanned_pages}},
               {"scan_cpu_us", uint64_t{status.scan_cpu_us}},
               {"processes", status.processes}};
  json["lost_time"] = tenant.lost ? lost_to_json(*tenant.lost) : Json(nullptr);
  if (tenant.memory.current_bytes) json["memory_current_bytes"] = *tenant.memory.current_bytes;
  for (const auto& [node, bytes] : tenant.memory.node_bytes)
    json["node_bytes"][std::to_string(node)] = bytes;
  return json;
}

Json to_json(const RequestView& request) {
  const memsluice_request_status& status = request.status;
  return {{"id", request.id},
          {"kind", kind_name(request.kind)},
          {"object", request.object},
          {"target_node", request.target_node ? Json(*request.target_node) : Json(nullptr)},
          {"on_touch", request.on_touch},
          {"upkeep", request.upkeep},
          {"state", state_name(status.state)},
          {"error", request.error ? error_to_json(*request.error) : Json(nullptr)},
          {"total_pages", uint64_t{status.total_pages}},
          {"seen_pages", uint64_t{status.seen_pages}},
          {"moved_pages", uint64_t{status.moved_pages}},
          {"already_there_pages", uint64_t{status.already_there_pages}},
          {"refused_pages", refusals_to_json(status.refused_pages)}};
}

Json to_json(const EngineInfo& engine) {
  const memsluice_engine_status& status = engine.status;
  Json queues = Json::array();
  for (const memsluice_engine_queue& queue : engine.queues) queues.push_back(queue_to_json(queue));
  return {{"name", engine.name()},
          {"rank", status.rank},
          {"batches", uint64_t{status.calls}},
          {"bytes", uint64_t{status.bytes}},
          {"declined", uint64_t{status.declined}},
          {"failed_folios", uint64_t{status.failed_folios}},
          {"late_folios", uint64_t{status.late_folios}},
          {"differing_folios", uint64_t{status.differing_folios}},
          {"queues", std::move(queues)}};
}

Json to_json(const memsluice_channel_status& channel) {
  const std::string group = channel_name(channel.group);
  Json json = {{"name", channel_name(channel.name)},
               {"group", group.empty() ? Json(nullptr) : Json(group)},
               {"node", channel.node},
               {"state", channel_state_name(channel.state)},
               {"start", nullptr},
               {"length_bytes", nullptr},
               {"block_bytes", uint64_t{channel.block_bytes}},
               {"blocks", channel.blocks},
               {"online_blocks", channel.online_blocks},
               {"movable_blocks", channel.movable_blocks},
               {"onlined_by", onliners_to_json(channel.onlined_by)},
               {"moved_pages", uint64_t{channel.moved_pages}}};
  if (channel.length == 0) return json;
  json["start"] = uint64_t{channel.start};
  json["length_bytes"] = uint64_t{channel.length};
  return json;
}

Json to_json(const RemovedChannel& removed) {
  return {{"name", removed.name}, {"node", removed.node}, {"moved_pages", removed.moved_pages}};
}

Json to_json(const CensusLine& line) {
  const auto id_or_null = [](uint64_t id) { return id == 0 ? Json(nullptr) : Json(id); };
  const auto path_or_null = [](const std::string& path) {
    return path.empty() ? Json(nullptr) : Json(path);
  };
  return {{"node", line.row.node},
          {"cgroup_id", id_or_null(line.row.cgroup_id)},
          {"cgroup", path_or_null(line.cgroup)},
          {"tenant_id", id_or_null(line.row.tenant_id)},
          {"tenant", path_or_null(line.tenant)},
          {"pages", kinds_to_json(line.row.pages, MEMSLUICE_FRAME_KINDS)},
          {"held_pages", kinds_to_json(line.row.held_pages, MEMSLUICE_FRAMES_FILE + 1)}};
}

Json to_json(const Bandwidth& bandwidth, size_t samples) {
  const auto& reading = bandwidth.reading();
  const auto& kept = bandwidth.samples();
  const auto first = kept.end() - static_cast<ptrdiff_t>(std::min(samples, kept.size()));
  Json channels = Json::array();
  if (reading.ok()) {
    for (const ChannelCounts& counts : reading->channels) {
      Json rates = Json::array();
      for (auto sample = first; sample != kept.end(); ++sample) {
        auto rate = sample->find(counts.name);
        rates.push_back(rate == sample->end() ? Json(nullptr) : rate_to_json(rate->second));
      }
      channels.push_back({{"name", counts.name},
                          {"node", counts.node ? Json(*counts.node) : Json(nullptr)},
                          {"read_bytes", counts.read_bytes},
                          {"write_bytes", counts.write_bytes},
                          {"enabled_ns", counts.enabled_ns},
                          {"running_ns", counts.running_ns},
                          {"samples", std::move(rates)}});
    }
  }
  return {{"source", bandwidth.settings().source},
          {"error", reading.ok() ? Json(nullptr) : error_to_json(reading.error())},
          {"notices", reading.ok() ? Json(reading->notices) : Json::array()},
          {"period_ms", Bandwidth::kPeriod.count()},
          {"channels", std::move(channels)}};
}

Json to_json(const QueueName& queue) {
  return {{"engine", queue.engine}, {"name", queue.queue}};
}

Json to_json(const DsaResetOutcome& outcome) {
  return {{"device", outcome.device},
          {"configuration", outcome.from_file ? "file" : "device"},
          {"queues", outcome.queues}};
}

Json to_json(const Result<ModuleInfo>& module) {
  if (!module.ok()) return {{"loaded", false}, {"error", error_to_json(module.error())}};
  return {{"loaded", true},
          {"version", module->release},
          {"abi_version", module->abi_version},
          {"features", module->feature_names()}};
}

}  // namespace memsluice
