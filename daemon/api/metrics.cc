// SPDX-License-Identifier: GPL-2.0
#include "daemon/api/metrics.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <iterator>

#include "daemon/base/prometheus_text.h"
#include "daemon/host/files.h"

namespace memsluice {
namespace {

using MetricKind = PrometheusText::Kind;

constexpr double kNanosecondsPerSecond = 1e9;
constexpr double kMicrosecondsPerSecond = 1e6;
constexpr mode_t kReadableByAll = 0644;

std::string id_text(int id) {
  return fmt::format("{}", id);
}

// Of bins for less than 1 us, less than 2, less than 4, and so on; the last has none.
std::vector<double> log2_bounds_seconds(size_t bins) {
  std::vector<double> bounds;
  for (size_t bin = 0; bin + 1 < bins; bin++)
    bounds.push_back(std::ldexp(1, static_cast<int>(bin)) / kMicrosecondsPerSecond);
  return bounds;
}

void add_host(const MetricsFacts& facts, PrometheusText& text) {
  text.family("memsluice_build_info", MetricKind::kGauge, "Always 1; the version is a label.");
  text.sample({{"version", facts.version}}, uint64_t{1});
  text.family("memsluice_module_loaded", MetricKind::kGauge, "Whether memsluice.ko is loaded.");
  text.sample({}, uint64_t{facts.module_loaded});
  text.family("memsluice_node_memory_bytes", MetricKind::kGauge, "Memory of a NUMA node.");
  for (const NumaNode& node : facts.nodes)
    text.sample({{"node", id_text(node.id)}, {"tier", id_text(node.tier)}}, node.total_bytes);
  text.family("memsluice_node_memory_free_bytes", MetricKind::kGauge,
              "Memory of a NUMA node that is free.");
  for (const NumaNode& node : facts.nodes)
    text.sample({{"node", id_text(node.id)}, {"tier", id_text(node.tier)}}, node.free_bytes);
}

PrometheusText::Labels channel_labels(const ChannelCounts& counts) {
  return {{"channel", counts.name}, {"node", counts.node ? id_text(*counts.node) : ""}};
}

void add_channels(const MetricsFacts& facts, PrometheusText& text) {
  text.family("memsluice_counters_readable", MetricKind::kGauge,
              "Whether the traffic of any channel could be read last.");
  text.sample({}, uint64_t{facts.counters.ok()});
  if (!facts.counters.ok()) return;
  const auto& channels = facts.counters->channels;
  text.family("memsluice_channel_read_bytes_total", MetricKind::kCounter,
              "Bytes read from a memory channel.");
  for (const ChannelCounts& counts : channels)
    text.sample(channel_labels(counts), counts.read_bytes);
  text.family("memsluice_channel_written_bytes_total", MetricKind::kCounter,
              "Bytes written to a memory channel.");
  for (const ChannelCounts& counts : channels)
    text.sample(channel_labels(counts), counts.write_bytes);
}

// A counter of each tenant's status.
struct TenantCounter {
  const char* name;
  const char* help;
  uint64_t (*value)(const TenantView& tenant);
};
constexpr TenantCounter kTenantCounters[] = {
    {"memsluice_tenant_promoted_pages_total", "Base pages of a tenant that came to tier 0.",
     [](const TenantView& tenant) -> uint64_t { return tenant.status.promoted_pages; }},
    {"memsluice_tenant_demoted_pages_total", "Base pages of a tenant that left tier 0.",
     [](const TenantView& tenant) -> uint64_t { return tenant.status.demoted_pages; }},
    {"memsluice_tenant_fallback_folios_total",
     "Folios that found all of a tenant's channels with a weight full, and came to one without.",
     [](const TenantView& tenant) -> uint64_t { return tenant.placed.fallback_folios; }},
    {"memsluice_tenant_spilled_folios_total",
     "Folios that found all of a tenant's channels full, and went where the kernel chose.",
     [](const TenantView& tenant) -> uint64_t { return tenant.placed.spilled_folios; }},
    {"memsluice_tenant_scanned_pages_total", "Base pages of a tenant that scans have looked at.",
     [](const TenantView& tenant) -> uint64_t { return tenant.status.scanned_pages; }},
};

void add_lost_times(const MetricsFacts& facts, PrometheusText& text) {
  const std::vector<double> bounds = log2_bounds_seconds(LOST_TIME_BINS);
  text.family("memsluice_tenant_lost_seconds", MetricKind::kHistogram,
              "How long tasks of a tenant were held up, by cause.");
  for (const TenantView& tenant : facts.tenants) {
    if (!tenant.lost) continue;
    for (size_t cause = 0; cause < LOST_TIME_CAUSES; cause++) {
      const lost_time_histogram& lost = tenant.lost->causes[cause];
      text.histogram({{"tenant", tenant.cgroup.path}, {"cause", kLostTimeCauses[cause]}}, bounds,
                     {std::begin(lost.count), std::end(lost.count)},
                     static_cast<double>(lost.total_ns) / kNanosecondsPerSecond);
    }
  }
}

void add_tenants(const MetricsFacts& facts, PrometheusText& text) {
  text.family("memsluice_tenant_memory_bytes", MetricKind::kGauge,
              "Anonymous, file and shared memory of a tenant on a NUMA node.");
  for (const TenantView& tenant : facts.tenants)
    for (const auto& [node, bytes] : tenant.memory.node_bytes)
      text.sample({{"tenant", tenant.cgroup.path}, {"node", id_text(node)}}, bytes);
  text.family("memsluice_tenant_scanned_bytes", MetricKind::kGauge,
              "What the last scan found of a tenant in tier 0 (fast) and elsewhere (slow).");
  for (const TenantView& tenant : facts.tenants) {
    text.sample({{"tenant", tenant.cgroup.path}, {"tier", "fast"}},
                uint64_t{tenant.status.fast_bytes});
    text.sample({{"tenant", tenant.cgroup.path}, {"tier", "slow"}},
                uint64_t{tenant.status.slow_bytes});
  }
  for (const TenantCounter& counter : kTenantCounters) {
    text.family(counter.name, MetricKind::kCounter, counter.help);
    for (const TenantView& tenant : facts.tenants)
      text.sample({{"tenant", tenant.cgroup.path}}, counter.value(tenant));
  }
  text.family("memsluice_tenant_refused_pages_total", MetricKind::kCounter,
              "Base pages of a tenant that tiering could not move.");
  for (const TenantView& tenant : facts.tenants)
    for (size_t reason = 0; reason < MEMSLUICE_REFUSALS; reason++)
      text.sample({{"tenant", tenant.cgroup.path}, {"reason", refusal_name(reason)}},
                  uint64_t{tenant.status.refused_pages[reason]});
  add_lost_times(facts, text);
  text.family("memsluice_tenant_scan_seconds_total", MetricKind::kCounter,
              "Time of a CPU that a tenant's scans have taken.");
  for (const TenantView& tenant : facts.tenants)
    text.sample({{"tenant", tenant.cgroup.path}},
                static_cast<double>(tenant.status.scan_cpu_us) / kMicrosecondsPerSecond);
}

void add_moved(const MigrationStatistics& migration, PrometheusText& text) {
  const auto labels = [](const MovedPages& moved) {
    return PrometheusText::Labels{
        {"reason", moved.reason}, {"to", moved.to_tier}, {"size", moved.size}};
  };
  text.family("memsluice_migrated_pages_total", MetricKind::kCounter,
              "Base pages that batches have moved, by reason, tier and size of the folios.");
  for (const MovedPages& moved : migration.moved) text.sample(labels(moved), moved.pages);
  text.family("memsluice_migrated_bytes_total", MetricKind::kCounter,
              "Bytes that batches have moved, by reason, tier and size of the folios.");
  for (const MovedPages& moved : migration.moved) text.sample(labels(moved), moved.bytes);
}

void add_migration(const MetricsFacts& facts, PrometheusText& text) {
  if (!facts.migration) return;
  const MigrationStatistics& migration = *facts.migration;
  add_moved(migration, text);
  text.family("memsluice_migration_copied_bytes_total", MetricKind::kCounter,
              "Bytes that batches have copied.");
  text.sample({}, migration.copied_bytes);
  text.family("memsluice_migration_fell_back_folios_total", MetricKind::kCounter,
              "Folios that the copy engine failed and the CPU copied.");
  text.sample({}, migration.fell_back_folios);
  if (migration.stall_us.empty()) return;
  const double phases_ns =
      static_cast<double>(migration.unmap_ns + migration.copy_ns + migration.map_ns);
  text.family("memsluice_migration_stall_seconds", MetricKind::kHistogram,
              "How long the pages of a batch were unmapped.");
  text.histogram({}, log2_bounds_seconds(migration.stall_us.size()), migration.stall_us,
                 phases_ns / kNanosecondsPerSecond);
}

struct EngineCounter {
  const char* name;
  const char* help;
  __u64 memsluice_engine_status::*value;
};
constexpr EngineCounter kEngineCounters[] = {
    {"memsluice_engine_batches_total", "Batches that a copy engine has copied from.",
     &memsluice_engine_status::calls},
    {"memsluice_engine_copied_bytes_total", "Bytes that a copy engine has copied.",
     &memsluice_engine_status::bytes},
    {"memsluice_engine_declined_batches_total", "Batches that a copy engine left to the CPU.",
     &memsluice_engine_status::declined},
    {"memsluice_engine_failed_folios_total",
     "Folios that the CPU copied after a copy engine had failed.",
     &memsluice_engine_status::failed_folios},
    {"memsluice_engine_late_folios_total",
     "Folios that a copy engine had not copied at its deadline.",
     &memsluice_engine_status::late_folios},
};

struct QueueCounter {
  const char* name;
  const char* help;
  MetricKind kind;
  __u64 memsluice_engine_queue::*value;
};
constexpr QueueCounter kQueueCounters[] = {
    {"memsluice_engine_queue_copied_bytes_total", "Bytes that a queue has copied.",
     MetricKind::kCounter, &memsluice_engine_queue::bytes},
    {"memsluice_engine_queue_errors_total", "Descriptors of a queue that ended with an error.",
     MetricKind::kCounter, &memsluice_engine_queue::errors},
    {"memsluice_engine_queue_late_descriptors_total",
     "Descriptors of a queue that had not ended at their deadline.", MetricKind::kCounter,
     &memsluice_engine_queue::late},
    {"memsluice_engine_queue_quarantined_descriptors",
     "Late descriptors of a queue that may still write.", MetricKind::kGauge,
     &memsluice_engine_queue::quarantined},
};

void add_engines(const MetricsFacts& facts, PrometheusText& text) {
  // Without queues an engine counts nothing.
  const auto counts = [](const EngineInfo& engine) {
    return !engine.queues.empty() || engine.status.calls > 0;
  };
  for (const EngineCounter& counter : kEngineCounters) {
    text.family(counter.name, MetricKind::kCounter, counter.help);
    for (const EngineInfo& engine : facts.engines)
      if (counts(engine))
        text.sample({{"engine", engine.name()}}, uint64_t{engine.status.*counter.value});
  }
  const auto labels = [](const EngineInfo& engine, const memsluice_engine_queue& queue) {
    return PrometheusText::Labels{{"engine", engine.name()}, {"queue", engine_name(queue.name)}};
  };
  text.family("memsluice_engine_queue_up", MetricKind::kGauge, "Whether a queue takes copies.");
  for (const EngineInfo& engine : facts.engines)
    for (const memsluice_engine_queue& queue : engine.queues)
      text.sample(labels(engine, queue), uint64_t{queue.state == MEMSLUICE_QUEUE_UP});
  for (const QueueCounter& counter : kQueueCounters) {
    text.family(counter.name, counter.kind, counter.help);
    for (const EngineInfo& engine : facts.engines)
      for (const memsluice_engine_queue& queue : engine.queues)
        text.sample(labels(engine, queue), uint64_t{queue.*counter.value});
  }
}

}  // namespace

std::string metrics_text(const MetricsFacts& facts) {
  PrometheusText text;
  add_host(facts, text);
  add_channels(facts, text);
  add_tenants(facts, text);
  add_migration(facts, text);
  add_engines(facts, text);
  return text.text();
}

Metrics::Metrics(Module& module, Tenants& tenants, Engines& engines, const Bandwidth& bandwidth,
                 EventLoop& loop, const Paths& paths, std::string version, const Log& log)
    : module_(module),
      tenants_(tenants),
      engines_(engines),
      bandwidth_(bandwidth),
      loop_(loop),
      paths_(paths),
      version_(std::move(version)),
      log_(log) {}

Metrics::~Metrics() {
  configure({});
}

void Metrics::configure(const MetricsSettings& settings) {
  if (settings == settings_) return;
  // What nobody renews must not be taken for news.
  if (!settings_.textfile.empty() && settings.textfile != settings_.textfile)
    ::unlink(settings_.textfile.c_str());
  settings_ = settings;
  told_.reset();
  timer_.stop();
  if (settings_.textfile.empty()) return;
  timer_ = loop_.every(settings_.period, [this] { write_file(); });
  write_file();
}

MetricsFacts Metrics::facts(std::vector<EngineInfo> engines) {
  MetricsFacts facts{.version = version_,
                     .module_loaded = module_.info().ok(),
                     .counters = bandwidth_.reading(),
                     .engines = std::move(engines)};
  if (auto nodes = read_numa_nodes(paths_); nodes.ok()) facts.nodes = *std::move(nodes);
  if (auto tenants = tenants_.list(); tenants.ok()) facts.tenants = *std::move(tenants);
  if (auto migration = read_migration_statistics(paths_.migration_statistics); migration.ok())
    facts.migration = *std::move(migration);
  return facts;
}

void Metrics::collect(const std::function<void(const std::string& text)>& reply) {
  auto answer = [this, alive = std::weak_ptr(alive_),
                 reply](const Result<std::vector<EngineInfo>>& engines) {
    if (alive.expired()) return;
    reply(metrics_text(facts(engines.ok() ? *engines : std::vector<EngineInfo>())));
  };
  if (!engines_.list(answer).ok()) reply(metrics_text(facts({})));
}

void Metrics::write_file() {
  collect([this, path = settings_.textfile](const std::string& text) {
    if (path != settings_.textfile) return;
    auto written = replace_file(path, text, kReadableByAll);
    std::optional<Error> error;
    if (!written.ok()) error = std::move(written).error();
    if (error && error != told_) log_.error("metrics: {}", error->describe());
    if (!error && told_) log_.info("metrics: {} is written again", path);
    told_ = std::move(error);
  });
}

}  // namespace memsluice
