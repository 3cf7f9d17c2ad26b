// SPDX-License-Identifier: GPL-2.0
// Everything that other tests do one by one, at once and at random, to memory that lives.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/vm/module/life.h"
#include "tests/vm/module/machine.h"
#include "tests/vm/module/requests.h"

namespace memsluice::test {
namespace {

constexpr int kMadvCollapse = 25;
constexpr int kDefaultSeconds = 10;

std::string knob(const std::string& name) {
  return "/sys/kernel/memsluice/" + name;
}

class Dice {
 public:
  explicit Dice(uint64_t seed) : generator_(seed) {}
  uint64_t below(uint64_t count) { return generator_() % count; }
  bool one_in(uint64_t count) { return !below(count); }
  int node() { return one_in(2) ? kFast : kSlow; }

 private:
  std::mt19937_64 generator_;
};

struct Area {
  char* data;
  size_t bytes;
};

// Memory of each kind, to which a thread of its own writes all the time.
class Residents {
 public:
  Residents() {
    EXPECT_EQ(ftruncate(shared_file_.get(), kBytes), 0);
    EXPECT_EQ(ftruncate(disk_file_.get(), kBytes), 0);
    for (const Area& range : {Area{base_.data(), kBytes}, Area{huge_.data(), kBytes},
                              Area{shared_.data(), kBytes}, Area{file_.data(), kBytes}}) {
      ranges_.push_back(range);
      lives_.emplace_back(range.data, range.bytes);
    }
    // One page twice in this process.
    for (size_t at = 0; at < kBytes; at += kPageBytes)
      asm volatile("" ::"r"(*static_cast<volatile char*>(shared_again_.data() + at)));
  }

  Area huge() { return {huge_.data(), kBytes}; }
  [[nodiscard]] int disk_file() const { return disk_file_.get(); }

  // Some pages of one of them; often all.
  Area some(Dice& dice) {
    Area range = ranges_[dice.below(ranges_.size())];
    if (dice.one_in(2)) return range;
    const size_t pages = range.bytes / kPageBytes, first = dice.below(pages);
    return {range.data + first * kPageBytes, (1 + dice.below(pages - first)) * kPageBytes};
  }

  [[nodiscard]] bool intact() {
    bool intact = true;
    for (Life& life : lives_) intact &= life.intact();
    return intact;
  }

 private:
  static constexpr size_t kBytes = 2 * kHugeBytes;
  Swap swap_;
  Ext4 disk_;
  Descriptor shared_file_{memfd_create("soak", MFD_CLOEXEC)};
  Descriptor disk_file_{
      open((std::string(Ext4::kFolder) + "/soak").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  Pages base_{kBytes, kSlow};
  Pages huge_{kBytes, kSlow, Pages::Huge::kAlways};
  Mapping shared_{kBytes, MAP_SHARED, shared_file_.get()};
  Mapping shared_again_{kBytes, MAP_SHARED, shared_file_.get()};
  Mapping file_{kBytes, MAP_SHARED, disk_file_.get()};
  std::vector<Area> ranges_;
  std::deque<Life> lives_;
};

class Soak : public RequestTest {
 protected:
  using Action = void (Soak::*)(Dice&);
  struct Choice {
    const char* name;
    Action action;
    int weight;
  };

  uint32_t any_flags(Dice& dice) {
    return (dice.one_in(2) ? kAll : 0) | (dice.one_in(4) ? MEMSLUICE_MIGRATE_IN_TREE : 0);
  }

  void move_range(Dice& dice) {
    const Area range = residents_->some(dice);
    moved_pages_ += move(range.data, range.bytes, dice.node(), any_flags(dice)).moved_pages;
  }

  void move_addresses(Dice& dice) {
    std::vector<const char*> addresses;
    for (uint64_t left = 1 + dice.below(200); left; left--)
      addresses.push_back(residents_->some(dice).data);
    std::vector<int32_t> results(addresses.size(), INT32_MIN);
    memsluice_request_status status;
    auto migrate = range_request(reinterpret_cast<uint64_t>(addresses.data()), addresses.size(),
                                 dice.node(), &status);
    migrate.kind = MEMSLUICE_MIGRATE_ADDRESSES;
    migrate.flags = any_flags(dice);
    migrate.results = reinterpret_cast<uint64_t>(results.data());
    EXPECT_EQ(run(&migrate), 0);
    for (int32_t result : results) EXPECT_GE(result, -1 - MEMSLUICE_REFUSALS_ROOM);
  }

  void move_in_background(Dice& dice) {
    const Area range = residents_->some(dice);
    memsluice_request_status status;
    Descriptor request(start(range.data, range.bytes, dice.node(), any_flags(dice), &status));
    ASSERT_GE(request.get(), 0);
    usleep(static_cast<useconds_t>(dice.below(3000)));
    if (dice.one_in(2)) ioctl_on(request.get(), MEMSLUICE_IOC_REQUEST_CANCEL, nullptr);
    if (dice.one_in(2)) {
      const auto state = ended(request.get()).state;
      EXPECT_TRUE(state == MEMSLUICE_REQUEST_DONE || state == MEMSLUICE_REQUEST_CANCELLED) << state;
    }
  }

  void move_all(Dice& dice) {
    memsluice_request_status status;
    const int pidfd = (dice.one_in(2) ? self_ : neighbour_pidfd_).get();
    EXPECT_EQ(move_process(pidfd, dice.node(), &status), 0);
  }

  void reclaim(Dice& dice) {
    const Area range = residents_->some(dice);
    madvise(range.data, range.bytes, dice.one_in(2) ? MADV_PAGEOUT : MADV_COLD);
  }

  void split_and_collapse(Dice& dice) {
    const Area huge = residents_->huge();
    char* page = huge.data + dice.below(huge.bytes / kPageBytes) * kPageBytes;
    mprotect(page, kPageBytes, PROT_READ | PROT_WRITE | PROT_EXEC);
    usleep(static_cast<useconds_t>(dice.below(1000)));
    mprotect(page, kPageBytes, PROT_READ | PROT_WRITE);
    madvise(huge.data, huge.bytes, kMadvCollapse);
  }

  void lock(Dice& dice) {
    const Area range = residents_->some(dice);
    mlock(range.data, range.bytes);
    usleep(static_cast<useconds_t>(dice.below(2000)));
    munlock(range.data, range.bytes);
  }

  // Memory that is new, is moved, changes its place, is dropped in part, and goes.
  void come_and_go(Dice& dice) {
    const size_t bytes = (1 + dice.below(3)) * kHugeBytes;
    const auto seed = static_cast<uint8_t>(dice.below(256));
    Mapping home(2 * bytes, MAP_PRIVATE | MAP_ANONYMOUS);
    if (dice.one_in(2)) madvise(home.data(), home.bytes(), MADV_HUGEPAGE);
    fill(home.data(), bytes, seed);
    move(home.data(), home.bytes(), dice.node());
    EXPECT_TRUE(is_filled(home.data(), bytes, seed));
    // Without a hole, where another thread could map something.
    constexpr int kMoved = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
    char* next = home.data() + bytes;
    EXPECT_EQ(mremap(home.data(), bytes, bytes, kMoved, next), next);
    move(home.data(), home.bytes(), dice.node());
    EXPECT_TRUE(is_filled(next, bytes, seed));
    madvise(next + bytes / 2, bytes / 2, dice.one_in(2) ? MADV_DONTNEED : MADV_FREE);
    move(home.data(), home.bytes(), dice.node());
    EXPECT_TRUE(is_filled(next, bytes / 2, seed));
  }

  // What a pipe holds stays the page that is mapped: who writes to one sees it in the other.
  void pin(Dice& dice) {
    Mapping page(kPageBytes, MAP_PRIVATE | MAP_ANONYMOUS);
    madvise(page.data(), kPageBytes, MADV_DONTFORK);
    fill(page.data(), kPageBytes, 1);
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    Descriptor reader(ends[0]), writer(ends[1]);
    iovec vector = {page.data(), kPageBytes};
    ASSERT_EQ(vmsplice(writer.get(), &vector, 1, 0), static_cast<ssize_t>(kPageBytes));
    for (int round = 0; round < 3; round++) move(page.data(), kPageBytes, dice.node(), kAll);
    fill(page.data(), kPageBytes, 2);
    std::vector<char> read_back(kPageBytes);
    ASSERT_EQ(read(reader.get(), read_back.data(), kPageBytes), static_cast<ssize_t>(kPageBytes));
    EXPECT_TRUE(is_filled(read_back.data(), kPageBytes, 2));
  }

  void fork_child(Dice& dice) {
    // Of its own: what is shared, it must not write to.
    const Area range = residents_->huge();
    const size_t step = (1 + dice.below(8)) * kPageBytes;
    EXPECT_EQ(in_child([&] {
                for (size_t at = 0; at < range.bytes; at += step) range.data[at] = 1;
                return 0;
              }),
              0);
  }

  void write_back(Dice& /*dice*/) {
    EXPECT_EQ(sync_file_range(residents_->disk_file(), 0, 0, SYNC_FILE_RANGE_WRITE), 0);
  }

  void look(Dice& /*dice*/) {
    for (const char* file : {"status", "tenants", "requests", "hotness", "migration", "census"})
      (void)read_file(std::string("/proc/memsluice/") + file);
  }

  // The kernel's own movers of pages.
  void compact(Dice& dice) {
    write_file("/proc/sys/vm/compact_memory", "1");
    write_file("/proc/sys/vm/drop_caches", std::to_string(1 + dice.below(3)));
    write_file("/proc/sys/kernel/numa_balancing", dice.one_in(2) ? "0" : "3");
  }

  void turn_knobs(Dice& dice) {
    write_file(knob("batch_stall_us"), std::to_string(10 + dice.below(5000)));
    write_file(knob("pool_mib"), std::to_string(dice.below(64)));
  }

  void tier(Dice& dice) {
    write_file(knob("scan_period_ms"), "20");
    write_file(knob("tier_period_ms"), "20");
    EXPECT_EQ(set_tenant(neighbour_cgroup_, policy_tiering(dice.below(8) * kMib)), 0);
    usleep(static_cast<useconds_t>(dice.below(200'000)));
    if (dice.one_in(2)) {
      EXPECT_EQ(clear_tenant(neighbour_cgroup_.id()), 0);
    }
  }

  void freeze(Dice& dice) {
    neighbour_cgroup_.write("cgroup.freeze", "1");
    usleep(static_cast<useconds_t>(dice.below(50'000)));
    neighbour_cgroup_.write("cgroup.freeze", "0");
  }

  void break_engine(Dice& dice) {
    TestEngine engine;
    TestEngine::set("fail_every", std::to_string(1 + dice.below(5)));
    usleep(static_cast<useconds_t>(dice.below(100'000)));
  }

  void cycle_cpu(Dice& dice) {
    const std::string online = "/sys/devices/system/cpu/cpu1/online";
    write_file(online, "0");
    usleep(static_cast<useconds_t>(dice.below(20'000)));
    write_file(online, "1");
  }

  void take_memory_away(Dice& dice) { cycle_memory(dice.node(), 1); }

  void reload(Dice& /*dice*/) {
    std::unique_lock alone(loaded_);
    EXPECT_TRUE(eventually([] { return unload_module() == 0; }));
    EXPECT_EQ(load_module(), 0);
  }

  // Draws and acts until the time is over, and something has been moved.
  void act(uint64_t seed, const std::vector<Choice>& choices, bool uses_module) {
    Dice dice(seed);
    int weights = 0;
    for (const Choice& choice : choices) weights += choice.weight;
    while (std::chrono::steady_clock::now() < end_ || !moved_pages_) {
      auto drawn = static_cast<int>(dice.below(static_cast<uint64_t>(weights)));
      auto choice = choices.begin();
      while ((drawn -= choice->weight) >= 0) choice++;
      std::shared_lock loaded(loaded_, std::defer_lock);
      if (uses_module) loaded.lock();
      (this->*choice->action)(dice);
      std::lock_guard counting(counts_lock_);
      counts_[choice->name]++;
    }
  }

  // What has no place in two threads at once.
  const std::vector<Choice> machine_ = {
      {"compact", &Soak::compact, 6},
      {"turn_knobs", &Soak::turn_knobs, 10},
      {"tier", &Soak::tier, 10},
      {"freeze", &Soak::freeze, 6},
      {"break_engine", &Soak::break_engine, 6},
      {"cycle_cpu", &Soak::cycle_cpu, 4},
      {"take_memory_away", &Soak::take_memory_away, 2},
      {"reload", &Soak::reload, 1},
  };
  const std::vector<Choice> pages_ = {
      {"move_range", &Soak::move_range, 30},
      {"move_addresses", &Soak::move_addresses, 10},
      {"move_in_background", &Soak::move_in_background, 10},
      {"move_all", &Soak::move_all, 4},
      {"reclaim", &Soak::reclaim, 6},
      {"split_and_collapse", &Soak::split_and_collapse, 6},
      {"lock", &Soak::lock, 5},
      {"come_and_go", &Soak::come_and_go, 6},
      {"pin", &Soak::pin, 5},
      {"fork_child", &Soak::fork_child, 4},
      {"write_back", &Soak::write_back, 4},
      {"look", &Soak::look, 4},
  };

  // The process first: it is forked before there are threads.
  Cgroup neighbour_cgroup_{"soak"};
  LivingProcess neighbour_{neighbour_cgroup_, 4 * kMib};
  Descriptor neighbour_pidfd_{open_pidfd(neighbour_.pid())};
  std::unique_ptr<Residents> residents_ = std::make_unique<Residents>();
  std::chrono::steady_clock::time_point end_;
  std::shared_mutex loaded_;
  std::mutex counts_lock_;
  std::map<std::string, int> counts_;
  std::atomic<uint64_t> moved_pages_{0};
};

TEST_F(Soak, EverythingAtOnce) {
  const char* asked = std::getenv("MEMSLUICE_SOAK_SECONDS");
  const int seconds = asked ? std::atoi(asked) : kDefaultSeconds;
  const auto seed = static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed());
  std::map<std::string, std::string> knobs;
  for (const char* name : {"batch_stall_us", "pool_mib", "scan_period_ms", "tier_period_ms"})
    knobs[name] = read_file(knob(name));
  end_ = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  {
    std::thread machine([&] { act(3 * seed, machine_, false); });
    std::thread first([&] { act(3 * seed + 1, pages_, true); });
    act(3 * seed + 2, pages_, true);
    first.join();
    machine.join();
  }
  EXPECT_TRUE(residents_->intact());
  EXPECT_TRUE(neighbour_.ended_intact());
  clear_tenant(neighbour_cgroup_.id());
  for (const auto& [name, value] : knobs) write_file(knob(name), value);
  write_file("/proc/sys/kernel/numa_balancing", "0");
  for (const auto& [name, count] : counts_) std::cout << name << " " << count << "\n";
}

}  // namespace
}  // namespace memsluice::test
