// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>

// Where the registers of a DSA are, and what their bits mean: as Linux has it, in
// drivers/dma/idxd/registers.h. The tables (of groups, work queues, interrupt permissions) lie
// where the device says they do.
namespace memsluice::dsa::registers {

constexpr uint32_t kVersion = 0x00;
constexpr uint32_t kGeneralCapability = 0x10;
constexpr uint32_t kQueueCapability = 0x20;
constexpr uint32_t kGroupCapability = 0x30;
constexpr uint32_t kEngineCapability = 0x38;
constexpr uint32_t kOperationCapability = 0x40;
constexpr uint32_t kTableOffsets = 0x60;
constexpr uint32_t kGeneralConfiguration = 0x80;
constexpr uint32_t kGeneralControl = 0x88;
constexpr uint32_t kGeneralStatus = 0x90;
constexpr uint32_t kInterruptCause = 0x98;
constexpr uint32_t kCommand = 0xa0;
constexpr uint32_t kCommandStatus = 0xa8;
constexpr uint32_t kCommandCapability = 0xb0;
constexpr uint32_t kSoftwareError = 0xc0;
constexpr uint32_t kEventLogConfiguration = 0xe0;
constexpr uint32_t kEventLogStatus = 0xf0;

constexpr uint32_t kGroupTable = 0x400;
constexpr uint32_t kGroupStride = 64;
constexpr uint32_t kGroupEngines = 32;  // within a group's part
constexpr uint32_t kQueueTable = 0x800;
constexpr uint32_t kQueueStride = 64;
constexpr uint32_t kQueueMode = 8;  // within a queue's part
constexpr uint32_t kQueueShifts = 12;
constexpr uint32_t kQueueState = 24;
constexpr uint32_t kQueueOperations = 32;
constexpr uint32_t kPermissionTable = 0x1800;
constexpr uint32_t kPermissionStride = 8;
constexpr uint32_t kTableUnit = 0x100;  // of the offsets of tables
constexpr uint32_t kVectorTable = 0x2000;
constexpr uint32_t kPendingTable = 0x3000;
constexpr uint32_t kBytes = 0x10000;

constexpr uint32_t kPortalBytes = 4096;
constexpr uint32_t kPortalsOfQueue = 4;

// General configuration, general control.
constexpr uint32_t kReadBufferLimitMask = 0xff;
constexpr uint32_t kUserInterrupts = 1U << 12;
constexpr uint32_t kEventLogEnable = 1U << 13;
constexpr uint32_t kErrorInterrupt = 1U << 0;
constexpr uint32_t kHaltInterrupt = 1U << 1;
constexpr uint32_t kEventLogInterrupt = 1U << 2;

// Interrupt causes.
constexpr uint32_t kCauseError = 1U << 0;
constexpr uint32_t kCauseCommand = 1U << 1;
constexpr uint32_t kCauseHalt = 1U << 4;
constexpr uint32_t kCauseEventLog = 1U << 5;

constexpr uint32_t kEventLogPending = 1U << 30;  // in the upper half of the status

constexpr uint32_t kQueueEnabled = 1U << 30;

enum class State : uint32_t { kDisabled = 0, kEnabled, kDraining, kHalted };

enum Command : uint32_t {
  kEnableDevice = 1,
  kDisableDevice,
  kDrainAll,
  kAbortAll,
  kResetDevice,
  kEnableQueue,
  kDisableQueue,
  kDrainQueue,
  kAbortQueue,
  kResetQueue,
  kDrainPasid,
  kAbortPasid,
  kCommandEnd,
};

constexpr uint32_t kCommandActive = 1U << 31;
constexpr uint32_t kCommandInterrupt = 1U << 31;

enum CommandError : uint32_t {
  kDone = 0x00,
  kInvalidCommand = 0x01,
  kInvalidQueue = 0x02,
  kHardwareError = 0x03,
  kDeviceEnabled = 0x10,
  kBusMasterDisabled = 0x12,
  kQueueSizesTooLarge = 0x14,
  kGroupIncomplete = 0x15,
  kQueuesMisplaced = 0x16,
  kEnginesMisplaced = 0x17,
  kDeviceNotEnabled = 0x20,
  kQueueAlreadyEnabled = 0x21,
  kQueueSizeZero = 0x22,
  kQueuePriorityZero = 0x23,
  kQueueModeInvalid = 0x24,
  kPasidInvalid = 0x26,
  kMaxBatchInvalid = 0x27,
  kMaxTransferInvalid = 0x28,
  kDeviceOff = 0x31,
  kQueueNotEnabled = 0x32,
};

}  // namespace memsluice::dsa::registers
