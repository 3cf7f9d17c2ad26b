// SPDX-License-Identifier: GPL-2.0
// The commands of a device: they configure it, and wait for its engines.
#include <bit>

#include "tools/memsluice-dsa/device.h"

namespace memsluice::dsa {
namespace {

using namespace registers;

constexpr unsigned kQueuesOfMask = 16;
constexpr uint32_t kModeDedicated = 1U << 0;
constexpr uint32_t kModePasid = 1U << 28;

QueueMask all_queues(const Shape& shape) {
  return ~QueueMask{0} >> (Shape::kQueuesMax - shape.queues);
}

}  // namespace

void Device::start_command(uint32_t command) {
  if (command_) {
    log_.warning("command {:#x} is ignored: another one is being run", command);
    return;
  }
  command_ = PendingCommand{.command = command, .resets = resets_};
  registers_.set(kCommandStatus, kCommandActive);
  command_changed_.notify_all();
}

void Device::serve_commands() {
  std::unique_lock lock(mutex_);
  while (true) {
    command_changed_.wait(lock, [&] { return command_ || ending_; });
    if (ending_) return;
    const uint32_t command = command_->command >> 20 & 0x1f, operand = command_->command & 0xfffff;
    lock.unlock();
    const CommandError error = run_command(command, operand);
    lock.lock();
    log_.debug("command {} {:#x}: {:#x}", command, operand, static_cast<uint32_t>(error));
    if (command_->resets == resets_) {
      registers_.set<uint32_t>(kCommandStatus, error);
      if (command_->command & kCommandInterrupt) raise(kCauseCommand);
    }
    command_.reset();
    command_changed_.notify_all();
  }
}

CommandError Device::run_command(uint32_t command, uint32_t operand) {
  {
    const std::lock_guard lock(mutex_);
    const uint32_t status = registers_.get<uint32_t>(kGeneralStatus);
    const bool by_software = status >> 2 == static_cast<uint32_t>(ResetType::kSoftware);
    if (state() == State::kHalted && !(command == kResetDevice && by_software))
      return kHardwareError;
  }
  switch (command) {
    case kEnableDevice:
      return enable_device();
    case kDisableDevice:
      return disable_device();
    case kResetDevice:
      return reset_device();
    case kEnableQueue:
      return enable_queue(operand);
    case kDrainAll:
    case kDrainPasid:
      return settle(kDrainQueue, all_queues(shape_));
    case kAbortAll:
    case kAbortPasid:
      return settle(kAbortQueue, all_queues(shape_));
    case kDisableQueue:
    case kDrainQueue:
    case kAbortQueue:
    case kResetQueue:
      return command_queues(command, operand);
    default:
      return kInvalidCommand;
  }
}

QueueMask Device::group_queues(unsigned group) const {
  return registers_.get<uint64_t>(kGroupTable + group * kGroupStride);
}

uint64_t Device::group_engines(unsigned group) const {
  return registers_.get<uint64_t>(kGroupTable + group * kGroupStride + kGroupEngines);
}

unsigned Device::group_of(unsigned queue) const {
  for (unsigned group = 0; group < shape_.groups; group++)
    if (group_queues(group) >> queue & 1) return group;
  return Engines::kNoGroup;
}

// Each queue and each engine is in one group at most, and each group that has one has both.
CommandError Device::check_groups() const {
  uint64_t queues = 0, engines = 0;
  for (unsigned group = 0; group < shape_.groups; group++) {
    const uint64_t own_queues = group_queues(group), own_engines = group_engines(group);
    if (!own_queues != !own_engines) return kGroupIncomplete;
    if (own_queues & (queues | ~all_queues(shape_))) return kQueuesMisplaced;
    if (own_engines & engines || own_engines >> shape_.engines) return kEnginesMisplaced;
    queues |= own_queues;
    engines |= own_engines;
  }
  return kDone;
}

CommandError Device::enable_device() {
  const std::lock_guard lock(mutex_);
  if (state() != State::kDisabled) return kDeviceEnabled;
  if (!bus_master_) return kBusMasterDisabled;
  uint32_t entries = 0;
  for (unsigned i = 0; i < shape_.queues; i++) entries += queue_register(i, 0) & 0xffff;
  if (entries > shape_.queue_entries) return kQueueSizesTooLarge;
  if (const CommandError error = check_groups()) return error;
  for (unsigned engine = 0; engine < shape_.engines; engine++) {
    unsigned group = Engines::kNoGroup;
    for (unsigned i = 0; i < shape_.groups; i++)
      if (group_engines(i) >> engine & 1) group = i;
    engines_.set_group(engine, group);
  }
  registers_.set(kGeneralStatus, State::kEnabled);
  return kDone;
}

CommandError Device::disable_device() {
  {
    const std::lock_guard lock(mutex_);
    if (state() != State::kEnabled) return kDeviceOff;
  }
  const CommandError error = settle(kDisableQueue, all_queues(shape_));
  const std::lock_guard lock(mutex_);
  if (!error) registers_.set(kGeneralStatus, State::kDisabled);
  return error;
}

CommandError Device::reset_device() {
  engines_.reset();
  const std::lock_guard lock(mutex_);
  set_defaults();
  return kDone;
}

CommandError Device::check_queue(unsigned queue) const {
  const uint32_t mode = queue_register(queue, kQueueMode);
  const uint32_t shifts = queue_register(queue, kQueueShifts);
  if (!(queue_register(queue, 0) & 0xffff)) return kQueueSizeZero;
  if (!(mode >> 4 & 0xf)) return kQueuePriorityZero;
  if (!(mode & kModeDedicated)) return kQueueModeInvalid;
  if (mode & kModePasid) return kPasidInvalid;
  if ((shifts >> 5 & 0xf) > shape_.max_batch_shift) return kMaxBatchInvalid;
  if ((shifts & 0x1f) > shape_.max_transfer_shift) return kMaxTransferInvalid;
  return kDone;
}

CommandError Device::enable_queue(uint32_t queue) {
  const std::lock_guard lock(mutex_);
  if (state() != State::kEnabled) return kDeviceNotEnabled;
  if (queue >= shape_.queues) return kInvalidQueue;
  if (is_enabled(queue)) return kQueueAlreadyEnabled;
  if (const CommandError error = check_queue(queue)) return error;
  const unsigned group = group_of(queue);
  if (group == Engines::kNoGroup) {
    log_.warning("queue {} is in no group, so no engine would ever serve it", queue);
    return kHardwareError;
  }
  set_enabled(queue, true);
  engines_.open(queue, queue_register(queue, 0) & 0xffff, group,
                queue_register(queue, kQueueMode) >> 4 & 0xf);
  return kDone;
}

CommandError Device::command_queues(uint32_t command, uint32_t operand) {
  const unsigned first = (operand >> kQueuesOfMask & 0xf) * kQueuesOfMask;
  {
    const std::lock_guard lock(mutex_);
    if (state() != State::kEnabled) return kQueueNotEnabled;
  }
  if (first >= Shape::kQueuesMax) return kInvalidQueue;
  const QueueMask queues = QueueMask{operand & 0xffff} << first;
  return queues & ~all_queues(shape_) ? kInvalidQueue : settle(command, queues);
}

CommandError Device::settle(uint32_t command, QueueMask queues) {
  const bool ends = command == kDisableQueue || command == kResetQueue;
  if (ends) engines_.close(queues);
  if (command == kAbortQueue || command == kResetQueue) engines_.drop_waiting(queues);
  if (!engines_.drain(queues)) return kHardwareError;
  const std::lock_guard lock(mutex_);
  for (unsigned i = 0; ends && i < shape_.queues; i++) {
    if (!(queues >> i & 1)) continue;
    set_enabled(i, false);
    if (command != kResetQueue) continue;
    // The size stays: the device is enabled.
    for (uint32_t offset = 4; offset < kQueueStride; offset += 4)
      registers_.set<uint32_t>(kQueueTable + i * kQueueStride + offset, 0);
  }
  return kDone;
}

}  // namespace memsluice::dsa
