// SPDX-License-Identifier: GPL-2.0
#include "daemon/daemon.h"

#include <fmt/format.h>
#include <grp.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "daemon/base/unix_socket.h"

namespace memsluice {
namespace {

constexpr Milliseconds kReplayLook{5000};

std::optional<gid_t> group_id(const std::string& name) {
  group entry = {};
  group* found = nullptr;
  // A group with many members needs much room.
  std::string buffer(1 << 16, '\0');
  ::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? std::nullopt : std::optional(found->gr_gid);
}

}  // namespace

Error problems_error(const LoadedConfig& loaded, const Log& log) {
  for (const ConfigProblem& problem : loaded.problems) log.error("{}", problem.describe());
  const ConfigProblem& first = loaded.problems.front();
  Error error{.code = ErrorCode::kBadRequest,
              .object = first.position.line == 0
                            ? first.position.file
                            : fmt::format("{}:{}", first.position.file, first.position.line),
              .message = first.key.empty() ? first.message : first.key + ": " + first.message,
              .hint = first.hint};
  if (loaded.problems.size() > 1)
    error.hint = fmt::format("{} problems in all: memsluiced --check-config tells them",
                             loaded.problems.size());
  return error;
}

Daemon::Daemon(DaemonOptions options, Config config, const Paths& paths, Module& module,
               Engines& engines, Census& census, Channels& channels, Bandwidth& bandwidth,
               LostTimes& lost_times, const Clock& clock, EventLoop& loop, Log& log,
               ServiceManager service_manager)
    : options_(std::move(options)),
      paths_(paths),
      loop_(loop),
      clock_(clock),
      log_(log),
      service_manager_(std::move(service_manager)),
      facts_{.version = MEMSLUICE_VERSION,
             .config_path = options_.config_path,
             .started = clock.monotonic(),
             .config_loaded_unix_s = clock.unix_s()},
      bandwidth_(bandwidth),
      lost_times_(lost_times),
      tenants_(module, paths, log, std::move(config), &lost_times),
      migrations_(module, paths, loop, log),
      upkeep_(tenants_, migrations_, clock, log),
      cpuset_keeper_(paths, log),
      dsa_replay_(engines, clock, log),
      metrics_(module, tenants_, engines, bandwidth, loop, paths, MEMSLUICE_VERSION, log),
      methods_(module, tenants_, migrations_, upkeep_, engines, census, channels, bandwidth,
               metrics_, loop, clock, paths, facts_, [this] { return reload(); }),
      server_(loop, methods_, log, [this](const Peer& peer) { return may_change(peer); }) {}

Daemon::~Daemon() {
  if (!socket_.empty()) ::unlink(socket_.c_str());
}

bool Daemon::may_change(const Peer& peer) const {
  if (peer.uid == 0) return true;
  return group_ && std::find(peer.groups.begin(), peer.groups.end(), *group_) != peer.groups.end();
}

void Daemon::take_settings(const Config& config) {
  log_.set_level(config.log_level);
  group_ = group_id(config.group);
  if (!group_) log_.warning("there is no group {}: only root may change anything", config.group);
  bandwidth_.configure(config.counters);
  lost_times_.configure(config.lost_time);
  metrics_.configure(config.metrics);
  look_timer_ = loop_.every(config.rescan, [this] { look(); });
  replay_timer_ = {};
  if (config.dsa_replay)
    replay_timer_ =
        loop_.every(kReplayLook, [this] { dsa_replay_.look(tenants_.config().dsa_configuration); });
  upkeep_timer_ = {};
  if (config.upkeep > Milliseconds(0))
    upkeep_timer_ = loop_.every(config.upkeep, [this] {
      upkeep_.look(tenants_.config().upkeep, tenants_.config().upkeep_mib_per_s);
    });
}

void Daemon::look() {
  tenants_.reconcile();
  const auto& exclusive = tenants_.config().exclusive;
  if (cpuset_keeper_.is_needed(exclusive))
    if (auto tenants = tenants_.list(); tenants.ok()) cpuset_keeper_.keep(*tenants, exclusive);
  tell_status();
}

void Daemon::tell_status() {
  std::string status = tenants_.module_is_loaded()
                           ? fmt::format("STATUS={} tenants", tenants_.count())
                           : std::string("STATUS=Waiting for the module");
  if (status == told_status_) return;
  service_manager_.notify(status);
  told_status_ = std::move(status);
}

Result<bool> Daemon::reload() {
  LoadedConfig loaded = load_config(options_.config_path);
  check_knob_names(Knobs(paths_.module_knobs), loaded);
  Result<bool> reloaded = loaded.problems.empty() ? tenants_.reload(loaded.config)
                                                  : Result<bool>(problems_error(loaded, log_));
  if (!reloaded.ok()) {
    log_.error("not reloaded, all stays as it was: {}", reloaded.error().describe());
    return reloaded;
  }
  facts_.config_loaded_unix_s = clock_.unix_s();
  take_settings(loaded.config);
  if (options_.socket.empty() && loaded.config.socket != socket_)
    log_.warning("api.socket is {} from the next start on", loaded.config.socket);
  log_.info("configuration reloaded{}", *reloaded ? "" : ", it says nothing new");
  return reloaded;
}

Result<void> Daemon::run() {
  auto caught = loop_.catch_signals({SIGTERM, SIGINT, SIGHUP}, [this](int signal) {
    if (signal != SIGHUP) return loop_.stop();
    service_manager_.notify("RELOADING=1");
    // What is wrong with it is in the log.
    [[maybe_unused]] auto reloaded = reload();
    service_manager_.notify("READY=1");
  });
  if (!caught.ok()) return caught;

  take_settings(tenants_.config());
  const std::string path = options_.socket.empty() ? tenants_.config().socket : options_.socket;
  // Everybody may ask; who may change what is decided request by request.
  auto listening = listen_at(path, 0666);
  if (!listening.ok()) {
    Error error = std::move(listening).error().with_context("starting the API");
    if (error.code == ErrorCode::kConflict && error.hint.empty())
      error.hint = "another daemon may run: systemctl status memsluiced";
    return error;
  }
  socket_ = path;
  if (auto started = server_.start(*std::move(listening)); !started.ok()) return started;

  look();
  log_.info("memsluiced {} listens at {}", facts_.version, socket_);
  service_manager_.notify("READY=1");
  if (auto period = service_manager_.watchdog_period())
    watchdog_timer_ = loop_.every(*period, [this] { service_manager_.notify("WATCHDOG=1"); });
  auto done = loop_.run();
  service_manager_.notify("STOPPING=1");
  return done;
}

}  // namespace memsluice
