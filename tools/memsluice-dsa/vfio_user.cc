// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/vfio_user.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/vfio.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <type_traits>

namespace memsluice::dsa {
namespace {

enum Command : uint16_t {
  kNegotiateVersion = 1,
  kDmaMap,
  kDmaUnmap,
  kDeviceInfo,
  kRegionInfo,
  kRegionFiles,
  kInterruptInfo,
  kSetInterrupts,
  kRegionRead,
  kRegionWrite,
  kDeviceReset = 13,
  kRegionWriteMulti = 15,
};

constexpr uint32_t kFlagReply = 1, kFlagNoReply = 0x10, kFlagError = 0x20;
constexpr uint32_t kUnmapAll = 2;
constexpr size_t kReadMax = 4096;
// With the 0 that ends it.
constexpr char kCapabilities[] =
    R"({"capabilities":{"max_msg_fds":16,"max_data_xfer_size":1048576,"pgsizes":4096,)"
    R"("max_dma_maps":65535,"write_multiple":true}})";

struct Version {
  uint16_t major, minor;
};
struct DmaMap {
  uint32_t argument_bytes, flags;
  uint64_t offset, address, bytes;
};
struct DmaUnmap {
  uint32_t argument_bytes, flags;
  uint64_t address, bytes;
};
struct DeviceInfo {
  uint32_t argument_bytes, flags, regions, interrupts;
};
struct RegionAccess {
  uint64_t offset;
  uint32_t region, count;
};
struct SmallWrite {
  RegionAccess access;
  uint8_t data[8];
};

Error refuse(int os_error, std::string what) {
  return {.code = ErrorCode::kBadRequest, .message = std::move(what), .os_error = os_error};
}

Error too_short() {
  return refuse(EINVAL, "is shorter than what it says it is");
}

// Return: whether there was one; @payload begins after it.
template <typename T>
bool take(std::span<const uint8_t>& payload, T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (payload.size() < sizeof(value)) return false;
  std::memcpy(&value, payload.data(), sizeof(value));
  payload = payload.subspan(sizeof(value));
  return true;
}

template <typename T>
std::vector<uint8_t> bytes_of(const T& value) {
  const auto* begin = reinterpret_cast<const uint8_t*>(&value);
  return {begin, begin + sizeof(value)};
}

// What is asked about one of @count regions or interrupts; the answer is all zeros so far.
template <typename T>
Result<T> begin_info(std::span<const uint8_t> payload, uint32_t count) {
  T asked = {}, info = {};
  if (!take(payload, asked)) return too_short();
  if (asked.index >= count) return refuse(EINVAL, fmt::format("there is no {}", asked.index));
  info.argsz = sizeof(info);
  info.index = asked.index;
  return info;
}

}  // namespace

VfioUser::VfioUser(const Shape& shape, Device& device, GuestMemory& memory, const Log& log)
    : shape_(shape),
      device_(device),
      memory_(memory),
      log_(log),
      config_(shape, device.portal_bytes()) {}

std::optional<std::vector<uint8_t>> VfioUser::answer(const VfioUserHeader& header,
                                                     std::span<const uint8_t> payload,
                                                     std::vector<Fd> files) {
  const Reply reply = handle(header.command, payload, files);
  if (!reply.ok()) log_.warning("message {}: {}", header.command, reply.error().describe());
  if (header.flags & kFlagNoReply) return {};
  VfioUserHeader head{.id = header.id, .command = header.command, .flags = kFlagReply};
  if (!reply.ok()) {
    head.flags |= kFlagError;
    head.error = static_cast<uint32_t>(reply.error().os_error ? reply.error().os_error : EINVAL);
  }
  head.size = static_cast<uint32_t>(sizeof(head) + (reply.ok() ? reply->size() : 0));
  std::vector<uint8_t> message = bytes_of(head);
  if (reply.ok()) message.insert(message.end(), reply->begin(), reply->end());
  return message;
}

void VfioUser::disconnect() {
  reset();
  memory_.clear();
  for (unsigned i = 0; i < shape_.vectors(); i++) device_.set_vector(i, Fd());
}

void VfioUser::reset() {
  device_.reset();
  config_.reset();
  device_.set_bus_master(false);
}

VfioUser::Reply VfioUser::handle(uint16_t command, Payload payload, std::vector<Fd>& files) {
  switch (command) {
    case kNegotiateVersion:
      return version(payload);
    case kDmaMap:
      return map(payload, files);
    case kDmaUnmap:
      return unmap(payload);
    case kDeviceInfo:
      return bytes_of(DeviceInfo{sizeof(DeviceInfo),
                                 VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET,
                                 VFIO_PCI_NUM_REGIONS, VFIO_PCI_NUM_IRQS});
    case kRegionInfo:
      return region_info(payload);
    case kInterruptInfo:
      return interrupt_info(payload);
    case kSetInterrupts:
      return set_interrupts(payload, files);
    case kRegionRead:
      return read_region(payload);
    case kRegionWrite:
      return write_region(payload);
    case kRegionWriteMulti:
      return write_many(payload);
    case kDeviceReset:
      log_.debug("the client resets the device");
      reset();
      return std::vector<uint8_t>();
    default:
      return refuse(ENOTSUP, "is none that this device knows");
  }
}

VfioUser::Reply VfioUser::version(Payload payload) const {
  Version theirs;
  if (!take(payload, theirs)) return too_short();
  if (theirs.major != 0) return refuse(EINVAL, fmt::format("version {} is too new", theirs.major));
  std::vector<uint8_t> reply = bytes_of(theirs);
  reply.insert(reply.end(), std::begin(kCapabilities), std::end(kCapabilities));
  return reply;
}

VfioUser::Reply VfioUser::map(Payload payload, const std::vector<Fd>& files) {
  DmaMap request;
  if (!take(payload, request)) return too_short();
  const bool writable = request.flags & VFIO_DMA_MAP_FLAG_WRITE;
  auto mapped = memory_.map(request.address, request.bytes, files.empty() ? -1 : files[0].get(),
                            request.offset, writable);
  if (!mapped.ok()) return std::move(mapped).error();
  return std::vector<uint8_t>();
}

VfioUser::Reply VfioUser::unmap(Payload payload) {
  DmaUnmap request;
  if (!take(payload, request)) return too_short();
  if (request.flags & kUnmapAll)
    memory_.clear();
  else
    request.bytes = memory_.unmap(request.address, request.bytes);
  return bytes_of(request);
}

size_t VfioUser::region_bytes(uint32_t region) const {
  switch (region) {
    case VFIO_PCI_BAR0_REGION_INDEX:
      return registers::kBytes;
    case VFIO_PCI_BAR2_REGION_INDEX:
      return device_.portal_bytes();
    case VFIO_PCI_CONFIG_REGION_INDEX:
      return PciConfig::kBytes;
    default:
      return 0;
  }
}

VfioUser::Reply VfioUser::region_info(Payload payload) const {
  auto info = begin_info<vfio_region_info>(payload, VFIO_PCI_NUM_REGIONS);
  if (!info.ok()) return std::move(info).error();
  info->size = region_bytes(info->index);
  if (info->size) info->flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
  return bytes_of(*info);
}

VfioUser::Reply VfioUser::interrupt_info(Payload payload) const {
  auto info = begin_info<vfio_irq_info>(payload, VFIO_PCI_NUM_IRQS);
  if (!info.ok()) return std::move(info).error();
  if (info->index == VFIO_PCI_MSIX_IRQ_INDEX) {
    info->count = shape_.vectors();
    info->flags = VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_NORESIZE;
  }
  return bytes_of(*info);
}

VfioUser::Reply VfioUser::set_interrupts(Payload payload, std::vector<Fd>& files) {
  vfio_irq_set set = {};
  if (payload.size() < offsetof(vfio_irq_set, data)) return too_short();
  std::memcpy(&set, payload.data(), offsetof(vfio_irq_set, data));
  if (set.index != VFIO_PCI_MSIX_IRQ_INDEX) return std::vector<uint8_t>();  // there are no others
  if (set.start > shape_.vectors() || set.count > shape_.vectors() - set.start)
    return refuse(EINVAL, "names vectors that are not");
  if (set.count == 0)
    for (unsigned i = 0; i < shape_.vectors(); i++) device_.set_vector(i, Fd());
  if (!(set.flags & VFIO_IRQ_SET_DATA_EVENTFD)) return std::vector<uint8_t>();
  for (unsigned i = 0; i < set.count; i++) {
    Fd event = i < files.size() ? std::move(files[i]) : Fd();
    // An interrupt is raised while others wait: it must not.
    if (event.valid() && fcntl(event.get(), F_SETFL, O_NONBLOCK | O_RDWR))
      return errno_error(errno, "fcntl", "an interrupt's eventfd");
    device_.set_vector(set.start + i, std::move(event));
  }
  return std::vector<uint8_t>();
}

VfioUser::Reply VfioUser::read_region(Payload payload) {
  RegionAccess access;
  if (!take(payload, access)) return too_short();
  if (access.count > kReadMax) return refuse(EINVAL, "reads too much at once");
  std::vector<uint8_t> data(access.count);
  if (access.region == VFIO_PCI_BAR0_REGION_INDEX)
    device_.read_registers(access.offset, data);
  else if (access.region == VFIO_PCI_CONFIG_REGION_INDEX)
    config_.read(access.offset, data);
  std::vector<uint8_t> reply = bytes_of(access);
  reply.insert(reply.end(), data.begin(), data.end());
  return reply;
}

VfioUser::Reply VfioUser::write_region(Payload payload) {
  RegionAccess access;
  if (!take(payload, access) || payload.size() < access.count) return too_short();
  auto written = write(access.region, access.offset, payload.first(access.count));
  if (!written.ok()) return std::move(written).error();
  return bytes_of(access);
}

VfioUser::Reply VfioUser::write_many(Payload payload) {
  uint64_t count = 0;
  if (!take(payload, count) || payload.size() / sizeof(SmallWrite) < count) return too_short();
  for (uint64_t i = 0; i < count; i++) {
    SmallWrite one;
    take(payload, one);
    if (one.access.count > sizeof(one.data)) return too_short();
    auto written =
        write(one.access.region, one.access.offset, std::span(one.data).first(one.access.count));
    if (!written.ok()) return std::move(written).error();
  }
  return bytes_of(count);
}

Result<void> VfioUser::write(uint32_t region, uint64_t offset, std::span<const uint8_t> data) {
  if (region == VFIO_PCI_BAR0_REGION_INDEX) {
    device_.write_registers(offset, data);
  } else if (region == VFIO_PCI_BAR2_REGION_INDEX) {
    device_.write_portal(offset, data);
  } else if (region == VFIO_PCI_CONFIG_REGION_INDEX) {
    const PciConfig::Effect effect = config_.write(offset, data);
    if (effect.resets) device_.reset();
    device_.set_bus_master(effect.bus_master);
  } else {
    return refuse(EINVAL, fmt::format("writes to region {}, which is not", region));
  }
  return {};
}

}  // namespace memsluice::dsa
