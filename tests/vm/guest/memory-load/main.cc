// SPDX-License-Identifier: GPL-2.0
// memory-load chase|write MIB SECONDS: goes through memory of its own, in base pages: reads one
// line after the other at random addresses that it learns from the last (chase), or writes to all
// of it in order. Prints "ready", and in the end how many lines it has been to in a second, and the
// median and the 99th percentile of how many nanoseconds a turn of kLinesOfATurn took.
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string_view>
#include <vector>

#include "tests/vm/guest/random.h"

namespace memsluice::guest {
namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kLinesOfATurn = 32;

struct Line {
  uint64_t next;  // of a chase
  uint64_t number;
  char rest[kLineBytes - 16];
};

double now() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

Line* map(size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED || madvise(data, bytes, MADV_NOHUGEPAGE) != 0) std::exit(1);
  return static_cast<Line*>(data);
}

// One cycle through all lines.
void fill(Line* lines, size_t count) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  Random random(1);
  for (size_t i = count - 1; i > 0; i--) std::swap(order[i], order[random.below(i + 1)]);
  for (size_t i = 0; i < count; i++) {
    lines[order[i]].next = order[(i + 1) % count];
    lines[order[i]].number = order[i];
  }
}

// Both go to kLinesOfATurn lines from `at` on, and return where to go on.
size_t chase(const volatile Line* lines, size_t at) {
  for (size_t i = 0; i < kLinesOfATurn; i++) {
    const size_t next = lines[at].next;
    if (lines[at].number != at) std::abort();
    at = next;
  }
  return at;
}

size_t write(volatile Line* lines, size_t count, size_t at) {
  for (size_t i = 0; i < kLinesOfATurn; i++) {
    lines[at].rest[0] = 1;
    at = at + 1 < count ? at + 1 : 0;
  }
  return at;
}

double percentile(std::vector<double>& values, double share) {
  const auto at =
      values.begin() + static_cast<long>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

void run(Line* lines, size_t count, bool chases, double seconds) {
  std::vector<double> turns_ns;
  const double begun = now();
  double last = begun;
  size_t at = 0;
  while (last - begun < seconds) {
    at = chases ? chase(lines, at) : write(lines, count, at);
    const double time = now();
    turns_ns.push_back((time - last) * 1e9);
    last = time;
  }
  const double per_second = static_cast<double>(turns_ns.size() * kLinesOfATurn) / (last - begun);
  const double median = percentile(turns_ns, 0.5);
  std::printf("%.0f %.0f %.0f\n", per_second, median, percentile(turns_ns, 0.99));
}

}  // namespace
}  // namespace memsluice::guest

int main(int argc, char** argv) {
  using namespace memsluice::guest;
  const std::string_view kind = argc == 4 ? argv[1] : "";
  const size_t mib = argc == 4 ? std::strtoull(argv[2], nullptr, 10) : 0;
  const double seconds = argc == 4 ? std::strtod(argv[3], nullptr) : 0;
  if ((kind != "chase" && kind != "write") || mib == 0 || mib > 1 << 16 || seconds <= 0) {
    std::fprintf(stderr, "usage: memory-load chase|write MIB SECONDS\n");
    return 2;
  }
  const size_t count = (mib << 20) / kLineBytes;
  Line* lines = map(mib << 20);
  fill(lines, count);
  std::puts("ready");
  std::fflush(stdout);
  run(lines, count, kind == "chase", seconds);
  return 0;
}
