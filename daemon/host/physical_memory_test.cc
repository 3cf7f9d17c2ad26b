// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/physical_memory.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace memsluice {
namespace {

// Small ones, so that they meet.
PhysicalRanges any_ranges() {
  PhysicalRanges ranges;
  for (const auto& [start, bytes] : *rc::gen::container<std::vector<std::pair<int, int>>>(
           rc::gen::pair(rc::gen::inRange(0, 60), rc::gen::inRange(0, 20))))
    ranges.push_back({static_cast<uint64_t>(start), static_cast<uint64_t>(bytes)});
  return ranges;
}

std::set<uint64_t> members(const PhysicalRanges& ranges) {
  std::set<uint64_t> all;
  for (const PhysicalRange& range : ranges)
    for (uint64_t at = range.start; at < range.end(); at++) all.insert(at);
  return all;
}

void check_set(const PhysicalRanges& ranges, const std::set<uint64_t>& expected) {
  RC_ASSERT(members(ranges) == expected);
  RC_ASSERT(total_bytes(ranges) == expected.size());
  for (size_t i = 1; i < ranges.size(); i++) RC_ASSERT(ranges[i - 1].end() < ranges[i].start);
}

RC_GTEST_PROP(PhysicalRanges, AreSets, ()) {
  const PhysicalRanges a = any_ranges();
  const PhysicalRanges b = any_ranges();
  std::set<uint64_t> both = members(a);
  std::set<uint64_t> left;
  std::set<uint64_t> shared;
  for (const uint64_t member : members(a))
    (members(b).contains(member) ? shared : left).insert(member);
  check_set(united(a), both);
  check_set(without(a, b), left);
  check_set(common(a, b), shared);
}

TEST(PhysicalRanges, AlignedKeepsWholeUnits) {
  EXPECT_EQ(aligned({{1, 30}, {40, 5}}, 8), (PhysicalRanges{{8, 16}}));
  EXPECT_EQ(aligned({{8, 16}}, 8), (PhysicalRanges{{8, 16}}));
}

TEST(PhysicalRanges, AsText) {
  auto range = parse_physical_range("0x140000000+2G");
  ASSERT_TRUE(range.ok());
  EXPECT_EQ(*range, (PhysicalRange{0x140000000, uint64_t{2} << 30}));
  EXPECT_EQ(format_exact(*range), "0x140000000+2G");
  EXPECT_TRUE(parse_physical_range("4096+4K").ok());
  for (const char* bad : {"", "+", "0x", "0x1000", "0x1000+", "0x1000+0", "0x1000+2X", "1G+1G",
                          "0xfffffffffffff+2", "-1+1", "0x1000-2G", "0x1+1T "})
    EXPECT_FALSE(parse_physical_range(bad).ok()) << bad;
}

TEST(Iomem, RamAndWhatIsInside) {
  const auto entries = parse_iomem(
      "00000000-00000fff : Reserved\n"
      "00001000-0009ffff : System RAM\n"
      "100000000-17fffffff : System RAM\n"
      "  100200000-100ffffff : Kernel code\n"
      "180000000-1ffffffff : System RAM (kmem)\n"
      "nonsense\n200000000-1 : backwards\n");
  ASSERT_EQ(entries.size(), 5U);
  EXPECT_EQ(entries[3].name, "Kernel code");
  EXPECT_EQ(entries[3].depth, 1U);
  EXPECT_EQ(system_ram(entries), (PhysicalRanges{{0x1000, 0x9f000}, {0x100000000, 0x100000000}}));
}

TEST(Iomem, WithoutAddressesThereIsNothing) {
  EXPECT_TRUE(
      parse_iomem("00000000-00000000 : System RAM\n00000000-00000000 : Reserved\n").empty());
}

}  // namespace
}  // namespace memsluice
