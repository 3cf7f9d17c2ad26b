// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/guest_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <future>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "daemon/base/fd.h"

namespace memsluice::dsa {
namespace {

using View = GuestMemory::View;
constexpr auto kRead = GuestMemory::Access::kRead;
constexpr auto kWrite = GuestMemory::Access::kWrite;

constexpr uint64_t kAddress = 0x100000;
constexpr uint64_t kFileBytes = 0x10000;
constexpr uint64_t kTop = std::numeric_limits<uint64_t>::max();

// Its bytes are the numbers of their places, more or less.
uint8_t byte_at(uint64_t offset) {
  return static_cast<uint8_t>(offset ^ offset >> 8);
}

class GuestMemoryTest : public testing::Test {
 protected:
  GuestMemoryTest() : file_(memfd_create("guest-memory-test", MFD_CLOEXEC)) {
    std::vector<uint8_t> bytes(kFileBytes);
    for (size_t i = 0; i < bytes.size(); i++) bytes[i] = byte_at(i);
    EXPECT_EQ(pwrite(file_.get(), bytes.data(), bytes.size(), 0), ssize_t{kFileBytes});
  }

  void map(uint64_t address, uint64_t bytes, uint64_t offset, bool writable = true) {
    const auto mapped = memory_.map(address, bytes, file_.get(), offset, writable);
    ASSERT_TRUE(mapped.ok()) << mapped.error().describe();
  }
  void expect_refused(uint64_t address, uint64_t bytes, uint64_t offset, const char* message) {
    const auto mapped = memory_.map(address, bytes, file_.get(), offset, true);
    ASSERT_FALSE(mapped.ok());
    EXPECT_EQ(mapped.error().code, ErrorCode::kBadRequest);
    EXPECT_EQ(mapped.error().message, message);
  }
  uint8_t in_file(uint64_t offset) {
    uint8_t byte = 0;
    EXPECT_EQ(pread(file_.get(), &byte, 1, static_cast<off_t>(offset)), 1);
    return byte;
  }
  std::span<uint8_t> from(uint64_t address, uint64_t bytes,
                          GuestMemory::Access access = kRead) const {
    return View(memory_).from(address, bytes, access);
  }
  std::span<uint8_t> before(uint64_t end, uint64_t bytes,
                            GuestMemory::Access access = kRead) const {
    return View(memory_).before(end, bytes, access);
  }
  std::span<uint8_t> all(uint64_t address, uint64_t bytes,
                         GuestMemory::Access access = kRead) const {
    return View(memory_).all(address, bytes, access);
  }

  const Fd file_;
  GuestMemory memory_;
};

TEST_F(GuestMemoryTest, BeginsEmpty) {
  EXPECT_TRUE(from(0, 1).empty());
  EXPECT_TRUE(before(kTop, 1).empty());
  EXPECT_TRUE(all(kAddress, 1).empty());
}

TEST_F(GuestMemoryTest, ShowsTheBytesOfItsFile) {
  map(kAddress, 0x2000, 0x1000);
  const auto bytes = from(kAddress, 0x2000);
  ASSERT_EQ(bytes.size(), 0x2000u);
  for (const uint64_t at : {0, 1, 0xfff, 0x1000, 0x1fff})
    EXPECT_EQ(bytes[at], byte_at(0x1000 + at)) << at;
}

TEST_F(GuestMemoryTest, ShowsAFileFromWithinAPageOn) {
  map(kAddress, 0x1f00, 0x1234);  // of three pages of the file
  const auto bytes = from(kAddress, 0x1f00);
  ASSERT_EQ(bytes.size(), 0x1f00u);
  for (const uint64_t at : {0, 1, 0xdcb, 0xdcc, 0x1dcc, 0x1eff})
    EXPECT_EQ(bytes[at], byte_at(0x1234 + at)) << at;
  EXPECT_TRUE(from(kAddress + 0x1f00, 1).empty());
}

TEST_F(GuestMemoryTest, WritesToItsFile) {
  map(kAddress, 0x1000, 0x1234);
  from(kAddress + 5, 1, kWrite)[0] = 0xee;
  EXPECT_EQ(in_file(0x1239), 0xee);
  EXPECT_EQ(in_file(0x1238), byte_at(0x1238));
}

TEST_F(GuestMemoryTest, StaysWhenItsFileIsClosed) {
  {
    const Fd copy(dup(file_.get()));
    ASSERT_TRUE(memory_.map(kAddress, 16, copy.get(), 0x40, true).ok());
  }
  EXPECT_EQ(from(kAddress, 16)[1], byte_at(0x41));
}

TEST_F(GuestMemoryTest, GivesWhatLiesTogether) {
  map(kAddress, 0x1000, 0);
  map(kAddress + 0x1000, 0x1000, 0x8000);
  EXPECT_EQ(from(kAddress + 0xff0, 64).size(), 16u);
  EXPECT_EQ(from(kAddress + 0xff0, 8).size(), 8u);
  EXPECT_EQ(from(kAddress + 0x1000, 64)[0], byte_at(0x8000));
  EXPECT_TRUE(from(kAddress, 0).empty());
}

TEST_F(GuestMemoryTest, GivesWhatLiesTogetherBeforeAnEnd) {
  map(kAddress, 0x1000, 0);
  map(kAddress + 0x1000, 0x1000, 0x8000);
  const auto second = before(kAddress + 0x1010, 64);
  ASSERT_EQ(second.size(), 16u);
  EXPECT_EQ(second[0], byte_at(0x8000));
  const auto first = before(kAddress + 0x1000, 64);
  ASSERT_EQ(first.size(), 64u);
  EXPECT_EQ(first[63], byte_at(0xfff));
  EXPECT_EQ(first[0], byte_at(0xfc0));
  EXPECT_TRUE(before(kAddress + 0x1000, 0).empty());
}

TEST_F(GuestMemoryTest, GivesAllOrNothing) {
  map(kAddress, 0x1000, 0);
  map(kAddress + 0x1000, 0x1000, 0x8000);
  EXPECT_EQ(all(kAddress + 0xff0, 16).size(), 16u);
  EXPECT_TRUE(all(kAddress + 0xff0, 17).empty());
  EXPECT_EQ(all(kAddress + 0x1000, 0x1000).size(), 0x1000u);
}

TEST_F(GuestMemoryTest, EndsAtItsEdges) {
  map(kAddress, 0x1000, 0);
  EXPECT_TRUE(from(kAddress - 1, 1).empty());
  EXPECT_EQ(from(kAddress, 1).size(), 1u);
  EXPECT_EQ(from(kAddress + 0xfff, 2).size(), 1u);
  EXPECT_TRUE(from(kAddress + 0x1000, 1).empty());
  EXPECT_TRUE(before(kAddress, 1).empty());
  EXPECT_EQ(before(kAddress + 1, 2).size(), 1u);
  EXPECT_EQ(before(kAddress + 0x1000, 1).size(), 1u);
  EXPECT_TRUE(before(kAddress + 0x1001, 1).empty());
}

TEST_F(GuestMemoryTest, HasGaps) {
  map(kAddress, 0x1000, 0);
  map(kAddress + 0x2000, 0x1000, 0x2000);
  EXPECT_TRUE(from(kAddress + 0x1000, 1).empty());
  EXPECT_TRUE(from(kAddress + 0x1fff, 2).empty());
  EXPECT_TRUE(before(kAddress + 0x2000, 1).empty());
  EXPECT_EQ(from(kAddress, 0x3000).size(), 0x1000u);
  EXPECT_EQ(before(kAddress + 0x3000, 0x3000).size(), 0x1000u);
}

TEST_F(GuestMemoryTest, ReachesFromTheFirstAddressToTheLast) {
  map(0, 0x1000, 0);
  map(kTop - 0xfff, 0x1000, 0x1000);
  EXPECT_EQ(from(0, 1)[0], byte_at(0));
  EXPECT_EQ(from(kTop, 2).size(), 1u);
  EXPECT_EQ(from(kTop, 1)[0], byte_at(0x1fff));
  const auto last = before(0, 16);  // the end is one more than the last address
  ASSERT_EQ(last.size(), 16u);
  EXPECT_EQ(last[15], byte_at(0x1fff));
}

TEST_F(GuestMemoryTest, MayBeReadOnly) {
  map(kAddress, 0x1000, 0, false);
  EXPECT_EQ(from(kAddress, 16).size(), 16u);
  EXPECT_TRUE(from(kAddress, 16, kWrite).empty());
  EXPECT_TRUE(before(kAddress + 16, 16, kWrite).empty());
  EXPECT_TRUE(all(kAddress, 16, kWrite).empty());
}

TEST_F(GuestMemoryTest, MayBeReadOnlyAsItsFileIs) {
  const Fd read_only(open(("/proc/self/fd/" + std::to_string(file_.get())).c_str(), O_RDONLY));
  ASSERT_TRUE(read_only.valid());
  const auto mapped = memory_.map(kAddress, 16, read_only.get(), 0, true);
  ASSERT_FALSE(mapped.ok());
  EXPECT_EQ(mapped.error().os_error, EACCES);
  EXPECT_TRUE(memory_.map(kAddress, 16, read_only.get(), 0, false).ok());
  EXPECT_EQ(from(kAddress, 1)[0], byte_at(0));
}

TEST_F(GuestMemoryTest, WithoutAFileIsKnownButNotReached) {
  ASSERT_TRUE(memory_.map(kAddress, 0x1000, -1, 0, true).ok());
  EXPECT_TRUE(from(kAddress, 16).empty());
  EXPECT_TRUE(from(kAddress, 16, kWrite).empty());
  EXPECT_TRUE(before(kAddress + 16, 16).empty());
  EXPECT_TRUE(all(kAddress, 16).empty());
  expect_refused(kAddress + 0xfff, 1, 0, "overlaps what is mapped already");
  EXPECT_EQ(memory_.unmap(kAddress, 0x1000), 0x1000u);
}

TEST_F(GuestMemoryTest, DoesNotOverlap) {
  constexpr const char* kOverlaps = "overlaps what is mapped already";
  map(kAddress, 0x1000, 0);
  expect_refused(kAddress, 0x1000, 0, kOverlaps);
  expect_refused(kAddress + 0x800, 1, 0, kOverlaps);
  expect_refused(kAddress + 0xfff, 0x1000, 0, kOverlaps);
  expect_refused(kAddress - 0xfff, 0x1000, 0, kOverlaps);
  expect_refused(kAddress - 0x1000, 0x3000, 0, kOverlaps);
  map(kAddress - 0x1000, 0x1000, 0);
  map(kAddress + 0x1000, 0x1000, 0);
  EXPECT_EQ(from(kAddress + 1, 1)[0], byte_at(1)) << "the first stays";
}

TEST_F(GuestMemoryTest, DoesNotWrapAround) {
  constexpr const char* kNoRange = "is not a range of addresses";
  expect_refused(kTop, 2, 0, kNoRange);
  expect_refused(kTop - 0xfff, 0x1001, 0, kNoRange);
  expect_refused(1, kTop, 0, "reaches beyond the end of its file");
  expect_refused(2, kTop, 0, kNoRange);
  expect_refused(kAddress, 0, 0, kNoRange);
}

TEST_F(GuestMemoryTest, SaysWhatItRefuses) {
  const auto mapped = memory_.map(0x1000, 0, file_.get(), 0, true);
  ASSERT_FALSE(mapped.ok());
  EXPECT_EQ(mapped.error().object, "0x1000+0x0");
}

TEST_F(GuestMemoryTest, DoesNotReachBeyondTheEndOfItsFile) {
  constexpr const char* kBeyond = "reaches beyond the end of its file";
  expect_refused(kAddress, kFileBytes + 1, 0, kBeyond);
  expect_refused(kAddress, 1, kFileBytes, kBeyond);
  expect_refused(kAddress, 0x1001, kFileBytes - 0x1000, kBeyond);
  expect_refused(kAddress, 1, kTop, kBeyond);
  expect_refused(kAddress, 0x1000, kTop - 0x7ff, kBeyond);
  map(kAddress, kFileBytes, 0);
  EXPECT_EQ(from(kAddress + kFileBytes - 1, 1)[0], byte_at(kFileBytes - 1));
}

TEST_F(GuestMemoryTest, NeedsAFileThatCanBeMapped) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Fd read_end(ends[0]), write_end(ends[1]);
  EXPECT_FALSE(memory_.map(kAddress, 1, read_end.get(), 0, true).ok());
  const auto mapped = memory_.map(kAddress, 1, std::numeric_limits<int>::max(), 0, true);
  ASSERT_FALSE(mapped.ok());
  EXPECT_EQ(mapped.error().os_error, EBADF);
  map(kAddress, 1, 0);
}

TEST_F(GuestMemoryTest, UnmapsWhatIsWhollyWithinARange) {
  map(kAddress, 0x1000, 0);
  map(kAddress + 0x1000, 0x2000, 0);
  map(kAddress + 0x4000, 0x1000, 0);
  EXPECT_EQ(memory_.unmap(kAddress, 0x3000), 0x3000u);
  EXPECT_TRUE(from(kAddress, 1).empty());
  EXPECT_TRUE(from(kAddress + 0x2fff, 1).empty());
  EXPECT_EQ(from(kAddress + 0x4000, 1).size(), 1u);
  EXPECT_EQ(memory_.unmap(kAddress - 0x1000, 0x10000), 0x1000u);
  EXPECT_EQ(memory_.unmap(kAddress, 0x10000), 0u);
}

TEST_F(GuestMemoryTest, KeepsWhatIsPartlyOutsideOfARange) {
  map(kAddress, 0x2000, 0);
  map(kAddress + 0x2000, 0x2000, 0);
  EXPECT_EQ(memory_.unmap(kAddress, 0x1fff), 0u);
  EXPECT_EQ(memory_.unmap(kAddress + 1, 0x1fff), 0u);
  EXPECT_EQ(memory_.unmap(kAddress + 0x1000, 0x2000), 0u);
  EXPECT_EQ(memory_.unmap(kAddress, 0), 0u);
  EXPECT_EQ(from(kAddress, 0x2000).size(), 0x2000u);
  EXPECT_EQ(memory_.unmap(kAddress, 0x3fff), 0x2000u);
  EXPECT_TRUE(from(kAddress, 1).empty());
  EXPECT_EQ(from(kAddress + 0x2000, 0x2000).size(), 0x2000u);
}

TEST_F(GuestMemoryTest, UnmapsUpToTheLastAddress) {
  map(kTop - 0xfff, 0x1000, 0);
  EXPECT_EQ(memory_.unmap(kTop - 0xfff, 0xfff), 0u);
  EXPECT_EQ(memory_.unmap(kTop - 0xfff, 0x1000), 0x1000u);
  map(kTop - 0xfff, 0x1000, 0);
  EXPECT_EQ(memory_.unmap(1, kTop), 0x1000u);
}

TEST_F(GuestMemoryTest, CanBeMappedAgainOnceUnmapped) {
  map(kAddress, 0x1000, 0);
  EXPECT_EQ(memory_.unmap(kAddress, 0x1000), 0x1000u);
  map(kAddress, 0x800, 0x3000);
  EXPECT_EQ(from(kAddress, 0x1000).size(), 0x800u);
  EXPECT_EQ(from(kAddress, 1)[0], byte_at(0x3000));
}

TEST_F(GuestMemoryTest, IsClearedOfEverything) {
  map(0, 0x1000, 0);
  map(kTop, 1, 0);
  ASSERT_TRUE(memory_.map(kAddress, 0x1000, -1, 0, true).ok());
  memory_.clear();
  EXPECT_TRUE(from(0, 1).empty());
  EXPECT_TRUE(from(kTop, 1).empty());
  map(kAddress, 0x1000, 0);
}

TEST_F(GuestMemoryTest, LeavesNothingMappedInTheProcess) {
  map(kAddress, 0x1f00, 0x1234);
  uint8_t* first_page = from(kAddress, 1).data() - 0x234;
  unsigned char resident[3];
  ASSERT_EQ(mincore(first_page, 0x3000, resident), 0);
  memory_.unmap(kAddress, 0x1f00);
  for (const size_t page : {0x0000, 0x1000, 0x2000})
    EXPECT_EQ(mincore(first_page + page, 0x1000, resident), -1) << page;
}

TEST_F(GuestMemoryTest, IsSeenByManyAtOnce) {
  map(kAddress, 0x1000, 0);
  const View view(memory_);
  std::async(std::launch::async, [&] { EXPECT_EQ(from(kAddress, 8).size(), 8u); }).get();
  EXPECT_EQ(view.from(kAddress, 8, kRead).size(), 8u);
}

TEST_F(GuestMemoryTest, IsNotUnmappedWhileSomebodyHoldsAView) {
  map(kAddress, 0x1000, 0);
  std::optional<View> view(memory_);
  std::atomic<bool> let_go = false, waited = false;
  const auto bytes = view->from(kAddress, 0x1000, kRead);
  std::promise<void> begun;
  std::thread unmaps([&] {
    begun.set_value();
    memory_.unmap(kAddress, 0x1000);
    waited = let_go.load();
  });
  begun.get_future().wait();
  for (int i = 0; i < 1000; i++) std::this_thread::yield();  // its chance not to wait
  EXPECT_EQ(bytes[0xfff], byte_at(0xfff));
  let_go = true;
  view.reset();
  unmaps.join();
  EXPECT_TRUE(waited);
  EXPECT_TRUE(from(kAddress, 1).empty());
}

// Engines look at memory without pause; whoever unmaps must get his turn nevertheless.
TEST_F(GuestMemoryTest, IsUnmappedThoughThereAreAlwaysViews) {
  map(kAddress, 0x1000, 0);
  std::atomic<bool> ended = false;
  std::atomic<unsigned> looking = 0;
  std::vector<std::thread> engines;
  for (int i = 0; i < 4; i++)
    engines.emplace_back([&] {
      looking++;
      while (!ended) {
        const View view(memory_);
        const auto bytes = view.from(kAddress, 0x1000, kRead);
        if (bytes.empty()) continue;
        EXPECT_EQ(bytes[0x123], byte_at(0x123));
      }
    });
  while (looking < engines.size()) std::this_thread::yield();
  for (int i = 0; i < 100; i++) {
    EXPECT_EQ(memory_.unmap(kAddress, 0x1000), 0x1000u);
    map(kAddress, 0x1000, 0);
  }
  ended = true;
  for (std::thread& engine : engines) engine.join();
}

}  // namespace
}  // namespace memsluice::dsa
