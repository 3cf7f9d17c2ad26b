// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/run.h"

#include <algorithm>
#include <ostream>

#include "tools/memsluice/arguments.h"
#include "tools/memsluice/channel.h"
#include "tools/memsluice/doctor.h"
#include "tools/memsluice/engine.h"
#include "tools/memsluice/exit_status.h"
#include "tools/memsluice/format.h"
#include "tools/memsluice/migrate.h"
#include "tools/memsluice/provision.h"
#include "tools/memsluice/render.h"
#include "tools/memsluice/top.h"

namespace memsluice {
namespace {

struct Runner {
  const Invocation& invocation;
  const Environment& environment;

  Result<int> operator()(const CallCommand& command) const {
    auto client = Client::connect(environment.client.with_patience(command.patience));
    if (!client.ok()) return client.error();
    auto result = client->call(command.method, command.params);
    if (!result.ok()) return result.error();
    environment.out << (invocation.json ? to_line(*result)
                                        : render_result(command.method, command.params, *result,
                                                        environment.page_bytes));
    return 0;
  }

  Result<int> operator()(const MigrateCommand& command) const {
    return run_migrate(command, invocation.json, environment);
  }

  Result<int> operator()(const EngineQueuesCommand& command) const {
    return run_engine_queues(command, invocation.json, environment);
  }

  Result<int> operator()(const EngineResetCommand& command) const {
    return run_engine_reset(command, invocation.json, environment);
  }

  Result<int> operator()(const ChannelRemoveCommand& command) const {
    return run_channel_remove(command, invocation.json, environment);
  }

  Result<int> operator()(const TopCommand& command) const {
    return run_top(command, invocation.json, environment);
  }

  Result<int> operator()(const DoctorCommand& command) const {
    return run_doctor(command, invocation.json, environment);
  }

  Result<int> operator()(const ProvisionCommand& command) const {
    return run_provision(command, invocation.json, environment);
  }

  Result<int> operator()(const VersionCommand&) const {
    return run_version(invocation.json, environment);
  }

  Result<int> operator()(const HelpCommand& command) const {
    environment.out << command.text;
    return 0;
  }
};

int fail(const Error& error, bool json, const Environment& environment) {
  if (json) environment.out << to_line({{"error", error_to_json(error)}});
  print_error(error, environment.err);
  return exit_status(error.code);
}

}  // namespace

void print_error(const Error& error, std::ostream& err) {
  err << "memsluice: ";
  if (!error.object.empty()) err << printable(error.object) << ": ";
  err << printable(error.message) << '\n';
  if (!error.hint.empty()) err << "  " << printable(error.hint) << '\n';
}

int run(const std::vector<std::string>& arguments, const Environment& environment) {
  auto invocation = parse_arguments(arguments);
  if (!invocation.ok()) {
    const bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
    return fail(invocation.error(), json, environment);
  }
  Environment chosen = environment;
  if (!invocation->socket.empty()) chosen.client.socket = invocation->socket;
  auto status = std::visit(Runner{*invocation, chosen}, invocation->command);
  chosen.out.flush();
  if (!status.ok()) return fail(status.error(), invocation->json, chosen);
  if (chosen.out.good()) return *status;
  print_error({.object = "standard output", .message = "cannot be written"}, chosen.err);
  return exit_status(ErrorCode::kFailed);
}

}  // namespace memsluice
