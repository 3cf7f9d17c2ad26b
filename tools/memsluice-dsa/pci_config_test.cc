// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/pci_config.h"

#include <gtest/gtest.h>
#include <linux/pci_regs.h>

#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <vector>

namespace memsluice::dsa {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr size_t kPortalBytes = 8 * 4 * 4096;
constexpr uint32_t kRegisterBytes = 0x10000;

class PciConfigTest : public testing::Test {
 protected:
  explicit PciConfigTest(const Shape& shape = {}, size_t portal_bytes = kPortalBytes)
      : config_(shape, portal_bytes) {}

  template <typename T>
  T read(uint64_t offset) {
    Bytes bytes(sizeof(T), 0xcc);
    config_.read(offset, bytes);
    T value;
    std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }
  template <typename T>
  PciConfig::Effect write(uint64_t offset, T value) {
    Bytes bytes(sizeof(T));
    std::memcpy(bytes.data(), &value, sizeof(value));
    return config_.write(offset, bytes);
  }
  Bytes dump() {
    Bytes bytes(PciConfig::kBytes);
    config_.read(0, bytes);
    return bytes;
  }
  // As a driver walks them: where each capability is, by its id.
  std::map<uint8_t, uint8_t> capabilities() {
    std::map<uint8_t, uint8_t> found;
    for (auto at = read<uint8_t>(PCI_CAPABILITY_LIST); at; at = read<uint8_t>(at + 1u)) {
      EXPECT_EQ(at % 4, 0);
      EXPECT_GE(at, 0x40);
      if (!found.emplace(read<uint8_t>(at), at).second) {
        ADD_FAILURE() << "capability " << unsigned{read<uint8_t>(at)} << " comes twice";
        break;
      }
    }
    return found;
  }
  uint64_t capability(uint8_t id) {
    const auto found = capabilities();
    EXPECT_TRUE(found.contains(id)) << unsigned{id};
    return found.contains(id) ? found.at(id) : 0;
  }

  PciConfig config_;
};

TEST_F(PciConfigTest, SaysWhatDeviceItIs) {
  EXPECT_EQ(read<uint16_t>(PCI_VENDOR_ID), 0x8086);
  EXPECT_EQ(read<uint16_t>(PCI_DEVICE_ID), 0x0b25);     // the one that Linux' idxd looks for
  EXPECT_EQ(read<uint16_t>(PCI_CLASS_DEVICE), 0x0880);  // another system peripheral
  EXPECT_EQ(read<uint8_t>(PCI_HEADER_TYPE), PCI_HEADER_TYPE_NORMAL);
  EXPECT_EQ(read<uint8_t>(PCI_INTERRUPT_PIN), 0);
}

TEST_F(PciConfigTest, BeginsSwitchedOff) {
  EXPECT_EQ(read<uint16_t>(PCI_COMMAND), 0);
  EXPECT_EQ(read<uint16_t>(capability(PCI_CAP_ID_MSIX) + PCI_MSIX_FLAGS) & PCI_MSIX_FLAGS_ENABLE,
            0);
}

TEST_F(PciConfigTest, ListsItsCapabilities) {
  EXPECT_TRUE(read<uint16_t>(PCI_STATUS) & PCI_STATUS_CAP_LIST);
  std::set<uint8_t> ids;
  for (const auto& [id, at] : capabilities()) ids.insert(id);
  EXPECT_EQ(ids, (std::set<uint8_t>{PCI_CAP_ID_EXP, PCI_CAP_ID_MSIX, PCI_CAP_ID_PM}));
  EXPECT_EQ(read<uint32_t>(0x100), 0u) << "there are no extended ones";
}

TEST_F(PciConfigTest, IsAnEndpointThatCanBeReset) {
  const uint64_t express = capability(PCI_CAP_ID_EXP);
  const auto flags = read<uint16_t>(express + PCI_EXP_FLAGS);
  EXPECT_EQ(flags & PCI_EXP_FLAGS_VERS, 2);
  EXPECT_EQ((flags & PCI_EXP_FLAGS_TYPE) >> 4, PCI_EXP_TYPE_RC_END);
  EXPECT_TRUE(read<uint32_t>(express + PCI_EXP_DEVCAP) & PCI_EXP_DEVCAP_FLR);
}

TEST_F(PciConfigTest, KeepsItsStateWhenPowerComesBack) {
  const uint64_t power = capability(PCI_CAP_ID_PM);
  EXPECT_EQ(read<uint16_t>(power + PCI_PM_PMC) & PCI_PM_CAP_VER_MASK, 3);
  EXPECT_EQ(read<uint16_t>(power + PCI_PM_CTRL), PCI_PM_CTRL_NO_SOFT_RESET);
  write<uint16_t>(power + PCI_PM_CTRL, 3);
  EXPECT_EQ(read<uint16_t>(power + PCI_PM_CTRL), PCI_PM_CTRL_NO_SOFT_RESET | 3);
  write<uint16_t>(power + PCI_PM_CTRL, 0);
  EXPECT_EQ(read<uint16_t>(power + PCI_PM_CTRL), PCI_PM_CTRL_NO_SOFT_RESET);
}

TEST_F(PciConfigTest, HasAVectorMoreThanQueues) {
  const uint64_t msix = capability(PCI_CAP_ID_MSIX);
  EXPECT_EQ(read<uint16_t>(msix + PCI_MSIX_FLAGS) & PCI_MSIX_FLAGS_QSIZE, 9 - 1);
}

TEST_F(PciConfigTest, HasTheTablesOfItsVectorsInTheFirstBar) {
  const uint64_t msix = capability(PCI_CAP_ID_MSIX);
  const auto table = read<uint32_t>(msix + PCI_MSIX_TABLE);
  const auto pending = read<uint32_t>(msix + PCI_MSIX_PBA);
  EXPECT_EQ(table & PCI_MSIX_TABLE_BIR, 0u);
  EXPECT_EQ(pending & PCI_MSIX_PBA_BIR, 0u);
  EXPECT_EQ(table, 0x2000u);
  EXPECT_EQ(pending, 0x3000u);
}

class LargestConfig : public PciConfigTest {
 protected:
  LargestConfig() : PciConfigTest(Shape{.queues = Shape::kQueuesMax}, size_t{64} * 4 * 4096) {}
};

TEST_F(LargestConfig, HasRoomForItsVectors) {
  const uint64_t msix = capability(PCI_CAP_ID_MSIX);
  const uint32_t vectors = (read<uint16_t>(msix + PCI_MSIX_FLAGS) & PCI_MSIX_FLAGS_QSIZE) + 1u;
  EXPECT_EQ(vectors, 65u);
  EXPECT_LE(read<uint32_t>(msix + PCI_MSIX_TABLE) + vectors * PCI_MSIX_ENTRY_SIZE,
            read<uint32_t>(msix + PCI_MSIX_PBA));
}

TEST_F(PciConfigTest, EnablesAndMasksInterrupts) {
  const uint64_t flags = capability(PCI_CAP_ID_MSIX) + PCI_MSIX_FLAGS;
  write<uint16_t>(flags, 0xffff);
  EXPECT_EQ(read<uint16_t>(flags), PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL | 8);
  write<uint16_t>(flags, PCI_MSIX_FLAGS_ENABLE);
  EXPECT_EQ(read<uint16_t>(flags), PCI_MSIX_FLAGS_ENABLE | 8);
}

constexpr uint32_t kBarType = PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH;

struct Bar {
  size_t offset;
  uint32_t bytes;
};

class Bars : public PciConfigTest, public testing::WithParamInterface<Bar> {};
INSTANTIATE_TEST_SUITE_P(PciConfig, Bars,
                         testing::Values(Bar{PCI_BASE_ADDRESS_0, kRegisterBytes},
                                         Bar{PCI_BASE_ADDRESS_2, kPortalBytes}));

TEST_P(Bars, TellTheirSizeInHalves) {
  const auto [offset, bytes] = GetParam();
  EXPECT_EQ(read<uint32_t>(offset), kBarType);
  write<uint32_t>(offset, 0xffffffff);
  write<uint32_t>(offset + 4, 0xffffffff);
  EXPECT_EQ(read<uint32_t>(offset), ~(bytes - 1) | kBarType);
  EXPECT_EQ(read<uint32_t>(offset + 4), 0xffffffffu);
}

TEST_P(Bars, TellTheirSizeAtOnce) {
  const auto [offset, bytes] = GetParam();
  write<uint64_t>(offset, ~0ULL);
  EXPECT_EQ(~(read<uint64_t>(offset) & ~0xfULL) + 1, bytes);
}

TEST_P(Bars, KeepTheirAddress) {
  const auto [offset, bytes] = GetParam();
  write<uint32_t>(offset, 0xfe000000);
  write<uint32_t>(offset + 4, 0x38);
  EXPECT_EQ(read<uint64_t>(offset), 0x38fe000000 | kBarType);
  write<uint64_t>(offset, 0x39fe000000 + bytes / 2);
  EXPECT_EQ(read<uint64_t>(offset), 0x39fe000000 | kBarType) << "it is aligned to its size";
}

TEST_P(Bars, AreWrittenByteByByteToo) {
  const auto [offset, bytes] = GetParam();
  for (const auto& [byte, value] : {std::pair<size_t, uint8_t>{0, 0x11}, {3, 0xab}, {7, 0xcd}})
    write<uint8_t>(offset + byte, value);
  EXPECT_EQ(read<uint64_t>(offset), 0xcd000000ab000000 | kBarType);
}

TEST_F(PciConfigTest, HasNoOtherBars) {
  for (const size_t offset : {PCI_BASE_ADDRESS_4, PCI_BASE_ADDRESS_5, PCI_ROM_ADDRESS}) {
    write<uint32_t>(offset, 0xffffffff);
    EXPECT_EQ(read<uint32_t>(offset), 0u) << offset;
  }
}

TEST_F(PciConfigTest, OneBarDoesNotChangeTheOther) {
  write<uint64_t>(PCI_BASE_ADDRESS_0, 0x1000000000);
  write<uint64_t>(PCI_BASE_ADDRESS_2, 0x2000000000);
  EXPECT_EQ(read<uint64_t>(PCI_BASE_ADDRESS_0), 0x1000000000 | kBarType);
  EXPECT_EQ(read<uint64_t>(PCI_BASE_ADDRESS_2), 0x2000000000 | kBarType);
}

TEST_F(PciConfigTest, ChangesOnlyWhatCanBeWritten) {
  const uint64_t express = capability(PCI_CAP_ID_EXP), msix = capability(PCI_CAP_ID_MSIX),
                 power = capability(PCI_CAP_ID_PM);
  std::set<uint64_t> writable = {PCI_COMMAND,         PCI_COMMAND + 1,
                                 PCI_INTERRUPT_LINE,  express + PCI_EXP_DEVCTL,
                                 power + PCI_PM_CTRL, msix + PCI_MSIX_FLAGS + 1};
  for (uint64_t at = PCI_BASE_ADDRESS_0; at < PCI_BASE_ADDRESS_4; at++) writable.insert(at);
  const Bytes before = dump();
  for (uint64_t at = 0; at < PciConfig::kBytes; at++)
    if (at != express + PCI_EXP_DEVCTL + 1) write<uint8_t>(at, static_cast<uint8_t>(~before[at]));
  const Bytes after = dump();
  for (uint64_t at = 0; at < PciConfig::kBytes; at++)
    EXPECT_TRUE(after[at] == before[at] || writable.contains(at)) << at;
  EXPECT_EQ(read<uint16_t>(PCI_COMMAND),
            PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_INTX_DISABLE);
  EXPECT_EQ(read<uint8_t>(PCI_INTERRUPT_LINE), 0xff);
}

TEST_F(PciConfigTest, ReportsWhetherItIsBusMaster) {
  EXPECT_FALSE(write<uint16_t>(PCI_COMMAND, PCI_COMMAND_MEMORY).bus_master);
  EXPECT_TRUE(write<uint16_t>(PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER).bus_master);
  EXPECT_TRUE(write<uint8_t>(PCI_INTERRUPT_LINE, 11).bus_master) << "it still is";
  EXPECT_FALSE(write<uint16_t>(PCI_COMMAND, PCI_COMMAND_MEMORY).bus_master);
}

TEST_F(PciConfigTest, ReportsAResetAndForgetsWhatWasWritten) {
  const Bytes fresh = dump();
  const uint64_t control = capability(PCI_CAP_ID_EXP) + PCI_EXP_DEVCTL;
  write<uint16_t>(PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
  write<uint64_t>(PCI_BASE_ADDRESS_0, 0x1000000000);
  write<uint64_t>(PCI_BASE_ADDRESS_2, 0x2000000000);
  const auto effect = write<uint16_t>(control, PCI_EXP_DEVCTL_BCR_FLR | PCI_EXP_DEVCTL_RELAX_EN);
  EXPECT_TRUE(effect.resets);
  EXPECT_FALSE(effect.bus_master);
  EXPECT_EQ(read<uint16_t>(control) & PCI_EXP_DEVCTL_BCR_FLR, 0);
  EXPECT_EQ(dump(), fresh);
}

TEST_F(PciConfigTest, IsResetByTheHighByteOfTheControlAlone) {
  const uint64_t control = capability(PCI_CAP_ID_EXP) + PCI_EXP_DEVCTL;
  EXPECT_FALSE(write<uint8_t>(control, 0x80).resets);
  EXPECT_FALSE(write<uint8_t>(control + 1, 0x7f).resets);
  EXPECT_EQ(read<uint16_t>(control), 0x7f80);
  EXPECT_TRUE(write<uint8_t>(control + 1, 0x80).resets);
}

TEST_F(PciConfigTest, IsNotResetByOtherWrites) {
  EXPECT_FALSE(write<uint16_t>(PCI_COMMAND, 0xffff).resets);
  EXPECT_FALSE(write<uint32_t>(capability(PCI_CAP_ID_PM) + PCI_PM_CTRL, 0xffffffff).resets);
}

TEST_F(PciConfigTest, IsResetWhenTold) {
  const Bytes fresh = dump();
  write<uint16_t>(PCI_COMMAND, PCI_COMMAND_MASTER);
  write<uint64_t>(PCI_BASE_ADDRESS_0, 0x1000000000);
  config_.reset();
  EXPECT_EQ(dump(), fresh);
}

TEST_F(PciConfigTest, ReadsAcrossItsFields) {
  EXPECT_EQ(read<uint32_t>(PCI_VENDOR_ID), 0x0b258086u);
  EXPECT_EQ(read<uint16_t>(PCI_VENDOR_ID + 1), 0x2580);
}

TEST_F(PciConfigTest, ReadsZerosBeyondItsEnd) {
  EXPECT_EQ(read<uint64_t>(PciConfig::kBytes - 4), 0u);
  EXPECT_EQ(read<uint64_t>(PciConfig::kBytes), 0u);
  EXPECT_EQ(read<uint64_t>(std::numeric_limits<uint64_t>::max()), 0u);
  EXPECT_EQ(read<uint64_t>(std::numeric_limits<uint64_t>::max() - 3), 0u);
  config_.read(0, {});
  config_.read(PciConfig::kBytes, {});
}

TEST_F(PciConfigTest, WritesNothingBeyondItsEnd) {
  const Bytes before = dump();
  const Bytes ones(64, 0xff);
  for (const uint64_t offset :
       {uint64_t{PciConfig::kBytes} - 4, uint64_t{PciConfig::kBytes},
        std::numeric_limits<uint64_t>::max(), std::numeric_limits<uint64_t>::max() - 7}) {
    const auto effect = config_.write(offset, ones);
    EXPECT_FALSE(effect.resets) << offset;
    EXPECT_FALSE(effect.bus_master) << offset;
    EXPECT_EQ(dump(), before) << offset;
  }
  config_.write(0, {});
  EXPECT_EQ(dump(), before);
}

}  // namespace
}  // namespace memsluice::dsa
