// SPDX-License-Identifier: GPL-2.0
// redis-load: a load on Redis whose every value is verified.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/vm/guest/redis-load/load.h"
#include "tests/vm/guest/redis-load/value.h"

namespace memsluice::guest {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  Server server;
  bool json = false;
  DataSet data{100'000, 1024};
  std::string skew = "zipf:0.99";
  RunOptions run;
};

Json to_json(const Errors& errors) {
  return {{"missing", errors.missing}, {"wrong", errors.wrong}, {"refused", errors.refused}};
}

void print_errors(const Errors& errors) {
  fmt::print("errors: {} missing, {} wrong, {} refused\n", errors.missing, errors.wrong,
             errors.refused);
}

double latency_us(const RunReport& report, double percent) {
  return static_cast<double>(report.latency.percentile(percent)) / 1000;
}

Result<uint64_t> do_fill(const Options& options) {
  if (auto filled = fill(options.server, options.data); !filled.ok()) return filled.error();
  if (options.json) {
    fmt::print("{}\n",
               Json{{"keys", options.data.keys}, {"value_bytes", options.data.value_bytes}}.dump());
  } else {
    fmt::print("{} keys of {} bytes\n", options.data.keys, options.data.value_bytes);
  }
  return 0;
}

Result<uint64_t> do_run(const Options& options) {
  RunOptions run_options = options.run;
  const auto skew = Skew::parse(options.skew);
  if (!skew.ok()) return skew.error().with_context("--skew");
  run_options.skew = *skew;
  const auto report = run(options.server, run_options);
  if (!report.ok()) return report.error();
  const double rate = static_cast<double>(report->reads + report->writes) / report->seconds;
  if (options.json) {
    const Json json{{"seconds", report->seconds},
                    {"requests_per_second", rate},
                    {"reads", report->reads},
                    {"writes", report->writes},
                    {"latency_us",
                     {{"p50", latency_us(*report, 50)},
                      {"p90", latency_us(*report, 90)},
                      {"p99", latency_us(*report, 99)},
                      {"p99.9", latency_us(*report, 99.9)},
                      {"max", static_cast<double>(report->latency.max()) / 1000}}},
                    {"requests_per_second_by_second", report->requests_per_second},
                    {"errors", to_json(report->errors)}};
    fmt::print("{}\n", json.dump());
  } else {
    fmt::print("{:.0f} requests/s ({} reads, {} writes in {:.1f} s)\n", rate, report->reads,
               report->writes, report->seconds);
    fmt::print("latency: p50 {:.0f} us, p90 {:.0f} us, p99 {:.0f} us, p99.9 {:.0f} us\n",
               latency_us(*report, 50), latency_us(*report, 90), latency_us(*report, 99),
               latency_us(*report, 99.9));
    print_errors(report->errors);
  }
  return report->errors.total();
}

Result<uint64_t> do_verify(const Options& options) {
  const auto report = verify(options.server);
  if (!report.ok()) return report.error();
  if (options.json) {
    fmt::print("{}\n", Json{{"keys", report->keys},
                            {"versions_known", report->versions_known},
                            {"errors", to_json(report->errors)}}
                           .dump());
  } else {
    fmt::print("{} keys read{}\n", report->keys,
               report->versions_known ? "" : "; a run was cut short, any version was taken");
    print_errors(report->errors);
  }
  return report->errors.total();
}

}  // namespace
}  // namespace memsluice::guest

int main(int argc, char** argv) {
  using namespace memsluice::guest;
  Options options;
  CLI::App app(
      "A load on Redis whose every value is verified. Exit status: 0, or 1 if anything "
      "was wrong.");
  app.option_defaults()->always_capture_default();
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--unix", options.server.unix_socket, "the server's socket, instead of TCP");
  app.add_option("--host", options.server.host);
  app.add_option("--port", options.server.port)->check(CLI::Range(1, 65535));
  app.add_flag("--json", options.json, "print one JSON object");

  CLI::App* fill_command = app.add_subcommand("fill", "write all keys");
  fill_command->add_option("--keys", options.data.keys)->check(CLI::Range(1u, UINT32_MAX));
  fill_command->add_option("--value-bytes", options.data.value_bytes)
      ->check(CLI::Range(kMinValueBytes, uint64_t{512} << 20));

  CLI::App* run_command = app.add_subcommand("run", "read and write keys");
  RunOptions& run_options = options.run;
  run_command->add_option("--seconds", run_options.seconds)->check(CLI::PositiveNumber);
  run_command->add_option("--skew", options.skew, "zipf:EXPONENT or hot:FRACTION:SHARE");
  run_command->add_flag("--scatter", run_options.scatter, "popular keys are no neighbours");
  run_command->add_option("--first-shift", run_options.first_shift,
                          "begin as if so many shifts were over");
  run_command
      ->add_option("--shift-every", run_options.shift_every_seconds,
                   "seconds after which other keys become popular; 0: never")
      ->check(CLI::NonNegativeNumber);
  run_command->add_option("--clients", run_options.clients)->check(CLI::Range(1, 1000));
  run_command->add_option("--pipeline", run_options.pipeline, "requests sent at a time")
      ->check(CLI::Range(1, 10000));
  run_command->add_option("--write-percent", run_options.write_percent)->check(CLI::Range(0, 100));
  run_command->add_option("--seed", run_options.seed);

  app.add_subcommand("verify", "read all keys");
  CLI11_PARSE(app, argc, argv);

  const auto errors = fill_command->parsed()  ? do_fill(options)
                      : run_command->parsed() ? do_run(options)
                                              : do_verify(options);
  if (!errors.ok()) {
    fmt::print(stderr, "redis-load: {}\n", errors.error().describe());
    return 1;
  }
  return *errors == 0 ? 0 : 1;
}
