// SPDX-License-Identifier: GPL-2.0
// redistribute-load CGROUP base|huge MIB: makes the cgroup a tenant, enters it, and brings its
// memory from channel to channel, while another thread reads and checks it. Prints one JSON object.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "include/uapi/memsluice.h"

namespace memsluice::guest {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kHugeBytes = size_t{2} << 20;
constexpr double kQuietSeconds = 1;
// How much has moved when the new channels are said to carry their share.
constexpr double kShare = 0.95;
constexpr double kPatienceSeconds = 60;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "redistribute-load: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

double now() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

class Tenant {
 public:
  explicit Tenant(const std::string& cgroup) : device_(open("/dev/memsluice", O_RDWR | O_CLOEXEC)) {
    memsluice_tenant_set set = {};
    set.size = sizeof(set);
    set.cgroup_fd = open(cgroup.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    set.policy.fast_limit_bytes = MEMSLUICE_NO_LIMIT;
    call(MEMSLUICE_IOC_TENANT_SET, &set);
    id_ = set.cgroup_id;
    const int processes = open((cgroup + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
    if (write(processes, "0", 1) != 1) fail("cgroup.procs");
    close(processes);
  }

  void place(uint32_t node) const {
    memsluice_placement placement = {};
    placement.size = sizeof(placement);
    placement.cgroup_id = id_;
    placement.count = 1;
    placement.granule_order = MEMSLUICE_GRANULE_ORDER_DEFAULT;
    placement.channels[0] = {node, 1};
    call(MEMSLUICE_IOC_PLACEMENT_SET, &placement);
  }

  // Pages that were moved or, on touch, marked.
  uint64_t redistribute(bool on_touch) const {
    auto migrate = request(MEMSLUICE_MIGRATE_TENANT_PLACED);
    migrate.pidfd = migrate.target_node = -1;
    migrate.cgroup_id = id_;
    migrate.flags = on_touch ? MEMSLUICE_MIGRATE_ON_TOUCH : 0;
    return run(migrate);
  }

  uint64_t migrate(const char* data, size_t bytes, int node) const {
    auto migrate = request(MEMSLUICE_MIGRATE_RANGE);
    migrate.pidfd = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
    migrate.address = reinterpret_cast<uint64_t>(data);
    migrate.length = bytes;
    migrate.target_node = node;
    const uint64_t moved = run(migrate);
    close(migrate.pidfd);
    return moved;
  }

 private:
  static memsluice_migrate request(memsluice_migrate_kind kind) {
    memsluice_migrate migrate = {};
    migrate.size = sizeof(migrate);
    migrate.kind = kind;
    migrate.source_node = -1;
    return migrate;
  }
  uint64_t run(memsluice_migrate migrate) const {
    memsluice_request_status status = {};
    status.size = sizeof(status);
    migrate.status = reinterpret_cast<uint64_t>(&status);
    call(MEMSLUICE_IOC_MIGRATE, &migrate);
    return status.moved_pages;
  }
  void call(unsigned long number, void* argument) const {
    if (ioctl(device_, number, argument) < 0) fail("ioctl");
  }

  int device_;
  uint64_t id_ = 0;
};

class Memory {
 public:
  Memory(size_t bytes, bool huge) : bytes_(bytes) {
    void* mapping = mmap(nullptr, bytes + kHugeBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) fail("mmap");
    const auto at = reinterpret_cast<uintptr_t>(mapping) + kHugeBytes - 1;
    data_ = reinterpret_cast<char*>(at / kHugeBytes * kHugeBytes);
    if (madvise(data_, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) != 0) fail("madvise");
    for (size_t page = 0; page < pages(); page++) word(page) = page;
  }
  [[nodiscard]] volatile uint64_t& word(size_t page) const {
    return *reinterpret_cast<uint64_t*>(data_ + page * kPageBytes);
  }
  [[nodiscard]] char* data() const { return data_; }
  [[nodiscard]] size_t bytes() const { return bytes_; }
  [[nodiscard]] size_t pages() const { return bytes_ / kPageBytes; }

  [[nodiscard]] size_t pages_on(int node) const {
    std::vector<void*> addresses;
    for (size_t page = 0; page < pages(); page++) addresses.push_back(data_ + page * kPageBytes);
    std::vector<int> nodes(pages());
    if (syscall(SYS_move_pages, 0, pages(), addresses.data(), nullptr, nodes.data(), 0) != 0)
      fail("move_pages");
    return static_cast<size_t>(std::count(nodes.begin(), nodes.end(), node));
  }

 private:
  char* data_ = nullptr;
  size_t bytes_;
};

// Reads a word of each page, round after round, and notes how long each took.
class Reader {
 public:
  explicit Reader(const Memory& memory) : memory_(memory), thread_([this] { run(); }) {}
  ~Reader() {
    stop_ = true;
    thread_.join();
  }

  // Reads a second, and the 99th percentile of one, in ns, since the last call.
  nlohmann::json since_last() {
    const std::vector<uint32_t> taken = take();
    const double time = now();
    std::vector<uint32_t> sorted = taken;
    std::sort(sorted.begin(), sorted.end());
    nlohmann::json figures = {
        {"reads_per_s", static_cast<double>(taken.size()) / (time - last_)},
        {"p99_ns", sorted.empty() ? 0 : sorted[(sorted.size() - 1) * 99 / 100]}};
    last_ = time;
    return figures;
  }

 private:
  std::vector<uint32_t> take() {
    asked_ = true;
    while (asked_) usleep(100);
    return std::move(handed_over_);
  }
  void run() {
    std::vector<uint32_t> times_ns;
    for (size_t page = 0; !stop_; page = page + 1 < memory_.pages() ? page + 1 : 0) {
      const double begun = now();
      if (memory_.word(page) != page) std::abort();
      times_ns.push_back(static_cast<uint32_t>((now() - begun) * 1e9));
      if (!asked_) continue;
      handed_over_ = std::move(times_ns);
      times_ns.clear();
      asked_ = false;
    }
  }

  const Memory& memory_;
  std::vector<uint32_t> handed_over_;
  std::atomic<bool> stop_{false}, asked_{false};
  double last_ = now();
  std::thread thread_;
};

double seconds_of(const auto& what) {
  const double begun = now();
  what();
  return now() - begun;
}

nlohmann::json quiet(Reader& reader) {
  reader.since_last();
  usleep(static_cast<useconds_t>(kQuietSeconds * 1e6));
  return reader.since_last();
}

// With nobody else running: pages a second by a request of a range, and by redistribution.
nlohmann::json rates(const Tenant& tenant, const Memory& memory) {
  uint64_t moved = 0;
  const double by_range =
      seconds_of([&] { moved = tenant.migrate(memory.data(), memory.bytes(), 2); });
  const double range_rate = static_cast<double>(moved) / by_range;
  tenant.place(1);
  const double by_place = seconds_of([&] { moved = tenant.redistribute(false); });
  return {{"migrate_pages_per_s", range_rate},
          {"redistribute_pages_per_s", static_cast<double>(moved) / by_place}};
}

nlohmann::json eagerly(const Tenant& tenant, Reader& reader) {
  tenant.place(2);
  reader.since_last();
  const double seconds = seconds_of([&] { tenant.redistribute(false); });
  nlohmann::json figures = reader.since_last();
  figures["seconds"] = seconds;
  return figures;
}

// Until nearly all has moved; what the kernel would not move is marked again.
nlohmann::json lazily(const Tenant& tenant, const Memory& memory, Reader& reader) {
  tenant.place(1);
  reader.since_last();
  const double begun = now();
  const auto enough = static_cast<size_t>(kShare * static_cast<double>(memory.pages()));
  do {
    tenant.redistribute(true);
    usleep(20'000);
  } while (memory.pages_on(1) < enough && now() - begun < kPatienceSeconds);
  const double seconds = now() - begun;
  nlohmann::json figures = reader.since_last();
  figures["seconds"] = seconds;
  return figures;
}

}  // namespace
}  // namespace memsluice::guest

int main(int argc, char** argv) {
  using namespace memsluice::guest;
  const std::string kind = argc == 4 ? argv[2] : "";
  const size_t mib = argc == 4 ? std::strtoull(argv[3], nullptr, 10) : 0;
  if ((kind != "base" && kind != "huge") || mib == 0 || mib > 1 << 16) {
    std::fprintf(stderr, "usage: redistribute-load CGROUP base|huge MIB\n");
    return 2;
  }
  const Tenant tenant(argv[1]);
  tenant.place(1);
  const Memory memory(mib << 20, kind == "huge");
  nlohmann::json report = rates(tenant, memory);
  Reader reader(memory);
  // The scan has to have met this process before its pages can be marked.
  sleep(3);
  report["quiet"] = quiet(reader);
  report["eager"] = eagerly(tenant, reader);
  report["quiet_again"] = quiet(reader);
  report["lazy"] = lazily(tenant, memory, reader);
  std::printf("%s\n", report.dump().c_str());
  return 0;
}
