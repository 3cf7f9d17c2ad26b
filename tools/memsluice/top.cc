// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/top.h"

#include <algorithm>
#include <csignal>
#include <ostream>
#include <thread>

#include "tools/memsluice/screen.h"
#include "tools/memsluice/top_frame.h"
#include "tools/memsluice/top_sample.h"

namespace memsluice {
namespace {

// Takes samples, and finds the daemon again when it has been restarted.
class Sampler {
 public:
  explicit Sampler(const ClientOptions& options) : options_(options) {}

  Result<Json> next() {
    if (!client_) {
      auto client = Client::connect(options_);
      if (!client.ok()) return client.error();
      client_.emplace(std::move(*client));
    }
    auto status = client_->call("status");
    if (!status.ok()) {
      client_.reset();
      return status.error();
    }
    const Milliseconds time = SystemClock().monotonic();
    const double interval_s = static_cast<double>((time - earlier_time_).count()) / 1000;
    auto counters = client_->call("counters", {{"samples", samples_in(interval_s)}});
    // An older daemon counts nothing.
    const Json counted = counters.ok() ? member(*counters, "counters") : Json(nullptr);
    Json sample = top_sample(*status, earlier_, earlier_.is_null() ? 0 : interval_s, counted);
    earlier_ = std::move(*status);
    earlier_time_ = time;
    return sample;
  }

 private:
  // The daemon's samples of the interval, of which it takes one a second.
  static uint64_t samples_in(double interval_s) {
    return static_cast<uint64_t>(std::clamp(interval_s + 0.5, 1.0, 300.0));
  }

  const ClientOptions& options_;
  std::optional<Client> client_;
  Json earlier_;
  Milliseconds earlier_time_{0};
};

FrameOptions frame_options(const Environment& environment) {
  return {.columns = environment.columns,
          .rows = 0,
          .unicode = environment.unicode,
          .page_bytes = environment.page_bytes,
          .notice = {}};
}

void print_sample(const Json& sample, bool json, const Environment& environment) {
  if (json) {
    environment.out << to_line(sample) << std::flush;
    return;
  }
  for (const std::string& line : top_frame(sample, frame_options(environment))) {
    environment.out << line << '\n';
  }
  environment.out << std::flush;
}

// The first sample has no rates: it is only there to compare with.
Result<int> print_samples(const TopCommand& command, bool json, const Environment& environment) {
  Sampler sampler(environment.client);
  auto sample = sampler.next();
  while (sample.ok()) {
    std::this_thread::sleep_for(command.interval);
    sample = sampler.next();
    if (!sample.ok()) break;
    print_sample(*sample, json, environment);
    if (command.once || !environment.out.good()) return 0;
    if (!json) environment.out << '\n';
  }
  return sample.error();
}

Result<int> show_live(const TopCommand& command, const Environment& environment) {
  Sampler sampler(environment.client);
  // Whether there is a daemon at all is said before the terminal is taken over.
  auto sample = sampler.next();
  if (!sample.ok()) return sample.error();
  auto screen = Screen::open();
  if (!screen.ok()) return screen.error();

  Json last = std::move(*sample);
  FrameOptions options = frame_options(environment);
  auto event = Screen::Event::kRedraw;
  while (event != Screen::Event::kQuit) {
    const TerminalSize size = (*screen)->size();
    options.columns = size.columns;
    options.rows = size.rows;
    if (!(*screen)->draw(top_frame(last, options))) return 128 + SIGHUP;
    event = (*screen)->wait(command.interval);
    if (event != Screen::Event::kTimeout) continue;
    sample = sampler.next();
    options.notice = sample.ok() ? "" : sample.error().message;
    if (sample.ok()) last = std::move(*sample);
  }
  const int signal = (*screen)->stop_signal();
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace

Result<int> run_top(const TopCommand& command, bool json, const Environment& environment) {
  if (command.once || json || !environment.out_is_terminal) {
    return print_samples(command, json, environment);
  }
  return show_live(command, environment);
}

}  // namespace memsluice
