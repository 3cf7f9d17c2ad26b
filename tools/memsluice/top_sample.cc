// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/top_sample.h"

#include <array>

namespace memsluice {
namespace {

// By id: a cgroup of the same name made anew is another tenant.
const Json& tenant_of_id(const Json& status, const Json& id) {
  static const Json null;
  for (const Json& tenant : member(status, "tenants")) {
    if (!id.is_null() && member(tenant, "cgroup_id") == id) return tenant;
  }
  return null;
}

Json rate(std::optional<uint64_t> now, std::optional<uint64_t> before, double interval_s) {
  if (!now || !before || *now < *before || interval_s <= 0) return nullptr;
  return static_cast<double>(*now - *before) / interval_s;
}

std::optional<uint64_t> refused(const Json& tenant) {
  const Json& reasons = member(tenant, "refused_pages");
  return reasons.is_object() ? std::optional(sum(reasons)) : std::nullopt;
}

Json with_rates(Json tenant, const Json& earlier, double interval_s) {
  if (!tenant.is_object()) return Json::object();
  for (const char* counter : {"promoted_pages", "demoted_pages"}) {
    tenant[std::string(counter) + "_per_s"] =
        rate(number(tenant, counter), number(earlier, counter), interval_s);
  }
  if (const Json& lost = member(tenant, "lost_time"); lost.is_object()) {
    Json rates = Json::object();
    for (const auto& [cause, counted] : lost.items())
      rates[cause] =
          rate(number(counted, "total_ns"),
               number(member(member(earlier, "lost_time"), cause), "total_ns"), interval_s);
    tenant["lost_ns_per_s"] = std::move(rates);
  }
  tenant["refused_pages_per_s"] = rate(refused(tenant), refused(earlier), interval_s);
  return tenant;
}

constexpr std::array kRates = {"read_bytes_per_s", "write_bytes_per_s"};

// The mean of the samples that there are: one that is missing says nothing.
Json mean(const Json& samples, const char* key) {
  double total = 0;
  size_t known = 0;
  for (const Json& sample : samples) {
    const auto value = real(sample, key);
    if (!value) continue;
    total += *value;
    known++;
  }
  return known == 0 ? Json(nullptr) : Json(total / static_cast<double>(known));
}

Json channels_with_rates(const Json& counters) {
  Json channels = Json::array();
  for (const Json& channel : items(counters, "channels")) {
    Json shown = {{"name", text(channel, "name")}, {"node", member(channel, "node")}};
    for (const char* rate_name : kRates)
      shown[rate_name] = mean(items(channel, "samples"), rate_name);
    channels.push_back(std::move(shown));
  }
  return channels;
}

// Null where one of the node's channels is not known, and where it has none.
Json sum_of_node(const Json& channels, const Json& node, const char* key) {
  double total = 0;
  bool any = false;
  for (const Json& channel : channels) {
    if (member(channel, "node").is_null() || member(channel, "node") != member(node, "id"))
      continue;
    const auto value = real(channel, key);
    if (!value) return nullptr;
    total += *value;
    any = true;
  }
  return any ? Json(total) : Json(nullptr);
}

Json nodes_with_rates(const Json& status, const Json& channels) {
  Json nodes = Json::array();
  for (Json node : items(status, "nodes")) {
    if (!node.is_object()) continue;
    for (const char* key : kRates) node[key] = sum_of_node(channels, node, key);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace

Json top_sample(const Json& status, const Json& earlier_status, double interval_s,
                const Json& counters) {
  Json tenants = Json::array();
  for (const Json& tenant : member(status, "tenants")) {
    const Json& earlier = tenant_of_id(earlier_status, member(tenant, "cgroup_id"));
    tenants.push_back(with_rates(tenant, earlier, interval_s));
  }
  Json channels = channels_with_rates(counters);
  Json nodes = nodes_with_rates(status, channels);
  return {{"interval_s", interval_s},
          {"daemon", member(status, "daemon")},
          {"module", member(status, "module")},
          {"nodes", std::move(nodes)},
          {"channels", std::move(channels)},
          {"counters",
           {{"source", member(counters, "source")},
            {"error", member(counters, "error")},
            {"notices", items(counters, "notices")}}},
          {"tenants", std::move(tenants)}};
}

}  // namespace memsluice
