// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/doctor/judge.h"

#include <fmt/format.h>

namespace memsluice::doctor {
namespace {

std::string describe(const WorkQueueFacts& queue) {
  if (queue.state != "enabled") return queue.name + " " + queue.state;
  return fmt::format("{} {} {} {}", queue.name, queue.mode, queue.type, queue.driver_name);
}

void judge_dsa(const Facts& facts, Findings* findings) {
  if (facts.dsa.empty()) {
    findings->push_back(
        {"dsa", Level::kNote, "/sys/bus/dsa/devices", "no DSA device: the CPU copies pages", ""});
  }
  for (const DsaFacts& device : facts.dsa) {
    std::vector<std::string> parts = {device.state};
    for (const WorkQueueFacts& queue : device.queues) parts.push_back(describe(queue));
    const bool enabled = device.state == "enabled";
    findings->push_back({"dsa", enabled ? Level::kOk : Level::kNote, device.name, joined(parts),
                         enabled ? "" : "accel-config config-engine, config-wq and enable-device"});
    const std::string domain = device.iommu_domain.value_or("none");
    const bool direct = domain == "none" || domain == "identity";
    findings->push_back(
        {"iommu", direct ? Level::kOk : Level::kWarning, device.name,
         direct ? domain + ": addresses are physical" : domain + ": addresses are translated",
         direct ? "" : "boot with iommu=pt: copies by physical address need a passthrough domain"});
  }
}

void judge_cxl(const Facts& facts, Findings* findings) {
  findings->push_back({"cxl", Level::kOk, "/sys/bus/cxl/devices",
                       facts.cxl.empty() ? "no CXL memory" : joined(facts.cxl), ""});
}

void judge_rdma(const Facts& facts, Findings* findings) {
  if (facts.rdma.empty()) {
    findings->push_back({"rdma", Level::kOk, "/sys/class/infiniband", "no RDMA device", ""});
  }
  for (const RdmaFacts& device : facts.rdma) {
    std::vector<std::string> parts = {device.driver};
    parts.insert(parts.end(), device.ports.begin(), device.ports.end());
    findings->push_back({"rdma", Level::kOk, device.name, joined(parts), ""});
  }
}

}  // namespace

void judge_devices(const Facts& facts, Findings* findings) {
  judge_dsa(facts, findings);
  judge_cxl(facts, findings);
  judge_rdma(facts, findings);
}

}  // namespace memsluice::doctor
