// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/arguments.h"

#include <CLI/CLI.hpp>
#include <bit>
#include <cstdint>
#include <sstream>

namespace memsluice::dsa {
namespace {

constexpr int kExitBadRequest = 2;
constexpr const char* kFooter = R"(
An Intel Data Streaming Accelerator without the hardware: Linux' own driver, idxd, finds it in a
virtual machine of QEMU 10.1 or later, and accel-config sets it up. The guest's memory has to be
shared (memory-backend-memfd,share=on):

  memsluice-dsa serve /run/dsa0 --control /run/dsa0-control &
  qemu-system-x86_64 ... \
    -device '{"driver":"vfio-user-pci","socket":{"type":"unix","path":"/run/dsa0"}}'
  memsluice-dsa ask /run/dsa0-control statistics
  memsluice-dsa ask /run/dsa0-control inject '{"do": "status", "status": 33, "skip": 10}'
  memsluice-dsa ask /run/dsa0-control read-trace > trace.json; memsluice-dsa time trace.json

Exit status: 0 well, 1 failed, 2 bad arguments.
See memsluice-dsa(1).)";

std::string power_of_two(const std::string& text) {
  uint64_t value = 0;
  if (!CLI::detail::lexical_cast(text, value) || !std::has_single_bit(value))
    return text + " is no power of two";
  return {};
}

unsigned shift_of(uint64_t power) {
  return static_cast<unsigned>(std::bit_width(power)) - 1;
}

std::string check(const Shape& shape) {
  if (shape.queues > shape.queue_entries)
    return "--queues: there are fewer --queue-entries than that";
  return {};
}

struct Parsed {
  ServeOptions serve;
  AskOptions ask;
  TimeOptions time;
  uint64_t max_batch = uint64_t{1} << Shape().max_batch_shift;
  uint64_t max_transfer_bytes = uint64_t{1} << Shape().max_transfer_shift;
};

void add_serve(CLI::App& command, Parsed& parsed) {
  Shape& shape = parsed.serve.shape;
  command.add_option("socket", parsed.serve.socket, "where a virtual machine plugs the device in")
      ->required();
  command.add_option("--control", parsed.serve.control, "where to answer memsluice-dsa ask");
  command.add_option("--engines", shape.engines, "each is a thread")
      ->check(CLI::Range(1U, Shape::kEnginesMax))
      ->capture_default_str();
  command.add_option("--groups", shape.groups, "of engines and work queues")
      ->check(CLI::Range(1U, Shape::kGroupsMax))
      ->capture_default_str();
  command.add_option("--queues", shape.queues, "work queues")
      ->check(CLI::Range(1U, Shape::kQueuesMax))
      ->capture_default_str();
  command.add_option("--queue-entries", shape.queue_entries, "of all work queues together")
      ->check(CLI::Range(1U, 65535U))
      ->capture_default_str();
  command.add_option("--max-batch", parsed.max_batch, "descriptors of a batch, a power of two")
      ->check(CLI::Range(uint64_t{2}, uint64_t{1} << 15))
      ->check(power_of_two)
      ->capture_default_str();
  command
      .add_option("--max-transfer-bytes", parsed.max_transfer_bytes,
                  "bytes of a descriptor, a power of two")
      ->check(CLI::Range(uint64_t{4096}, uint64_t{1} << 31))
      ->check(power_of_two)
      ->capture_default_str();
  command.add_flag("-v,--verbose", parsed.serve.verbose, "say what the driver does");
}

void add_ask(CLI::App& command, Parsed& parsed) {
  command.add_option("control", parsed.ask.control, "the control socket of a device")->required();
  command
      .add_option("method", parsed.ask.method,
                  "status, statistics, inject, injections, forget, hold, release, halt, trace, "
                  "read-trace, pull-out")
      ->required();
  command.add_option("parameters", parsed.ask.parameters, "a JSON object")->capture_default_str();
}

void add_time(CLI::App& command, Parsed& parsed) {
  TimingConstants& constants = parsed.time.constants;
  command
      .add_option("traces", parsed.time.traces, "what read-trace printed, a file for each device")
      ->required();
  const auto add = [&](const char* name, double& value, const char* help) {
    command.add_option(name, value, help)->check(CLI::Range(0.0, 1e9))->capture_default_str();
  };
  const auto add_rate = [&](const char* name, double& value, const char* help) {
    command.add_option(name, value, help)->check(CLI::Range(1e-3, 1e9))->capture_default_str();
  };
  add_rate("--device-gb-per-s", constants.device_bytes_per_ns, "what a device can copy");
  add_rate("--all-gb-per-s", constants.all_bytes_per_ns, "what all of them can, together");
  add("--descriptor-ns", constants.descriptor_ns, "of an engine, beside the data");
  add("--latency-ns", constants.latency_ns, "until a copy begins, and until its end is seen");
  add("--submit-ns", constants.submit_ns, "of the core, for each copy");
  command.add_option("--engines", constants.engines, "of a device")
      ->check(CLI::Range(1U, Shape::kEnginesMax))
      ->capture_default_str();
}

}  // namespace

Arguments parse_arguments(const std::vector<std::string>& arguments) {
  Parsed parsed;
  CLI::App app("memsluice-dsa: an emulated DSA", "memsluice-dsa");
  app.require_subcommand(1);
  app.set_version_flag("--version", "memsluice-dsa " MEMSLUICE_VERSION);
  app.footer(kFooter);
  CLI::App& serve = *app.add_subcommand("serve", "be a device, until told to end");
  add_serve(serve, parsed);
  add_ask(*app.add_subcommand("ask", "ask a device, or let something go wrong in it"), parsed);
  CLI::App& time = *app.add_subcommand("time", "model what hardware would have taken for traces");
  add_time(time, parsed);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    parsed.serve.shape.max_batch_shift = shift_of(parsed.max_batch);
    parsed.serve.shape.max_transfer_shift = shift_of(parsed.max_transfer_bytes);
    if (std::string wrong = check(parsed.serve.shape); !wrong.empty())
      throw CLI::ValidationError(wrong);
  } catch (const CLI::ParseError& error) {
    std::ostringstream text;
    const int status = app.exit(error, text, text);
    return Printed{.text = text.str(), .status = status == 0 ? 0 : kExitBadRequest};
  }
  if (serve.parsed()) return parsed.serve;
  if (time.parsed()) return parsed.time;
  return parsed.ask;
}

}  // namespace memsluice::dsa
