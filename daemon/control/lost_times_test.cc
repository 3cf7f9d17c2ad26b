// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/lost_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <map>

namespace memsluice {
namespace {

using testing::HasSubstr;

struct FakeKernel {
  bool refuses_to_load = false;
  bool is_full = false;
  bool loaded = false;
  std::map<uint64_t, lost_time> tenants = {};
};

class FakeLostTimeCounters : public LostTimeCounters {
 public:
  explicit FakeLostTimeCounters(FakeKernel& kernel) : kernel_(kernel) { kernel_.loaded = true; }
  ~FakeLostTimeCounters() override { kernel_ = {}; }
  Result<void> set_tenants(const std::set<uint64_t>& tenants) override {
    if (kernel_.is_full) return errno_error(E2BIG, "bpf_map_update_elem", "tenant");
    std::erase_if(kernel_.tenants,
                  [&](const auto& known) { return !tenants.contains(known.first); });
    for (const uint64_t tenant : tenants) kernel_.tenants.try_emplace(tenant);
    return {};
  }
  Result<lost_time> of(uint64_t tenant) override {
    auto known = kernel_.tenants.find(tenant);
    if (known == kernel_.tenants.end()) return errno_error(ENOENT, "lookup", "tenant");
    return known->second;
  }

 private:
  FakeKernel& kernel_;
};

class LostTimesTest : public testing::Test {
 protected:
  FakeKernel kernel_;
  std::string logged_;
  Log log_{LogLevel::kInfo, [this](std::string_view line) { logged_ += line; }};
  LostTimes times_{
      [this]() -> Result<std::unique_ptr<LostTimeCounters>> {
        if (kernel_.refuses_to_load) return errno_error(EPERM, "load", "BPF programs");
        return std::unique_ptr<LostTimeCounters>(std::make_unique<FakeLostTimeCounters>(kernel_));
      },
      log_};
};

TEST_F(LostTimesTest, AreCountedWhileTheyAreWanted) {
  times_.set_tenants({7});
  EXPECT_EQ(times_.of(7), std::nullopt) << "nobody wants them";
  times_.configure(true);
  times_.set_tenants({7, 8});
  kernel_.tenants[7].causes[LOST_TIME_RECLAIM].total_ns = 42;
  times_.configure(true);
  EXPECT_EQ(times_.of(7)->causes[LOST_TIME_RECLAIM].total_ns, 42u) << "they go on";
  times_.set_tenants({8});
  EXPECT_EQ(times_.of(7), std::nullopt);
  EXPECT_TRUE(times_.of(8).has_value());
  times_.configure(false);
  EXPECT_FALSE(kernel_.loaded);
  EXPECT_EQ(times_.of(8), std::nullopt);
}

TEST_F(LostTimesTest, WhatCannotBeLoadedIsSaidAndTriedAgainWithTheConfiguration) {
  kernel_.refuses_to_load = true;
  times_.configure(true);
  EXPECT_THAT(logged_,
              HasSubstr("<4>the time that tenants lose is not counted: BPF programs: load"));
  ASSERT_TRUE(times_.error().has_value());
  times_.set_tenants({7});
  EXPECT_EQ(times_.of(7), std::nullopt);
  kernel_.refuses_to_load = false;
  times_.configure(true);
  EXPECT_TRUE(kernel_.loaded);
  EXPECT_FALSE(times_.error().has_value());
}

TEST_F(LostTimesTest, TooManyTenantsAreSaidOnce) {
  times_.configure(true);
  kernel_.is_full = true;
  times_.set_tenants({7});
  times_.set_tenants({7});
  EXPECT_EQ(logged_.find("is not counted"), logged_.rfind("is not counted"));
  EXPECT_TRUE(times_.error().has_value());
  kernel_.is_full = false;
  times_.set_tenants({7});
  EXPECT_FALSE(times_.error().has_value());
  EXPECT_TRUE(times_.of(7).has_value());
}

}  // namespace
}  // namespace memsluice
