// SPDX-License-Identifier: GPL-2.0
#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "daemon/base/event_loop.h"
#include "daemon/base/unix_socket.h"
#include "tools/memsluice-dsa/arguments.h"
#include "tools/memsluice-dsa/bus_server.h"
#include "tools/memsluice-dsa/control.h"
#include "tools/memsluice-dsa/timing.h"

namespace memsluice::dsa {
namespace {

constexpr int kExitFailed = 1;
// Whoever may connect controls a process that maps the memory of a virtual machine.
constexpr mode_t kSocketMode = 0600;

Result<void> serve(const ServeOptions& options) {
  const Log log(options.verbose ? LogLevel::kDebug : LogLevel::kInfo);
  SystemClock clock;
  auto loop = EventLoop::create(clock);
  if (!loop.ok()) return std::move(loop).error();
  auto caught = (*loop)->catch_signals({SIGTERM, SIGINT}, [&](int) { (*loop)->stop(); });
  if (!caught.ok()) return caught;

  GuestMemory memory;
  Device device(options.shape, memory, log);
  VfioUser protocol(options.shape, device, memory, log);
  BusServer bus(**loop, protocol, log);
  Control control(device, bus);
  ControlServer control_server(**loop, control, log);

  auto listening = listen_at(options.socket, kSocketMode);
  if (!listening.ok()) return std::move(listening).error();
  if (auto started = bus.start(*std::move(listening)); !started.ok()) return started;
  if (!options.control.empty()) {
    auto control_listening = listen_at(options.control, kSocketMode);
    if (!control_listening.ok()) return std::move(control_listening).error();
    auto started = control_server.start(*std::move(control_listening));
    if (!started.ok()) return started;
  }
  log.info("a device with {} engines and {} work queues waits at {}", options.shape.engines,
           options.shape.queues, options.socket);
  return (*loop)->run();
}

Result<std::string> read_line(int socket) {
  std::string line;
  std::array<char, 65536> buffer;
  while (!line.ends_with('\n')) {
    const ssize_t got = ::read(socket, buffer.data(), buffer.size());
    if (got < 0) return errno_error(errno, "read", "the control socket");
    if (got == 0) return Error{.object = "the control socket", .message = "the device has hung up"};
    line.append(buffer.data(), static_cast<size_t>(got));
  }
  return line;
}

Result<void> ask(const AskOptions& options) {
  auto parameters = parse_json(options.parameters, 8);
  if (!parameters.ok()) return std::move(parameters).error().with_context("the parameters");
  auto socket = connect_to(options.control);
  if (!socket.ok())
    return std::move(socket).error().with_hint("does memsluice-dsa serve with this --control?");
  const std::string request = to_line({{"method", options.method}, {"params", *parameters}});
  if (auto sent = send_all(socket->get(), request); !sent.ok()) return sent;
  auto line = read_line(socket->get());
  if (!line.ok()) return std::move(line).error();
  auto reply = parse_json(*line, 16);
  if (!reply.ok()) return std::move(reply).error();
  if (reply->contains("error"))
    return error_from_json((*reply)["error"])
        .value_or(Error{.object = "the device", .message = "answers with an error: " + *line});
  fmt::print("{}\n", (*reply)["result"].dump(2));
  return {};
}

Result<Json> read_trace(const std::string& path) {
  std::ifstream file(path);
  if (!file) return errno_error(errno, "open", path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  auto trace = parse_json(text, 4);
  if (!trace.ok()) return std::move(trace).error().with_context(path);
  return trace;
}

Result<void> time(const TimeOptions& options) {
  std::vector<Json> traces;
  for (const std::string& path : options.traces) {
    auto trace = read_trace(path);
    if (!trace.ok()) return std::move(trace).error();
    traces.push_back(*std::move(trace));
  }
  const auto submissions = submissions_of(traces);
  if (!submissions.ok()) return submissions.error();
  const ModelledTime time = model_time(*submissions, options.constants);
  const Json printed = {{"modelled_ns", time.ns},
                        {"peak_ns", time.peak_ns},
                        {"bytes", time.bytes},
                        {"submissions", time.submissions},
                        {"copies", time.copies}};
  fmt::print("{}\n", printed.dump(2));
  return {};
}

Result<void> run(const Arguments& arguments) {
  if (const auto* options = std::get_if<AskOptions>(&arguments)) return ask(*options);
  if (const auto* options = std::get_if<TimeOptions>(&arguments)) return time(*options);
  return serve(std::get<ServeOptions>(arguments));
}

int main(int argc, char** argv) {
  const Arguments arguments = parse_arguments({argv + 1, argv + argc});
  if (const auto* printed = std::get_if<Printed>(&arguments)) {
    fmt::print(printed->status ? stderr : stdout, "{}", printed->text);
    return printed->status;
  }
  const auto done = run(arguments);
  if (done.ok()) return 0;
  fmt::print(stderr, "memsluice-dsa: {}\n", done.error().describe());
  return kExitFailed;
}

}  // namespace
}  // namespace memsluice::dsa

int main(int argc, char** argv) {
  return memsluice::dsa::main(argc, argv);
}
