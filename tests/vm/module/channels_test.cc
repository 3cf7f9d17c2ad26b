// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <regex>
#include <thread>

#include "tests/vm/module/life.h"
#include "tests/vm/module/machine.h"
#include "tests/vm/module/world.h"

// On the machine "withheld": node 0 has the CPUs, the memory of 1 and 2 is withheld, node 3 is
// there.
namespace memsluice::test {
namespace {

constexpr int kFirst = 1, kSecond = 2, kThere = 3;
constexpr uint32_t kPatienceMs = 60000;
const char kPolicy[] = "/sys/devices/system/memory/auto_online_blocks";

struct Range {
  uint64_t start, length;
};

// What memmap= on the kernel's command line withholds, in the order of nodes.
Range withheld(int node) {
  const std::string line = read_file("/proc/cmdline");
  const std::regex word("memmap=([0-9]+)M\\$([0-9]+)M");
  std::vector<Range> ranges;
  for (std::sregex_iterator at(line.begin(), line.end(), word), end; at != end; ++at)
    ranges.push_back({std::stoull((*at)[2]) * kMib, std::stoull((*at)[1]) * kMib});
  EXPECT_EQ(ranges.size(), 2U) << line;
  return ranges.at(static_cast<size_t>(node - kFirst));
}

uint64_t block_bytes() {
  return std::stoull(read_file("/sys/devices/system/memory/block_size_bytes"), nullptr, 16);
}

memsluice_channel_add addition(const std::string& name, int node, Range range = {}) {
  auto add = sized<memsluice_channel_add>();
  add.node = node;
  add.start = range.start;
  add.length = range.length;
  name.copy(add.name, sizeof(add.name));
  return add;
}

int add(memsluice_channel_add addition, uint32_t* onlined_by = nullptr) {
  const int result = device_ioctl(MEMSLUICE_IOC_CHANNEL_ADD, &addition);
  if (onlined_by) *onlined_by = addition.onlined_by;
  return result;
}

int add(int node) {
  return add(addition("ch" + std::to_string(node), node, withheld(node)));
}

int remove(int node, memsluice_channel_remove* removal = nullptr,
           uint32_t deadline_ms = kPatienceMs) {
  auto mine = sized<memsluice_channel_remove>();
  mine.node = node;
  mine.deadline_ms = deadline_ms;
  const int result = device_ioctl(MEMSLUICE_IOC_CHANNEL_REMOVE, &mine);
  if (removal) *removal = mine;
  return result;
}

std::vector<memsluice_channel_status> list() {
  std::vector<memsluice_channel_status> channels;
  for (;;) {
    auto status = sized<memsluice_channel_status>();
    status.index = static_cast<uint32_t>(channels.size());
    const int result = device_ioctl(MEMSLUICE_IOC_CHANNEL_STATUS, &status);
    if (result) {
      EXPECT_EQ(result, -ENOENT);
      return channels;
    }
    channels.push_back(status);
  }
}

// All zeros when the node is no channel.
memsluice_channel_status status(int node) {
  for (const auto& channel : list())
    if (channel.node == node) return channel;
  return {};
}

std::string online_nodes() {
  return read_file("/sys/devices/system/node/online");
}

void expect_whole(int node) {
  const auto channel = status(node);
  EXPECT_EQ(channel.state, unsigned{MEMSLUICE_CHANNEL_ONLINE});
  EXPECT_EQ(channel.length, withheld(node).length);
  EXPECT_EQ(channel.blocks, channel.length / block_bytes());
  EXPECT_EQ(channel.online_blocks, channel.blocks);
  EXPECT_EQ(channel.movable_blocks, channel.blocks);
}

int place(const Cgroup& cgroup, const std::vector<uint32_t>& nodes) {
  auto placement = sized<memsluice_placement>();
  placement.cgroup_id = cgroup.id();
  for (uint32_t node : nodes) placement.channels[placement.count++] = {node, 1};
  return device_ioctl(MEMSLUICE_IOC_PLACEMENT_SET, &placement);
}

// References on pages, as I/O has them while it lasts, for as long as this lives.
class Held {
 public:
  Held(char* data, size_t bytes) {
    EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0);
    iovec vector = {data, bytes};
    EXPECT_EQ(vmsplice(ends_[1], &vector, 1, 0), static_cast<ssize_t>(bytes));
  }
  ~Held() {
    for (int end : ends_) close(end);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  int ends_[2] = {-1, -1};
};

// The kernel's sums over all nodes are off when a node goes before each CPU has told what it
// counted.
uint64_t isolated_on(int node) {
  const std::string file = "/sys/devices/system/node/node" + std::to_string(node) + "/vmstat";
  return field(file, "nr_isolated_anon") + field(file, "nr_isolated_file");
}

// Leaves nothing behind, whatever fails.
class Channels : public testing::Test {
 protected:
  void TearDown() override {
    for (const auto& channel : list()) EXPECT_EQ(remove(channel.node), 0) << channel.name;
    EXPECT_EQ(online_nodes(), "0,3\n");
    write_file(kPolicy, "online");
    EXPECT_TRUE(eventually([] { return isolated_on(kHome) + isolated_on(kThere) == 0; }, 20));
  }
};

TEST_F(Channels, ANodeThatIsThereGetsAName) {
  EXPECT_TRUE(list().empty());
  auto first = addition("ch.1-a_B", kThere);
  std::strcpy(first.group, "socket0");
  ASSERT_EQ(add(first), 0);
  ASSERT_EQ(list().size(), 1U);
  const auto channel = status(kThere);
  EXPECT_STREQ(channel.name, "ch.1-a_B");
  EXPECT_STREQ(channel.group, "socket0");
  EXPECT_EQ(channel.length, 0U);
  EXPECT_EQ(channel.block_bytes, block_bytes());
  EXPECT_EQ(channel.online_blocks, memory_blocks(kThere).size());
  EXPECT_EQ(channel.movable_blocks, 0U);
  EXPECT_EQ(add(addition("other", kThere)), -EEXIST);
  EXPECT_EQ(add(addition("ch.1-a_B", kHome)), -ENOTUNIQ);
  ASSERT_EQ(add(addition("home", kHome)), 0);
  EXPECT_EQ(list().at(0).node, kHome) << "in ascending order";
  EXPECT_EQ(remove(kThere), 0);
  EXPECT_EQ(remove(kThere), -ENOENT);
  EXPECT_EQ(list().size(), 1U);
}

TEST_F(Channels, WhatMakesNoChannelIsRefusedForItsOwnReason) {
  const Range range = withheld(kFirst);
  ASSERT_EQ(add(addition("second", kSecond, withheld(kSecond))), 0);
  const auto refused = [](int node, uint64_t start, uint64_t length, const char* name = "first") {
    return add(addition(name, node, {start, length}));
  };
  const uint64_t block = block_bytes();
  EXPECT_EQ(refused(kFirst, range.start + kMib, block), -ERANGE);
  EXPECT_EQ(refused(kFirst, range.start, block / 2), -ERANGE);
  EXPECT_EQ(refused(kFirst, range.start, 0), -ERANGE);
  EXPECT_EQ(refused(kFirst, ~uint64_t{0} - block + 1, 2 * block), -ERANGE) << "wraps";
  EXPECT_EQ(refused(kFirst, uint64_t{1} << 60, block), -ERANGE);
  EXPECT_EQ(refused(kFirst, 2 * block, block), -EADDRINUSE) << "memory of node 0";
  EXPECT_EQ(refused(kFirst, range.start - block, 2 * block), -EADDRINUSE) << "in part";
  EXPECT_EQ(refused(kFirst, range.start + block, 2 * block), -EEXIST) << "overlaps the second";
  EXPECT_EQ(refused(-1, range.start + range.length, block), -EEXIST) << "lies in the second";
  EXPECT_EQ(refused(kFirst, 0xb0000000, block), -EADDRNOTAVAIL) << "registers of PCI";
  EXPECT_EQ(refused(kFirst, 0x70000000, block), -EADDRNOTAVAIL) << "nothing is there";
  EXPECT_EQ(refused(kHome, range.start, range.length), -ENOTEMPTY);
  EXPECT_EQ(refused(kSecond, range.start, range.length), -EEXIST);
  EXPECT_EQ(refused(17, range.start, range.length), -ENODEV);
  EXPECT_EQ(refused(1 << 20, range.start, range.length), -ENODEV);
  EXPECT_EQ(refused(-2, range.start, range.length), -ENODEV);
  EXPECT_EQ(refused(kFirst, range.start, range.length, "second"), -ENOTUNIQ);
  EXPECT_EQ(add(addition("first", kFirst)), -ENODEV) << "a node without memory";
  EXPECT_EQ(add(addition("first", 1 << 20)), -ENODEV);
  EXPECT_EQ(add(addition("first", -1)), -ENODEV);
  for (const char* name : {"", "a b", "a/b", "\xc3\xa4", "12345678901234567890123456789012"})
    EXPECT_EQ(refused(kFirst, range.start, range.length, name), -EINVAL) << name;
  auto wrong = addition("first", kFirst, range);
  wrong.reserved = 1;
  EXPECT_EQ(add(wrong), -EINVAL);
  wrong.reserved = 0;
  std::strcpy(wrong.group, "a b");
  EXPECT_EQ(add(wrong), -EINVAL);
  EXPECT_EQ(remove(kSecond, nullptr, 0), -EINVAL);
  EXPECT_EQ(remove(kSecond, nullptr, MEMSLUICE_REMOVE_DEADLINE_MS_MAX + 1), -EINVAL);
  for (int node : {kHome, kFirst, -1, 1 << 20}) EXPECT_EQ(remove(node), -ENOENT);
  EXPECT_EQ(list().size(), 1U);
  EXPECT_EQ(online_nodes(), "0,2-3\n");
  expect_whole(kSecond);
}

TEST_F(Channels, AreForRootOnly) {
  const auto as_nobody = [](auto call) {
    return in_child([&] { return setresuid(65534, 65534, 65534) ? 100 : -call(); });
  };
  EXPECT_EQ(as_nobody([] { return add(kFirst); }), EPERM);
  ASSERT_EQ(add(kFirst), 0);
  EXPECT_EQ(as_nobody([] { return remove(kFirst); }), EPERM);
  expect_whole(kFirst);
}

TEST_F(Channels, WithheldMemoryIsAMovableNodeWhateverThePolicy) {
  const struct {
    const char* policy;
    uint32_t by;
  } cases[] = {{"online", MEMSLUICE_ONLINED_BY_MODULE},
               {"online_kernel", MEMSLUICE_ONLINED_BY_MODULE},
               {"offline", MEMSLUICE_ONLINED_BY_MODULE},
               {"online_movable", MEMSLUICE_ONLINED_BY_KERNEL}};
  for (const auto& [policy, by] : cases) {
    write_file(kPolicy, policy);
    uint32_t onlined_by = 0;
    // The node as the firmware says.
    ASSERT_EQ(add(addition("first", -1, withheld(kFirst)), &onlined_by), 0) << policy;
    EXPECT_EQ(onlined_by, by) << policy;
    EXPECT_EQ(status(kFirst).onlined_by, by);
    expect_whole(kFirst);
    EXPECT_EQ(online_nodes(), "0-1,3\n");
    {
      Pages pages(64 * kMib, kFirst);
      EXPECT_EQ(pages.count_on(kFirst), pages.bytes() / kPageBytes);
      EXPECT_TRUE(pages.intact());
    }
    memsluice_channel_remove removal;
    ASSERT_EQ(remove(kFirst, &removal), 0) << policy;
    EXPECT_EQ(removal.kept_blocks, 0U);
    EXPECT_EQ(online_nodes(), "0,3\n");
  }
}

// Whoever takes a block offline and brings it online again by hand.
TEST_F(Channels, NobodyBringsABlockOnlineForTheKernel) {
  ASSERT_EQ(add(kFirst), 0);
  const std::string state = memory_blocks(kFirst).front();
  const auto set = [&](const char* value) {
    Descriptor file(open(state.c_str(), O_WRONLY | O_CLOEXEC));
    return write(file.get(), value, std::strlen(value)) < 0 ? -errno : 0;
  };
  ASSERT_EQ(set("offline"), 0);
  EXPECT_EQ(status(kFirst).online_blocks, status(kFirst).blocks - 1);
  EXPECT_EQ(set("online_kernel"), -EPERM);
  EXPECT_EQ(set("online_movable"), 0);
  expect_whole(kFirst);
  ASSERT_EQ(set("offline"), 0);
  EXPECT_EQ(remove(kFirst), 0) << "with a block that is offline already";
}

// Tenants' pages go to their other channels, those of others to where there is room.
TEST_F(Channels, WhatIsOnAChannelMovesToTheOtherChannelsOfItsTenant) {
  ASSERT_EQ(add(kFirst), 0);
  ASSERT_EQ(add(kSecond), 0);
  Cgroup tenant("evacuated"), other("beside");
  ASSERT_EQ(set_tenant(tenant, policy_off()), 0);
  ASSERT_EQ(place(tenant, {kFirst}), 0);
  const std::string asked = "/tmp/evacuated";
  std::vector<pid_t> children;
  for (const Cgroup* cgroup : {&tenant, &other})
    children.push_back(start_ready_child([&](auto ready) {
      cgroup->enter(getpid());
      std::unique_ptr<Pages> bound;
      std::unique_ptr<Mapping> placed;
      char* data;
      if (cgroup == &other) {
        bound = std::make_unique<Pages>(24 * kMib, kFirst);
        data = bound->data();
      } else {
        placed = std::make_unique<Mapping>(24 * kMib, MAP_PRIVATE | MAP_ANONYMOUS);
        data = placed->data();
      }
      Life life(data, 24 * kMib);
      const auto nodes = nodes_of(data, 24 * kMib);
      if (std::count(nodes.begin(), nodes.end(), kFirst) != 24 * kMib / kPageBytes) return 2;
      ready();
      while (access(asked.c_str(), F_OK)) usleep(20000);
      const auto now = nodes_of(data, 24 * kMib);
      const int target = cgroup == &tenant ? kSecond : -1;
      if (std::count(now.begin(), now.end(), kFirst)) return 3;
      if (target == kSecond &&
          std::count(now.begin(), now.end(), kSecond) != static_cast<long>(24 * kMib / kPageBytes))
        return 4;
      return life.intact() ? 0 : 5;
    }));
  memsluice_channel_remove removal;
  EXPECT_EQ(remove(kFirst, &removal), -EBUSY);
  EXPECT_EQ(removal.tenant_id, tenant.id());
  expect_whole(kFirst);
  EXPECT_EQ(place(tenant, {kSecond}), 0);
  EXPECT_EQ(remove(kFirst, &removal), 0);
  EXPECT_GE(removal.moved_pages, 2 * 24 * kMib / kPageBytes);
  EXPECT_EQ(place(tenant, {kFirst, kSecond}), -ENODEV);
  touch(asked);
  for (const pid_t child : children) EXPECT_EQ(wait_child(child), 0);
  unlink(asked.c_str());
  EXPECT_EQ(place(tenant, {}), 0);
}

TEST_F(Channels, HeldPagesKeepTheirBlockAndAreToldOf) {
  ASSERT_EQ(add(kFirst), 0);
  Cgroup cgroup("holder");
  const std::string asked = "/tmp/holder";
  const pid_t child = start_ready_child([&](auto ready) {
    cgroup.enter(getpid());
    Pages pages(48 * kMib, kFirst), huge(4 * kHugeBytes, kFirst, Pages::Huge::kAlways);
    Held held(pages.data() + 7 * kPageBytes, 3 * kPageBytes);
    ready();
    while (access(asked.c_str(), F_OK)) usleep(20000);
    return pages.intact() && huge.intact() && pages.count_on(kFirst) == 3 ? 0 : 1;
  });
  const auto begin = std::chrono::steady_clock::now();
  memsluice_channel_remove removal;
  EXPECT_EQ(remove(kFirst, &removal, 2500), -ETIMEDOUT);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(2400));
  EXPECT_EQ(removal.blocks, withheld(kFirst).length / block_bytes());
  EXPECT_GE(removal.kept_blocks, 1U);
  EXPECT_LT(removal.kept_blocks, removal.blocks) << "others went";
  EXPECT_EQ(removal.lost_blocks, 0U);
  EXPECT_EQ(removal.held_pages[MEMSLUICE_FRAMES_ANON], 3U);
  EXPECT_EQ(removal.pages[MEMSLUICE_FRAMES_ANON], 3U) << "the rest has moved";
  EXPECT_EQ(removal.holder_id, cgroup.id());
  expect_whole(kFirst);
  touch(asked);
  EXPECT_EQ(wait_child(child), 0);
  unlink(asked.c_str());
  EXPECT_EQ(remove(kFirst), 0) << "they are held no longer";
}

// A removal goes on while who holds something lets go of it.
TEST_F(Channels, ARemovalWaitsForWhoHolds) {
  ASSERT_EQ(add(kFirst), 0);
  Pages pages(16 * kMib, kFirst);
  auto held = std::make_unique<Held>(pages.data(), 4 * kPageBytes);
  int result = 1;
  std::thread remover([&] { result = remove(kFirst); });
  EXPECT_TRUE(eventually([] { return status(kFirst).state == MEMSLUICE_CHANNEL_REMOVING; }, 20));
  usleep(500'000);
  EXPECT_EQ(status(kFirst).state, unsigned{MEMSLUICE_CHANNEL_REMOVING});
  held.reset();
  remover.join();
  EXPECT_EQ(result, 0);
  EXPECT_EQ(online_nodes(), "0,3\n");
  EXPECT_TRUE(pages.intact());
}

// Memory of a node that nobody moves anywhere.
std::unique_ptr<Mapping> occupy(int node, size_t bytes) {
  auto mapping = std::make_unique<Mapping>(bytes, MAP_PRIVATE | MAP_ANONYMOUS);
  const unsigned long nodes = 1UL << node;
  EXPECT_EQ(syscall(SYS_mbind, mapping->data(), bytes, MPOL_BIND, &nodes, 64UL, 0), 0);
  EXPECT_EQ(mlock(mapping->data(), bytes), 0);
  return mapping;
}

TEST_F(Channels, WhatFindsNoRoomElsewhereStays) {
  ASSERT_EQ(add(kFirst), 0);
  Pages pages(8 * kMib, kFirst);
  const auto large = occupy(kFirst, 200 * kMib), there = occupy(kThere, 200 * kMib);
  const uint64_t free_mib =
      field("/sys/devices/system/node/node0/meminfo", "Node 0 MemFree:") * 1024 / kMib;
  const auto home = occupy(kHome, (free_mib - 100) * kMib);
  memsluice_channel_remove removal;
  EXPECT_EQ(remove(kFirst, &removal), -ENOSPC);
  EXPECT_GE(removal.pages[MEMSLUICE_FRAMES_ANON], 208 * kMib / kPageBytes);
  EXPECT_EQ(removal.moved_pages, 0U);
  expect_whole(kFirst);
  EXPECT_TRUE(pages.intact());
}

TEST_F(Channels, TheModuleStaysAsLongAsTheyDo) {
  ASSERT_EQ(add(addition("there", kThere)), 0);
  ASSERT_EQ(add(kFirst), 0);
  EXPECT_EQ(unload_module(), -EWOULDBLOCK);
  ASSERT_EQ(remove(kFirst), 0);
  for (int round = 0; round < 3; round++) {
    ASSERT_EQ(unload_module(), 0) << "a name keeps nothing";
    ASSERT_EQ(load_module(), 0);
    EXPECT_TRUE(list().empty());
    ASSERT_EQ(add(kFirst), 0);
    ASSERT_EQ(remove(kFirst), 0);
  }
}

// At any time: then the channel is there as a whole, or not at all.
TEST_F(Channels, WhoAddsOrRemovesMayBeKilled) {
  Pages pages(8 * kMib, kHome);
  unsigned there = 0, gone = 0, interrupted = 0;
  {
    Life life(pages.data(), pages.bytes());
    for (unsigned round = 0; round < 24; round++) {
      const bool was_there = status(kFirst).length;
      if (was_there) {
        Pages occupied(16 * kMib, kFirst);
        const pid_t child = start_child([] { return remove(kFirst) ? 1 : 0; });
        usleep(round * 15'000);
        kill(child, SIGKILL);
        interrupted += wait_child(child) < 0 || status(kFirst).length;
        EXPECT_TRUE(occupied.intact());
      } else {
        const pid_t child = start_child([] { return add(kFirst) ? 1 : 0; });
        usleep(round * 5'000);
        kill(child, SIGKILL);
        wait_child(child);
      }
      if (status(kFirst).length) {
        there++;
        expect_whole(kFirst);
        EXPECT_EQ(online_nodes(), "0-1,3\n");
      } else {
        gone++;
        EXPECT_EQ(online_nodes(), "0,3\n");
      }
    }
    EXPECT_TRUE(life.intact());
  }
  EXPECT_GT(there, 0U);
  EXPECT_GT(gone, 0U);
  EXPECT_GT(interrupted, 0U);
}

// And with something that would keep it for ever.
TEST_F(Channels, ARemovalThatIsKilledIsUndone) {
  ASSERT_EQ(add(kFirst), 0);
  Pages pages(24 * kMib, kFirst);
  Held held(pages.data(), kPageBytes);
  for (int round = 0; round < 6; round++) {
    const pid_t child = start_child([] { return remove(kFirst, nullptr, 3600000) ? 1 : 0; });
    EXPECT_TRUE(eventually([] { return status(kFirst).state == MEMSLUICE_CHANNEL_REMOVING; }, 20));
    usleep(static_cast<unsigned>(round) * 150'000);
    kill(child, SIGKILL);
    wait_child(child);
    expect_whole(kFirst);
  }
  EXPECT_TRUE(pages.intact());
}

// Pages come and go on the channel all the time, and are written to; what stays is what was
// written.
TEST_F(Channels, ComeAndGoUnderLoad) {
  Cgroup tenant("loaded");
  ASSERT_EQ(set_tenant(tenant, policy_off()), 0);
  const std::string asked = "/tmp/loaded";
  const pid_t child = start_ready_child([&](auto ready) {
    tenant.enter(getpid());
    Mapping stays(40 * kMib, MAP_PRIVATE | MAP_ANONYMOUS);
    Life life(stays.data(), stays.bytes());
    ready();
    for (uint8_t round = 0; access(asked.c_str(), F_OK); round++) {
      Mapping brief(8 * kMib, MAP_PRIVATE | MAP_ANONYMOUS);
      fill(brief.data(), brief.bytes(), round);
      if (!is_filled(brief.data(), brief.bytes(), round)) return 1;
    }
    return life.intact() ? 0 : 2;
  });
  size_t moved = 0;
  for (int round = 0; round < 12; round++) {
    const int node = round % 2 ? kFirst : kSecond;
    ASSERT_EQ(add(node), 0);
    ASSERT_EQ(place(tenant, {static_cast<uint32_t>(node), kThere}), 0);
    // The pages that are there already, too, so that there is something to move.
    auto migrate = sized<memsluice_migrate>();
    migrate.kind = MEMSLUICE_MIGRATE_TENANT_NODE;
    migrate.pidfd = -1;
    migrate.cgroup_id = tenant.id();
    migrate.source_node = round ? kThere : kHome;
    migrate.target_node = node;
    EXPECT_EQ(device_ioctl(MEMSLUICE_IOC_MIGRATE, &migrate), 0);
    ASSERT_EQ(place(tenant, {kThere}), 0);
    memsluice_channel_remove removal;
    ASSERT_EQ(remove(node, &removal), 0) << "round " << round << ": " << removal.kept_blocks
                                         << " kept, held " << removal.held_pages[0];
    moved += removal.moved_pages;
  }
  touch(asked);
  EXPECT_EQ(wait_child(child), 0);
  unlink(asked.c_str());
  EXPECT_GT(moved, 12U * 40 * kMib / kPageBytes / 2);
}

// One after the other; and whoever looks never waits for them.
TEST_F(Channels, ManyAtOnce) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; i++)
    children.push_back(start_child([i] {
      const int node = i % 2 ? kFirst : kSecond;
      for (int round = 0; round < 4; round++) {
        const int added = add(node), removed = remove(node);
        if (added && added != -EEXIST) return 1;
        if (removed && removed != -ENOENT) return 2;
      }
      return 0;
    }));
  {
    Meanwhile looks([] { (void)list(); });
    Meanwhile counts([] {
      std::vector<memsluice_census_row> rows;
      (void)take_census(-1, &rows);
    });
    for (const pid_t child : children) EXPECT_EQ(wait_child(child), 0);
    EXPECT_GT(looks.times(), 0U);
  }
}

}  // namespace
}  // namespace memsluice::test
