// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/counters/pmu_description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>

#include "daemon/host/counters/recorded_pmus.h"

namespace memsluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const PmuFormats kFormats = {{"event", {0, 0xff}},
                             {"umask", {0, 0x00ff'ffff'0000'ff00}},
                             {"edge", {0, 1 << 18}},
                             {"filter", {1, 0xffff'0000}}};

TEST(PmuFormatText, IsWordAndBits) {
  EXPECT_EQ(*parse_pmu_format("config:0-7"), (PmuFormat{0, 0xff}));
  EXPECT_EQ(*parse_pmu_format("config:18"), (PmuFormat{0, 1 << 18}));
  EXPECT_EQ(*parse_pmu_format("config1:0-63"), (PmuFormat{1, UINT64_MAX}));
  EXPECT_EQ(*parse_pmu_format("config2:8-15,32-55"), (PmuFormat{2, 0x00ff'ffff'0000'ff00}));
}

TEST(PmuFormatText, OfNoSenseIsRefused) {
  for (const char* text : {"", "config", "config:", "config:a", "config:7-0", "config:0-64",
                           "config3:0-7", "config:0-7,", "config:-1", "event:0"})
    EXPECT_FALSE(parse_pmu_format(text).ok()) << text;
}

TEST(PmuEventText, SetsItsBits) {
  EXPECT_EQ(*encode_pmu_event(kFormats, "event=0x05,umask=0xcf\n"), (PmuConfig{0xcf05, 0, 0}));
  EXPECT_EQ(*encode_pmu_event(kFormats, "event=5,edge"), (PmuConfig{0x40005, 0, 0}));
  EXPECT_EQ(*encode_pmu_event(kFormats, "umask=0x1ff"), (PmuConfig{0x1'0000'ff00, 0, 0}))
      << "the ninth bit is bit 32";
  EXPECT_EQ(*encode_pmu_event(kFormats, "filter=0x12,event=1"), (PmuConfig{1, 0x12'0000, 0}));
  EXPECT_EQ(*encode_pmu_event(kFormats, "config=0x123,config2=7"), (PmuConfig{0x123, 0, 7}));
}

TEST(PmuEventText, OfNoSenseIsRefused) {
  for (const char* text : {"", "event=", "event=?", "event=0x100", "event=-1", "event=0x",
                           "nosuch=1", "event=1,,umask=1", "edge=2", "event=99999999999999999999"})
    EXPECT_FALSE(encode_pmu_event(kFormats, text).ok()) << text;
}

RC_GTEST_PROP(PmuEventText, EveryValueThatFitsIsThereAndNothingElse,
              (uint64_t mask, uint64_t value)) {
  RC_PRE(mask != 0);
  const int room = std::popcount(mask);
  if (room < 64) value &= (uint64_t{1} << room) - 1;
  auto config = encode_pmu_event({{"term", {0, mask}}}, fmt::format("term={}", value));
  RC_ASSERT(config.ok());
  RC_ASSERT(((*config)[0] & ~mask) == 0u);
  uint64_t gathered = 0;
  for (int bit = 0, at = 0; bit < 64; bit++)
    if (mask >> bit & 1) gathered |= ((*config)[0] >> bit & 1) << at++;
  RC_ASSERT(gathered == value);
}

TEST(PmuScale, IsBytes) {
  EXPECT_EQ(*bytes_per_count("6.103515625e-5\n", "MiB\n"), 64.0);
  EXPECT_EQ(*bytes_per_count("4", "KiB"), 4096.0);
  EXPECT_EQ(*bytes_per_count("64", "Bytes"), 64.0);
  for (const char* scale : {"", "x", "0", "-1", "nan", "inf", "1 2"})
    EXPECT_FALSE(bytes_per_count(scale, "MiB").ok()) << scale;
  EXPECT_FALSE(bytes_per_count("1", "Joules").ok());
  EXPECT_FALSE(bytes_per_count("1", "").ok());
}

TEST(MemoryPmusOf, SapphireRapids) {
  RecordedPmus host;
  host.sapphire_rapids_imc(0, 70, "0,56");
  host.sapphire_rapids_imc(1, 71, "0,56");
  host.pmu("uncore_imc_bogus", 99, "0");
  host.pmu("uncore_cha_0", 20, "0,56");
  host.pmu("cpu", 4, "");
  const MemoryPmus found = read_memory_pmus(host.paths().event_sources);
  EXPECT_THAT(found.notices, IsEmpty());
  ASSERT_EQ(found.pmus.size(), 2u);
  EXPECT_EQ(found.pmus[1], (MemoryPmu{.name = "uncore_imc_1",
                                      .type = 71,
                                      .cpus = {0, 56},
                                      .reads = {{{0xcf05, 0, 0}, 64}},
                                      .writes = {{{0xf005, 0, 0}, 64}}}));
}

TEST(MemoryPmusOf, GraniteRapidsCountTheirSubchannels) {
  RecordedPmus host;
  host.granite_rapids_imc(0, 70, "0");
  const MemoryPmus found = read_memory_pmus(host.paths().event_sources);
  ASSERT_EQ(found.pmus.size(), 1u);
  EXPECT_THAT(found.pmus[0].reads,
              ElementsAre(PmuEvent{{0xcf05, 0, 0}, 64}, PmuEvent{{0xcf06, 0, 0}, 64}));
  EXPECT_THAT(found.pmus[0].writes,
              ElementsAre(PmuEvent{{0xf005, 0, 0}, 64}, PmuEvent{{0xf006, 0, 0}, 64}));
}

TEST(MemoryPmusOf, IceLakeWithoutChannelsFallsBackToControllers) {
  RecordedPmus host;
  host.ice_lake_free_running(0, 80, "0");
  host.sapphire_rapids_imc(0, 70, "0");
  auto found = read_memory_pmus(host.paths().event_sources);
  ASSERT_EQ(found.pmus.size(), 1u) << "the same bytes are not counted twice";
  EXPECT_EQ(found.pmus[0].name, "uncore_imc_0");
  // As older kernels have it of CPUs that they know too little of.
  host.remove("uncore_imc_0", "events");
  found = read_memory_pmus(host.paths().event_sources);
  ASSERT_EQ(found.pmus.size(), 1u);
  EXPECT_EQ(found.pmus[0].name, "uncore_imc_free_running_0");
  EXPECT_THAT(found.pmus[0].reads, ElementsAre(PmuEvent{{0x20ff, 0, 0}, 64}));
  EXPECT_THAT(found.notices, ElementsAre(HasSubstr("uncore_imc_0: names no events")));
}

TEST(MemoryPmusOf, Zen) {
  RecordedPmus host;
  host.zen_umc(0, 40, "0");
  host.zen_umc(12, 52, "96");
  const MemoryPmus found = read_memory_pmus(host.paths().event_sources);
  ASSERT_EQ(found.pmus.size(), 2u);
  EXPECT_EQ(found.pmus[1], (MemoryPmu{.name = "amd_umc_12",
                                      .type = 52,
                                      .cpus = {96},
                                      .reads = {{{0x10a, 0, 0}, 64}},
                                      .writes = {{{0x20a, 0, 0}, 64}}}));
}

TEST(MemoryPmusOf, AHostWithNoneOrWithBrokenOnes) {
  EXPECT_THAT(read_memory_pmus("/nonexistent").pmus, IsEmpty());
  RecordedPmus host;
  const std::string& directory = host.paths().event_sources;
  EXPECT_THAT(read_memory_pmus(directory).notices, IsEmpty());
  host.sapphire_rapids_imc(0, 70, "");
  host.sapphire_rapids_imc(1, 71, "0");
  host.write("uncore_imc_1", "type", "many\n");
  host.sapphire_rapids_imc(2, 72, "0");
  host.write("uncore_imc_2", "events/cas_count_read", "event=0x05,umask=?\n");
  host.sapphire_rapids_imc(3, 73, "0");
  host.write("uncore_imc_3", "events/cas_count_read.unit", "Joules\n");
  host.zen_umc(0, 40, "0");
  host.remove("amd_umc_0", "format/rdwrmask");
  const MemoryPmus found = read_memory_pmus(directory);
  EXPECT_THAT(found.pmus, IsEmpty());
  EXPECT_THAT(found.notices,
              ElementsAre(HasSubstr("rdwrmask"), HasSubstr("cpumask"), HasSubstr("type"),
                          HasSubstr("umask=?"), HasSubstr("Joules")));
}

}  // namespace
}  // namespace memsluice
