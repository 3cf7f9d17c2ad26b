// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/counters/perf_event.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "daemon/base/fd.h"

namespace memsluice {
namespace {

// No counter advances by so much between two readings: it has gone backwards.
constexpr uint64_t kBackwards = uint64_t{1} << 63;

class KernelCounter : public PerfCounter {
 public:
  explicit KernelCounter(Fd fd) : fd_(std::move(fd)) {}

  Result<CounterValue> read() override {
    // In the order of the kernel's PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING.
    uint64_t values[3] = {};
    const ssize_t bytes = ::read(fd_.get(), values, sizeof values);
    if (bytes < 0) return errno_error(errno, "read", "performance counter");
    // The end of the file: the counter could not be scheduled and is dead.
    if (bytes != sizeof values)
      return Error{.code = ErrorCode::kUnavailable,
                   .object = "performance counter",
                   .message = "the kernel has stopped it"};
    return CounterValue{values[0], values[1], values[2]};
  }

 private:
  Fd fd_;
};

}  // namespace

std::optional<double> counted_between(const CounterValue& earlier, const CounterValue& now) {
  const uint64_t count = now.count - earlier.count;
  const uint64_t enabled_ns = now.enabled_ns - earlier.enabled_ns;
  const uint64_t running_ns = now.running_ns - earlier.running_ns;
  if (count >= kBackwards || enabled_ns >= kBackwards || running_ns >= kBackwards)
    return std::nullopt;
  if (running_ns == 0) return std::nullopt;
  // The two times are read one after the other.
  if (running_ns >= enabled_ns) return static_cast<double>(count);
  return static_cast<double>(count) * static_cast<double>(enabled_ns) /
         static_cast<double>(running_ns);
}

Result<std::unique_ptr<PerfCounter>> open_perf_event(const PerfEvent& event) {
  perf_event_attr attributes = {};
  attributes.size = sizeof attributes;
  attributes.type = event.type;
  attributes.config = event.config[0];
  attributes.config1 = event.config[1];
  attributes.config2 = event.config[2];
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  constexpr int kAllProcesses = -1;
  constexpr int kNoGroup = -1;
  Fd fd(static_cast<int>(::syscall(SYS_perf_event_open, &attributes, kAllProcesses, event.cpu,
                                   kNoGroup, PERF_FLAG_FD_CLOEXEC)));
  if (!fd.valid()) {
    Error error = errno_error(errno, "perf_event_open", fmt::format("CPU {}", event.cpu));
    if (error.os_error == EACCES || error.os_error == EPERM)
      error.hint = "give the daemon CAP_PERFMON, and let its seccomp filter allow perf_event_open";
    return error;
  }
  return std::unique_ptr<PerfCounter>(std::make_unique<KernelCounter>(std::move(fd)));
}

}  // namespace memsluice
