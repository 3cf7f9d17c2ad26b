// SPDX-License-Identifier: GPL-2.0
// hot-set: anonymous memory, most accesses to a hot part that moves. Prints one JSON object per
// interval and one at the end; with --verify every access checks or renews the line it meets.
#include <signal.h>
#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "daemon/base/result.h"
#include "daemon/base/units.h"
#include "tests/vm/guest/hot-set/hot_set.h"

namespace memsluice::guest {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr uint64_t kHugePageBytes = 2 << 20;

std::atomic<bool> interrupted = false;

struct Options {
  uint64_t bytes = 0;
  uint64_t hot_bytes = 0;
  uint64_t hot_percent = 90;
  uint64_t write_percent = 50;
  double shift_every_seconds = 0;
  double seconds = 0;
  double interval_seconds = 1;
  unsigned threads = 1;
  uint64_t seed = 1;
  std::string huge = "never";
  bool verify = false;
};

// The buffer, and for --verify how often each line has been written (modulo 256).
struct Memory {
  Line* lines;
  std::vector<uint8_t> versions;
};

Result<Line*> map_lines(const Options& options) {
  const uint64_t bytes = options.bytes + kHugePageBytes;
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return errno_error(errno, "mmap", format_bytes(bytes));
  const auto address = reinterpret_cast<uintptr_t>(base);
  void* aligned = reinterpret_cast<void*>((address + kHugePageBytes - 1) & -kHugePageBytes);
  const int advice = options.huge == "always" ? MADV_HUGEPAGE : MADV_NOHUGEPAGE;
  if (madvise(aligned, options.bytes, advice) != 0) {
    return errno_error(errno, "madvise", "transparent huge pages");
  }
  return static_cast<Line*>(aligned);
}

// One thread works on the lines whose number is `first` modulo `step`, so that it alone knows
// what they hold.
class Worker {
 public:
  Worker(const Options& options, Memory& memory, unsigned first)
      : options_(options),
        memory_(memory),
        first_(first),
        step_(options.threads),
        hot_set_{options.bytes / kLineBytes / step_, options.hot_bytes / kLineBytes / step_,
                 options.hot_percent},
        random_(options.seed * 1000 + first) {}

  void fill() {
    for (uint64_t i = 0; i < hot_set_.lines; ++i) {
      memory_.lines[line_index(i)] = Line::of(line_index(i), 0);
    }
  }

  void run(const std::atomic<uint64_t>& shifts, const std::atomic<bool>& stop) {
    while (!stop.load(std::memory_order_relaxed)) {
      const uint64_t now = shifts.load(std::memory_order_relaxed);
      for (int i = 0; i < kBatch; ++i) access(line_index(hot_set_.pick(random_, now)));
      accesses_.store(accesses_.load(std::memory_order_relaxed) + kBatch,
                      std::memory_order_relaxed);
    }
  }

  void verify_all() {
    for (uint64_t i = 0; i < hot_set_.lines; ++i) check(line_index(i));
  }

  uint64_t accesses() const { return accesses_.load(std::memory_order_relaxed); }
  uint64_t errors() const { return errors_.load(std::memory_order_relaxed); }

 private:
  static constexpr int kBatch = 256;
  static constexpr uint64_t kErrorsNamed = 10;

  uint64_t line_index(uint64_t i) const { return i * step_ + first_; }

  void access(uint64_t index) {
    const bool write = random_.below(100) < options_.write_percent;
    volatile uint64_t& word = memory_.lines[index].words[0];
    if (!options_.verify) {
      if (write) {
        word = random_.next();
      } else {
        [[maybe_unused]] const uint64_t loaded = word;
      }
      return;
    }
    if (!write) return check(index);
    // Verified before it is overwritten too, or a lost page would be healed unseen.
    check(index);
    memory_.lines[index] = Line::of(index, ++memory_.versions[index]);
  }

  void check(uint64_t index) {
    if (memory_.lines[index] == Line::of(index, memory_.versions[index])) return;
    const uint64_t errors = errors_.load(std::memory_order_relaxed);
    errors_.store(errors + 1, std::memory_order_relaxed);
    if (errors < kErrorsNamed) {
      fmt::print(stderr, "hot-set: line {} (at {}) does not hold version {}\n", index,
                 static_cast<const void*>(&memory_.lines[index]), memory_.versions[index]);
    }
  }

  const Options& options_;
  Memory& memory_;
  const uint64_t first_;
  const uint64_t step_;
  const HotSet hot_set_;
  Random random_;
  std::atomic<uint64_t> accesses_ = 0;
  std::atomic<uint64_t> errors_ = 0;
};

class Workload {
 public:
  Workload(const Options& options, Memory memory) : options_(options), memory_(std::move(memory)) {
    for (unsigned i = 0; i < options.threads; ++i) {
      workers_.push_back(std::make_unique<Worker>(options_, memory_, i));
    }
  }

  // Returns the number of lines that did not hold what was written.
  uint64_t run() {
    in_parallel([](Worker& worker) { worker.fill(); });
    print({{"event", "filled"}, {"bytes", options_.bytes}});
    const Clock::time_point start = Clock::now();
    std::thread reporter([this] { report_until_end(); });
    in_parallel([this](Worker& worker) { worker.run(shifts_, stop_); });
    reporter.join();
    print({{"event", "ran"},
           {"accesses", accesses()},
           {"accesses_per_second", static_cast<double>(accesses()) / seconds_since(start)}});
    if (options_.verify) in_parallel([](Worker& worker) { worker.verify_all(); });
    print({{"event", "done"}, {"verified", options_.verify}, {"errors", errors()}});
    return errors();
  }

 private:
  template <typename Function>
  void in_parallel(Function function) {
    std::vector<std::thread> threads;
    for (auto& worker : workers_) {
      threads.emplace_back([&function, &worker] { function(*worker); });
    }
    for (std::thread& thread : threads) thread.join();
  }

  static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  // Shifts and reports are due at multiples of their periods, so that delays do not add up.
  void report_until_end() {
    const Clock::time_point start = Clock::now();
    double last_report = 0;
    uint64_t last_accesses = 0;
    while (!interrupted) {
      const double now = seconds_since(start);
      if (options_.seconds > 0 && now >= options_.seconds) break;
      if (options_.shift_every_seconds > 0) {
        shifts_ = static_cast<uint64_t>(now / options_.shift_every_seconds);
      }
      if (now - last_report >= options_.interval_seconds) {
        const uint64_t total = accesses();
        print({{"event", "interval"},
               {"seconds", now},
               {"accesses_per_second",
                static_cast<double>(total - last_accesses) / (now - last_report)},
               {"shifts", shifts_.load()},
               {"errors", errors()}});
        last_report = now;
        last_accesses = total;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    stop_ = true;
  }

  static void print(const Json& event) {
    fmt::print("{}\n", event.dump());
    std::fflush(stdout);
  }

  uint64_t accesses() const {
    uint64_t sum = 0;
    for (const auto& worker : workers_) sum += worker->accesses();
    return sum;
  }
  uint64_t errors() const {
    uint64_t sum = 0;
    for (const auto& worker : workers_) sum += worker->errors();
    return sum;
  }

  const Options& options_;
  Memory memory_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<uint64_t> shifts_ = 0;
  std::atomic<bool> stop_ = false;
};

Result<uint64_t> run(const Options& options) {
  if (options.hot_bytes / kLineBytes < options.threads || options.hot_bytes > options.bytes) {
    return Error{ErrorCode::kBadRequest,
                 "--hot-bytes",
                 "must be at least a line per thread, and at most --bytes",
                 {},
                 0,
                 {}};
  }
  const auto lines = map_lines(options);
  if (!lines.ok()) return lines.error();
  Memory memory{*lines, {}};
  if (options.verify) memory.versions.resize(options.bytes / kLineBytes);
  return Workload(options, std::move(memory)).run();
}

}  // namespace
}  // namespace memsluice::guest

int main(int argc, char** argv) {
  using namespace memsluice::guest;
  Options options;
  CLI::App app("Anonymous memory whose hot part moves; ends after --seconds, or at a signal.");
  app.option_defaults()->always_capture_default();
  const auto as_bytes = CLI::AsSizeValue(false);
  app.add_option("--bytes", options.bytes, "the buffer, such as 512M")
      ->required()
      ->transform(as_bytes);
  app.add_option("--hot-bytes", options.hot_bytes)->required()->transform(as_bytes);
  app.add_option("--hot-percent", options.hot_percent, "of the accesses")
      ->check(CLI::Range(0, 100));
  app.add_option("--write-percent", options.write_percent, "of the accesses")
      ->check(CLI::Range(0, 100));
  app.add_option("--shift-every-seconds", options.shift_every_seconds, "0: never")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--seconds", options.seconds, "0: until a signal")->check(CLI::NonNegativeNumber);
  app.add_option("--interval-seconds", options.interval_seconds, "between reports")
      ->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads)->check(CLI::Range(1, 64));
  app.add_option("--seed", options.seed);
  app.add_option("--huge", options.huge, "transparent huge pages")
      ->check(CLI::IsMember({"never", "always"}));
  app.add_flag("--verify", options.verify, "check what every line holds");
  CLI11_PARSE(app, argc, argv);

  for (const int number : {SIGINT, SIGTERM}) {
    signal(number, [](int) { interrupted = true; });
  }
  const auto errors = run(options);
  if (!errors.ok()) {
    fmt::print(stderr, "hot-set: {}\n", errors.error().describe());
    return 1;
  }
  return *errors == 0 ? 0 : 1;
}
