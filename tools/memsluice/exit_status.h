// SPDX-License-Identifier: GPL-2.0
#pragma once

#include "daemon/base/result.h"

namespace memsluice {

// The table in docs/api.md. Ended by a signal, it is 128 + its number, as in a shell.
constexpr int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::kBadRequest:
    case ErrorCode::kUnknownMethod:
      return 2;
    case ErrorCode::kDenied:
      return 3;
    case ErrorCode::kNotFound:
      return 4;
    case ErrorCode::kConflict:
      return 5;
    case ErrorCode::kUnavailable:
      return 6;
    case ErrorCode::kFailed:
      return 1;
  }
  return 1;
}

}  // namespace memsluice
