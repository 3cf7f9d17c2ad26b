// SPDX-License-Identifier: GPL-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tools/memsluice/format.h"
#include "tools/memsluice/sample_status.h"
#include "tools/memsluice/top_frame.h"
#include "tools/memsluice/top_sample.h"

namespace memsluice {
namespace {

Json sample() {
  return top_sample(sample_status(), earlier_sample_status(), 2.0);
}

std::string frame(const FrameOptions& options) {
  return fmt::format("\n{}\n", fmt::join(top_frame(sample(), options), "\n"));
}

TEST(TopSample, ComputesRatesFromTwoReplies) {
  const Json redis = sample()["tenants"][1];
  EXPECT_EQ(redis["promoted_pages_per_s"], 3072.0);
  EXPECT_EQ(redis["demoted_pages_per_s"], 768.0);
  EXPECT_EQ(redis["refused_pages_per_s"], 5.0);
  EXPECT_EQ(redis["promoted_pages"], 53760) << "what the daemon said is kept";
}

TEST(TopSample, KnowsNoRateOfATenantThatIsNew) {
  EXPECT_TRUE(sample()["tenants"][0]["promoted_pages_per_s"].is_null());
}

TEST(TopSample, KnowsNoRateOfACgroupMadeAnew) {
  Json status = sample_status();
  status["tenants"][1]["cgroup_id"] = 5000;
  const Json result = top_sample(status, earlier_sample_status(), 2.0);
  EXPECT_TRUE(result["tenants"][1]["promoted_pages_per_s"].is_null());
}

TEST(TopSample, KnowsNoRateWhenTheCountersBeganAgain) {
  const Json result = top_sample(earlier_sample_status(), sample_status(), 2.0);
  EXPECT_TRUE(result["tenants"][0]["promoted_pages_per_s"].is_null());
}

Json counted_sample() {
  return top_sample(sample_status(), earlier_sample_status(), 2.0, sample_counters());
}

TEST(TopSample, AddsUpTheChannelsOfANode) {
  const Json counted = counted_sample();
  EXPECT_EQ(counted["nodes"][0]["read_bytes_per_s"], 1e10) << "5e9 of both, one from one sample";
  EXPECT_EQ(counted["nodes"][0]["write_bytes_per_s"], 1e9);
  EXPECT_TRUE(counted["nodes"][1]["read_bytes_per_s"].is_null()) << "missing is not zero";
  EXPECT_EQ(counted["channels"].size(), 4u);
  EXPECT_EQ(counted["channels"][3]["read_bytes_per_s"], 2048.0);
  Json counters = sample_counters();
  counters["channels"][1]["samples"] = {nullptr};
  const Json partly = top_sample(sample_status(), nullptr, 0, counters);
  EXPECT_TRUE(partly["nodes"][0]["read_bytes_per_s"].is_null()) << "a part is not the whole";
}

TEST(TopSample, OfADaemonThatCountsNothing) {
  const Json uncounted = sample();
  EXPECT_TRUE(uncounted["channels"].empty());
  EXPECT_TRUE(uncounted["nodes"][0]["read_bytes_per_s"].is_null());
}

TEST(TopFrame, ShowsBandwidth) {
  const auto lines = top_frame(counted_sample(), {.columns = 80, .rows = 10});
  EXPECT_EQ(fmt::format("\n{}\n", fmt::join(lines, "\n")), R"(
memsluiced 0.1.0  up 2 h 5 min  module 0.1.0

NODE  TIER      SIZE      FREE  USED
   0     0   2.0 GiB   512 MiB   75%  ██████████████████████████████░░░░░░░░░░
   1     1   6.0 GiB   5.8 GiB    3%  █░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░

CHANNEL                 READ/s                       WRITE/s
node 0                 9.3 GiB  50%  ███████░░░░░░   954 MiB  10%  █░░░░░░░░░░░░
node 1                       -                             -
socket0/uncore_imc_3   2.0 KiB                             0
)");
}

TEST(TopFrame, ShowsWhatTenantsLose) {
  Json earlier = sample_status();
  Json status = sample_status();
  for (const char* cause : {"page_fault", "migration", "reclaim"}) {
    earlier["tenants"][1]["lost_time"][cause] = {{"total_ns", 1000}};
    status["tenants"][1]["lost_time"][cause] = {{"total_ns", 5001000}};
  }
  earlier["tenants"][1]["lost_time"]["reclaim"]["total_ns"] = 6000000;
  const auto lines = top_frame(top_sample(status, earlier, 2.0), {.columns = 80});
  EXPECT_EQ(lines[10], "  lost ms/s: 2.5 page faults, 2.5 migrations, - reclaim");
}

TEST(TopFrame, SaysWhyThereIsNoBandwidth) {
  Json counters = Json::parse(R"({"source": "pmu", "notices": [], "channels": [],
    "error": {"code": "unavailable", "object": "/sys", "message": "there is no PMU"}})");
  const auto lines =
      top_frame(top_sample(sample_status(), nullptr, 0, counters), {.columns = 80, .rows = 6});
  EXPECT_EQ(lines[5], "bandwidth not known: there is no PMU");
  counters["source"] = "none";
  const auto silent =
      top_frame(top_sample(sample_status(), nullptr, 0, counters), {.columns = 80, .rows = 6});
  EXPECT_EQ(silent[5], "") << "nobody wanted any";
}

TEST(TopFrame, At80Columns) {
  EXPECT_EQ(frame({.columns = 80}), R"(
memsluiced 0.1.0  up 2 h 5 min  module 0.1.0

NODE  TIER      SIZE      FREE  USED
   0     0   2.0 GiB   512 MiB   75%  ██████████████████████████████░░░░░░░░░░
   1     1   6.0 GiB   5.8 GiB    3%  █░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░

TENANT                  FAST     LIMIT      SLOW  PROMOTE/s  DEMOTE/s  REFUSED/s
/system.slice/red~   210 MiB   256 MiB   1.2 GiB     12 MiB   3.0 MiB     20 KiB
  fast  ▁▂▃▄│▅▆▆▆▅▅▄▃▂▁   slow █▇▅▄▄│▃▃▂▂▁▁       hot bin 5  cold bin 1  scan 12
  node 0 █░░░░░░░░░ 215 MiB  node 1 █████████░ 1.2 GiB
/batch.slice         1.0 GiB       off         0          0         0          0
  fast │█▁                slow │                  hot bin 0  cold bin -  scan 3
/new.slice                 0      none         0          -         -          -
  no scan yet
)");
}

TEST(TopFrame, At132Columns) {
  EXPECT_EQ(frame({.columns = 132}), R"(
memsluiced 0.1.0  up 2 h 5 min  module 0.1.0

NODE  TIER      SIZE      FREE  USED
   0     0   2.0 GiB   512 MiB   75%  ██████████████████████████████░░░░░░░░░░
   1     1   6.0 GiB   5.8 GiB    3%  █░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░

TENANT                                                                      FAST     LIMIT      SLOW  PROMOTE/s  DEMOTE/s  REFUSED/s
/system.slice/redis-server.service                                       210 MiB   256 MiB   1.2 GiB     12 MiB   3.0 MiB     20 KiB
  fast  ▁▂▃▄│▅▆▆▆▅▅▄▃▂▁   slow █▇▅▄▄│▃▃▂▂▁▁       hot bin 5  cold bin 1  scan 12
  node 0 █░░░░░░░░░ 215 MiB  node 1 █████████░ 1.2 GiB
/batch.slice                                                             1.0 GiB       off         0          0         0          0
  fast │█▁                slow │                  hot bin 0  cold bin -  scan 3
/new.slice                                                                     0      none         0          -         -          -
  no scan yet
)");
}

TEST(TopFrame, At40ColumnsLeavesOutTheLeastImportantOnes) {
  EXPECT_EQ(frame({.columns = 40}), R"(
memsluiced 0.1.0  up 2 h 5 min  module ~

NODE  TIER      SIZE      FREE  USED
   0     0   2.0 GiB   512 MiB   75%
   1     1   6.0 GiB   5.8 GiB    3%

TENANT                    FAST      SLOW
/system.slice/redis~   210 MiB   1.2 GiB
  fast  ▁▂▃▄│▅▆▆▆▅▅▄▃▂▁   slow █▇▅▄▄│▃▃~
  node 0 █░░░░░░░░░ 215 MiB  node 1 ███~
/batch.slice           1.0 GiB         0
  fast │█▁                slow │       ~
/new.slice                   0         0
  no scan yet
)");
}

TEST(TopFrame, WithoutUnicode) {
  EXPECT_EQ(frame({.columns = 80, .unicode = false}), R"(
memsluiced 0.1.0  up 2 h 5 min  module 0.1.0

NODE  TIER      SIZE      FREE  USED
   0     0   2.0 GiB   512 MiB   75%  ##############################----------
   1     1   6.0 GiB   5.8 GiB    3%  #---------------------------------------

TENANT                  FAST     LIMIT      SLOW  PROMOTE/s  DEMOTE/s  REFUSED/s
/system.slice/red~   210 MiB   256 MiB   1.2 GiB     12 MiB   3.0 MiB     20 KiB
  fast  .,:-|=+++==-:,.   slow #*=--|::,,..       hot bin 5  cold bin 1  scan 12
  node 0 #--------- 215 MiB  node 1 #########- 1.2 GiB
/batch.slice         1.0 GiB       off         0          0         0          0
  fast |#.                slow |                  hot bin 0  cold bin -  scan 3
/new.slice                 0      none         0          -         -          -
  no scan yet
)");
}

TEST(TopFrame, TellsHowManyTenantsDoNotFit) {
  EXPECT_EQ(frame({.columns = 60, .rows = 11}), R"(
memsluiced 0.1.0  up 2 h 5 min  module 0.1.0

NODE  TIER      SIZE      FREE  USED
   0     0   2.0 GiB   512 MiB   75%  █████████████████░░░░░
   1     1   6.0 GiB   5.8 GiB    3%  █░░░░░░░░░░░░░░░░░░░░░

TENANT                   FAST      SLOW  PROMOTE/s  DEMOTE/s
/system.slice/redi~   210 MiB   1.2 GiB     12 MiB   3.0 MiB
  fast  ▁▂▃▄│▅▆▆▆▅▅▄▃▂▁   slow █▇▅▄▄│▃▃▂▂▁▁       hot bin 5~
  node 0 █░░░░░░░░░ 215 MiB  node 1 █████████░ 1.2 GiB
... and 2 more
)");
}

TEST(TopFrame, ShowsTheNotice) {
  EXPECT_EQ(frame({.columns = 80, .rows = 3, .notice = "no reply\033 within 5 s"}), R"(
no reply\x1b within 5 s  memsluiced 0.1.0  up 2 h 5 min  module 0.1.0

NODE  TIER      SIZE      FREE  USED
)");
}

TEST(TopFrame, OfNothing) {
  const auto lines = top_frame(Json::object(), {.columns = 80});
  EXPECT_EQ(fmt::format("\n{}\n", fmt::join(lines, "\n")), R"(
memsluiced -  module -

NODE  TIER      SIZE      FREE  USED

TENANT                  FAST     LIMIT      SLOW  PROMOTE/s  DEMOTE/s  REFUSED/s
no tenant: memsluice tenant set --help
)");
}

TEST(TopFrame, FitsEveryTerminal) {
  for (size_t columns = 1; columns <= 140; columns += 3) {
    for (size_t rows = 1; rows <= 20; rows += 2) {
      const auto lines = top_frame(sample(), {.columns = columns, .rows = rows});
      ASSERT_LE(lines.size(), rows);
      for (const std::string& line : lines) ASSERT_LE(display_width(line), columns) << line;
    }
  }
}

}  // namespace
}  // namespace memsluice
