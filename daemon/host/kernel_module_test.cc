// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/kernel_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/host/fake_module.h"

namespace memsluice {
namespace {

using testing::ElementsAre;

TEST(KernelModule, IsUnavailableWhereThereIsNoDevice) {
  auto module = open_kernel_module("/nonexistent/memsluice");
  auto info = module->info();
  ASSERT_FALSE(info.ok());
  EXPECT_EQ(info.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(info.error().describe(),
            "/nonexistent/memsluice: the module is not loaded: open: No such file or directory "
            "(load it: modprobe memsluice)");
  EXPECT_EQ(module->tenant_list().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(module->migrate({}).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(module->engines().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(module->engine_act("dsa", "wq0.0", MEMSLUICE_ENGINE_TEST).error().code,
            ErrorCode::kUnavailable);
}

TEST(KernelModule, IsUnavailableWhereTheDeviceIsAnother) {
  auto info = open_kernel_module("/dev/null")->info();
  ASSERT_FALSE(info.ok());
  EXPECT_EQ(info.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(info.error().message, "version: Inappropriate ioctl for device");
}

TEST(KernelModule, HasNoQueueWhoseNameIsTooLong) {
  auto module = open_kernel_module("/dev/null");
  for (const char* queue : {"", "wq0.0-and-no-end"})
    EXPECT_EQ(module->engine_act("dsa", queue, MEMSLUICE_ENGINE_TEST).error().code,
              ErrorCode::kNotFound);
  EXPECT_EQ(module->engine_act("dsa", "wq0.0", MEMSLUICE_ENGINE_TEST).error().code,
            ErrorCode::kUnavailable);
  EXPECT_EQ(module->engines().error().code, ErrorCode::kUnavailable);
}

TEST(FakeModule, FailsAsTheRealOneDoes) {
  auto real = open_kernel_module("/nonexistent/memsluice")->info().error();
  FakeModule fake;
  fake.unload();
  auto faked = fake.info().error();
  faked.object = real.object;
  EXPECT_EQ(faked, real);
}

TEST(Policy, LeadsBackFromTheKernels) {
  Policy policy{
      .tiering = false, .fast_limit_bytes = 7, .promote_mib_per_s = 8, .demote_mib_per_s = 9};
  EXPECT_EQ(from_kernel(to_kernel(policy)), policy);
  EXPECT_EQ(from_kernel(to_kernel(Policy())), Policy());
}

TEST(ModuleInfo, NamesItsFeatures) {
  ModuleInfo info;
  info.features = MEMSLUICE_FEATURE_TIERING | MEMSLUICE_FEATURE_MIGRATE |
                  MEMSLUICE_FEATURE_ENGINES | (1ull << 63);
  EXPECT_THAT(info.feature_names(), ElementsAre("migrate", "tiering", "engines"));
}

TEST(RefusalName, KnowsAllOfThisAbiAndSurvivesMore) {
  EXPECT_EQ(refusal_name(MEMSLUICE_REFUSED_ABSENT), "absent");
  EXPECT_EQ(refusal_name(MEMSLUICE_REFUSED_NOT_ALLOWED), "not_allowed");
  EXPECT_EQ(refusal_name(MEMSLUICE_REFUSALS), "reason_11");
}

}  // namespace
}  // namespace memsluice
