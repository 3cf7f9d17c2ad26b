// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/io_uring.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>

#include "tests/vm/module/life.h"
#include "tests/vm/module/machine.h"
#include "tests/vm/module/requests.h"
#include "tests/vm/module/world.h"

namespace memsluice::test {
namespace {

using Row = memsluice_census_row;
constexpr size_t kPagesPerMib = kMib / kPageBytes;

std::vector<Row> take(int node = -1) {
  std::vector<Row> rows;
  EXPECT_EQ(take_census(node, &rows), 0);
  return rows;
}

// Of rows that are charged to a cgroup, or belong to a tenant.
uint64_t pages_of(const std::vector<Row>& rows, __u64 Row::*id, uint64_t wanted, int node,
                  memsluice_frame_kind kind) {
  uint64_t pages = 0;
  for (const Row& row : rows)
    if (row.*id == wanted && row.node == node) pages += row.pages[kind];
  return pages;
}

uint64_t all_pages(const Row& row) {
  return std::accumulate(std::begin(row.pages), std::end(row.pages), uint64_t{0});
}

// Of all zones of a node, as /proc/zoneinfo has it.
uint64_t zone_pages(int node, const std::string& name) {
  std::ifstream file("/proc/zoneinfo");
  const std::string zone_of_node = "Node " + std::to_string(node) + ",";
  uint64_t pages = 0;
  bool ours = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("Node ")) ours = line.starts_with(zone_of_node);
    std::istringstream words(line);
    std::string word;
    uint64_t value = 0;
    if (ours && words >> word >> value && word == name) pages += value;
  }
  return pages;
}

// Of memory.numa_stat, in pages.
uint64_t numa_stat(const Cgroup& cgroup, const std::string& kind, int node) {
  std::istringstream lines(read_file(cgroup.path() + "/memory.numa_stat"));
  const std::string of_node = " N" + std::to_string(node) + "=";
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(kind + " "))
      return std::stoull(line.substr(line.find(of_node) + of_node.size())) / kPageBytes;
  ADD_FAILURE() << "no " << kind;
  return 0;
}

void bind(const Mapping& mapping, int node) {
  const unsigned long nodes = 1UL << node;
  EXPECT_EQ(syscall(SYS_mbind, mapping.data(), mapping.bytes(), MPOL_BIND, &nodes, 64UL, 0), 0);
}

// A process in a cgroup that does what it is told before it waits to be killed. What fails in it
// before it is ready fails the test.
class Inhabitant {
 public:
  Inhabitant(const Cgroup& cgroup, const std::function<void(const std::function<void()>&)>& live)
      : pid_(start_ready_child([&](auto ready) {
          cgroup.enter(getpid());
          live([&] {
            if (testing::Test::HasFailure()) _exit(1);
            ready();
          });
          return 0;
        })) {}
  ~Inhabitant() { end(); }
  Inhabitant(const Inhabitant&) = delete;
  Inhabitant& operator=(const Inhabitant&) = delete;
  void end() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    wait_child(pid_);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

TEST(Census, EveryFrameIsInOneRow) {
  const auto rows = take();
  for (int node : {kFast, kSlow}) {
    uint64_t pages = 0;
    for (const Row& row : rows)
      if (row.node == node) pages += all_pages(row);
    EXPECT_GE(pages, zone_pages(node, "present"));
    EXPECT_LE(pages, zone_pages(node, "spanned"));
    const uint64_t free = pages_of(rows, &Row::cgroup_id, 0, node, MEMSLUICE_FRAMES_FREE);
    const uint64_t counted = zone_pages(node, "nr_free_pages");
    // What CPUs keep for themselves is free, too, and not counted there.
    EXPECT_GT(free, counted - counted / 20);
    EXPECT_LT(free, counted + counted / 20 + 16 * kPagesPerMib);
  }
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(), [](const Row& left, const Row& right) {
    return std::pair(left.node, left.cgroup_id) < std::pair(right.node, right.cgroup_id);
  }));
}

TEST(Census, OneNodeHasTheRowsOfThatNode) {
  const auto rows = take(kSlow);
  ASSERT_FALSE(rows.empty());
  for (const Row& row : rows) EXPECT_EQ(row.node, kSlow);
}

TEST(Census, AgreesWithTheKernelsOwnCounts) {
  Cgroup cgroup("counted");
  Ext4 disk;
  Inhabitant inhabitant(cgroup, [](auto ready) {
    Pages base(24 * kMib, kSlow), more(5 * kMib, kFast);
    Pages huge(3 * kHugeBytes, kSlow, Pages::Huge::kAlways);
    Descriptor memory(memfd_create("counted", MFD_CLOEXEC));
    EXPECT_EQ(ftruncate(memory.get(), 7 * kMib), 0);
    Mapping shared(7 * kMib, MAP_SHARED, memory.get());
    bind(shared, kSlow);
    fill(shared.data(), shared.bytes(), 1);
    Descriptor file(open((std::string(Ext4::kFolder) + "/counted").c_str(),
                         O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    std::vector<char> text(6 * kMib, 'x');
    EXPECT_EQ(write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    EXPECT_EQ(fsync(file.get()), 0);
    ready();
    pause();
  });
  // The kernel brings its counts together every two seconds.
  std::ostringstream said;
  EXPECT_TRUE(eventually(
      [&] {
        const auto rows = take();
        bool equal = true;
        said.str("");
        for (int node : {kFast, kSlow}) {
          const auto counted = [&](memsluice_frame_kind kind) {
            return pages_of(rows, &Row::cgroup_id, cgroup.id(), node, kind);
          };
          const uint64_t shmem = numa_stat(cgroup, "shmem", node);
          const std::pair<uint64_t, uint64_t> pairs[] = {
              {counted(MEMSLUICE_FRAMES_ANON), numa_stat(cgroup, "anon", node)},
              {counted(MEMSLUICE_FRAMES_SHMEM), shmem},
              {counted(MEMSLUICE_FRAMES_FILE), numa_stat(cgroup, "file", node) - shmem}};
          for (const auto& [ours, theirs] : pairs) {
            said << "node " << node << ": " << ours << " and " << theirs << "\n";
            equal &= ours == theirs;
          }
        }
        return equal;
      },
      30))
      << said.str();
  const auto rows = take(kSlow);
  EXPECT_GE(pages_of(rows, &Row::cgroup_id, cgroup.id(), kSlow, MEMSLUICE_FRAMES_ANON),
            30 * kPagesPerMib);
  EXPECT_EQ(pages_of(rows, &Row::cgroup_id, cgroup.id(), kSlow, MEMSLUICE_FRAMES_SHMEM),
            7 * kPagesPerMib);
  EXPECT_GT(pages_of(take(), &Row::cgroup_id, cgroup.id(), kFast, MEMSLUICE_FRAMES_KERNEL), 0U)
      << "page tables";
}

TEST(Census, TellsWhatIsHeld) {
  Cgroup cgroup("holds");
  Inhabitant inhabitant(cgroup, [](auto ready) {
    Pages pinned(8 * kPageBytes, kSlow), spliced(3 * kPageBytes, kSlow), free(kMib, kSlow);
    io_uring_params parameters = {};
    Descriptor ring(static_cast<int>(syscall(SYS_io_uring_setup, 4, &parameters)));
    iovec buffer = {pinned.data(), pinned.bytes()};
    EXPECT_EQ(syscall(SYS_io_uring_register, ring.get(), IORING_REGISTER_BUFFERS, &buffer, 1), 0);
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    iovec vector = {spliced.data(), spliced.bytes()};
    EXPECT_EQ(vmsplice(ends[1], &vector, 1, 0), static_cast<ssize_t>(spliced.bytes()));
    ready();
    pause();
  });
  // Whoever looks at a page for a moment holds it, too.
  uint64_t held = 0;
  EXPECT_TRUE(eventually(
      [&] {
        held = 0;
        for (const Row& row : take(kSlow))
          if (row.cgroup_id == cgroup.id()) held += row.held_pages[MEMSLUICE_FRAMES_ANON];
        return held == 11;
      },
      20))
      << held;
}

// Its pages stay charged to it, or, on newer kernels, to its parent.
TEST(Census, PagesOfARemovedCgroupStayTheTenants) {
  Cgroup tenant("leaves-pages");
  ASSERT_EQ(set_tenant(tenant, policy_off()), 0);
  tenant.write("cgroup.subtree_control", "+memory");
  Descriptor memory(memfd_create("left", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(memory.get(), 4 * kMib), 0);
  Mapping shared(4 * kMib, MAP_SHARED, memory.get());
  bind(shared, kSlow);
  {
    Cgroup child("child", tenant.path());
    Inhabitant inhabitant(child, [&](auto ready) {
      fill(shared.data(), shared.bytes(), 1);
      ready();
      pause();
    });
    EXPECT_EQ(pages_of(take(), &Row::cgroup_id, child.id(), kSlow, MEMSLUICE_FRAMES_SHMEM),
              4 * kPagesPerMib);
    inhabitant.end();
  }
  const auto rows = take();
  EXPECT_EQ(pages_of(rows, &Row::tenant_id, tenant.id(), kSlow, MEMSLUICE_FRAMES_SHMEM),
            4 * kPagesPerMib);
  EXPECT_TRUE(is_filled(shared.data(), shared.bytes(), 1));
}

class CensusOfThePool : public RequestTest {};

TEST_F(CensusOfThePool, IsNotTakenForTheKernels) {
  Pages pages(32 * kMib, kSlow);
  uint64_t told = 0, counted = 0;
  // It fades when nothing moves.
  EXPECT_TRUE(eventually(
      [&] {
        for (int node : {kFast, kSlow}) move(pages.data(), pages.bytes(), node);
        told = field("/proc/memsluice/migration", "pool 1 pages");
        counted = pages_of(take(kSlow), &Row::cgroup_id, 0, kSlow, MEMSLUICE_FRAMES_POOL);
        return told > 0 && told == counted &&
               told == field("/proc/memsluice/migration", "pool 1 pages");
      },
      60))
      << told << " and " << counted;
  EXPECT_TRUE(pages.intact());
}

TEST(Census, ArgumentsAreChecked) {
  Row rows[2] = {};
  const auto call = [&](auto change) {
    auto census = sized<memsluice_census>();
    census.node = kSlow;
    census.rows = reinterpret_cast<uint64_t>(rows);
    census.capacity = 1;
    census.row_size = sizeof(Row);
    change(census);
    return device_ioctl(MEMSLUICE_IOC_CENSUS, &census);
  };
  using Census = memsluice_census;
  EXPECT_EQ(call([](Census& census) { census.reserved = 1; }), -EINVAL);
  EXPECT_EQ(call([](Census& census) { census.row_size = sizeof(Row) - 8; }), -EINVAL);
  EXPECT_EQ(call([](Census& census) { census.row_size = sizeof(Row) + 4; }), -EINVAL);
  EXPECT_EQ(call([](Census& census) { census.row_size = 8192; }), -EINVAL);
  EXPECT_EQ(call([](Census& census) { census.node = -2; }), -ENODEV);
  EXPECT_EQ(call([](Census& census) { census.node = 5; }), -ENODEV);
  EXPECT_EQ(call([](Census& census) { census.node = 1 << 20; }), -ENODEV);
  EXPECT_EQ(call([](Census& census) { census.rows = 8; }), -EFAULT);
  EXPECT_EQ(call([](Census& census) { census.size = 8; }), -EINVAL);
}

TEST(Census, WritesNoMoreThanThereIsRoomFor) {
  const size_t all = take().size();
  ASSERT_GT(all, 2U);
  auto census = sized<memsluice_census>();
  census.node = -1;
  census.row_size = sizeof(Row);
  EXPECT_EQ(device_ioctl(MEMSLUICE_IOC_CENSUS, &census), 0) << "to learn how many there are";
  EXPECT_GE(census.count + 2, all);

  // Rows of a caller that was built with more members than this module has.
  struct {
    Row row;
    uint64_t more;
  } rows[2] = {};
  std::memset(static_cast<void*>(rows), 0x77, sizeof(rows));
  census.rows = reinterpret_cast<uint64_t>(rows);
  census.row_size = sizeof(rows[0]);
  census.capacity = 1;
  EXPECT_EQ(device_ioctl(MEMSLUICE_IOC_CENSUS, &census), 0);
  EXPECT_EQ(rows[0].row.node, kFast);
  EXPECT_GT(all_pages(rows[0].row), 0U);
  EXPECT_EQ(rows[0].more, 0U);
  EXPECT_EQ(rows[1].more, 0x7777777777777777U);
}

TEST(Census, IsATableToo) {
  Cgroup cgroup("a table");
  ASSERT_EQ(set_tenant(cgroup, policy_off()), 0);
  Inhabitant inhabitant(cgroup, [](auto ready) {
    Pages pages(9 * kMib, kSlow);
    ready();
    pause();
  });
  const auto id = std::to_string(cgroup.id());
  const std::string begin =
      "\n1 " + id + " /a\\040table " + id + " " + std::to_string(9 * kPagesPerMib) + " 0 ";
  std::string table;
  EXPECT_TRUE(eventually(
      [&] {
        table = read_file("/proc/memsluice/census");
        return table.find(begin) != std::string::npos;
      },
      20))
      << table;
  EXPECT_EQ(table.find("# node cgroup_id path tenant_id anon_pages "), 0U);
  EXPECT_NE(table.find("\n0 0 - 0 "), std::string::npos) << "what nobody is charged for";
}

TEST(Census, IsTakenWhileEverythingMoves) {
  Descriptor self(open_pidfd(getpid()));
  Pages pages(8 * kMib, kSlow), huge(4 * kHugeBytes, kSlow, Pages::Huge::kAlways);
  std::vector<Row> rows;
  {
    int node = kFast;
    Meanwhile moves([&] {
      memsluice_request_status status;
      (void)move_process(self.get(), node, &status);
      node = node == kFast ? kSlow : kFast;
    });
    Meanwhile comes_and_goes([] {
      Cgroup cgroup("brief");
      EXPECT_EQ(in_child([&] {
                  cgroup.enter(getpid());
                  Mapping mapping(kMib, MAP_PRIVATE | MAP_ANONYMOUS);
                  fill(mapping.data(), mapping.bytes(), 1);
                  return 0;
                }),
                0);
    });
    Meanwhile memory([] { (void)cycle_memory(kSlow, 1); });
    for (int round = 0; round < 20; round++) EXPECT_EQ(take_census(-1, &rows), 0);
  }
  EXPECT_TRUE(pages.intact());
  EXPECT_TRUE(huge.intact());
}

}  // namespace
}  // namespace memsluice::test
