// SPDX-License-Identifier: GPL-2.0
#include "daemon/lending/chain/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/lending/chain/alloc_free.h"
#include "daemon/lending/nic/emulated/emulated_nic.h"

namespace memsluice::chain {
namespace {

using testing::Contains;
using testing::HasSubstr;

class ValidateTest : public testing::Test {
 protected:
  Step& step(const std::string& name) { return const_cast<Step&>(*program_.step(name)); }
  std::vector<std::string> found(uint32_t instances = 8) {
    return problems(program_, nic_, instances);
  }
  void erase(const std::string& name) {
    std::erase_if(program_.steps, [&](const Step& which) { return which.name == name; });
  }

  nic::EmulatedNic nic_{{}};
  Program program_ = alloc_program({.windows = 2, .instances = 8, .entries = 4});
};

TEST_F(ValidateTest, WhatIsGoodHasNoProblems) {
  EXPECT_TRUE(found().empty());
}

TEST_F(ValidateTest, AFillLandsInAFieldThatExists) {
  step("slot").elements = {Part{"reply", Field::kRemoteAddress, 0, 8}};
  EXPECT_THAT(found(), Contains(HasSubstr("SEND has no field remote_address")));
  step("slot").elements = {Part{"entry", Field::kRemoteAddress, 4, 8}};
  EXPECT_THAT(found(), Contains(HasSubstr("has 8 bytes")));
  step("slot").elements = {Part{"nowhere", Field::kRemoteAddress, 0, 8}};
  EXPECT_THAT(found(), Contains(HasSubstr("there is no step nowhere")));
}

TEST_F(ValidateTest, AFieldIsFilledOnceAndHasNoValueBeside) {
  step("request").elements = {Part{"entry", Field::kRemoteAddress, 0, 8}};
  EXPECT_THAT(found(), Contains(HasSubstr("filled twice")));
  step("bind0").values[Field::kKey] = uint64_t{5};
  EXPECT_THAT(found(), Contains(HasSubstr("key has a value, and is filled")));
}

TEST_F(ValidateTest, OnlyWhatTheNicReadsLaterIsFilled) {
  for (Queue& queue : program_.queues) queue.managed = queue.name != "binder";
  EXPECT_THAT(found(), Contains(HasSubstr("its queue is not managed")));
}

TEST_F(ValidateTest, NothingIsEnabledBeforeItsLastFill) {
  step("go_entry").fence = false;
  EXPECT_THAT(found(), Contains("go_entry: enables entry before slot has filled it"));
}

TEST_F(ValidateTest, NothingIsEnabledThroughMoreThanItsFillsAllow) {
  step("go_entry").through = "go_again";
  EXPECT_THAT(found(), Contains("go_entry: enables own before entry has filled it"));
}

TEST_F(ValidateTest, WhatIsFilledIsEnabledAtAll) {
  erase("go_after_entry");
  erase("go_again");
  step("go_entry").through = "entry";
  EXPECT_THAT(found(), Contains("bind1: is never enabled"));
}

TEST_F(ValidateTest, ScattersHaveTheSizeOfWhatIsRead) {
  step("slot").remote->bytes = 4;
  EXPECT_THAT(found(), Contains("slot: moves 8 bytes, and has room for 4"));
  step("own").elements = {Place{"constants", 1000, 8}};
  EXPECT_THAT(found(), Contains(HasSubstr("ends behind")));
}

TEST_F(ValidateTest, TheDevicesLimitsHold) {
  EXPECT_THAT(found(9), Contains(HasSubstr("too small for 9 instances")));
  program_ = alloc_program({.windows = 2, .instances = 5000, .entries = 4});
  EXPECT_THAT(found(5000), Contains(HasSubstr("blocks, and the NIC has 32768")));
  program_ = free_program({.windows = 26, .instances = 8, .entries = 4});
  EXPECT_THAT(found(), Contains("record: 31 scatter entries, and the NIC takes 30"));
}

TEST_F(ValidateTest, AWaitIsForWhatCompletes) {
  step("own").signaled = false;
  EXPECT_THAT(found(), Contains("after_own: waits for own, which does not complete"));
}

TEST_F(ValidateTest, ACircleOfWaitsIsFound) {
  step("after_own").awaited = "bind1";
  EXPECT_THAT(found(), Contains("steps wait for one another in a circle"));
}

TEST_F(ValidateTest, AListingShowsEachStep) {
  const std::string text = listing(program_);
  for (const Step& each : program_.steps) EXPECT_THAT(text, HasSubstr(" " + each.name + " "));
  EXPECT_THAT(text, HasSubstr("  binder   slot             READ       @ring+0[8] "
                              "-> entry.remote_address\n"));
  EXPECT_THAT(text, HasSubstr("  binder   bind1            BIND     ! target=window1 "
                              "length=chunk_bytes "));
}

}  // namespace
}  // namespace memsluice::chain
