// SPDX-License-Identifier: GPL-2.0
// traffic-probe: makes memory traffic that can be computed, and prints what the traffic plugin
// counted meanwhile. The buffer is populated before the counting starts, so that only the
// accesses named on the command line, and the kernel's own, are counted.
#include <emmintrin.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <barrier>
#include <cerrno>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "tests/vm/traffic/node_blocks.h"
#include "tests/vm/traffic/traffic_control.h"

namespace memsluice::traffic {
namespace {

constexpr uint64_t kLineBytes = 64;

uint64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Anonymous memory of one node, populated. One page more than asked for, so that accesses may
// cross its end.
class NodeBuffer {
 public:
  static Result<NodeBuffer> allocate(uint64_t bytes, unsigned node) {
    constexpr uint64_t kSlack = 4096;
    void* base =
        mmap(nullptr, bytes + kSlack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return errno_error(errno, "mmap", fmt::format("{} bytes", bytes));
    const unsigned long mask[2] = {node < 64 ? 1ul << node : 0, 0};
    if (syscall(SYS_mbind, base, bytes + kSlack, MPOL_BIND, mask, 64ul, 0u) != 0) {
      return errno_error(errno, "mbind", fmt::format("node {}", node));
    }
    // khugepaged would copy the buffer while it is measured.
    if (madvise(base, bytes + kSlack, MADV_NOHUGEPAGE) != 0) {
      return errno_error(errno, "madvise", "MADV_NOHUGEPAGE");
    }
    std::memset(base, 1, bytes + kSlack);
    return NodeBuffer(static_cast<char*>(base), bytes);
  }

  char* data() const { return base_; }
  uint64_t size() const { return bytes_; }

 private:
  NodeBuffer(char* base, uint64_t bytes) : base_(base), bytes_(bytes) {}

  // Freed by the end of the process.
  char* base_;
  uint64_t bytes_;
};

struct Sweep {
  uint64_t stride = kLineBytes;
  uint64_t offset = 0;
  unsigned passes = 1;
  bool write = false;

  // One access of 16 bytes every `stride` bytes.
  void run(const NodeBuffer& buffer) const {
    const __m128i value = _mm_set1_epi8(2);
    for (unsigned pass = 0; pass < passes; ++pass) {
      for (uint64_t at = offset; at < buffer.size(); at += stride) {
        auto* address = reinterpret_cast<__m128i*>(buffer.data() + at);
        if (write) {
          asm volatile("movdqu %1, %0" : "=m"(*address) : "x"(value));
        } else {
          __m128i loaded;
          asm volatile("movdqu %1, %0" : "=x"(loaded) : "m"(*address));
        }
      }
    }
  }
};

// Links one word of each of `count` lines, chosen at random, into a chain.
void link_chain(const NodeBuffer& buffer, uint64_t count) {
  std::vector<uint64_t> lines(buffer.size() / kLineBytes);
  for (uint64_t i = 0; i < lines.size(); ++i) lines[i] = i;
  std::shuffle(lines.begin(), lines.end(), std::mt19937_64(1));
  for (uint64_t i = 0; i < count; ++i) {
    char* next = i + 1 < count ? buffer.data() + lines[i + 1] * kLineBytes : nullptr;
    std::memcpy(buffer.data() + lines[i] * kLineBytes, &next, sizeof next);
  }
  char* first = buffer.data() + lines[0] * kLineBytes;
  std::memcpy(buffer.data() + buffer.size(), &first, sizeof first);
}

// Every load needs the result of the one before.
void chase(const NodeBuffer& buffer) {
  char* at;
  std::memcpy(&at, buffer.data() + buffer.size(), sizeof at);
  while (at != nullptr) at = *reinterpret_cast<char* volatile*>(at);
}

bool pin_to_cpu(unsigned cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(cpu, &cpus);
  return sched_setaffinity(0, sizeof cpus, &cpus) == 0;
}

// Runs the work on CPUs 0, 1, ... at the same time; returns how long that took.
uint64_t run_on_cpus(const std::vector<std::function<void()>>& work) {
  std::barrier start(static_cast<std::ptrdiff_t>(work.size()));
  std::vector<uint64_t> started(work.size()), ended(work.size());
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < work.size(); ++i) {
    threads.emplace_back([&, i] {
      if (!pin_to_cpu(i)) fmt::print(stderr, "traffic-probe: no CPU {}\n", i);
      start.arrive_and_wait();
      started[i] = monotonic_ns();
      work[i]();
      ended[i] = monotonic_ns();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return *std::max_element(ended.begin(), ended.end()) -
         *std::min_element(started.begin(), started.end());
}

Result<void> measure(const std::vector<std::function<void()>>& work) {
  const auto opened = OpenTrafficFile::open({});
  if (!opened.ok()) return opened.error();
  const TrafficFile& file = opened->file;
  const auto nodes = read_node_blocks(kSysfsSystem, file.layout().block_bytes);
  if (!nodes.ok()) return nodes.error();
  if (auto reset = reset_counters(file); !reset.ok()) return reset;
  if (auto on = set_counting(file, true); !on.ok()) return on;
  const uint64_t elapsed_ns = run_on_cpus(work);
  if (auto off = set_counting(file, false); !off.ok()) return off;

  nlohmann::ordered_json report{{"elapsed_ns", elapsed_ns}};
  for (const auto& [node, blocks] : *nodes) {
    const Traffic traffic = traffic_of_blocks(file, blocks);
    report["nodes"].push_back(
        {{"node", node}, {"read_bytes", traffic.read_bytes}, {"write_bytes", traffic.write_bytes}});
  }
  for (uint32_t vcpu = 0; vcpu < file.layout().vcpus; ++vcpu) {
    report["delay_ns"].push_back(file.slot(vcpu).delay_ps / kPicosecondsPerNanosecond);
  }
  fmt::print("{}\n", report.dump());
  return {};
}

struct Options {
  unsigned node = 0;
  uint64_t bytes = 0;
  unsigned threads = 1;
  uint64_t count = 0;
  uint64_t idle_ms = 0;
  Sweep sweep;
};

Result<void> run_sweep(const Options& options) {
  std::vector<std::function<void()>> work;
  for (unsigned i = 0; i < options.threads; ++i) {
    const auto buffer = NodeBuffer::allocate(options.bytes, options.node);
    if (!buffer.ok()) return buffer.error();
    work.push_back([sweep = options.sweep, buffer = *buffer] { sweep.run(buffer); });
  }
  return measure(work);
}

Result<void> run_chase(const Options& options) {
  const auto buffer = NodeBuffer::allocate(options.bytes, options.node);
  if (!buffer.ok()) return buffer.error();
  link_chain(*buffer, std::min(options.count, options.bytes / kLineBytes));
  return measure({[buffer = *buffer] { chase(buffer); }});
}

Result<void> run_idle(const Options& options) {
  return measure({[&] { usleep(static_cast<useconds_t>(options.idle_ms * 1000)); }});
}

// What a guest can do to the plugin's file at worst.
Result<void> run_scribble() {
  const auto opened = OpenTrafficFile::open({});
  if (!opened.ok()) return opened.error();
  std::memset(opened->mapping.bytes().data(), 0xff, opened->mapping.bytes().size());
  return {};
}

}  // namespace
}  // namespace memsluice::traffic

int main(int argc, char** argv) {
  using namespace memsluice::traffic;
  Options options;
  CLI::App app("Makes memory traffic that can be computed and prints what was counted.");
  app.require_subcommand(1);
  const auto add_buffer = [&](CLI::App* command) {
    command->add_option("--node", options.node)->required();
    command->add_option("--bytes", options.bytes)->required()->check(CLI::PositiveNumber);
  };
  CLI::App* sweep = app.add_subcommand("sweep", "one access of 16 bytes every STRIDE bytes");
  add_buffer(sweep);
  sweep->add_option("--stride", options.sweep.stride)->check(CLI::PositiveNumber);
  sweep->add_option("--offset", options.sweep.offset)->check(CLI::Range(0, 4095));
  sweep->add_option("--passes", options.sweep.passes);
  sweep->add_option("--threads", options.threads, "each on its own CPU, with its own buffer");
  sweep->add_flag("--write", options.sweep.write);
  CLI::App* chain = app.add_subcommand("chase", "COUNT dependent loads from different lines");
  add_buffer(chain);
  chain->add_option("--count", options.count)->required()->check(CLI::PositiveNumber);
  CLI::App* idle = app.add_subcommand("idle", "nothing");
  idle->add_option("--milliseconds", options.idle_ms)->required();
  CLI::App* scribble = app.add_subcommand("scribble", "overwrite the whole traffic file");
  CLI11_PARSE(app, argc, argv);

  const auto done = sweep->parsed()      ? run_sweep(options)
                    : chain->parsed()    ? run_chase(options)
                    : scribble->parsed() ? run_scribble()
                                         : run_idle(options);
  if (done.ok()) return 0;
  fmt::print(stderr, "traffic-probe: {}\n", done.error().describe());
  return 1;
}
