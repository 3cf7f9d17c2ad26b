// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/migration_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memsluice {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(MigrationStatisticsText, IsReadAndWhatIsNewIsLeftOut) {
  const auto statistics = parse_migration_statistics(R"(# moved: why to size folios pages bytes
moved request fast base 3 3 12288
moved promotion slow huge 1 512 2097152
moved demotion slow huge many 512 2097152
moved_by_kernel request 9
batches 4
largest_batch_bytes 2097152
copied_bytes 2109440
unmap_ns 100
copy_ns 200
map_ns 300
fell_back_folios 1
news 12
stall_us 1 0 2
)");
  EXPECT_THAT(statistics.moved, ElementsAre(MovedPages{"request", "fast", "base", 3, 12288},
                                            MovedPages{"promotion", "slow", "huge", 512, 2097152}));
  EXPECT_EQ(statistics.batches, 4u);
  EXPECT_EQ(statistics.copied_bytes, 2109440u);
  EXPECT_EQ(statistics.unmap_ns + statistics.copy_ns + statistics.map_ns, 600u);
  EXPECT_EQ(statistics.fell_back_folios, 1u);
  EXPECT_THAT(statistics.stall_us, ElementsAre(1, 0, 2));
  EXPECT_THAT(parse_migration_statistics("").moved, IsEmpty());
  EXPECT_FALSE(read_migration_statistics("/nonexistent").ok());
}

}  // namespace
}  // namespace memsluice
