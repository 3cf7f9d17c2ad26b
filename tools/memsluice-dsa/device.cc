// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <string_view>

namespace memsluice::dsa {
namespace {

using namespace registers;

constexpr size_t kDescriptorParts = sizeof(Descriptor) / sizeof(uint64_t);

constexpr std::array<std::string_view, 4> kStateNames = {"disabled", "enabled", "draining",
                                                         "halted"};

constexpr uint64_t bits(uint64_t value, unsigned shift) {
  return value << shift;
}

uint64_t general_capability(const Shape& shape) {
  // Block on fault, overlapping copies, cache control (memory, cache), commands, readback of
  // destinations, event log, and that all of this can be configured.
  return 0x1f | bits(1, 8) | bits(1, 13) | bits(shape.max_transfer_shift, 16) |
         bits(shape.max_batch_shift, 21) | bits(1, 31);
}

uint64_t queue_capability(const Shape& shape) {
  constexpr unsigned kSizeShift = std::bit_width(kQueueStride) - 1 - 5;  // above 32 bytes
  // Dedicated mode (49), priorities (51), occupancy (52), operations by queue (54). Shared queues
  // need PASIDs, which need an IOMMU.
  return shape.queue_entries | bits(shape.queues, 16) | bits(kSizeShift, 24) | bits(1, 49) |
         bits(1, 51) | bits(1, 52) | bits(1, 54);
}

uint64_t group_capability(const Shape& shape) {
  constexpr unsigned kReadBuffers = 96;
  return shape.groups | bits(kReadBuffers, 8) | bits(3, 16);
}

uint32_t all_commands() {
  return ((1U << kCommandEnd) - 1) & ~1U;
}

// An entry of the event log and the software error register tell these in the same way.
uint64_t error_head(const Failure& failure) {
  const uint8_t status = failure.outcome.status;
  return bits(failure.batch_index.has_value(), 4) | bits((status & DSA_COMP_STATUS_WRITE) != 0, 5) |
         bits(status, 8) | bits(failure.queue, 16) | bits(failure.descriptor.opcode, 32) |
         bits(failure.descriptor.pasid, 40);
}

uint64_t error_details(const Failure& failure) {
  return failure.batch_index.value_or(0) | bits(failure.outcome.invalid_flags, 32);
}

}  // namespace

Device::Device(const Shape& shape, const GuestMemory& memory, const Log& log)
    : shape_(shape),
      memory_(memory),
      log_(log),
      portals_(portal_bytes()),
      portal_parts_(portal_bytes() / sizeof(Descriptor)),
      vectors_(shape.vectors()),
      executor_(memory, injection_, statistics_, *this),
      engines_(shape.engines, shape.queues,
               [this](const Job& job) { executor_.run(engines_, job); }) {
  set_defaults();
  commands_ = std::thread([this] { serve_commands(); });
}

Device::~Device() {
  reset();
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  command_changed_.notify_all();
  commands_.join();
}

size_t Device::portal_bytes() const {
  // That of a PCI region has to be a power of two.
  return std::bit_ceil(size_t{shape_.queues}) * kPortalsOfQueue * kPortalBytes;
}

void Device::set_defaults() {
  registers_.clear();
  registers_.set<uint32_t>(kVersion, 0x100);
  registers_.set(kGeneralCapability, general_capability(shape_));
  registers_.set(kQueueCapability, queue_capability(shape_));
  registers_.set(kGroupCapability, group_capability(shape_));
  registers_.set<uint64_t>(kEngineCapability, shape_.engines);
  registers_.set(kOperationCapability, supported_operations());
  registers_.set(kTableOffsets, bits(kGroupTable / kTableUnit, 0) |
                                    bits(kQueueTable / kTableUnit, 16) |
                                    bits(kPermissionTable / kTableUnit, 32));
  registers_.set(kCommandCapability, all_commands());
}

State Device::state() const {
  return static_cast<State>(registers_.get<uint32_t>(kGeneralStatus) & 3);
}

uint32_t Device::queue_register(unsigned queue, uint32_t offset) const {
  return registers_.get<uint32_t>(kQueueTable + queue * kQueueStride + offset);
}

bool Device::is_enabled(unsigned queue) const {
  return queue_register(queue, kQueueState) & kQueueEnabled;
}

void Device::set_enabled(unsigned queue, bool enabled) {
  registers_.set<uint32_t>(kQueueTable + queue * kQueueStride + kQueueState,
                           enabled ? kQueueEnabled : 0);
}

void Device::read_registers(uint64_t offset, std::span<uint8_t> into) {
  std::fill(into.begin(), into.end(), uint8_t{0});
  if (offset >= registers_.size()) return;
  const std::lock_guard lock(mutex_);
  const size_t count = std::min<size_t>(into.size(), registers_.size() - offset);
  std::copy_n(registers_.at(offset, count).begin(), count, into.begin());
  for (unsigned queue = 0; queue < shape_.queues; queue++) {
    const uint64_t occupancy = kQueueTable + queue * kQueueStride + kQueueState;
    if (offset <= occupancy && occupancy + 2 <= offset + count) {
      const auto waiting = static_cast<uint16_t>(engines_.waiting(queue));
      std::memcpy(&into[occupancy - offset], &waiting, sizeof(waiting));
    }
  }
}

void Device::write_registers(uint64_t offset, std::span<const uint8_t> from) {
  if (offset % 4 || from.size() % 4 || from.size() > registers_.size() ||
      offset > registers_.size() - from.size()) {
    log_.warning("a write of {} bytes to register {:#x} is ignored", from.size(), offset);
    return;
  }
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < from.size(); i += 4) {
    uint32_t value = 0;
    std::memcpy(&value, &from[i], sizeof(value));
    write_register(static_cast<uint32_t>(offset + i), value);
  }
}

void Device::write_register(uint32_t offset, uint32_t value) {
  const uint32_t old = registers_.get<uint32_t>(offset);
  const auto set = [&](uint32_t now) { registers_.set(offset, now); };
  const uint32_t queues_end = kQueueTable + shape_.queues * kQueueStride;
  const uint32_t permissions_end = kPermissionTable + shape_.vectors() * kPermissionStride;
  if (offset == kGeneralConfiguration) {
    set(value & (kReadBufferLimitMask | kUserInterrupts | kEventLogEnable));
    if ((value & ~old) & kEventLogEnable) registers_.set<uint64_t>(kEventLogStatus, 0);
  } else if (offset == kGeneralControl) {
    set(value & (kErrorInterrupt | kHaltInterrupt | kEventLogInterrupt));
  } else if (offset == kInterruptCause) {
    set(old & ~value);
  } else if (offset == kCommand) {
    start_command(value);
  } else if (offset == kSoftwareError) {
    set(old & ~(value & 3));
  } else if (offset >= kEventLogConfiguration && offset < kEventLogStatus) {
    if (!(registers_.get<uint32_t>(kGeneralConfiguration) & kEventLogEnable)) set(value);
  } else if (offset == kEventLogStatus) {
    set(value & 0xffff);
  } else if (offset == kEventLogStatus + 4) {
    set(old & ~(value & kEventLogPending));
  } else if (offset >= kGroupTable && offset < kGroupTable + shape_.groups * kGroupStride) {
    if (state() == State::kDisabled) set(value);
  } else if (offset >= kQueueTable && offset < queues_end) {
    write_queue_register(offset, value);
  } else if (offset >= kPermissionTable && offset < permissions_end) {
    set(value);
  } else {
    log_.debug("a write of {:#x} to register {:#x} is ignored", value, offset);
  }
}

// While a queue is enabled nothing of it changes; its size only while the device is disabled.
void Device::write_queue_register(uint32_t offset, uint32_t value) {
  const unsigned queue = (offset - kQueueTable) / kQueueStride;
  const uint32_t within = offset % kQueueStride;
  if (within == kQueueState || is_enabled(queue)) return;
  if (within == 0 && state() != State::kDisabled) return;
  registers_.set(offset, value);
}

void Device::write_portal(uint64_t offset, std::span<const uint8_t> from) {
  if (offset % sizeof(uint64_t) || from.size() % sizeof(uint64_t) ||
      from.size() > portals_.size() || offset > portals_.size() - from.size()) {
    log_.warning("a write of {} bytes to {:#x} of the portals is ignored", from.size(), offset);
    return;
  }
  std::copy(from.begin(), from.end(), portals_.begin() + static_cast<ptrdiff_t>(offset));
  for (uint64_t part = offset / 8; part < (offset + from.size()) / 8; part++) {
    const uint64_t place = part / kDescriptorParts;
    portal_parts_[place] |= static_cast<uint8_t>(1U << part % kDescriptorParts);
    if (portal_parts_[place] != 0xff) continue;
    portal_parts_[place] = 0;
    const auto queue =
        static_cast<unsigned>(place * sizeof(Descriptor) / (kPortalsOfQueue * kPortalBytes));
    if (queue >= shape_.queues) continue;
    Descriptor descriptor;
    std::memcpy(&descriptor, &portals_[place * sizeof(descriptor)], sizeof(descriptor));
    const bool accepted = engines_.submit(queue, descriptor) == Engines::Accepted::kYes;
    statistics_.submitted(queue, accepted);
    // Dropped, as a posted write is: only the error registers tell of it.
    if (!accepted)
      report({.queue = queue, .descriptor = descriptor, .outcome = {.status = DSA_COMP_HW_ERR1}});
  }
}

void Device::reset() {
  {
    const std::lock_guard lock(mutex_);
    resets_++;  // a command that is being run ends without a word
  }
  engines_.reset();
  std::fill(portal_parts_.begin(), portal_parts_.end(), uint8_t{0});
  std::unique_lock lock(mutex_);
  command_changed_.wait(lock, [&] { return !command_; });
  // It may have been enabling a queue.
  lock.unlock();
  engines_.reset();
  lock.lock();
  set_defaults();
}

void Device::set_bus_master(bool enabled) {
  const std::lock_guard lock(mutex_);
  bus_master_ = enabled;
}

void Device::set_vector(unsigned vector, Fd event) {
  const std::lock_guard lock(vectors_mutex_);
  vectors_[vector] = std::move(event);
}

Result<void> Device::hold(unsigned engine, bool held) {
  if (engine >= shape_.engines)
    return Error{.code = ErrorCode::kNotFound,
                 .object = fmt::format("engine {}", engine),
                 .message = fmt::format("the device has {}", shape_.engines)};
  engines_.hold(engine, held);
  return {};
}

Json Device::status() const {
  const std::lock_guard lock(mutex_);
  Json queues = Json::array(), engines = Json::array();
  for (unsigned i = 0; i < shape_.queues; i++)
    queues.push_back({{"enabled", is_enabled(i)},
                      {"entries", queue_register(i, 0) & 0xffff},
                      {"waiting", engines_.waiting(i)}});
  for (unsigned i = 0; i < shape_.engines; i++) engines.push_back({{"held", engines_.is_held(i)}});
  return {{"state", kStateNames[static_cast<size_t>(state())]},
          {"queues", queues},
          {"engines", engines},
          {"running", engines_.running()},
          {"resets", resets_}};
}

Limits Device::limits(unsigned queue) const {
  const std::lock_guard lock(mutex_);
  const uint32_t shifts = queue_register(queue, kQueueShifts);
  return {.operations =
              registers_.get<Operations>(kQueueTable + queue * kQueueStride + kQueueOperations),
          .max_transfer_bytes = uint64_t{1} << (shifts & 0x1f),
          .max_batch = 1U << (shifts >> 5 & 0xf),
          .block_on_fault = (queue_register(queue, kQueueMode) & 2) != 0,
          .vectors = shape_.vectors()};
}

void Device::interrupt(unsigned vector) {
  const std::lock_guard lock(vectors_mutex_);
  const uint64_t one = 1;
  // It does not wait: a counter that is full has told already.
  if (vectors_[vector].valid() && write(vectors_[vector].get(), &one, sizeof(one)) != sizeof(one) &&
      errno != EAGAIN)
    log_.warning("interrupt {}: {}", vector, errno_error(errno, "write", "eventfd").describe());
}

void Device::halt(ResetType reset) {
  log_.info("the device halts");
  const std::lock_guard lock(mutex_);
  engines_.abandon();
  registers_.set<uint32_t>(
      kGeneralStatus, static_cast<uint32_t>(State::kHalted) | static_cast<uint32_t>(reset) << 2);
  for (unsigned i = 0; i < shape_.queues; i++) set_enabled(i, false);
  if (registers_.get<uint32_t>(kGeneralControl) & kHaltInterrupt) raise(kCauseHalt);
}

void Device::raise(uint32_t cause) {
  registers_.set(kInterruptCause, registers_.get<uint32_t>(kInterruptCause) | cause);
  interrupt(0);
}

void Device::report(const Failure& failure) {
  const std::lock_guard lock(mutex_);
  const bool logs = registers_.get<uint32_t>(kGeneralConfiguration) & kEventLogEnable;
  if (!logs || !log_event(failure)) set_software_error(failure);
}

bool Device::log_event(const Failure& failure) {
  constexpr unsigned kEntryBytes = 64;
  const uint64_t base = registers_.get<uint64_t>(kEventLogConfiguration) & ~0xfffULL;
  const unsigned size = registers_.get<uint16_t>(kEventLogConfiguration + 8);
  const unsigned head = registers_.get<uint16_t>(kEventLogStatus);
  const unsigned tail = registers_.get<uint16_t>(kEventLogStatus + 4);
  if (tail >= size || (tail + 1) % size == head) return false;

  const CompletionRecord record = record_of(failure.outcome);
  std::array<uint64_t, kEntryBytes / 8> entry = {};
  // What is valid: the descriptor's fields (2), its queue (3), details of the error (7).
  entry[0] = bits(1, 2) | bits(1, 3) | bits(1, 7) | error_head(failure);
  entry[1] = error_details(failure);
  entry[2] = failure.outcome.status == DSA_COMP_CRA_XLAT ? failure.descriptor.completion_addr
                                                         : failure.outcome.fault_address;
  std::memcpy(&entry[4], &record, sizeof(record));
  {
    const GuestMemory::View view(memory_);
    const auto place =
        view.all(base + uint64_t{tail} * kEntryBytes, kEntryBytes, GuestMemory::Access::kWrite);
    if (place.empty()) return false;
    std::memcpy(place.data(), entry.data(), kEntryBytes);
  }
  registers_.set(kEventLogStatus + 4, static_cast<uint16_t>((tail + 1) % size));
  const uint32_t upper = registers_.get<uint32_t>(kEventLogStatus + 4);
  if (registers_.get<uint32_t>(kGeneralControl) & kEventLogInterrupt &&
      !(upper & kEventLogPending)) {
    registers_.set(kEventLogStatus + 4, upper | kEventLogPending);
    raise(kCauseEventLog);
  }
  return true;
}

void Device::set_software_error(const Failure& failure) {
  const uint64_t old = registers_.get<uint64_t>(kSoftwareError);
  if (old & 1) {
    registers_.set(kSoftwareError, old | 2);  // one more was lost
    return;
  }
  registers_.set(kSoftwareError, 1 | bits(1, 2) | bits(1, 3) | error_head(failure));
  registers_.set(kSoftwareError + 8, error_details(failure));
  registers_.set(kSoftwareError + 16, failure.outcome.fault_address);
  if (registers_.get<uint32_t>(kGeneralControl) & kErrorInterrupt) raise(kCauseError);
}

}  // namespace memsluice::dsa
