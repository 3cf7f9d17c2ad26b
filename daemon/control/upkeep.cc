// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/upkeep.h"

#include <algorithm>

#include "daemon/base/units.h"

namespace memsluice {
namespace {

constexpr Milliseconds kUpkeepPauseMax{60 * 60 * 1000};
// Less is not worth the walk over all page frames: stacks, page cache that became shared memory.
constexpr uint64_t kShareOfAll = 64;
constexpr uint64_t kGranulesSlack = 2;
constexpr Milliseconds kLeftAlone{10 * 60 * 1000};

// Of any memory in a row each channel misses its weight by less than two granules.
uint64_t slack_bytes(const Placement& placement, uint64_t all_bytes) {
  const uint64_t granules = kGranulesSlack * placement.channels.size();
  return std::max(all_bytes / kShareOfAll, granules * granule_bytes(placement.granule_order));
}

}  // namespace

uint64_t misplaced_bytes(const Placement& placement, const std::map<int, uint64_t>& node_bytes) {
  uint64_t weights = 0, placed_bytes = 0, all_bytes = 0, misplaced = 0;
  const auto bytes_on = [&](uint32_t node) {
    auto found = node_bytes.find(static_cast<int>(node));
    return found == node_bytes.end() ? 0 : found->second;
  };
  for (const auto& [node, bytes] : node_bytes) all_bytes += bytes;
  uint64_t elsewhere_bytes = all_bytes;
  for (const Channel& channel : placement.channels) {
    weights += channel.weight;
    elsewhere_bytes -= bytes_on(channel.node);
    if (channel.weight > 0) placed_bytes += bytes_on(channel.node);
  }
  if (weights == 0) return 0;
  for (const Channel& channel : placement.channels) {
    const auto due = static_cast<uint64_t>(static_cast<double>(placed_bytes) * channel.weight /
                                           static_cast<double>(weights));
    if (channel.weight > 0 && bytes_on(channel.node) > due)
      misplaced += bytes_on(channel.node) - due;
  }
  return misplaced > slack_bytes(placement, all_bytes) ? elsewhere_bytes + misplaced
                                                       : elsewhere_bytes;
}

std::map<uint64_t, std::map<int, uint64_t>> own_bytes(const std::vector<TenantView>& tenants) {
  std::map<uint64_t, std::map<int, uint64_t>> own;
  for (const TenantView& tenant : tenants) own[tenant.cgroup.id] = tenant.memory.placed_bytes;
  for (const TenantView& below : tenants) {
    const TenantView* nearest = nullptr;
    for (const TenantView& above : tenants)
      if (is_below(below.cgroup.path, above.cgroup.path) &&
          (nearest == nullptr || above.cgroup.path.size() > nearest->cgroup.path.size()))
        nearest = &above;
    if (nearest == nullptr) continue;
    // Read one after the other: what has moved meanwhile may be in both.
    for (const auto& [node, bytes] : below.memory.placed_bytes) {
      uint64_t& left = own[nearest->cgroup.id][node];
      left -= std::min(left, bytes);
    }
  }
  return own;
}

bool Upkeep::has_ended(const std::string& path, Care& care, Milliseconds period) {
  if (care.request == 0) return true;
  auto request = migrations_.get(care.request);
  if (request.ok() && !request->has_ended()) return false;
  care.request = 0;
  if (request.ok() && request->status.state == MEMSLUICE_REQUEST_CANCELLED) return true;
  const uint64_t moved = request.ok() ? request->status.moved_pages : 0;
  // What cannot move now may be able to in a while, and what is as it must be is looked at in vain.
  care.pause = moved > 0 ? period : std::clamp(care.pause * 2, period, kUpkeepPauseMax);
  care.next = clock_.monotonic() + care.pause;
  if (moved > 0)
    log_.info("{}: {} pages that lay elsewhere are on their channels again", path, moved);
  return true;
}

bool Upkeep::somebody_moves(const std::string& path) {
  const auto requests = migrations_.list();
  return std::any_of(requests.begin(), requests.end(), [&](const RequestView& request) {
    return !request.has_ended() && request.object == path;
  });
}

void Upkeep::care_for(const TenantView& tenant, const std::map<int, uint64_t>& node_bytes,
                      Milliseconds period, uint32_t mib_per_s) {
  const Placement& placement = tenant.placed.placement;
  Care& care = cares_[tenant.cgroup.id];
  if (!has_ended(tenant.cgroup.path, care, period) || clock_.monotonic() < care.next ||
      somebody_moves(tenant.cgroup.path))
    return;
  const uint64_t bytes = misplaced_bytes(placement, node_bytes);
  if (bytes <= slack_bytes(placement, 0)) return;
  log_.debug("{}: {} lie elsewhere than on its channels", tenant.cgroup.path, format_bytes(bytes));
  auto started = migrations_.start(
      Redistribution{.cgroup = tenant.cgroup.path, .mib_per_s = mib_per_s, .upkeep = true});
  if (started.ok()) {
    care.request = started->id;
  } else {
    care.pause = std::clamp(care.pause * 2, period, kUpkeepPauseMax);
    care.next = clock_.monotonic() + care.pause;
  }
}

void Upkeep::look(Milliseconds period, uint32_t mib_per_s) {
  auto tenants = tenants_.list();
  if (!tenants.ok()) return;
  std::erase_if(cares_, [&](const auto& care) {
    return std::none_of(tenants->begin(), tenants->end(), [&](const TenantView& tenant) {
      return tenant.cgroup.id == care.first && !tenant.placed.placement.channels.empty();
    });
  });
  const auto bytes = own_bytes(*tenants);
  for (const TenantView& tenant : *tenants)
    if (!tenant.placed.placement.channels.empty())
      care_for(tenant, bytes.at(tenant.cgroup.id), period, mib_per_s);
}

void Upkeep::make_way(uint64_t cgroup_id, bool on_touch) {
  Care& care = cares_[cgroup_id];
  if (care.request != 0) {
    // It may have ended.
    [[maybe_unused]] auto cancelled = migrations_.cancel(care.request);
  }
  care.next = clock_.monotonic() + (on_touch ? kLeftAlone : Milliseconds(0));
}

}  // namespace memsluice
