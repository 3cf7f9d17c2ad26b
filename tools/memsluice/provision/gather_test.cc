// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/provision/gather.h"

#include <gtest/gtest.h>

#include "daemon/base/temporary_directory.h"
#include "tools/memsluice/provision/sample_tables.h"

namespace memsluice::provision {
namespace {

using namespace sample;

class GatherEvidence : public testing::Test {
 protected:
  Evidence evidence() const { return gather_evidence(doctor::HostFiles(host_.path())); }
  std::string problems() const {
    std::string all;
    for (const SourceProblem& problem : evidence().problems)
      all += problem.source + ": " + problem.message + '\n';
    return all;
  }

  TemporaryDirectory host_;
};

TEST_F(GatherEvidence, AnEmptyHostSaysNothing) {
  const Evidence nothing = evidence();
  EXPECT_TRUE(nothing.firmware_ram().empty());
  EXPECT_FALSE(nothing.srat || nothing.hmat || nothing.cedt || nothing.smbios);
  EXPECT_FALSE(nothing.adxl);
  EXPECT_FALSE(nothing.table_upgrade.has_value());
  EXPECT_EQ(nothing.block_bytes, 128 * kMib);
  EXPECT_EQ(problems(), "/proc/iomem: shows no addresses to who is not root\n");
}

TEST_F(GatherEvidence, TheFirmwaresMap) {
  host_.write("/sys/firmware/memmap/0/start", "0x0\n");
  host_.write("/sys/firmware/memmap/0/end", "0x9fbff\n");
  host_.write("/sys/firmware/memmap/0/type", "System RAM\n");
  host_.write("/sys/firmware/memmap/1/start", "0x100000000\n");
  host_.write("/sys/firmware/memmap/1/end", "0x17fffffff\n");
  host_.write("/sys/firmware/memmap/1/type", "Soft Reserved\n");
  host_.write("/sys/firmware/memmap/2/start", "0x100000000\n");
  host_.write("/sys/firmware/memmap/2/end", "none\n");
  const Evidence found = evidence();
  ASSERT_EQ(found.firmware_map.size(), 2U);
  EXPECT_EQ(found.firmware_ram(), (PhysicalRanges{{0, 0x9fc00}}));
  EXPECT_EQ(found.firmware_map[1].range, (PhysicalRange{4 * kGib, 2 * kGib}));
}

TEST_F(GatherEvidence, Tables) {
  // A newline at the end belongs to the table.
  host_.write("/sys/firmware/acpi/tables/CEDT",
              cedt({cedt_window({64 * kGib, kGib}, 0, {0x0a000000})}));
  host_.write("/sys/firmware/acpi/tables/SRAT", srat({srat_cpu(0, 0)}));
  host_.write("/sys/firmware/acpi/tables/HMAT", "HMAT");
  host_.write("/sys/firmware/dmi/tables/DMI", smbios({smbios_module(1, 0, 8192, "A1")}));
  const Evidence found = evidence();
  ASSERT_TRUE(found.cedt.has_value());
  EXPECT_EQ(found.cedt->windows.at(0).bridges.at(0), 0x0a000000U);
  EXPECT_TRUE(found.srat.has_value());
  EXPECT_FALSE(found.hmat.has_value());
  EXPECT_EQ(found.smbios->modules.at(0).locator, "A1");
  EXPECT_NE(problems().find("HMAT: is shorter than a table's header"), std::string::npos);
  host_.write("/sys/firmware/acpi/tables/SRAT", srat({srat_cpu(0, 0)}) + "x");
  EXPECT_EQ(problems().find("SRAT"), std::string::npos) << "what comes behind is not looked at";
  std::string wrong = srat({srat_cpu(0, 0)});
  wrong[20]++;
  host_.write("/sys/firmware/acpi/tables/SRAT", wrong);
  EXPECT_NE(problems().find("SRAT: its checksum is wrong"), std::string::npos);
}

TEST_F(GatherEvidence, NodesAndTheirBlocks) {
  const std::string nodes = "/sys/devices/system/node";
  host_.write("/sys/devices/system/memory/block_size_bytes", "80000000\n");
  host_.write(nodes + "/possible", "0-3\n");
  host_.write(nodes + "/online", "0-1\n");
  host_.write(nodes + "/node0/cpulist", "0-1\n");
  host_.make_directory(nodes + "/node0/memory0");
  host_.make_directory(nodes + "/node1/memory2");
  host_.make_directory(nodes + "/node1/memory3");
  host_.write(nodes + "/node1/memory_failure", "");
  const Evidence found = evidence();
  EXPECT_EQ(found.block_bytes, 2 * kGib);
  ASSERT_EQ(found.nodes.size(), 2U);
  EXPECT_TRUE(found.nodes[0].has_cpus);
  EXPECT_EQ(found.nodes[1].memory, (PhysicalRanges{{4 * kGib, 4 * kGib}}));
  const HostMemory host = found.host_memory();
  EXPECT_EQ(host.block_bytes, 2 * kGib);
  EXPECT_EQ(host.possible_nodes, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(host.nodes.at(0), (PhysicalRanges{{0, 2 * kGib}}));
  EXPECT_EQ(host.nodes.at(1), found.nodes[1].memory);
}

TEST_F(GatherEvidence, BlockSizesThatCannotBeAreNotBelieved) {
  for (const char* size : {"0", "8000001", "1000000", "ffffffffffffffff", "x", ""}) {
    host_.write("/sys/devices/system/memory/block_size_bytes", size);
    EXPECT_EQ(evidence().block_bytes, 128 * kMib) << size;
  }
}

TEST_F(GatherEvidence, EdacAdxlAndDax) {
  host_.write("/sys/devices/system/edac/mc/mc0/dimm1/size", "16384\n");
  host_.write("/sys/devices/system/edac/mc/mc0/dimm1/dimm_label", "CPU0_A1\n");
  host_.write("/sys/devices/system/edac/mc/mc0/dimm1/dimm_location", "channel 0 slot 0 \n");
  host_.write("/sys/devices/system/edac/mc/mc0/dimm2/size", "0\n");
  host_.write("/sys/bus/acpi/devices/device:01/path", "\\_SB_.ADXL\n");
  host_.write("/sys/bus/dax/devices/dax0.0/resource", "0x140000000\n");
  host_.write("/sys/bus/dax/devices/dax0.0/size", "2147483648\n");
  host_.write("/sys/bus/dax/devices/dax0.0/target_node", "1\n");
  const Evidence found = evidence();
  ASSERT_EQ(found.edac.size(), 1U);
  EXPECT_EQ(found.edac[0].label, "CPU0_A1");
  EXPECT_EQ(found.edac[0].bytes, 16 * kGib);
  EXPECT_TRUE(found.adxl);
  ASSERT_EQ(found.dax.size(), 1U);
  EXPECT_EQ(found.dax[0].range, (PhysicalRange{5 * kGib, 2 * kGib}));
  EXPECT_EQ(found.dax[0].target_node, 1);
}

TEST_F(GatherEvidence, WhatTheKernelCan) {
  host_.write("/proc/sys/kernel/osrelease", "6.12.1\n");
  host_.write("/boot/config-6.12.1", "# CONFIG_ACPI_TABLE_UPGRADE is not set\nCONFIG_ACPI=y\n");
  host_.write("/proc/meminfo", "MemTotal:       16000 kB\nMemAvailable:   12000 kB\n");
  EXPECT_EQ(evidence().table_upgrade, false);
  EXPECT_EQ(evidence().used_bytes, 4000U << 10);
  host_.write("/boot/config-6.12.1", "CONFIG_ACPI=y\nCONFIG_ACPI_TABLE_UPGRADE=y\nCONFIG_X=y\n");
  EXPECT_EQ(evidence().table_upgrade, true);
}

}  // namespace
}  // namespace memsluice::provision
