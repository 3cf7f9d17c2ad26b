// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tools/memsluice-dsa/register_file.h"
#include "tools/memsluice-dsa/shape.h"

namespace memsluice::dsa {

// The configuration space of the device: PCI Express, MSI-X and power management.
class PciConfig {
 public:
  static constexpr size_t kBytes = 4096;

  // What a write asks of the device.
  struct Effect {
    bool resets = false;
    bool bus_master = false;
  };

  // @portal_bytes: a power of two.
  PciConfig(const Shape& shape, size_t portal_bytes);

  // Beyond its end there are zeros, and nothing to write.
  void read(uint64_t offset, std::span<uint8_t> into);
  Effect write(uint64_t offset, std::span<const uint8_t> from);
  void reset();

 private:
  void set_bar(size_t offset, size_t bytes);
  uint8_t writable(size_t offset) const;

  const Shape shape_;
  const size_t portal_bytes_;
  RegisterFile bytes_{kBytes};
};

}  // namespace memsluice::dsa
