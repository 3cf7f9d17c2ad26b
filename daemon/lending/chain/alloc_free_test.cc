// SPDX-License-Identifier: GPL-2.0
#include "daemon/lending/chain/alloc_free.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "daemon/lending/chain/fixture.h"
#include "daemon/lending/nic/emulated/emulated_nic.h"

namespace memsluice::chain {
namespace {

using nic::EmulatedNic;
using nic::EmulatedOptions;
using nic::Status;

struct Case {
  std::string name;
  Shape shape;
  EmulatedOptions options;
};

class AllocFree : public testing::TestWithParam<Case> {
 protected:
  AllocFree() : nic_(GetParam().options), pool_(nic_, GetParam().shape, 2) {
    if (GetParam().options.own_thread) pool_.nic_has_thread();
  }
  const Shape& shape() const { return GetParam().shape; }

  EmulatedNic nic_;
  PoolFixture pool_;
};

TEST_P(AllocFree, AChunkIsTheTenantsFromAllocToFree) {
  pool_.grant(0, 0, 5);
  const std::optional<Reply> got = pool_.allocate(0, 0);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->request, 1U);
  EXPECT_EQ(got->group, 5U);
  EXPECT_EQ(got->epoch, 1U);
  EXPECT_EQ(pool_.owner(5), owner_word(ChunkState::kOwned, 0));
  ASSERT_EQ(got->keys.size(), shape().windows - 1);
  const auto last = static_cast<uint32_t>(shape().chunk_bytes) - 64;
  for (uint32_t window = 1; window < shape().windows; window++)
    EXPECT_EQ(
        pool_.access(0, window, Opcode::kWrite, got->address + last, got->keys[window - 1], 64),
        Status::kSuccess);
  ASSERT_TRUE(pool_.release(0, 5));
  EXPECT_EQ(pool_.owner(5), owner_word(ChunkState::kDirty, 0));
  EXPECT_EQ(pool_.next_returned(0, 0), 5U);
  for (uint32_t window = 1; window < shape().windows; window++)
    EXPECT_EQ(pool_.access(0, window, Opcode::kRead, got->address, got->keys[window - 1], 64),
              Status::kRemoteAccessError);
}

TEST_P(AllocFree, ChunksGoRoundWithOtherKeysEachTime) {
  std::set<uint32_t> keys;
  for (uint32_t round = 0; round < 40; round++) {
    const uint32_t tenant = round % 2;
    const uint32_t alloc = round / 2 % 2;
    // The chain has allowed a request for what was freed, in ring mode and to the same queue.
    const bool allowed = shape().mode == Mode::kRings && round >= 4;
    pool_.grant(tenant, alloc, 7, !allowed);
    const std::optional<Reply> got = pool_.allocate(tenant, alloc);
    ASSERT_TRUE(got);
    ASSERT_EQ(got->group, 7U);
    ASSERT_TRUE(keys.insert(got->keys[0]).second);
    ASSERT_EQ(pool_.access(tenant, 1, Opcode::kRead, got->address, got->keys[0], 64),
              Status::kSuccess);
    ASSERT_TRUE(pool_.release(tenant, 7));
  }
}

TEST_P(AllocFree, WhoDoesNotHoldAChunkDoesNotFreeIt) {
  pool_.grant(0, 0, 3);
  const std::optional<Reply> got = pool_.allocate(0, 0);
  ASSERT_TRUE(got);
  EXPECT_FALSE(pool_.release(1, 3)) << "of another tenant";
  EXPECT_EQ(*nic_.state(pool_.tenant(1).free.server), nic::QueuePairState::kError);
  EXPECT_EQ(pool_.owner(3), owner_word(ChunkState::kOwned, 0));
  EXPECT_EQ(pool_.access(0, 1, Opcode::kRead, got->address, got->keys[0], 64), Status::kSuccess);
  ASSERT_TRUE(pool_.release(0, 3));
  EXPECT_FALSE(pool_.release(0, 3)) << "twice";
}

TEST_P(AllocFree, AGroupThatDoesNotExistIsNotFreed) {
  EXPECT_FALSE(pool_.release(0, shape().entries));
  EXPECT_FALSE(pool_.release(1, 0xFFFF));
}

TEST_P(AllocFree, AKeyServesNobodyElse) {
  pool_.grant(0, 0, 1);
  const std::optional<Reply> got = pool_.allocate(0, 0);
  ASSERT_TRUE(got);
  EXPECT_EQ(pool_.access(1, 1, Opcode::kRead, got->address, got->keys[0], 8),
            Status::kRemoteAccessError);
  EXPECT_EQ(
      pool_.access(0, 1, Opcode::kRead, got->address + shape().chunk_bytes - 7, got->keys[0], 8),
      Status::kRemoteAccessError);
}

TEST_P(AllocFree, AnEmptyRingSaysSoAndCostsNothing) {
  if (shape().mode != Mode::kRings) GTEST_SKIP() << "receives are allowed when there are entries";
  pool_.allow_one_more(pool_.tenant(0).alloc[0]);
  for (int i = 0; i < 3; i++) {
    const std::optional<Reply> none = pool_.allocate(0, 0);
    ASSERT_TRUE(none);
    EXPECT_EQ(none->group, kNoGroup);
    // The chain has passed this slot.
    pool_.tenant(0).alloc[0].published++;
  }
  pool_.grant(0, 0, 2, false);
  const std::optional<Reply> got = pool_.allocate(0, 0);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->group, 2U);
}

Shape shape_of(uint32_t windows, Mode mode) {
  return {.windows = windows, .mode = mode, .instances = 64, .entries = 16, .alloc_queues = 2};
}
INSTANTIATE_TEST_SUITE_P(
    Emulated, AllocFree,
    testing::Values(Case{"rings_2", shape_of(2, Mode::kRings), {}},
                    Case{"rings_2_seeded", shape_of(2, Mode::kRings), {.schedule_seed = 5}},
                    Case{"rings_2_thread", shape_of(2, Mode::kRings), {.own_thread = true}},
                    Case{"rings_5_seeded", shape_of(5, Mode::kRings), {.schedule_seed = 6}},
                    Case{"rings_11", shape_of(11, Mode::kRings), {}},
                    Case{"shared_2", shape_of(2, Mode::kSharedQueue), {}},
                    Case{"shared_3_seeded", shape_of(3, Mode::kSharedQueue), {.schedule_seed = 7}},
                    Case{"shared_9", shape_of(9, Mode::kSharedQueue), {}}),
    [](const auto& which) { return which.param.name; });

TEST(AllocFreePrograms, AreValidForEachSize) {
  EmulatedNic nic({});
  for (Mode mode : {Mode::kRings, Mode::kSharedQueue})
    for (uint32_t windows = 2; windows <= 25; windows++) {
      const Shape shape = shape_of(windows, mode);
      for (const Program& program : {alloc_program(shape), free_program(shape)})
        EXPECT_EQ(problems(program, nic, shape.instances), std::vector<std::string>{})
            << program.name << " " << windows;
    }
}

TEST(AllocFreePrograms, HaveTheOrderThatTheRulesAskFor) {
  for (Mode mode : {Mode::kRings, Mode::kSharedQueue}) {
    const Program alloc = alloc_program(shape_of(3, mode)), free = free_program(shape_of(3, mode));
    for (const char* bind : {"bind0", "bind1", "bind2"}) {
      EXPECT_TRUE(completes_before(alloc, "own", bind)) << "the owner is recorded first";
      EXPECT_TRUE(completes_before(alloc, bind, "reply"));
    }
    EXPECT_FALSE(completes_before(alloc, "reply", "bind0"));
    EXPECT_TRUE(completes_before(free, "unbind0", "freeing")) << "nothing before the proof";
    EXPECT_TRUE(completes_before(free, "freeing", "unbind1"));
    EXPECT_TRUE(completes_before(free, "unbind2", "return")) << "not before the last sibling";
    EXPECT_TRUE(completes_before(free, "return", "reply"));
  }
}

}  // namespace
}  // namespace memsluice::chain
