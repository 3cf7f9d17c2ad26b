// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "tools/memsluice-dsa/operations.h"

namespace memsluice::dsa {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kLeastBytes = 1e-6;  // what rounding may leave of a copy

struct Running {
  const Submission* submission = nullptr;
  size_t copy = 0;
  double busy_ns = 0;  // before the data of this copy
  double bytes = 0;
  [[nodiscard]] bool moves_data() const { return busy_ns <= 0; }
};

struct ModelledDevice {
  std::map<unsigned, std::deque<const Submission*>> queues;
  unsigned last_queue = 0;
  std::vector<std::optional<Running>> engines;
};

class Model {
 public:
  Model(const std::vector<Submission>& submissions, const TimingConstants& constants)
      : constants_(constants), submissions_(submissions) {
    for (const Submission& submission : submissions) {
      devices_[submission.device].engines.resize(constants.engines);
      submit_at_ns_.push_back((submit_at_ns_.empty() ? 0 : submit_at_ns_.back()) +
                              constants.submit_ns * static_cast<double>(submission.bytes.size()));
    }
  }

  double run() {
    for (;;) {
      take_submissions();
      start_engines();
      const double step_ns = next_event();
      if (step_ns == kNever) return submissions_.empty() ? 0 : now_ns_ + constants_.latency_ns;
      advance(step_ns);
    }
  }

 private:
  template <typename Function>
  void each_running(Function what) {
    for (auto& [number, device] : devices_)
      for (auto& engine : device.engines)
        if (engine) what(device, engine);
  }

  void take_submissions() {
    for (; next_ < submissions_.size() && submit_at_ns_[next_] <= now_ns_; next_++) {
      const Submission& submission = submissions_[next_];
      devices_[submission.device].queues[submission.queue].push_back(&submission);
    }
  }

  static const Submission* take(ModelledDevice& device) {
    if (device.queues.empty()) return nullptr;
    auto at = device.queues.upper_bound(device.last_queue);
    for (size_t tried = 0; tried < device.queues.size(); tried++, ++at) {
      if (at == device.queues.end()) at = device.queues.begin();
      if (at->second.empty()) continue;
      const Submission* taken = at->second.front();
      at->second.pop_front();
      device.last_queue = at->first;
      return taken;
    }
    return nullptr;
  }

  Running begin(const Submission* submission, size_t copy) const {
    return {.submission = submission,
            .copy = copy,
            .busy_ns = constants_.descriptor_ns + (copy == 0 ? constants_.latency_ns : 0),
            .bytes = static_cast<double>(submission->bytes[copy])};
  }

  void start_engines() {
    for (auto& [number, device] : devices_)
      for (auto& engine : device.engines)
        if (const Submission* submission = engine ? nullptr : take(device))
          engine = begin(submission, 0);
  }

  // Of each engine that moves data now, by device.
  [[nodiscard]] double rate_of(const ModelledDevice& device) const {
    size_t here = 0, all = 0;
    for (const auto& [number, other] : devices_)
      for (const auto& engine : other.engines)
        if (engine && engine->moves_data()) {
          all++;
          here += &other == &device;
        }
    return std::min(constants_.device_bytes_per_ns / static_cast<double>(here),
                    constants_.all_bytes_per_ns / static_cast<double>(all));
  }

  double next_event() {
    double step_ns = kNever;
    if (next_ < submissions_.size()) step_ns = submit_at_ns_[next_] - now_ns_;
    each_running([&](ModelledDevice& device, std::optional<Running>& engine) {
      const double left_ns =
          engine->moves_data() ? engine->bytes / rate_of(device) : engine->busy_ns;
      step_ns = std::min(step_ns, left_ns);
    });
    return step_ns;
  }

  void advance(double step_ns) {
    std::map<const ModelledDevice*, double> rates;
    for (const auto& [number, device] : devices_) rates[&device] = rate_of(device);
    now_ns_ += step_ns;
    each_running([&](ModelledDevice& device, std::optional<Running>& engine) {
      if (!engine->moves_data()) {
        engine->busy_ns -= step_ns;
        if (engine->busy_ns < kLeastBytes) engine->busy_ns = 0;
        return;
      }
      engine->bytes -= rates[&device] * step_ns;
      if (engine->bytes > kLeastBytes) return;
      const size_t next = engine->copy + 1;
      if (next < engine->submission->bytes.size())
        engine = begin(engine->submission, next);
      else
        engine.reset();
    });
  }

  const TimingConstants constants_;
  const std::vector<Submission>& submissions_;
  std::vector<double> submit_at_ns_;
  std::map<unsigned, ModelledDevice> devices_;
  size_t next_ = 0;  // submission
  double now_ns_ = 0;
};

// Where a submission stands: its place in its queue first.
using Place = std::tuple<uint64_t, unsigned, unsigned>;  // sequence, device, queue

Result<void> add_entry(std::map<Place, Submission>& found, unsigned device, const Json& entry) {
  for (const char* member : {"sequence", "queue", "batch_index", "opcode", "size"})
    if (!entry.is_object() || !entry.contains(member) || !entry[member].is_number_integer())
      return Error{.code = ErrorCode::kBadRequest,
                   .object = member,
                   .message = "is missing from an entry, or is no integer"};
  if (entry["opcode"] != unsigned{DSA_OPCODE_MEMMOVE}) return {};
  const auto queue = entry["queue"].get<unsigned>();
  const auto size = entry["size"].get<uint64_t>();
  if (size == 0 || size > UINT32_MAX)
    return Error{.code = ErrorCode::kBadRequest,
                 .object = "size",
                 .message = fmt::format("{} is no size of a copy", size)};
  Submission& submission = found[{entry["sequence"].get<uint64_t>(), device, queue}];
  submission.device = device;
  submission.queue = queue;
  submission.bytes.push_back(size);
  return {};
}

}  // namespace

ModelledTime model_time(const std::vector<Submission>& submissions,
                        const TimingConstants& constants) {
  ModelledTime time;
  std::set<unsigned> devices;
  for (const Submission& submission : submissions) {
    devices.insert(submission.device);
    time.submissions++;
    time.copies += submission.bytes.size();
    for (const uint64_t bytes : submission.bytes) time.bytes += bytes;
  }
  time.ns = Model(submissions, constants).run();
  const double peak = std::min(static_cast<double>(devices.size()) * constants.device_bytes_per_ns,
                               constants.all_bytes_per_ns);
  if (time.bytes) time.peak_ns = static_cast<double>(time.bytes) / peak;
  return time;
}

Result<std::vector<Submission>> submissions_of(const std::vector<Json>& traces) {
  std::map<Place, Submission> found;
  for (unsigned device = 0; device < traces.size(); device++) {
    if (!traces[device].is_array())
      return Error{.code = ErrorCode::kBadRequest, .object = "trace", .message = "is no array"};
    for (const Json& entry : traces[device])
      if (auto added = add_entry(found, device, entry); !added.ok())
        return std::move(added).error();
  }
  std::vector<Submission> submissions;
  for (auto& [place, submission] : found) submissions.push_back(std::move(submission));
  return submissions;
}

}  // namespace memsluice::dsa
