// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/doctor/judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/host/dsa_devices.h"

namespace memsluice::doctor {
namespace {

// What accel-config calls memsluice_dsa.
constexpr std::string_view kDriver = "memsluice";

std::string describe(const WorkQueueFacts& queue) {
  if (queue.state != "enabled") return queue.name + " " + queue.state;
  return fmt::format("{} {} {} {}", queue.name, queue.mode, queue.type, queue.driver_name);
}

bool is_ours(const WorkQueueFacts& queue) {
  return queue.driver_name == kDriver;
}

// memsluice_dsa refuses any other.
bool can_be_taken(const WorkQueueFacts& queue) {
  return queue.mode == "dedicated" && queue.type == "kernel";
}

Finding judge_queues(const DsaFacts& device) {
  std::vector<std::string> parts = {device.state};
  for (const WorkQueueFacts& queue : device.queues) parts.push_back(describe(queue));
  Finding finding = {"dsa", Level::kNote, device.name, joined(parts), ""};
  const auto wrong = std::find_if(
      device.queues.begin(), device.queues.end(),
      [](const WorkQueueFacts& queue) { return is_ours(queue) && !can_be_taken(queue); });
  if (wrong != device.queues.end()) {
    finding.level = Level::kWarning;
    finding.advice = fmt::format(
        "memsluice takes dedicated queues of type kernel only: disable-wq, then config-wq {}/{} "
        "--mode=dedicated --type=kernel",
        device.name, wrong->name);
    return finding;
  }
  const auto ours = std::find_if(device.queues.begin(), device.queues.end(), is_ours);
  if (ours == device.queues.end()) {
    finding.advice = fmt::format(
        "no queue is memsluice's: accel-config config-wq {}/wqX.Y --mode=dedicated --type=kernel "
        "--name=memsluice --driver-name=memsluice ...",
        device.name);
  } else if (device.state != "enabled") {
    finding.advice =
        fmt::format("accel-config enable-device {0}, enable-wq {0}/{1}", device.name, ours->name);
  } else if (ours->state != "enabled") {
    finding.advice = fmt::format("accel-config enable-wq {}/{}", device.name, ours->name);
  } else {
    finding.level = Level::kOk;
  }
  return finding;
}

Finding judge_addresses(const DsaFacts& device) {
  const std::string domain = device.iommu_domain.value_or("none");
  if (domain == "none" || domain == "identity")
    return {"iommu", Level::kOk, device.name, domain + ": addresses are physical", ""};
  return {"iommu", Level::kNote, device.name,
          domain + ": addresses are translated, so each copy costs the CPU a mapping",
          "where the host's other devices allow it, boot with iommu.passthrough=1"};
}

Finding judge_engine(const Facts& facts) {
  const DsaEngineFacts& engine = facts.dsa_engine;
  if (!engine.loaded)
    return {"dsa-engine", Level::kNote, "memsluice_dsa", "not loaded: the CPU copies pages",
            "modprobe memsluice_dsa, before the queues are configured"};
  if (!engine.stuck.empty())
    return {"dsa-engine", Level::kWarning, "memsluice_dsa", "stuck: " + joined(engine.stuck),
            "memsluice engine reset dsa" + dsa_device_number(engine.stuck.front())};
  if (!engine.resting.empty())
    return {"dsa-engine", Level::kNote, "memsluice_dsa",
            joined(engine.resting) + " rests, for it has failed: dmesg says how",
            "memsluice engine test says whether it still does"};
  return {"dsa-engine", Level::kOk, "memsluice_dsa", "loaded", ""};
}

void judge_dsa(const Facts& facts, Findings* findings) {
  if (facts.dsa.empty()) {
    findings->push_back(
        {"dsa", Level::kNote, "/sys/bus/dsa/devices", "no DSA device: the CPU copies pages", ""});
    return;
  }
  findings->push_back(judge_engine(facts));
  for (const DsaFacts& device : facts.dsa) {
    findings->push_back(judge_queues(device));
    findings->push_back(judge_addresses(device));
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
