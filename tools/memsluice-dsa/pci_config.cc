// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/pci_config.h"

#include <linux/pci_regs.h>

#include <algorithm>

#include "tools/memsluice-dsa/registers.h"

namespace memsluice::dsa {
namespace {

constexpr size_t kExpress = 0x40, kMsix = 0x80, kPower = 0x90;
constexpr size_t kDeviceControl = kExpress + PCI_EXP_DEVCTL;
constexpr uint32_t kBarType = PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH;

}  // namespace

PciConfig::PciConfig(const Shape& shape, size_t portal_bytes)
    : shape_(shape), portal_bytes_(portal_bytes) {
  reset();
}

void PciConfig::reset() {
  bytes_.clear();
  bytes_.set<uint16_t>(PCI_VENDOR_ID, 0x8086);
  bytes_.set<uint16_t>(PCI_DEVICE_ID, 0x0b25);
  bytes_.set<uint16_t>(PCI_STATUS, PCI_STATUS_CAP_LIST);
  bytes_.set<uint16_t>(PCI_CLASS_DEVICE, 0x0880);  // another system peripheral
  bytes_.set<uint16_t>(PCI_SUBSYSTEM_VENDOR_ID, 0x8086);
  bytes_.set<uint32_t>(PCI_BASE_ADDRESS_0, kBarType);
  bytes_.set<uint32_t>(PCI_BASE_ADDRESS_2, kBarType);
  bytes_.set<uint8_t>(PCI_CAPABILITY_LIST, kExpress);

  bytes_.set<uint8_t>(kExpress, PCI_CAP_ID_EXP);
  bytes_.set<uint8_t>(kExpress + 1, kMsix);
  bytes_.set<uint16_t>(kExpress + PCI_EXP_FLAGS, 2 | PCI_EXP_TYPE_RC_END << 4);
  bytes_.set<uint32_t>(kExpress + PCI_EXP_DEVCAP, PCI_EXP_DEVCAP_FLR | PCI_EXP_DEVCAP_RBER | 1);

  bytes_.set<uint8_t>(kMsix, PCI_CAP_ID_MSIX);
  bytes_.set<uint8_t>(kMsix + 1, kPower);
  bytes_.set(kMsix + PCI_MSIX_FLAGS, static_cast<uint16_t>(shape_.vectors() - 1));
  bytes_.set<uint32_t>(kMsix + PCI_MSIX_TABLE, registers::kVectorTable);  // in BAR 0, both
  bytes_.set<uint32_t>(kMsix + PCI_MSIX_PBA, registers::kPendingTable);

  bytes_.set<uint8_t>(kPower, PCI_CAP_ID_PM);
  bytes_.set<uint16_t>(kPower + PCI_PM_PMC, 3);
  bytes_.set<uint16_t>(kPower + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET);
}

uint8_t PciConfig::writable(size_t offset) const {
  constexpr uint8_t kCommand = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
  if (offset == PCI_COMMAND) return kCommand;
  if (offset == PCI_COMMAND + 1) return PCI_COMMAND_INTX_DISABLE >> 8;
  if (offset >= PCI_BASE_ADDRESS_0 && offset < PCI_BASE_ADDRESS_4) return 0xff;
  if (offset == PCI_INTERRUPT_LINE || offset == kDeviceControl) return 0xff;
  if (offset == kDeviceControl + 1) return 0x7f;  // the bit of the reset reads as 0
  if (offset == kMsix + PCI_MSIX_FLAGS + 1)
    return (PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL) >> 8;
  if (offset == kPower + PCI_PM_CTRL) return PCI_PM_CTRL_STATE_MASK;
  return 0;
}

void PciConfig::set_bar(size_t offset, size_t bytes) {
  const auto address = bytes_.get<uint32_t>(offset);
  bytes_.set(offset, (address & ~static_cast<uint32_t>(bytes - 1)) | kBarType);
}

void PciConfig::read(uint64_t offset, std::span<uint8_t> into) {
  std::fill(into.begin(), into.end(), uint8_t{0});
  if (offset >= kBytes) return;
  const size_t count = std::min<size_t>(into.size(), kBytes - offset);
  std::copy_n(bytes_.at(offset, count).begin(), count, into.begin());
}

PciConfig::Effect PciConfig::write(uint64_t offset, std::span<const uint8_t> from) {
  Effect effect;
  for (size_t i = 0; i < from.size() && offset + i < kBytes; i++) {
    const size_t at = offset + i;
    const uint8_t mask = writable(at);
    bytes_.set<uint8_t>(at,
                        static_cast<uint8_t>((bytes_.get<uint8_t>(at) & ~mask) | (from[i] & mask)));
    effect.resets |= at == kDeviceControl + 1 && from[i] & PCI_EXP_DEVCTL_BCR_FLR >> 8;
  }
  set_bar(PCI_BASE_ADDRESS_0, registers::kBytes);
  set_bar(PCI_BASE_ADDRESS_2, portal_bytes_);
  if (effect.resets) reset();
  effect.bus_master = bytes_.get<uint16_t>(PCI_COMMAND) & PCI_COMMAND_MASTER;
  return effect;
}

}  // namespace memsluice::dsa
