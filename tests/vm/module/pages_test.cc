// SPDX-License-Identifier: GPL-2.0
// Every kind of page there is: it moves, or it is refused with its reason, and its bytes stay.
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "tests/vm/module/life.h"
#include "tests/vm/module/machine.h"
#include "tests/vm/module/requests.h"

namespace memsluice::test {
namespace {

// Writes what is there already.
void write_again(volatile char* at) {
  *at = *at;
}

class PageKinds : public RequestTest {};

TEST_F(PageKinds, RegisteredIoBuffersAreRefusedAndMoveWhenFreed) {
  Pages pages(16 * kPageBytes, kSlow);
  io_uring_params parameters = {};
  Descriptor ring(static_cast<int>(syscall(SYS_io_uring_setup, 4, &parameters)));
  ASSERT_GE(ring.get(), 0) << std::strerror(errno);
  iovec buffer = {pages.data(), 4 * kPageBytes};
  ASSERT_EQ(syscall(SYS_io_uring_register, ring.get(), IORING_REGISTER_BUFFERS, &buffer, 1), 0);
  auto status = move(pages.data(), pages.bytes(), kFast);
  EXPECT_EQ(status.refused_pages[MEMSLUICE_REFUSED_PINNED], 4U);
  EXPECT_EQ(status.moved_pages, 12U);
  ASSERT_EQ(syscall(SYS_io_uring_register, ring.get(), IORING_UNREGISTER_BUFFERS, nullptr, 0), 0);
  EXPECT_TRUE(eventually(
      [&] { return move(pages.data(), pages.bytes(), kFast).already_there_pages == 16; }, 20));
  EXPECT_TRUE(pages.intact());
}

TEST_F(PageKinds, MlockedPagesStayLocked) {
  Pages pages(2 * kMib, kSlow);
  const uint64_t before = field("/proc/meminfo", "Mlocked:");
  ASSERT_EQ(mlock(pages.data(), pages.bytes()), 0);
  Life life(pages.data(), pages.bytes());
  for (int node : {kFast, kSlow, kFast})
    EXPECT_EQ(move(pages.data(), pages.bytes(), node).moved_pages, pages.bytes() / kPageBytes);
  EXPECT_EQ(field("/proc/self/status", "VmLck:"), pages.bytes() / 1024);
  EXPECT_TRUE(life.intact());
  ASSERT_EQ(munlock(pages.data(), pages.bytes()), 0);
  // Unlocked pages wait in batches of their CPU; compaction empties these.
  EXPECT_TRUE(eventually(
      [&] {
        write_file("/proc/sys/vm/compact_memory", "1");
        write_file("/proc/sys/vm/stat_refresh", "1");
        return field("/proc/meminfo", "Mlocked:") == before;
      },
      60))
      << field("/proc/meminfo", "Mlocked:");
}

TEST_F(PageKinds, PagesThatKsmHasMerged) {
  Mapping mapping(64 * kPageBytes, MAP_PRIVATE | MAP_ANONYMOUS);
  std::memset(mapping.data(), 7, mapping.bytes());
  if (madvise(mapping.data(), mapping.bytes(), MADV_MERGEABLE))
    GTEST_SKIP() << "this kernel has no KSM";
  write_file("/sys/kernel/mm/ksm/pages_to_scan", "1000");
  write_file("/sys/kernel/mm/ksm/run", "1");
  EXPECT_TRUE(eventually(
      [] { return std::stoul(read_file("/sys/kernel/mm/ksm/pages_sharing")) >= 32; }, 60));
  // What it scans at that moment, it holds.
  write_file("/sys/kernel/mm/ksm/run", "0");
  for (int node : {kSlow, kFast, kSlow}) {
    auto status = move(mapping.data(), mapping.bytes(), node, kAll);
    EXPECT_EQ(refused(status), 0U);
  }
  for (size_t at = 0; at < mapping.bytes(); at++) ASSERT_EQ(mapping.data()[at], 7);
  mapping.data()[0] = 8;  // and they come apart again
  EXPECT_EQ(mapping.data()[kPageBytes], 7);
  write_file("/sys/kernel/mm/ksm/run", "2");
  write_file("/sys/kernel/mm/ksm/run", "0");
}

TEST_F(PageKinds, PagesOfTheSwapCache) {
  Swap swap;
  Pages pages(8 * kMib, kSlow);
  for (int round = 0; round < 4; round++) {
    ASSERT_EQ(madvise(pages.data(), pages.bytes(), MADV_PAGEOUT), 0);
    // Read, not written: they stay in the swap cache.
    EXPECT_TRUE(pages.intact());
    auto status = move(pages.data(), pages.bytes(), round % 2 ? kSlow : kFast);
    EXPECT_EQ(status.refused_pages[MEMSLUICE_REFUSED_FAILED], 0U);
    EXPECT_GT(status.moved_pages + status.already_there_pages, 0U);
    EXPECT_TRUE(pages.intact());
  }
}

TEST_F(PageKinds, PagesOnTheirWayOutAndIn) {
  Swap swap;
  Pages pages(8 * kMib, kSlow);
  Life life(pages.data(), pages.bytes());
  {
    Meanwhile out([&] { madvise(pages.data(), pages.bytes(), MADV_PAGEOUT); });
    for (int round = 0; round < 6 || out.times() < 2; round++)
      move(pages.data(), pages.bytes(), round % 2 ? kSlow : kFast);
  }
  EXPECT_TRUE(life.intact());
}

TEST_F(PageKinds, FreeablePagesKeepWhatIsWrittenAfter) {
  Pages pages(4 * kMib, kSlow);
  ASSERT_EQ(madvise(pages.data(), pages.bytes(), MADV_FREE), 0);
  // Every second page is taken back by writing.
  for (size_t at = 0; at < pages.bytes(); at += 2 * kPageBytes) pages.data()[at] = 77;
  auto status = move(pages.data(), pages.bytes(), kFast);
  EXPECT_EQ(refused(status), 0U);
  for (size_t at = 0; at < pages.bytes(); at += 2 * kPageBytes) ASSERT_EQ(pages.data()[at], 77);
}

TEST_F(PageKinds, WriteProtectionOfUserfaultfdStays) {
  Pages pages(64 * kPageBytes, kSlow);
  Descriptor fault(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK)));
  ASSERT_GE(fault.get(), 0) << std::strerror(errno);
  uffdio_api api = {.api = UFFD_API, .features = 0, .ioctls = 0};
  ASSERT_EQ(ioctl(fault.get(), UFFDIO_API, &api), 0);
  uffdio_register range = {};
  range.range = {pages.address(), pages.bytes()};
  range.mode = UFFDIO_REGISTER_MODE_WP;
  ASSERT_EQ(ioctl(fault.get(), UFFDIO_REGISTER, &range), 0) << std::strerror(errno);
  uffdio_writeprotect protect = {.range = range.range, .mode = UFFDIO_WRITEPROTECT_MODE_WP};
  ASSERT_EQ(ioctl(fault.get(), UFFDIO_WRITEPROTECT, &protect), 0);
  EXPECT_EQ(move(pages.data(), pages.bytes(), kFast).moved_pages, 64U);
  EXPECT_TRUE(pages.intact());
  std::thread writer([&] { write_again(pages.data() + 5 * kPageBytes); });
  uffd_msg message = {};
  EXPECT_TRUE(eventually(
      [&] { return read(fault.get(), &message, sizeof(message)) == sizeof(message); }, 20));
  EXPECT_EQ(message.event, UFFD_EVENT_PAGEFAULT);
  EXPECT_TRUE(message.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP);
  protect.mode = 0;
  EXPECT_EQ(ioctl(fault.get(), UFFDIO_WRITEPROTECT, &protect), 0);
  writer.join();
  EXPECT_TRUE(pages.intact());
}

// Bit 55 of a page's entry in pagemap.
bool is_soft_dirty(const char* address) {
  Descriptor pagemap(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  uint64_t entry = 0;
  EXPECT_EQ(pread(pagemap.get(), &entry, sizeof(entry),
                  static_cast<off_t>(reinterpret_cast<uint64_t>(address) / kPageBytes * 8)),
            8);
  return entry >> 55 & 1;
}

TEST_F(PageKinds, SoftDirtyBitsStay) {
  Pages pages(16 * kPageBytes, kSlow);
  if (!is_soft_dirty(pages.data())) GTEST_SKIP() << "this kernel keeps no soft-dirty bits";
  write_file("/proc/self/clear_refs", "4");
  write_again(pages.data() + 3 * kPageBytes);
  EXPECT_EQ(move(pages.data(), pages.bytes(), kFast).moved_pages, 16U);
  for (size_t page = 0; page < 16; page++)
    EXPECT_EQ(is_soft_dirty(pages.data() + page * kPageBytes), page == 3) << page;
  EXPECT_TRUE(pages.intact());
}

TEST_F(PageKinds, PartlyMappedHugePagesMoveInPieces) {
  Pages pages(4 * kHugeBytes, kSlow, Pages::Huge::kAlways);
  for (size_t huge = 0; huge < 4; huge++)
    ASSERT_EQ(munmap(pages.data() + huge * kHugeBytes + kHugeBytes / 2, kHugeBytes / 4), 0);
  size_t left = 0;
  for (size_t huge = 0; huge < 4; huge++) {
    const char* start = pages.data() + huge * kHugeBytes;
    left += move(start, kHugeBytes / 2, kFast).moved_pages;
    left += move(start + kHugeBytes / 4 * 3, kHugeBytes / 4, kFast).moved_pages;
  }
  EXPECT_GE(left, 4 * 512 * 3 / 4U);
  for (size_t huge = 0; huge < 4; huge++) {
    for (int at : nodes_of(pages.data() + huge * kHugeBytes, kHugeBytes / 2)) ASSERT_EQ(at, kFast);
  }
}

TEST_F(PageKinds, LargeFoliosOfEverySizeStayWhole) {
  const std::string sizes = "/sys/kernel/mm/transparent_hugepage/hugepages-";
  write_file(sizes + "2048kB/enabled", "never");
  for (size_t kib = 16; kib <= 1024; kib *= 2) {
    const std::string folder = sizes + std::to_string(kib) + "kB/";
    if (access((folder + "enabled").c_str(), W_OK)) continue;
    write_file(folder + "enabled", "always");
    auto allocated = [&] { return std::stoull(read_file(folder + "stats/anon_fault_alloc")); };
    const uint64_t before = allocated();
    {
      Mapping mapping(4 * kMib, MAP_PRIVATE | MAP_ANONYMOUS);
      fill(mapping.data(), mapping.bytes(), static_cast<uint8_t>(kib));
      EXPECT_GT(allocated(), before) << kib;
      const uint64_t split = std::stoull(read_file(folder + "stats/split"));
      for (int node : {kSlow, kFast, kSlow})
        EXPECT_EQ(refused(move(mapping.data(), mapping.bytes(), node)), 0U) << kib;
      EXPECT_EQ(mapping.count_on(kSlow), mapping.bytes() / kPageBytes) << kib;
      EXPECT_EQ(std::stoull(read_file(folder + "stats/split")), split) << kib;
      EXPECT_TRUE(is_filled(mapping.data(), mapping.bytes(), static_cast<uint8_t>(kib))) << kib;
    }
    write_file(folder + "enabled", "never");
  }
  write_file(sizes + "2048kB/enabled", "inherit");
}

TEST_F(PageKinds, SharedMemoryThatIsMappedTwice) {
  Descriptor file(memfd_create("shared", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), 8 * kMib), 0);
  Mapping first(8 * kMib, MAP_SHARED, file.get()), second(8 * kMib, MAP_SHARED, file.get());
  Life life(first.data(), first.bytes());
  // Both mappings are of this process; it is one page all the same.
  for (size_t at = 0; at < second.bytes(); at += kPageBytes)
    asm volatile("" ::"r"(*static_cast<volatile char*>(second.data() + at)));
  for (int node : {kSlow, kFast, kSlow})
    EXPECT_EQ(refused(move(first.data(), first.bytes(), node, kAll)), 0U);
  EXPECT_EQ(first.count_on(kSlow), first.bytes() / kPageBytes);
  EXPECT_TRUE(life.intact());
  EXPECT_EQ(std::memcmp(first.data(), second.data(), first.bytes()), 0);
}

TEST_F(PageKinds, SharedMemoryThatWasSwappedOut) {
  Swap swap;
  Descriptor file(memfd_create("swapped", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), 8 * kMib), 0);
  Mapping mapping(8 * kMib, MAP_SHARED, file.get());
  fill(mapping.data(), mapping.bytes(), 3);
  for (int round = 0; round < 4; round++) {
    ASSERT_EQ(madvise(mapping.data(), mapping.bytes(), MADV_PAGEOUT), 0);
    EXPECT_TRUE(is_filled(mapping.data(), mapping.bytes(), 3));
    EXPECT_EQ(refused(move(mapping.data(), mapping.bytes(), round % 2 ? kSlow : kFast, kAll)), 0U);
    EXPECT_TRUE(is_filled(mapping.data(), mapping.bytes(), 3));
  }
}

TEST_F(PageKinds, SealedMemoryMoves) {
  Descriptor file(memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(file.get(), kMib), 0);
  {
    Mapping writable(kMib, MAP_SHARED, file.get());
    fill(writable.data(), writable.bytes(), 9);
  }
  ASSERT_EQ(fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW), 0);
  auto* data = static_cast<char*>(mmap(nullptr, kMib, PROT_READ, MAP_SHARED, file.get(), 0));
  ASSERT_NE(static_cast<void*>(data), MAP_FAILED);
  EXPECT_TRUE(is_filled(data, kMib, 9));
  for (int node : {kSlow, kFast}) EXPECT_EQ(refused(move(data, kMib, node, kAll)), 0U);
  EXPECT_TRUE(is_filled(data, kMib, 9));
  munmap(data, kMib);
}

TEST_F(PageKinds, SecretMemoryIsRefused) {
  Descriptor file(static_cast<int>(syscall(SYS_memfd_secret, 0)));
  if (file.get() < 0) GTEST_SKIP() << "no secret memory: " << std::strerror(errno);
  ASSERT_EQ(ftruncate(file.get(), 4 * kPageBytes), 0);
  Mapping mapping(4 * kPageBytes, MAP_SHARED, file.get());
  fill(mapping.data(), mapping.bytes(), 5);
  auto status = move(mapping.data(), mapping.bytes(), kSlow, kAll);
  EXPECT_EQ(status.moved_pages, 0U);
  EXPECT_EQ(refused(status) + status.already_there_pages, 4U);
  EXPECT_TRUE(is_filled(mapping.data(), mapping.bytes(), 5));
}

TEST_F(PageKinds, PagesOfFilesCleanDirtyAndUnderWriteback) {
  Ext4 disk;
  Descriptor file(open("/mnt/ext4/file", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(ftruncate(file.get(), 8 * kMib), 0);
  Mapping mapping(8 * kMib, MAP_SHARED, file.get());
  fill(mapping.data(), mapping.bytes(), 1);
  EXPECT_EQ(refused(move(mapping.data(), mapping.bytes(), kSlow, kAll)), 0U) << "dirty";
  ASSERT_EQ(fsync(file.get()), 0);
  EXPECT_EQ(refused(move(mapping.data(), mapping.bytes(), kFast, kAll)), 0U) << "clean";
  EXPECT_TRUE(is_filled(mapping.data(), mapping.bytes(), 1));
  {
    Life life(mapping.data(), mapping.bytes());
    Meanwhile writeback([&] { sync_file_range(file.get(), 0, 0, SYNC_FILE_RANGE_WRITE); });
    for (int round = 0; round < 6; round++)
      move(mapping.data(), mapping.bytes(), round % 2 ? kFast : kSlow, kAll);
    EXPECT_TRUE(life.intact());
  }
  ASSERT_EQ(fsync(file.get()), 0);
}

TEST_F(PageKinds, DirectIoOfEachPageEndsWhole) {
  Ext4 disk;
  Descriptor file(open("/mnt/ext4/direct", O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600));
  Pages source(2 * kMib, kSlow, Pages::Huge::kNever, 11);
  Mapping target(2 * kMib, MAP_PRIVATE | MAP_ANONYMOUS);
  ASSERT_EQ(pwrite(file.get(), source.data(), source.bytes(), 0),
            static_cast<ssize_t>(source.bytes()));
  uint64_t bad = 0;
  {
    Meanwhile io([&] {
      std::memset(target.data(), 0, target.bytes());
      if (pwrite(file.get(), source.data(), source.bytes(), 0) !=
              static_cast<ssize_t>(source.bytes()) ||
          pread(file.get(), target.data(), target.bytes(), 0) !=
              static_cast<ssize_t>(target.bytes()) ||
          std::memcmp(source.data(), target.data(), target.bytes()) != 0)
        bad++;
    });
    for (int round = 0; round < 12 || io.times() < 3; round++) {
      move(source.data(), source.bytes(), round % 2 ? kSlow : kFast);
      move(target.data(), target.bytes(), round % 2 ? kSlow : kFast);
    }
  }
  EXPECT_EQ(bad, 0U);
  EXPECT_TRUE(source.intact());
}

TEST_F(PageKinds, APoisonedPageStaysAndTheOthersMove) {
  Pages pages(64 * kPageBytes, kSlow);
  char* poisoned = pages.data() + 7 * kPageBytes;
  // Who asks for it is told at once, in a way that cannot be ignored.
  signal(SIGBUS, [](int) {});
  const int error = madvise(poisoned, kPageBytes, MADV_HWPOISON) ? errno : 0;
  signal(SIGBUS, SIG_DFL);
  if (error) GTEST_SKIP() << "this kernel injects no memory failures: " << std::strerror(error);
  auto status = move(pages.data(), pages.bytes(), kFast);
  EXPECT_EQ(status.moved_pages, 63U);
  std::vector<int> nodes = nodes_of(pages.data(), pages.bytes());
  for (size_t page = 0; page < 64; page++) {
    if (page == 7) continue;
    EXPECT_EQ(nodes[page], kFast) << page;
  }
  pid_t reader = start_child([&] { return *static_cast<volatile char*>(poisoned); });
  EXPECT_EQ(wait_child(reader), 128 + SIGBUS);
}

TEST_F(PageKinds, ALimitOfTheCgroupIsNoObstacle) {
  Cgroup cgroup("limit");
  pid_t child = start_ready_child([&](auto ready) {
    cgroup.enter(getpid());
    Pages pages(16 * kMib, kSlow);
    cgroup.write("memory.max",
                 std::to_string(field(cgroup.path() + "/memory.stat", "anon ") + kMib));
    Life life(pages.data(), pages.bytes());
    ready();
    while (access("/tmp/limit-done", F_OK)) usleep(20000);
    return life.intact() ? 0 : 1;
  });
  const uint64_t before = field(cgroup.path() + "/memory.stat", "anon ");
  Descriptor pidfd(open_pidfd(child));
  for (int node : {kFast, kSlow, kFast}) {
    memsluice_request_status status;
    ASSERT_EQ(move_process(pidfd.get(), node, &status), 0);
    EXPECT_GE(status.moved_pages, 16 * kMib / kPageBytes);
  }
  EXPECT_LE(field(cgroup.path() + "/memory.stat", "anon "), before + kMib);
  EXPECT_EQ(field(cgroup.path() + "/memory.events", "oom_kill"), 0U);
  touch("/tmp/limit-done");
  EXPECT_EQ(wait_child(child), 0);
  unlink("/tmp/limit-done");
}

}  // namespace
}  // namespace memsluice::test
