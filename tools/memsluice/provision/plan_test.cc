// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/provision/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "daemon/base/temporary_directory.h"
#include "tools/memsluice/provision/output.h"
#include "tools/memsluice/provision/sample_tables.h"
#include "tools/memsluice/provision/survey.h"

namespace memsluice::provision {
namespace {

using namespace sample;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr PhysicalRange kLow = {0, 2 * kGib};
constexpr PhysicalRange kHigh = {4 * kGib, 14 * kGib};

// 16 GiB with the CPUs, and nothing else.
class OneDomain : public testing::Test {
 protected:
  OneDomain() {
    host_.firmware_map = {{kLow, "System RAM"}, {kHigh, "System RAM"}};
    host_.srat = *parse_srat(srat({srat_cpu(0, 0), srat_memory(0, kLow), srat_memory(0, kHigh)}));
    host_.hmat = *parse_hmat(
        hmat({hmat_locality(0, 1000, {0}, {0}, {90}), hmat_locality(3, 1, {0}, {0}, {60000})}));
    host_.table_upgrade = true;
  }

  Result<Plan> plan(const Wish& wish) const {
    return make_plan(host_, propose_channels(host_), wish);
  }
  Plan good_plan(const Wish& wish) const {
    auto made = plan(wish);
    EXPECT_TRUE(made.ok()) << made.error().describe();
    return made.ok() ? *made : Plan{};
  }
  std::string refused(const Wish& wish) const {
    auto made = plan(wish);
    EXPECT_FALSE(made.ok());
    return made.ok() ? "" : made.error().describe();
  }
  void map_modules(uint8_t position) {
    host_.smbios = *parse_smbios(
        smbios({smbios_module(1, 0, 8192, "DIMM_A1"), smbios_module(2, 0, 8192, "DIMM_B1"),
                smbios_module_mapping(1, {0, 10 * kGib}, position),
                smbios_module_mapping(2, {10 * kGib, 8 * kGib}, position)}));
  }

  Evidence host_;
};

TEST_F(OneDomain, NamedRangesBecomeNodesByANewTable) {
  const Plan made = good_plan({.ranges = {{10 * kGib, 4 * kGib}, {14 * kGib, 4 * kGib}}});
  ASSERT_EQ(made.channels.size(), 2U);
  EXPECT_EQ(made.channels[0].definition.name, "dram-0");
  EXPECT_EQ(made.channels[0].definition.node, 1);
  EXPECT_EQ(made.channels[1].definition.node, 2);
  EXPECT_EQ(made.host_bytes, 8 * kGib);
  EXPECT_THAT(made.kernel_arguments, ElementsAre("memmap=8G$0x280000000")) << "they touch";
  ASSERT_TRUE(made.srat.has_value());
  EXPECT_EQ(made.srat->node_of(0), 0);
  EXPECT_THAT(made.warnings, IsEmpty());
  // Latency is everybody's; bandwidth is that of all the memory together.
  EXPECT_EQ(made.channels[0].definition.speeds, (ChannelSpeeds{{}, {}, 90, 90}));
}

TEST_F(OneDomain, WhatIsWrittenIsGoodOnTheHostThatBootsWithIt) {
  const Plan made = good_plan({.ranges = {{14 * kGib, 4 * kGib}}});
  const auto loaded = parse_channels_file(output_files(made).back().content, "");
  EXPECT_THAT(loaded.problems, IsEmpty());
  const HostMemory host{.ram = {kLow, {4 * kGib, 10 * kGib}},
                        .possible_nodes = {0, 1},
                        .nodes = {{0, {kLow, {4 * kGib, 10 * kGib}}}}};
  EXPECT_THAT(check_channels(loaded.file, host), IsEmpty());
}

TEST_F(OneDomain, DevicesNeedNoTable) {
  const Plan made = good_plan({.ranges = {{14 * kGib, 4 * kGib}}, .use = Use::kDevices});
  EXPECT_THAT(made.kernel_arguments, ElementsAre("memmap=4G%0x380000000-1+0xefffffff"));
  EXPECT_FALSE(made.srat.has_value());
  EXPECT_EQ(made.channels[0].definition.node, std::nullopt);
}

TEST_F(OneDomain, ARangeThatCannotBeAChannelIsRefused) {
  EXPECT_THAT(refused({.ranges = {{14 * kGib + kMib, kGib}}}),
              HasSubstr("multiples of 128 MiB, the memory block of this host ("
                        "0x388000000+896M does)"));
  EXPECT_THAT(refused({.ranges = {{17 * kGib, 2 * kGib}}}),
              HasSubstr("0x480000000+1G of it is no RAM"));
  EXPECT_THAT(refused({.ranges = {{14 * kGib, 2 * kGib}, {15 * kGib, kGib}}}),
              HasSubstr("0x3c0000000+1G belongs to two channels"));
  EXPECT_THAT(refused({.ranges = {{256 * kMib, kGib}}}), HasSubstr("where the kernel lies"));
}

TEST_F(OneDomain, TheHostKeepsEnough) {
  EXPECT_THAT(refused({.ranges = {{5 * kGib, 13 * kGib}}}),
              HasSubstr("would keep 3 GiB of 16 GiB, and needs 4 GiB (fewer channels, or "
                        "--host SIZE)"));
  EXPECT_TRUE(plan({.ranges = {{5 * kGib, 13 * kGib}}, .host_bytes = 3 * kGib}).ok());
  EXPECT_THAT(refused({.ranges = {{5 * kGib, 13 * kGib}}, .host_bytes = 5 * kGib}),
              HasSubstr("needs 5 GiB"));
  EXPECT_THAT(refused({.ranges = {{kGib / 2, 3 * kGib / 2}, kHigh}, .host_bytes = 1}),
              HasSubstr("would keep 512 MiB of 16 GiB, and needs 760 MiB"))
      << "what the kernel needs to describe pages";
  EXPECT_TRUE(plan({.ranges = {{kGib / 2, 3 * kGib / 2}, {4 * kGib, 8 * kGib}}}).ok());
  host_.firmware_map[0].range.bytes = 400 * kMib;
  host_.firmware_map.push_back({{kGib, kGib}, "System RAM"});
  EXPECT_THAT(refused({.ranges = {{kGib, kGib}}}),
              HasSubstr("would keep 400 MiB below 4 GiB, and needs 512 MiB there"));
}

TEST_F(OneDomain, KernelsThatTakeNoTablesAreNamed) {
  host_.table_upgrade = false;
  host_.kernel_release = "6.1-tiny";
  EXPECT_THAT(refused({.ranges = {{14 * kGib, kGib}}}),
              HasSubstr("6.1-tiny takes no tables from the initrd"));
  host_.table_upgrade = std::nullopt;
  EXPECT_THAT(good_plan({.ranges = {{14 * kGib, kGib}}}).warnings,
              ElementsAre(HasSubstr("CONFIG_ACPI_TABLE_UPGRADE")));
  host_.lockdown = "none [integrity] confidentiality";
  EXPECT_THAT(refused({.ranges = {{14 * kGib, kGib}}}), HasSubstr("lockdown"));
}

TEST_F(OneDomain, WithoutATableThereAreNoIds) {
  host_.srat = std::nullopt;
  EXPECT_THAT(refused({.ranges = {{14 * kGib, kGib}}}), HasSubstr("SRAT: there is none"));
  EXPECT_TRUE(plan({.ranges = {{14 * kGib, kGib}}, .use = Use::kDevices}).ok());
}

TEST_F(OneDomain, ATableWithAWrongChecksumIsNotBuiltUpon) {
  host_.srat->table.bytes[9]++;
  EXPECT_THAT(refused({.ranges = {{14 * kGib, kGib}}}), HasSubstr("its checksum is wrong"));
}

TEST_F(OneDomain, TheCommandLineThatIsThereCounts) {
  host_.command_line = "quiet memmap=1G$0x440000000,1G!0x400000000 numa=on";
  EXPECT_THAT(good_plan({.ranges = {{14 * kGib, kGib}}}).warnings,
              ElementsAre(HasSubstr("memmap=1G$0x440000000 is on the command line already"),
                          HasSubstr("memmap=1G!0x400000000 is on the command line already")));
  host_.command_line = "numa=off";
  EXPECT_THAT(refused({.ranges = {{14 * kGib, kGib}}}), HasSubstr("numa=off"));
  host_.command_line = std::string(2030, 'x');
  EXPECT_THAT(refused({.ranges = {{14 * kGib, kGib}}}), HasSubstr("longer than 2047 bytes"));
}

TEST_F(OneDomain, OnceBootedTheSameWishNeedsTheTableAgain) {
  const Wish wish{.ranges = {{14 * kGib, 4 * kGib}}};
  const Plan first = good_plan(wish);
  host_.srat = first.srat;
  host_.command_line = first.kernel_arguments[0];
  const Plan second = good_plan(wish);
  ASSERT_TRUE(second.srat.has_value());
  EXPECT_EQ(second.srat->table.oem_revision(), first.srat->table.oem_revision() + 1);
  EXPECT_EQ(second.channels[0].definition.node, first.channels[0].definition.node);
  EXPECT_EQ(second.srat->memory.size(), first.srat->memory.size());
}

TEST_F(OneDomain, NothingIsGuessedWhereNothingSaysIt) {
  EXPECT_THAT(refused({.channels = 1}),
              HasSubstr("nothing on this host says where channels begin"));
}

TEST_F(OneDomain, ModulesThatSayWhereTheyAreAreChannels) {
  map_modules(0);
  const Plan made = good_plan({.channels = 1});
  EXPECT_EQ(made.channels[0].definition.range, (PhysicalRange{10 * kGib, 8 * kGib}));
  EXPECT_EQ(made.channels[0].source, "SMBIOS 20: DIMM_B1");
  EXPECT_THAT(refused({.channels = 3}), HasSubstr("the evidence shows 2 channels"));
  EXPECT_THAT(refused({.channels = 2}), HasSubstr("host: would keep"));
}

TEST_F(OneDomain, InterleavedModulesAreNotBelieved) {
  map_modules(1);
  host_.smbios->module_mappings[0].range = host_.smbios->module_mappings[1].range;
  const Proposals proposals = propose_channels(host_);
  EXPECT_THAT(proposals.unusable[0], HasSubstr("interleaved"));
  EXPECT_TRUE(proposals.assumed) << "their sizes are left to look at";
}

TEST_F(OneDomain, SizesOfModulesGoAroundTheHoleOfDevices) {
  host_.smbios =
      *parse_smbios(smbios({smbios_module(1, 0, 8192, "A1"), smbios_module(2, 0, 0, "A2"),
                            smbios_module(3, 0, 8192, "B1")}));
  const Proposals proposals = propose_channels(host_);
  ASSERT_EQ(proposals.channels.size(), 2U);
  EXPECT_EQ(proposals.channels[0].ranges, (PhysicalRanges{kLow, {4 * kGib, 6 * kGib}}));
  EXPECT_EQ(proposals.channels[1].ranges, (PhysicalRanges{{10 * kGib, 8 * kGib}}));
  EXPECT_THAT(good_plan({.channels = 1}).warnings, ElementsAre(HasSubstr("the sizes of modules")));
  host_.smbios->modules[0].bytes = 4 * kGib;
  EXPECT_THAT(propose_channels(host_).channels, IsEmpty()) << "smaller than the RAM";
}

// Three nodes without CPUs beside the one with.
class Channels : public OneDomain {
 protected:
  Channels() {
    host_.srat = *parse_srat(
        srat({srat_cpu(0, 0), srat_memory(0, kLow), srat_memory(0, {4 * kGib, 8 * kGib}),
              srat_memory(1, {12 * kGib, 3 * kGib}), srat_memory(2, {15 * kGib, 3 * kGib})}));
    host_.hmat = *parse_hmat(hmat({hmat_locality(0, 1000, {0}, {0, 1, 2}, {90, 110, 110}),
                                   hmat_locality(3, 1, {0}, {0, 1, 2}, {60000, 20000, 20000})}));
    host_.nodes = {{0, true, {kLow, {4 * kGib, 8 * kGib}}},
                   {1, false, {{12 * kGib, 3 * kGib}}},
                   {2, false, {{15 * kGib, 3 * kGib}}}};
  }
};

TEST_F(Channels, DomainsOfTheirOwnKeepTheirIds) {
  const Plan made = good_plan({.channels = 2});
  EXPECT_FALSE(made.srat.has_value());
  EXPECT_EQ(made.channels[0].definition.node, 1);
  EXPECT_EQ(made.channels[1].definition.node, 2);
  EXPECT_EQ(made.channels[0].definition.group, "dram") << "one socket";
  EXPECT_EQ(made.channels[0].definition.speeds, (ChannelSpeeds{20000, 20000, 110, 110}));
}

TEST_F(Channels, NodesStayAsTheyAre) {
  const Plan made = good_plan({.nodes = {1, 2}});
  EXPECT_THAT(made.kernel_arguments, IsEmpty());
  EXPECT_EQ(made.channels[1].definition.node, 2);
  EXPECT_EQ(made.channels[1].definition.range, std::nullopt);
  EXPECT_EQ(made.channels[1].definition.speeds, (ChannelSpeeds{20000, 20000, 110, 110}));
  EXPECT_EQ(made.host_bytes, 10 * kGib);
  EXPECT_THAT(refused({.nodes = {3}}), HasSubstr("no such node has memory"));
  EXPECT_THAT(refused({.nodes = {1, 1}}), HasSubstr("is there twice"));
  EXPECT_THAT(refused({.ranges = {{12 * kGib, kGib}}, .nodes = {1}}),
              HasSubstr("its memory is among the ranges"));
}

TEST_F(Channels, PartOfADomainNeedsAnIdOfItsOwn) {
  const Plan made = good_plan({.ranges = {{12 * kGib, 2 * kGib}}});
  ASSERT_TRUE(made.srat.has_value());
  EXPECT_EQ(made.channels[0].definition.node, 3);
  EXPECT_EQ(made.srat->node_of(2), 2);
}

TEST_F(Channels, ADomainThatChannelsShareOutIsKeptByTheFirst) {
  const Plan made = good_plan({.ranges = {{12 * kGib, kGib}, {13 * kGib, 2 * kGib}}});
  EXPECT_EQ(made.channels[0].definition.node, 1);
  EXPECT_EQ(made.channels[1].definition.node, 3);
  EXPECT_EQ(made.srat->node_of(2), 2);
}

TEST_F(Channels, TwoDomainsAreNoChannel) {
  EXPECT_THAT(refused({.ranges = {{14 * kGib, 2 * kGib}}}), HasSubstr("lies in domains 1, 2"));
}

TEST_F(Channels, SurveyNamesConflicts) {
  host_.iomem = {{kLow, "System RAM"},
                 {{4 * kGib, 8 * kGib}, "System RAM"},
                 {{12 * kGib, 3 * kGib}, "System RAM"}};
  host_.nodes[1].id = 2;
  host_.srat->memory.push_back({0, {16 * kGib, kGib}});
  host_.smbios = *parse_smbios(
      smbios({smbios_array(1, 3, 64 << 20), smbios_module(2, 1, 8192, "A1"),
              smbios_array_mapping(1, kLow), smbios_array_mapping(1, {4 * kGib, 8 * kGib})}));
  host_.problems = {{"CEDT", "is cut off"}};
  const Survey seen = survey(host_);
  EXPECT_THAT(seen.conflicts,
              ElementsAre("SMBIOS has modules of 8 GiB, and e820 has RAM of 16 GiB",
                          "SMBIOS has modules of 8 GiB, and maps 10 GiB", "CEDT: is cut off"));
  ASSERT_EQ(seen.ranges.size(), 6U);
  EXPECT_THAT(seen.ranges[1].conflicts, IsEmpty());
  EXPECT_THAT(seen.ranges[1].claims,
              ElementsAre(Claim{"e820", "System RAM"}, Claim{"SRAT", "domain 0"},
                          Claim{"SMBIOS 19", "array 0x1, 1 modules a row"},
                          Claim{"/proc/iomem", "System RAM"}, Claim{"kernel", "node 0"}));
  EXPECT_THAT(seen.ranges[2].conflicts,
              ElementsAre("SRAT makes it node 1, the kernel node 2",
                          "e820 says RAM, and SMBIOS maps no modules there"));
  EXPECT_THAT(seen.ranges[3].conflicts,
              ElementsAre("e820 says RAM, and the kernel does not use it",
                          "e820 says RAM, and SMBIOS maps no modules there"));
  EXPECT_THAT(seen.ranges[4].conflicts, testing::Contains("SRAT has it in domains 0 and 2"));
}

TEST_F(OneDomain, WhatTheCommandLineWithholdsIsNoConflict) {
  host_.iomem = {{kLow, "System RAM"}, {{4 * kGib, 13 * kGib}, "System RAM"}};
  host_.command_line = "memmap=1G$0x440000000";
  for (const SurveyedRange& range : survey(host_).ranges) EXPECT_THAT(range.conflicts, IsEmpty());
}

TEST_F(OneDomain, CxlWindowsAreAGroupOfTheirOwn) {
  host_.cedt = *parse_cedt(cedt({cedt_window({64 * kGib, 16 * kGib}, 0, {12})}));
  host_.nodes = {{0, true, {kLow, kHigh}}, {1, false, {{64 * kGib, 16 * kGib}}}};
  const Plan made = good_plan({.ranges = {{14 * kGib, kGib}}, .nodes = {1}});
  EXPECT_EQ(made.channels[1].definition.name, "cxl-0");
  EXPECT_THAT(made.groups, ElementsAre("dram", "cxl"));
  EXPECT_THAT(made.warnings, ElementsAre(HasSubstr("CXL windows that SRAT does not know move up")));
}

TEST_F(OneDomain, TheSecondSocketHasAGroupOfItsOwn) {
  host_.srat = *parse_srat(
      srat({srat_cpu(0, 0), srat_cpu(1, 1), srat_memory(0, kLow),
            srat_memory(0, {4 * kGib, 8 * kGib}), srat_memory(1, {12 * kGib, 6 * kGib})}));
  const Plan made = good_plan({.ranges = {{11 * kGib, kGib}, {17 * kGib, kGib}}});
  EXPECT_THAT(made.groups, ElementsAre("dram0", "dram1"));
  EXPECT_EQ(made.channels[1].definition.name, "dram1-0");
}

TEST_F(OneDomain, GrubNeedsThreeBackslashes) {
  const Plan made = good_plan({.ranges = {{14 * kGib, kGib}}});
  EXPECT_EQ(grub_line(made),
            "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX memmap=1G\\\\\\$0x380000000\"");
}

TEST_F(OneDomain, FilesAreWrittenOnceAndNeverReplaced) {
  const TemporaryDirectory directory;
  const auto files = output_files(good_plan({.ranges = {{14 * kGib, kGib}}}));
  auto written = write_output(files, directory.path("/out"));
  ASSERT_TRUE(written.ok()) << written.error().describe();
  EXPECT_EQ(written->size(), 4U);
  directory.remove("/out/channels.toml");
  auto again = write_output(files, directory.path("/out"));
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::kConflict);
  EXPECT_FALSE(std::filesystem::exists(directory.path("/out/channels.toml")));
}

TEST(WithheldBy, ReadsWhatTheKernelReads) {
  const auto found = withheld_by(
      "memmap=0x100000$1g memmap=exactmap memmap=1G@0 "
      "memmap=64K#0x1000,2M%3M-1+2 memmap=1$ xmemmap=1$1 memmap=9E$1E");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].range, (PhysicalRange{kGib, kMib}));
  EXPECT_EQ(found[1].range, (PhysicalRange{3 * kMib, 2 * kMib}));
  EXPECT_EQ(found[1].argument, "memmap=2M%3M-1+2");
}

}  // namespace
}  // namespace memsluice::provision
