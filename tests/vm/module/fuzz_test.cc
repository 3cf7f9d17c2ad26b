// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <random>

#include "tests/vm/module/world.h"

namespace memsluice::test {
namespace {

int seconds() {
  const char* text = std::getenv("MEMSLUICE_FUZZ_SECONDS");
  return text ? std::atoi(text) : 5;
}

unsigned seed() {
  const char* text = std::getenv("MEMSLUICE_FUZZ_SEED");
  return text ? static_cast<unsigned>(std::atoi(text)) : 1;
}

// Structures that are mostly right, since what is wrong all over is refused at the first look.
class Fuzzer {
 public:
  explicit Fuzzer(unsigned value) : random_(value) {}

  void step() {
    static const unsigned long commands[] = {
        MEMSLUICE_IOC_VERSION,        MEMSLUICE_IOC_TENANT_SET,     MEMSLUICE_IOC_TENANT_CLEAR,
        MEMSLUICE_IOC_TENANT_LIST,    MEMSLUICE_IOC_TENANT_STATUS,  MEMSLUICE_IOC_MIGRATE,
        MEMSLUICE_IOC_REQUEST_STATUS, MEMSLUICE_IOC_REQUEST_CANCEL, MEMSLUICE_IOC_ENGINE_STATUS,
        MEMSLUICE_IOC_ENGINE_QUEUE,   MEMSLUICE_IOC_ENGINE_ACT,     MEMSLUICE_IOC_CENSUS,
        MEMSLUICE_IOC_PLACEMENT_SET,  MEMSLUICE_IOC_PLACEMENT_GET,  MEMSLUICE_IOC_CHANNEL_ADD,
        MEMSLUICE_IOC_CHANNEL_REMOVE, MEMSLUICE_IOC_CHANNEL_STATUS};
    auto* words = reinterpret_cast<uint32_t*>(buffer_);
    for (size_t i = 0; i < sizeof(buffer_) / 4; i++) words[i] = interesting();
    words[0] = chance(8) ? interesting() : static_cast<uint32_t>(random_() % 65 * 8);
    unsigned long command = commands[random_() % std::size(commands)];
    if (command == MEMSLUICE_IOC_MIGRATE && !chance(4)) shape_migrate();
    void* argument = chance(16) ? reinterpret_cast<void*>(random_()) : buffer_;
    int result = device_ioctl(chance(16) ? random_() : command, argument);
    if (command == MEMSLUICE_IOC_MIGRATE && result >= 3) finish_request(result);
  }

 private:
  bool chance(unsigned one_in) { return random_() % one_in == 0; }

  uint32_t interesting() {
    switch (random_() % 6) {
      case 0:
        return 0;
      case 1:
        return 1;
      case 2:
        return ~0U;
      case 3:
        return 1U << (random_() % 32);
      case 4:
        return static_cast<uint32_t>(random_() % 64);
      default:
        return static_cast<uint32_t>(random_());
    }
  }

  void shape_migrate() {
    auto* migrate = reinterpret_cast<memsluice_migrate*>(buffer_);
    *migrate = sized<memsluice_migrate>();
    migrate->kind = static_cast<uint32_t>(random_() % 4);
    migrate->flags = static_cast<uint32_t>(random_() % 4);
    migrate->pidfd = migrate->kind == MEMSLUICE_MIGRATE_TENANT_NODE ? -1 : self_.get();
    migrate->cgroup_id = migrate->kind == MEMSLUICE_MIGRATE_TENANT_NODE ? random_() % 64 : 0;
    migrate->source_node = migrate->kind == MEMSLUICE_MIGRATE_TENANT_NODE ? kSlow : -1;
    migrate->target_node = static_cast<int32_t>(random_() % 3);
    if (migrate->kind == MEMSLUICE_MIGRATE_ADDRESSES) {
      for (auto& address : addresses_)
        address = chance(2) ? area_.address() + random_() % area_.bytes() : random_();
      migrate->address = reinterpret_cast<uint64_t>(addresses_);
      migrate->length = random_() % std::size(addresses_);
      migrate->results = chance(2) ? reinterpret_cast<uint64_t>(results_) : 0;
    } else if (migrate->kind == MEMSLUICE_MIGRATE_RANGE) {
      migrate->address = chance(4) ? random_() & ~0xfffULL : area_.address() & ~0xfffULL;
      migrate->length = random_() % 600 * kPageBytes;
    }
  }

  void finish_request(int fd) {
    auto status = sized<memsluice_request_status>();
    ioctl_on(fd, MEMSLUICE_IOC_REQUEST_STATUS, &status);
    if (chance(2)) ioctl_on(fd, MEMSLUICE_IOC_REQUEST_CANCEL, nullptr);
    close(fd);
  }

  std::mt19937_64 random_;
  Pages area_{4 << 20, kSlow};
  Descriptor self_{static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0))};
  alignas(8) char buffer_[1024];
  uint64_t addresses_[128];
  int32_t results_[128];
};

TEST(Fuzz, IoctlsNeverHurtTheKernel) {
  std::cout << "seed " << seed() << ", " << seconds() << " s\n";
  // In a child: some of the structures may well point at the fuzzer's own memory.
  pid_t child = start_child([] {
    Fuzzer fuzzer(seed());
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds());
    unsigned long steps = 0;
    for (; std::chrono::steady_clock::now() < end; steps++) fuzzer.step();
    std::cerr << steps << " calls\n";
    return 0;
  });
  wait_child(child);
  // What the kernel has to say fails the test from outside; here it must still work.
  auto version = sized<memsluice_version>();
  EXPECT_EQ(device_ioctl(MEMSLUICE_IOC_VERSION, &version), 0);
}

TEST(Fuzz, FilesTakeAnyText) {
  std::mt19937_64 random(seed());
  const char* knobs[] = {
      "scan_period_ms", "scan_cpu_percent", "cooling_scans",         "batch_stall_us",
      "pool_mib",       "tier_period_ms",   "fast_free_low_percent", "fast_free_high_percent"};
  std::vector<std::string> before;
  for (const char* knob : knobs)
    before.push_back(read_file(std::string("/sys/kernel/memsluice/") + knob));
  for (int i = 0; i < 300; i++) {
    std::string text(random() % 40, '\0');
    for (char& c : text)
      c = random() % 2 ? static_cast<char>('0' + random() % 10) : static_cast<char>(random());
    Descriptor file(
        open((std::string("/sys/kernel/memsluice/") + knobs[random() % std::size(knobs)]).c_str(),
             O_WRONLY));
    ASSERT_GE(file.get(), 0);
    [[maybe_unused]] auto ignored = write(file.get(), text.data(), text.size());
  }
  // The bound of one is the other's value: high has to be back before low, or the reverse.
  for (int round = 0; round < 2; round++)
    for (size_t i = 0; i < std::size(knobs); i++) {
      Descriptor file(open((std::string("/sys/kernel/memsluice/") + knobs[i]).c_str(), O_WRONLY));
      [[maybe_unused]] auto ignored = write(file.get(), before[i].data(), before[i].size());
    }
  for (size_t i = 0; i < std::size(knobs); i++)
    EXPECT_EQ(read_file(std::string("/sys/kernel/memsluice/") + knobs[i]), before[i]);
}

}  // namespace
}  // namespace memsluice::test
