// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/event_loop.h"
#include "daemon/base/log.h"
#include "daemon/control/bandwidth.h"
#include "daemon/control/config.h"
#include "daemon/control/engines.h"
#include "daemon/control/tenants.h"
#include "daemon/host/migration_statistics.h"
#include "daemon/host/numa.h"

namespace memsluice {

// What the metrics are made of. What is not known is left out of them.
struct MetricsFacts {
  std::string version;
  bool module_loaded = false;
  std::vector<NumaNode> nodes = {};
  Result<CountersReading> counters = CountersReading{};
  std::vector<TenantView> tenants = {};
  std::optional<MigrationStatistics> migration = {};
  std::vector<EngineInfo> engines = {};
};

// docs/metrics.md, in Prometheus' text exposition format.
std::string metrics_text(const MetricsFacts& facts);

// Collects them, and keeps a file of them for node_exporter's textfile collector.
class Metrics {
 public:
  Metrics(Module& module, Tenants& tenants, Engines& engines, const Bandwidth& bandwidth,
          EventLoop& loop, const Paths& paths, std::string version, const Log& log);
  // Takes the file away.
  ~Metrics();

  void configure(const MetricsSettings& settings);

  // Answered before it returns or later, by the loop; exactly once.
  void collect(const std::function<void(const std::string& text)>& reply);

 private:
  MetricsFacts facts(std::vector<EngineInfo> engines);
  void write_file();

  Module& module_;
  Tenants& tenants_;
  Engines& engines_;
  const Bandwidth& bandwidth_;
  EventLoop& loop_;
  const Paths paths_;
  const std::string version_;
  const Log& log_;
  MetricsSettings settings_ = {};
  std::optional<Error> told_;
  EventLoop::Timer timer_;
  // Of answers that come when this has ended.
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace memsluice
