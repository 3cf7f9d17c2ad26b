// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include "tools/memsluice/provision/cedt.h"
#include "tools/memsluice/provision/cpio.h"
#include "tools/memsluice/provision/hmat.h"
#include "tools/memsluice/provision/little_endian.h"
#include "tools/memsluice/provision/sample_tables.h"
#include "tools/memsluice/provision/smbios.h"
#include "tools/memsluice/provision/srat.h"

namespace memsluice::provision {
namespace {

using namespace sample;

TEST(LittleEndian, WhatLiesBeyondTheEndIsZero) {
  EXPECT_EQ(little_endian<uint32_t>("\x01\x02\x03\xf4", 0), 0xf4030201);
  EXPECT_EQ(little_endian<uint32_t>("\x01\x02\x03\x04", 1), 0U);
  EXPECT_EQ(little_endian<uint64_t>("", SIZE_MAX), 0U);
}

Srat good_srat(const std::vector<std::string>& entries, uint8_t revision = 3) {
  auto parsed = parse_srat(srat(entries, revision));
  EXPECT_TRUE(parsed.ok()) << parsed.error().describe();
  return *parsed;
}

TEST(SratTable, DomainsBecomeNodesInTheOrderInWhichLinuxMeetsThem) {
  const Srat srat = good_srat({srat_memory(9, {0, kGib}), srat_cpu(5, 0), srat_x2apic(300, 1),
                               srat_initiator(7), srat_memory(5, {kGib, kGib}, 3)});
  EXPECT_EQ(srat.domains_in_node_order, (std::vector<uint32_t>{5, 300, 7, 9}));
  EXPECT_EQ(srat.node_of(9), 3);
  EXPECT_EQ(srat.node_of(1), std::nullopt);
  EXPECT_EQ(srat.cpus.at(300), 1U);
  EXPECT_EQ(srat.initiators.at(7), 1U);
  ASSERT_EQ(srat.memory.size(), 2U);
  EXPECT_FALSE(srat.memory[0].hot_pluggable);
  EXPECT_TRUE(srat.memory[1].hot_pluggable);
}

TEST(SratTable, WhatIsNotEnabledIsNotThere) {
  const Srat srat = good_srat({srat_cpu(0, 0), srat_memory(1, {0, kGib}, 2),
                               srat_memory(2, {kGib, 0}), srat_memory(3, {UINT64_MAX, 2})});
  EXPECT_TRUE(srat.memory.empty());
  EXPECT_EQ(srat.domains_in_node_order, std::vector<uint32_t>{0});
}

TEST(SratTable, BeforeRevision2DomainsHaveOneByte) {
  const Srat srat = good_srat({srat_cpu(0x101, 0), srat_memory(0x102, {0, kGib})}, 1);
  EXPECT_EQ(srat.domains_in_node_order, (std::vector<uint32_t>{1, 2}));
  EXPECT_FALSE(changed(srat, {{255, {{0, kGib}}}}).ok());
}

TEST(SratTable, RefusesWhatIsCutOff) {
  const std::string whole = srat({srat_cpu(0, 0), srat_memory(0, {0, kGib})});
  for (size_t length = 0; length < whole.size(); length++)
    EXPECT_FALSE(parse_srat(whole.substr(0, length)).ok()) << length;
  std::string short_entry = whole;
  short_entry[49] = 1;
  EXPECT_FALSE(parse_srat(short_entry).ok());
  EXPECT_FALSE(parse_srat(hmat({})).ok());
}

TEST(SratTable, AChangeCutsWhatItTakesFromAndIsLast) {
  const Srat before = good_srat(
      {srat_cpu(0, 0), srat_memory(0, {0, 4 * kGib}, 3), srat_memory(1, {8 * kGib, kGib})});
  const auto after = changed(before, {{2, {{kGib, kGib}}}, {3, {{3 * kGib, kGib}}}});
  ASSERT_TRUE(after.ok()) << after.error().describe();
  std::vector<std::pair<uint32_t, PhysicalRange>> memory;
  for (const SratMemory& known : after->memory) memory.emplace_back(known.domain, known.range);
  EXPECT_EQ(memory, (std::vector<std::pair<uint32_t, PhysicalRange>>{{0, {0, kGib}},
                                                                     {0, {2 * kGib, kGib}},
                                                                     {1, {8 * kGib, kGib}},
                                                                     {2, {kGib, kGib}},
                                                                     {3, {3 * kGib, kGib}}}));
  EXPECT_TRUE(after->memory[0].hot_pluggable) << "what is kept keeps its flags";
  EXPECT_EQ(after->node_of(0), before.node_of(0));
  EXPECT_EQ(after->node_of(1), before.node_of(1));
  EXPECT_EQ(after->node_of(3), 3);
  EXPECT_TRUE(after->table.checksum_is_right());
  EXPECT_TRUE(after->table.is_replacement());
  EXPECT_FALSE(before.table.is_replacement());
  EXPECT_EQ(after->table.oem_revision(), before.table.oem_revision() + 1);
  EXPECT_EQ(after->table.oem_id(), "SAMPLE");
  EXPECT_EQ(after->table.oem_table_id(), "SAMPLETB");
}

TEST(SratTable, TheHighestRevisionCannotBeReplaced) {
  std::string bytes = srat({srat_cpu(0, 0)});
  put_little_endian<uint32_t>(bytes, 24, UINT32_MAX);
  auto parsed = parse_srat(bytes);
  ASSERT_TRUE(parsed.ok());
  EXPECT_FALSE(parsed->table.checksum_is_right());
  EXPECT_FALSE(changed(*parsed, {{1, {{0, kGib}}}}).ok());
}

TEST(HmatTable, SpeedsInLinuxUnits) {
  auto parsed = parse_hmat(hmat({hmat_locality(0, 1000, {0}, {0, 1}, {100, 250}),
                                 hmat_locality(4, 100, {0}, {0, 1}, {200, 0xffff}),
                                 hmat_locality(5, 100, {0}, {0, 1}, {100, 0})}));
  ASSERT_TRUE(parsed.ok()) << parsed.error().describe();
  EXPECT_EQ(parsed->nearest(0), (ChannelSpeeds{20000, 10000, 100, 100}));
  EXPECT_EQ(parsed->nearest(1), (ChannelSpeeds{{}, {}, 250, 250}));
  EXPECT_EQ(parsed->nearest(2), ChannelSpeeds());
}

TEST(HmatTable, TheFirstRevisionCountedInTenths) {
  auto parsed = parse_hmat(hmat({hmat_locality(1, 10, {0}, {0}, {101})}, 1));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->nearest(0).read_latency_ns, 101U);
}

TEST(HmatTable, SeenFromWhereItIsNearest) {
  auto parsed = parse_hmat(hmat({hmat_locality(0, 1000, {0, 1}, {2}, {300, 200}),
                                 hmat_locality(3, 1, {0, 1}, {2}, {5000, 9000})}));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->nearest(2), (ChannelSpeeds{9000, 9000, 200, 200}));
}

TEST(HmatTable, ListsLongerThanTheStructureAreNotThere) {
  std::string structure = hmat_locality(0, 1000, {0}, {0}, {100});
  put_little_endian<uint32_t>(structure, 12, UINT32_MAX);
  put_little_endian<uint32_t>(structure, 16, UINT32_MAX);
  auto parsed = parse_hmat(hmat({structure}));
  ASSERT_TRUE(parsed.ok());
  EXPECT_TRUE(parsed->speeds.empty());
}

TEST(CedtTable, Windows) {
  auto parsed = parse_cedt(
      cedt({std::string("\0\0\x08\0zzzz", 8), cedt_window({64 * kGib, 16 * kGib}, 0, {12}),
            cedt_window({96 * kGib, 48 * kGib}, 8, {12, 13, 14})}));
  ASSERT_TRUE(parsed.ok()) << parsed.error().describe();
  ASSERT_EQ(parsed->windows.size(), 2U);
  EXPECT_EQ(parsed->windows[0].range, (PhysicalRange{64 * kGib, 16 * kGib}));
  EXPECT_EQ(parsed->windows[0].ways, 1U);
  EXPECT_TRUE(parsed->windows[0].is_volatile);
  EXPECT_EQ(parsed->windows[1].ways, 3U);
  EXPECT_EQ(parsed->windows[1].bridges, (std::vector<uint32_t>{12, 13, 14}));
}

TEST(SmbiosTable, ModulesAndWhereTheyAre) {
  auto parsed = parse_smbios(smbios(
      {smbios_array(0x1000, 3, 64 << 20), smbios_module(0x1100, 0x1000, 16384, "DIMM_A1"),
       smbios_module(0x1101, 0x1000, 65536, "DIMM_B1"), smbios_module(0x1102, 0x1000, 0, "DIMM_C1"),
       smbios_array(0x1001, 5, 1024), smbios_module(0x1103, 0x1001, 16, "FLASH"),
       smbios_array_mapping(0x1000, {0, 80 * kGib}),
       smbios_module_mapping(0x1100, {0, 16 * kGib}, 0)}));
  ASSERT_TRUE(parsed.ok()) << parsed.error().describe();
  ASSERT_EQ(parsed->modules.size(), 4U);
  EXPECT_EQ(parsed->module(0x1100)->locator, "DIMM_A1");
  EXPECT_EQ(parsed->module(0x1100)->speed_mt_per_s, 4400U);
  EXPECT_EQ(parsed->module(0x1101)->bytes, 64 * kGib);
  EXPECT_EQ(parsed->module(0x1102)->bytes, std::nullopt);
  EXPECT_EQ(parsed->module_bytes(), 80 * kGib) << "without flash";
  EXPECT_EQ(parsed->arrays[0].capacity_bytes, 64 * kGib);
  ASSERT_EQ(parsed->array_mappings.size(), 1U);
  EXPECT_EQ(parsed->array_mappings[0].range, (PhysicalRange{0, 80 * kGib}));
  ASSERT_EQ(parsed->module_mappings.size(), 1U);
  EXPECT_EQ(parsed->module_mappings[0].range, (PhysicalRange{0, 16 * kGib}));
}

TEST(SmbiosTable, OldAddressesCountKib) {
  std::string mapping = smbios_array_mapping(1, {kGib, kGib});
  mapping.replace(4, 8, number(kGib >> 10, 4) + number((2 * kGib >> 10) - 1, 4));
  auto parsed = parse_smbios(smbios({mapping}));
  ASSERT_TRUE(parsed.ok());
  ASSERT_EQ(parsed->array_mappings.size(), 1U);
  EXPECT_EQ(parsed->array_mappings[0].range, (PhysicalRange{kGib, kGib}));
}

TEST(SmbiosTable, RefusesWhatIsCutOff) {
  const std::string whole = smbios({smbios_module(1, 0, 16384, "DIMM_A1")});
  for (size_t length = 1; length < whole.size(); length++) {
    const auto parsed = parse_smbios(whole.substr(0, length));
    if (parsed.ok()) EXPECT_EQ(whole.substr(length, 1), "\x7f") << length;
  }
}

TEST(Cpio, IsWhatTheKernelLooksFor) {
  const std::string archive = cpio_archive("kernel/firmware/acpi/srat.aml", "content");
  EXPECT_TRUE(archive.starts_with("070701"));
  EXPECT_EQ(archive.size() % 512, 0U);
  const size_t name = archive.find("kernel/firmware/acpi/srat.aml");
  ASSERT_NE(name, archive.npos);
  EXPECT_EQ(archive.substr(name - 110 + 54, 8), "00000007") << "the size of the file";
  EXPECT_EQ(archive.find("content") % 4, 0U);
}

}  // namespace
}  // namespace memsluice::provision
