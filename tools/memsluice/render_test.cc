// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/render.h"

#include <gtest/gtest.h>

#include "tools/memsluice/sample_status.h"

namespace memsluice {
namespace {

constexpr uint64_t kPageBytes = 4096;

std::string rendered(const char* method, const Json& result) {
  return "\n" + render_result(method, {{"cgroup", "/x"}}, result, kPageBytes);
}

TEST(Render, Status) {
  EXPECT_EQ(rendered("status", sample_status()), R"(
daemon  0.1.0, up 2 h 5 min, configuration /etc/memsluice/memsluice.toml
module  0.1.0, ABI 1: migrate migrate_tenant hotness_scan tiering

NODE  TIER     SIZE     FREE  CPUS  DISTANCE
   0     0  2.0 GiB  512 MiB     2  10 20
   1     1  6.0 GiB  5.8 GiB     0  20 10

TENANT                              ORIGIN  TIERING     FAST    LIMIT     SLOW  PROMOTED  DEMOTED  REFUSED
/new.slice                          api     on             0     none        0         0        0        0
/system.slice/redis-server.service  config  on       210 MiB  256 MiB  1.2 GiB   210 MiB   50 MiB   48 KiB
/batch.slice                        module  off      1.0 GiB     none        0         0        0  4.0 KiB
)");
}

TEST(Render, StatusWithoutModule) {
  const Json status = {{"module",
                        {{"loaded", false},
                         {"error",
                          {{"code", "unavailable"},
                           {"object", "/dev/memsluice"},
                           {"message", "the module is not loaded"},
                           {"hint", "load it: modprobe memsluice"}}}}}};
  EXPECT_EQ(rendered("status", status), R"(
daemon  -, up 0 s, configuration -
module  the module is not loaded; load it: modprobe memsluice

NODE  TIER  SIZE  FREE  CPUS  DISTANCE

no tenant: memsluice tenant set --help
)");
}

TEST(Render, Tenant) {
  EXPECT_EQ(rendered("tenant.get", {{"tenant", sample_status()["tenants"][1]}}), R"(
tenant     /system.slice/redis-server.service
cgroup id  4711
policy     tiering on, fast limit 256 MiB, promote 64 MiB/s, demote 128 MiB/s (from config)
scanned    fast 210 MiB, slow 1.2 GiB
charged    1.5 GiB, 215 MiB on node 0, 1.2 GiB on node 1
promoted   210 MiB (53760 pages)
demoted    50 MiB (12800 pages)
refused    12 pages: 10 busy, 2 pinned
scans      12 of 4 processes, 3.2 s of CPU in all

BIN        ACCESSES     FAST     SLOW
  0               0        0  977 MiB  cold
  1          1 to 2   12 KiB  234 MiB  cold
  2          3 to 6   48 KiB   12 MiB
  3         7 to 14  800 KiB  3.5 MiB
  4        15 to 30  3.5 MiB  1.2 MiB
  5        31 to 62   16 MiB  400 KiB  hot
  6       63 to 126   35 MiB  160 KiB  hot
  7      127 to 254   62 MiB   80 KiB  hot
  8      255 to 510   47 MiB   36 KiB  hot
  9     511 to 1022   31 MiB   16 KiB  hot
 10    1023 to 2046   12 MiB  4.0 KiB  hot
 11    2047 to 4094  1.6 MiB        0  hot
 12    4095 to 8190  240 KiB        0  hot
 13   8191 to 16382   36 KiB        0  hot
 14  16383 to 32766  4.0 KiB        0  hot
 15  32767 and more        0        0  hot
)");
}

TEST(Render, TenantThatHasNotBeenScanned) {
  EXPECT_EQ(rendered("tenant.get", {{"tenant", sample_status()["tenants"][0]}}), R"(
tenant     /new.slice
cgroup id  4713
policy     tiering on, fast limit none, promote 256 MiB/s, demote 256 MiB/s (from api)
scanned    fast 0, slow 0
charged    4.0 KiB
promoted   0 (0 pages)
demoted    0 (0 pages)
refused    none
scans      0 of 0 processes, 0.0 s of CPU in all
)");
}

TEST(Render, NamesCannotDriveTheTerminal) {
  const Json result = {{"tenants", {{{"cgroup", "/\033[2J"}}}}};
  EXPECT_EQ(rendered("tenant.list", result), R"(
TENANT    ORIGIN  TIERING  FAST  LIMIT  SLOW  PROMOTED  DEMOTED  REFUSED
/\x1b[2J  -       -           -      -     -         -        -        0
)");
}

TEST(Render, ShortAnswers) {
  const Json tenant = {{"tenant", sample_status()["tenants"][1]}};
  EXPECT_EQ(rendered("tenant.set", tenant), R"(
tenant /system.slice/redis-server.service: tiering on, fast limit 256 MiB, promote 64 MiB/s, demote 128 MiB/s
)");
  EXPECT_EQ(rendered("tenant.clear", Json::object()), "\ntenant /x: cleared\n");
  EXPECT_EQ(rendered("config.reload", {{"changed", true}}),
            "\nthe configuration has been loaded\n");
  EXPECT_EQ(rendered("config.reload", {{"changed", false}}),
            "\nthe configuration has not changed\n");
  EXPECT_EQ(rendered("request.list", {{"requests", Json::array()}}), "\nno request\n");
}

TEST(Render, Requests) {
  Json failed = sample_request();
  failed["id"] = 12;
  failed["object"] = "/redis.slice";
  failed["state"] = "failed";
  failed["error"] = {{"code", "failed"}, {"message", "migrate: No such process"}};
  EXPECT_EQ(rendered("request.list", {{"requests", {sample_request(), failed}}}), R"(
ID  STATE    OBJECT        TO    TOTAL     SEEN    MOVED  REFUSED
 7  running  pid 4711       1  512 MiB  128 MiB  125 MiB  272 KiB
12  failed   /redis.slice   1  512 MiB  128 MiB  125 MiB  272 KiB
)");
  EXPECT_EQ(rendered("request.get", {{"request", failed}}), R"(
request 12: /redis.slice to node 1: failed
  error         migrate: No such process
  looked at     128 MiB (32768 pages) of 512 MiB (131072 pages)
  moved         125 MiB (32000 pages)
  already there 2.7 MiB (700 pages)
  refused       68 pages: 8 busy, 60 pinned
)");
}

TEST(Render, Engines) {
  EXPECT_EQ(rendered("engine.list", {{"engines", sample_engines()}}), R"(
ENGINE  RANK  BATCHES   COPIED  DECLINED  FAILED  LATE  DIFFERING
dsa      100     4711  3.0 GiB        12       3     1          0
cpu        0        -        -         -       -     -          -

QUEUE      NODE  STATE  DEPTH  BATCH  TRANSFER  DESCRIPTORS  BATCHES   COPIED  ERRORS  LATE  QUARANTINED
dsa/wq0.0     0  up        64    128   2.0 MiB        70000      900  3.0 GiB       3     0            0
dsa/wq1.0     -  stuck     64    128   2.0 MiB           12        1  8.0 KiB       0     2            1
)");
  EXPECT_EQ(rendered("engine.list", {{"engines", {sample_engines()[1]}}}), R"(
ENGINE  RANK  BATCHES  COPIED  DECLINED  FAILED  LATE  DIFFERING
cpu        0        -       -         -       -     -          -

no queue
)");
  EXPECT_EQ(rendered("engine.list", Json::object()), "\nno copy engine\n");
}

TEST(Render, ACensus) {
  EXPECT_EQ(rendered("census", {{"census", sample_census()}}), R"(
NODE  CGROUP            ANON    SHMEM     FILE  HUGETLB   KERNEL     HELD
   0  /redis.slice   512 MiB   10 MiB  1.2 MiB        0  1.1 MiB  520 KiB
   0  (nobody's)           0        0  1.0 MiB        0  100 MiB        0
   1  (removed: 23)        0  4.0 MiB        0        0        0        0

NODE      ALL     USED     FREE     POOL  POISONED  RESERVED
   0  903 MiB  625 MiB  256 MiB  2.0 MiB   4.0 KiB    20 MiB
   1  4.0 MiB  4.0 MiB        0        0         0         0
)");
  const std::string tenants =
      render_result("census", {{"by_tenant", true}}, {{"census", sample_census()}}, 4096);
  EXPECT_NE(tenants.find("NODE  TENANT "), tenants.npos);
  EXPECT_NE(tenants.find("(no tenant's)"), tenants.npos);
}

TEST(Render, AReset) {
  EXPECT_EQ(
      rendered(
          "engine.reset",
          {{"reset",
            {{"device", "dsa0"}, {"configuration", "device"}, {"queues", {"wq0.0", "wq0.1"}}}}}),
      "\ndsa0: reset, has its configuration again; queues enabled: wq0.0, wq0.1\n");
  EXPECT_EQ(
      rendered(
          "engine.reset",
          {{"reset", {{"device", "dsa0"}, {"configuration", "file"}, {"queues", Json::array()}}}}),
      "\ndsa0: reset, has the configuration that was saved; queues enabled: none\n");
}

TEST(ProgressLine, TellsHowFarAndHowLong) {
  const Json request = sample_request();
  EXPECT_EQ(progress_line(request, 2.0, 80, kPageBytes),
            "[#######-----------------------]  25%  128 MiB of 512 MiB, 6 s left");
  EXPECT_EQ(progress_line(request, 2.0, 20, kPageBytes), "[#######-----------~");
  EXPECT_EQ(progress_line(Json::object(), 2.0, 80, kPageBytes),
            "[------------------------------]   0%  - of -");
}

TEST(ProgressLine, DoesNotPassTheEndWhenTheEstimateWasLow) {
  const Json request = {{"seen_pages", 300}, {"total_pages", 200}};
  EXPECT_EQ(progress_line(request, 2.0, 80, kPageBytes),
            "[##############################] 100%  1.2 MiB of 800 KiB, 0 s left");
}

TEST(Render, ChannelsShowWhatTheyAreMadeOf) {
  EXPECT_EQ(rendered("channel.list", {{"channels", sample_channels()}}), R"(
NAME  GROUP  NODE  STATE     MEMORY                  BLOCKS  MOVABLE  BY
ch1   -         1  online    was there                  2/2        0  -
ch2   dram      2  removing  16 GiB at 0x140000000  100/128      100  kernel module
)");
  EXPECT_EQ(rendered("channel.list", {{"channels", Json::array()}}), "\nno channel\n");
  EXPECT_EQ(channel_progress_line(sample_channels()[1], 80, kPageBytes),
            "ch2: 100 of 128 memory blocks left, 10 MiB moved");
  EXPECT_EQ(channel_progress_line(sample_channels()[1], 10, kPageBytes), "ch2: 100 ~");
  EXPECT_EQ(rendered("channel.add", {{"channel", sample_channels()[1]}}),
            "\nchannel ch2: node 2\n");
  EXPECT_EQ(rendered("channel.remove",
                     {{"removed", {{"name", "ch2"}, {"node", 2}, {"moved_pages", 2560}}}}),
            "\nchannel ch2: gone, 10 MiB moved off node 2\n");
}

}  // namespace
}  // namespace memsluice
