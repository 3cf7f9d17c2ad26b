// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace memsluice::nic {

enum class QueuePair : uint32_t {};
enum class CompletionQueue : uint32_t {};
enum class ProtectionDomain : uint32_t {};

// 24 bits of index and, in the lowest byte, the tag. A region is read and written locally, and from
// outside if its rights say so, by the same key.
using Key = uint32_t;
constexpr Key kTagMask = 0xFF;
constexpr uint32_t kQueuePairMask = 0xFFFFFF;

// Rights, by the values of ibv_access_flags.
using Rights = uint8_t;
constexpr Rights kLocalWrite = 1 << 0;
constexpr Rights kRemoteWrite = 1 << 1;
constexpr Rights kRemoteRead = 1 << 2;
constexpr Rights kRemoteAtomic = 1 << 3;
constexpr Rights kWindowBind = 1 << 4;
constexpr Rights kZeroBased = 1 << 5;
constexpr Rights kRemoteAll = kRemoteRead | kRemoteWrite | kRemoteAtomic;

// The values of mlx5 where it has them: a chain may write an opcode into a work request.
enum class Opcode : uint8_t {
  kNop = 0x00,
  kWrite = 0x08,
  kSend = 0x0a,
  kSendWithInvalidate = 0x01,
  kWait = 0x0f,
  kRead = 0x10,
  kCompareSwap = 0x11,
  kFetchAdd = 0x12,
  kReceiveEnable = 0x16,
  kSendEnable = 0x17,
  kLocalInvalidate = 0x1b,
  kBind = 0x25,
};
inline constexpr std::array kOpcodes = {
    Opcode::kNop,
    Opcode::kWrite,
    Opcode::kSend,
    Opcode::kSendWithInvalidate,
    Opcode::kWait,
    Opcode::kRead,
    Opcode::kCompareSwap,
    Opcode::kFetchAdd,
    Opcode::kReceiveEnable,
    Opcode::kSendEnable,
    Opcode::kLocalInvalidate,
    Opcode::kBind,
};

std::string_view opcode_name(Opcode opcode);

struct ScatterEntry {
  uint64_t address = 0;
  uint32_t bytes = 0;
  Key key = 0;
};

// What an opcode does not use is ignored.
struct WorkRequest {
  uint64_t id = 0;
  Opcode opcode = Opcode::kNop;
  bool signaled = false;
  bool fence = false;  // not before all READs and atomics of this queue have ended

  std::span<const ScatterEntry> entries = {};  // gathered from (WRITE, SEND) or scattered to

  uint64_t remote_address = 0;
  Key remote_key = 0;
  uint64_t operand = 0;  // what COMPARE_SWAP compares with, what FETCH_ADD adds
  uint64_t swap = 0;

  // WAIT: until @completion_queue has had @index completions since it was made. SEND_ENABLE: the
  // first @index blocks of @target's send queue may be executed. RECEIVE_ENABLE: the first @index
  // receives. Indices are absolute, and wrap at 32 bits.
  CompletionQueue completion_queue = {};
  QueuePair target = {};
  uint32_t index = 0;

  // BIND: the window whose key is @key serves @target (a window of type 1: everybody in its
  // protection domain), under a key with the tag @new_tag. LOCAL_INVALIDATE and
  // SEND_WITH_INVALIDATE: the window whose key is @key.
  Key key = 0;
  uint8_t new_tag = 0;
  Key region_key = 0;
  uint64_t address = 0;  // also the address in requests from outside, unless zero-based
  uint64_t length = 0;
  Rights rights = 0;
  // LOCAL_INVALIDATE: also if the window serves another queue pair than the one that posts this.
  bool any_queue_pair = false;
};

struct ReceiveRequest {
  uint64_t id = 0;
  std::span<const ScatterEntry> entries = {};
};

// The values of ibv_wc_status.
enum class Status : uint8_t {
  kSuccess = 0,
  kLocalLengthError = 1,
  kLocalOperationError = 2,
  kLocalProtectionError = 4,
  kFlushed = 5,
  kBindError = 6,
  kRemoteInvalidRequest = 9,
  kRemoteAccessError = 10,
  kRemoteOperationError = 11,
  kRetryExceeded = 12,
  kReceiverNotReady = 13,
};

std::string_view status_name(Status status);

struct Completion {
  uint64_t id = 0;
  QueuePair queue_pair = {};
  Status status = Status::kSuccess;
  Opcode opcode = Opcode::kNop;  // of a receive: what the peer sent
  bool is_receive = false;
  bool invalidated = false;  // a receive: the peer's SEND invalidated @invalidated_key
  Key invalidated_key = 0;
  uint32_t bytes = 0;
};

}  // namespace memsluice::nic
