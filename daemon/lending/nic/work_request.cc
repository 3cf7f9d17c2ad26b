// SPDX-License-Identifier: GPL-2.0
#include "daemon/lending/nic/work_request.h"

namespace memsluice::nic {

std::string_view opcode_name(Opcode opcode) {
  switch (opcode) {
    case Opcode::kNop:
      return "NOP";
    case Opcode::kWrite:
      return "WRITE";
    case Opcode::kSend:
      return "SEND";
    case Opcode::kSendWithInvalidate:
      return "SEND_WITH_INV";
    case Opcode::kWait:
      return "WAIT";
    case Opcode::kRead:
      return "READ";
    case Opcode::kCompareSwap:
      return "CAS";
    case Opcode::kFetchAdd:
      return "FAA";
    case Opcode::kReceiveEnable:
      return "RECV_EN";
    case Opcode::kSendEnable:
      return "SEND_EN";
    case Opcode::kLocalInvalidate:
      return "LOCAL_INV";
    case Opcode::kBind:
      return "BIND";
  }
  return "?";
}

std::string_view status_name(Status status) {
  switch (status) {
    case Status::kSuccess:
      return "success";
    case Status::kLocalLengthError:
      return "local length error";
    case Status::kLocalOperationError:
      return "local operation error";
    case Status::kLocalProtectionError:
      return "local protection error";
    case Status::kFlushed:
      return "flushed";
    case Status::kBindError:
      return "window bind error";
    case Status::kRemoteInvalidRequest:
      return "remote invalid request";
    case Status::kRemoteAccessError:
      return "remote access error";
    case Status::kRemoteOperationError:
      return "remote operation error";
    case Status::kRetryExceeded:
      return "retries exceeded";
    case Status::kReceiverNotReady:
      return "receiver not ready";
  }
  return "?";
}

}  // namespace memsluice::nic
