// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "daemon/base/fd.h"
#include "daemon/base/log.h"
#include "daemon/base/result.h"
#include "tools/memsluice-dsa/device.h"
#include "tools/memsluice-dsa/guest_memory.h"
#include "tools/memsluice-dsa/pci_config.h"
#include "tools/memsluice-dsa/shape.h"

namespace memsluice::dsa {

// What precedes every message of the vfio-user protocol, in the host's byte order.
struct VfioUserHeader {
  uint16_t id = 0;
  uint16_t command = 0;
  uint32_t size = 0;  // of header and payload
  uint32_t flags = 0;
  uint32_t error = 0;  // an errno
};
static_assert(sizeof(VfioUserHeader) == 16);

// The server's side of the vfio-user protocol (QEMU: docs/interop/vfio-user.rst) for one device and
// one client. It believes nothing that a message says of itself.
class VfioUser {
 public:
  static constexpr size_t kPayloadMax = size_t{2} << 20;
  static constexpr size_t kFilesMax = 64;

  VfioUser(const Shape& shape, Device& device, GuestMemory& memory, const Log& log);

  // Return: the reply, header included; nothing when none is wanted.
  std::optional<std::vector<uint8_t>> answer(const VfioUserHeader& header,
                                             std::span<const uint8_t> payload,
                                             std::vector<Fd> files);
  // The client is gone: with it go its memory, its interrupts, and what the device was doing.
  void disconnect();

 private:
  using Payload = std::span<const uint8_t>;
  using Reply = Result<std::vector<uint8_t>>;

  Reply handle(uint16_t command, Payload payload, std::vector<Fd>& files);
  Reply version(Payload payload) const;
  Reply map(Payload payload, const std::vector<Fd>& files);
  Reply unmap(Payload payload);
  Reply region_info(Payload payload) const;
  Reply interrupt_info(Payload payload) const;
  Reply set_interrupts(Payload payload, std::vector<Fd>& files);
  Reply read_region(Payload payload);
  Reply write_region(Payload payload);
  Reply write_many(Payload payload);
  Result<void> write(uint32_t region, uint64_t offset, std::span<const uint8_t> data);
  size_t region_bytes(uint32_t region) const;
  void reset();

  const Shape shape_;
  Device& device_;
  GuestMemory& memory_;
  const Log& log_;
  PciConfig config_;
};

}  // namespace memsluice::dsa
