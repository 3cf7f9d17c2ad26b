// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/top_sample.h"

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
  tenant["refused_pages_per_s"] = rate(refused(tenant), refused(earlier), interval_s);
  return tenant;
}

}  // namespace

Json top_sample(const Json& status, const Json& earlier_status, double interval_s) {
  Json tenants = Json::array();
  for (const Json& tenant : member(status, "tenants")) {
    const Json& earlier = tenant_of_id(earlier_status, member(tenant, "cgroup_id"));
    tenants.push_back(with_rates(tenant, earlier, interval_s));
  }
  return {{"interval_s", interval_s},
          {"daemon", member(status, "daemon")},
          {"module", member(status, "module")},
          {"nodes", member(status, "nodes")},
          {"tenants", std::move(tenants)}};
}

}  // namespace memsluice
