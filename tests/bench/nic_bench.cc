// SPDX-License-Identifier: GPL-2.0
// What the emulated NIC costs. Prints JSON: nanoseconds of one request, operations per second.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <string>

#include "daemon/lending/chain/fixture.h"
#include "daemon/lending/nic/emulated/emulated_nic.h"

namespace memsluice {
namespace {

using Clock = std::chrono::steady_clock;
using Figures = std::map<std::string, double>;

constexpr int kTurns = 5;
constexpr uint32_t kRequests = 20000, kDepth = 32;

double ns_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

// What others do on the machine only ever adds.
template <typename Turn>
double least_of(Turn turn) {
  double least = std::numeric_limits<double>::max();
  for (int i = 0; i < kTurns; i++) least = std::min(least, turn());
  return least;
}

class Requests {
 public:
  explicit Requests(bool thread) : nic_({.own_thread = thread}) {
    const nic::ProtectionDomain domain = *nic_.create_protection_domain();
    key_ = *nic_.register_memory(domain, memory_, nic::kLocalWrite | nic::kRemoteAll);
    completions_ = *nic_.create_completion_queue({});
    for (nic::QueuePair& qp : ends_)
      qp = *nic_.create_queue_pair(
          domain, {.send_completions = completions_, .receive_completions = completions_});
    if (!nic_.connect(ends_[0], ends_[1], {}).ok() || !nic_.connect(ends_[1], ends_[0], {}).ok())
      std::abort();
  }

  // Of one request, with @depth of them under way.
  double ns(nic::Opcode opcode, uint32_t bytes, uint32_t depth) {
    const nic::ScatterEntry entry = {at(4096), bytes, key_};
    const nic::WorkRequest request = {.opcode = opcode,
                                      .signaled = true,
                                      .entries = {&entry, 1},
                                      .remote_address = at(16384),
                                      .remote_key = key_};
    const std::vector<nic::WorkRequest> batch(std::max(1U, depth / 4), request);
    return least_of([&] {
      const auto begin = Clock::now();
      uint32_t posted = 0, done = 0;
      while (done < kRequests) {
        while (posted < kRequests && posted - done + batch.size() <= depth) {
          nic_.post_send(ends_[0], batch);
          posted += static_cast<uint32_t>(batch.size());
        }
        nic_.progress();
        done += poll();
      }
      return ns_since(begin) / kRequests;
    });
  }

 private:
  uint64_t at(uint64_t offset) const { return reinterpret_cast<uint64_t>(memory_.data()) + offset; }
  uint32_t poll() {
    std::array<nic::Completion, kDepth> some;
    const size_t count = nic_.poll(completions_, some);
    for (size_t i = 0; i < count; i++)
      if (some[i].status != nic::Status::kSuccess) std::abort();
    return static_cast<uint32_t>(count);
  }

  nic::EmulatedNic nic_;
  alignas(4096) std::array<std::byte, 1 << 16> memory_ = {};
  nic::Key key_ = 0;
  nic::CompletionQueue completions_ = {};
  std::array<nic::QueuePair, 2> ends_ = {};
};

struct ChainTimes {
  double alloc_ns = std::numeric_limits<double>::max();
  double free_ns = std::numeric_limits<double>::max();
  double refill_ns = std::numeric_limits<double>::max();
  double steps_per_s = 0;
};

ChainTimes chains(chain::Mode mode, bool thread) {
  const chain::Shape shape = {.windows = 2, .mode = mode, .instances = 256, .entries = 64};
  ChainTimes least;
  for (int turn = 0; turn < kTurns; turn++) {
    nic::EmulatedNic nic({.own_thread = thread});
    chain::PoolFixture pool(nic, shape, 1);
    if (thread) pool.nic_has_thread();
    double alloc = 0, free = 0, refill = 0;
    const uint64_t before = nic.counters().requests;
    for (uint32_t i = 0; i < shape.instances; i++) {
      const auto begin = Clock::now();
      // In ring mode the chain itself allows the next request.
      pool.grant(0, 0, i % shape.entries, mode == chain::Mode::kSharedQueue || i == 0);
      refill += ns_since(begin);
      const auto asked = Clock::now();
      const std::optional<chain::Reply> reply = pool.allocate(0, 0);
      alloc += ns_since(asked);
      if (!reply || reply->group != i % shape.entries) std::abort();
      const auto released = Clock::now();
      if (!pool.release(0, reply->group)) std::abort();
      free += ns_since(released);
    }
    const double steps = static_cast<double>(nic.counters().requests - before);
    least.steps_per_s = std::max(least.steps_per_s, steps / (alloc + free) * 1e9);
    least.alloc_ns = std::min(least.alloc_ns, alloc / shape.instances);
    least.free_ns = std::min(least.free_ns, free / shape.instances);
    least.refill_ns = std::min(least.refill_ns, refill / shape.instances);
  }
  return least;
}

void add_requests(Figures& figures, bool thread) {
  const std::string how = thread ? "_thread" : "";
  Requests requests(thread);
  for (const auto& [name, opcode, bytes] : {std::tuple{"read64", nic::Opcode::kRead, 64U},
                                            {"read4096", nic::Opcode::kRead, 4096U},
                                            {"cas", nic::Opcode::kCompareSwap, 8U}}) {
    const double ns = requests.ns(opcode, bytes, kDepth);
    figures[fmt::format("{}_ns{}", name, how)] = ns;
    figures[fmt::format("{}_per_s{}", name, how)] = 1e9 / ns;
    figures[fmt::format("{}_latency_ns{}", name, how)] = requests.ns(opcode, bytes, 1);
  }
}

void add_chains(Figures& figures, bool thread) {
  for (const auto& [name, mode] :
       {std::pair{"", chain::Mode::kRings}, {"_shared_queue", chain::Mode::kSharedQueue}}) {
    const std::string how = fmt::format("{}{}", name, thread ? "_thread" : "");
    const ChainTimes times = chains(mode, thread);
    figures["alloc_ns" + how] = times.alloc_ns;
    figures["free_ns" + how] = times.free_ns;
    figures["refill_ns" + how] = times.refill_ns;
    figures["alloc_per_s" + how] = 1e9 / times.alloc_ns;
    figures["chain_steps_per_s" + how] = times.steps_per_s;
  }
}

}  // namespace
}  // namespace memsluice

int main() {
  memsluice::Figures figures;
  for (bool thread : {false, true}) {
    memsluice::add_requests(figures, thread);
    memsluice::add_chains(figures, thread);
  }
  fmt::print("{{");
  const char* comma = "";
  for (const auto& [name, value] : figures) {
    fmt::print("{}\n \"{}\": {:.2f}", comma, name, value);
    comma = ",";
  }
  fmt::print("\n}}\n");
}
