// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/dsa_reset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "daemon/base/temporary_directory.h"
#include "daemon/host/fake_dsa_devices.h"

namespace memsluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class DsaResetTest : public testing::Test {
 protected:
  DsaResetTest() {
    devices_.add("dsa0", 3, 2);
    devices_.configure(sample_dsa_configuration());
  }
  Result<DsaResetOutcome> reset() {
    auto plan = plan_dsa_reset(devices_, "dsa0", directory_.path("/saved"));
    if (!plan.ok()) return plan.error();
    return carry_out_dsa_reset(devices_, *plan);
  }
  DsaConfiguration now() { return *devices_.configuration("dsa0"); }
  // As after a reset that came from elsewhere, on a kernel that forgets.
  void lose_configuration() {
    ASSERT_TRUE(devices_.disable("dsa0").ok());
    devices_.forget_steps();
  }

  TemporaryDirectory directory_;
  FakeDsaDevices devices_;
};

TEST_F(DsaResetTest, PutsEverythingBack) {
  auto done = reset();
  ASSERT_TRUE(done.ok()) << done.error().describe();
  EXPECT_FALSE(done->from_file);
  EXPECT_THAT(done->queues, ElementsAre("wq0.0", "wq0.1"));
  EXPECT_EQ(now(), sample_dsa_configuration());
  EXPECT_THAT(devices_.steps(), ElementsAre("disable wq0.0", "disable dsa0", "reset dsa0",
                                            "enable dsa0", "enable wq0.0", "enable wq0.1"))
      << "ours first: the drain of others may have no end";
}

TEST_F(DsaResetTest, DisablesWhatTheKernelEnablesAgain) {
  devices_.enable_after_reset();
  ASSERT_TRUE(reset().ok());
  EXPECT_EQ(now(), sample_dsa_configuration());
  EXPECT_THAT(devices_.steps(),
              ElementsAre("disable wq0.0", "disable dsa0", "reset dsa0", "disable dsa0",
                          "enable dsa0", "enable wq0.0", "enable wq0.1"));
}

TEST_F(DsaResetTest, WhatWasDisabledStaysSo) {
  devices_.part("wq0.1").driver.clear();
  auto done = reset();
  ASSERT_TRUE(done.ok());
  EXPECT_THAT(done->queues, ElementsAre("wq0.0"));
  EXPECT_EQ(devices_.part("wq0.1").attributes.at("name"), "copies");

  for (const char* part : {"wq0.0", "wq0.1", "dsa0"}) devices_.part(part).driver.clear();
  devices_.forget_steps();
  ASSERT_TRUE(reset().ok());
  EXPECT_THAT(devices_.steps(), ElementsAre("reset dsa0"));
}

TEST_F(DsaResetTest, TakesTheSavedFileWhereNothingIsConfigured) {
  directory_.write("/saved", saved_form(sample_dsa_configuration()).dump());
  lose_configuration();
  auto done = reset();
  ASSERT_TRUE(done.ok()) << done.error().describe();
  EXPECT_TRUE(done->from_file);
  EXPECT_THAT(done->queues, ElementsAre("wq0.0", "wq0.1"));
  EXPECT_EQ(now(), sample_dsa_configuration());
}

TEST_F(DsaResetTest, ChangesNothingWhereThereIsNothingToPutBack) {
  lose_configuration();
  auto refused = reset();
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_THAT(refused.error().message, HasSubstr("is not configured, and "));
  EXPECT_THAT(refused.error().message, HasSubstr("No such file"));
  EXPECT_THAT(refused.error().hint, HasSubstr("[dsa] configuration"));
  directory_.write("/saved", "no json");
  EXPECT_THAT(reset().error().message, HasSubstr("not JSON"));
  directory_.write("/saved", "[]");
  EXPECT_THAT(reset().error().message, HasSubstr("says nothing of it"));
  EXPECT_EQ(plan_dsa_reset(devices_, "dsa7", "/x").error().code, ErrorCode::kNotFound);
  EXPECT_THAT(devices_.steps(), IsEmpty());
}

struct Failure {
  const char* step;
  const char* said;
  const char* state;
};

class DsaResetFailures : public DsaResetTest, public testing::WithParamInterface<Failure> {};

TEST_P(DsaResetFailures, NameTheStepAndTheState) {
  devices_.fail_next(GetParam().step, EIO);
  auto failed = reset();
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::kFailed);
  EXPECT_EQ(failed.error().object, "dsa0");
  EXPECT_EQ(failed.error().message, std::string(GetParam().said) + ": " + GetParam().step +
                                        ": write: Input/output error; " + GetParam().state);
  EXPECT_THAT(failed.error().hint, HasSubstr("what it had is in the log of the daemon"));
  EXPECT_THAT(failed.error().hint, HasSubstr("load-config -e"));
}

INSTANTIATE_TEST_SUITE_P(
    Dsa, DsaResetFailures,
    testing::Values(
        Failure{"disable wq0.0", "disabling wq0.0",
                "dsa0 is enabled now, of its queues wq0.0, wq0.1"},
        Failure{"disable dsa0", "disabling dsa0", "dsa0 is enabled now, of its queues wq0.1"},
        Failure{"reset dsa0", "resetting dsa0", "dsa0 is disabled now"},
        Failure{"set wq0.1 name", "setting name of wq0.1 to copies", "dsa0 is disabled now"},
        Failure{"set engine0.1 group_id", "setting group_id of engine0.1 to 0",
                "dsa0 is disabled now"},
        Failure{"enable dsa0", "enabling dsa0", "dsa0 is disabled now"},
        Failure{"enable wq0.1", "enabling wq0.1", "dsa0 is enabled now, of its queues wq0.0"}));

TEST_F(DsaResetTest, AQueueThatDoesNotComeBackDoesNotKeepTheOthers) {
  devices_.fail_next("enable wq0.0", ENOENT);
  auto failed = reset();
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr("of its queues wq0.1"));
  EXPECT_EQ(failed.error().code, ErrorCode::kFailed);
}

}  // namespace
}  // namespace memsluice
