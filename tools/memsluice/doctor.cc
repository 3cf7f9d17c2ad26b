// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/doctor.h"

#include <fmt/format.h>

#include <ostream>

#include "daemon/host/kernel_module.h"
#include "daemon/host/paths.h"
#include "tools/memsluice/doctor/findings.h"
#include "tools/memsluice/doctor/gather.h"
#include "tools/memsluice/fields.h"
#include "tools/memsluice/format.h"

namespace memsluice {
namespace {

doctor::DaemonFacts ask_daemon(ClientOptions options, const doctor::HostFiles& host) {
  doctor::DaemonFacts daemon;
  options.socket = host.host_path(options.socket);
  daemon.socket = options.socket;
  daemon.socket_node = doctor::stat_node(options.socket);
  auto client = Client::connect(options);
  if (client.ok()) {
    daemon.version = text(client->hello(), "version", "of unknown version");
    daemon.may_change = flag(client->hello(), "may_change").value_or(false);
  } else {
    daemon.problem = client.error().message;
    daemon.advice = client.error().hint;
  }
  return daemon;
}

Json version_object(const doctor::DaemonFacts& daemon, const Result<ModuleInfo>& module) {
  Json result = {{"version", MEMSLUICE_VERSION}, {"daemon", nullptr}, {"module", nullptr}};
  if (!daemon.version.empty()) result["daemon"] = {{"version", daemon.version}};
  if (module.ok()) {
    result["module"] = {{"version", module->release}, {"abi_version", module->abi_version}};
  }
  return result;
}

std::string version_text(const doctor::DaemonFacts& daemon, const Result<ModuleInfo>& module) {
  const std::string module_text =
      module.ok() ? fmt::format("{} (ABI {})", module->release, module->abi_version)
                  : module.error().message;
  return fmt::format("command  {}\ndaemon   {}\nmodule   {}\n", MEMSLUICE_VERSION,
                     printable(daemon.version.empty() ? daemon.problem : daemon.version),
                     printable(module_text));
}

}  // namespace

Result<int> run_doctor(const DoctorCommand& command, bool json, const Environment& environment) {
  const doctor::HostFiles host(command.root);
  doctor::Facts facts = doctor::gather(host);
  facts.daemon = ask_daemon(environment.client, host);
  const auto findings = doctor::judge(facts, MEMSLUICE_VERSION);
  environment.out << (json ? to_line(doctor::to_json(findings)) : doctor::to_text(findings));
  return doctor::any_error(findings) ? 1 : 0;
}

Result<int> run_version(bool json, const Environment& environment) {
  const doctor::HostFiles host("/");
  const auto daemon = ask_daemon(environment.client, host);
  const auto module = open_kernel_module(Paths().device)->info();
  environment.out << (json ? to_line(version_object(daemon, module))
                           : version_text(daemon, module));
  return 0;
}

}  // namespace memsluice
