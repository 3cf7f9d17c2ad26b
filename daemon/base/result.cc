// SPDX-License-Identifier: GPL-2.0
#include "daemon/base/result.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace memsluice {
namespace {

constexpr std::array kErrorCodes = {
    std::pair{ErrorCode::kBadRequest, std::string_view("bad_request")},
    std::pair{ErrorCode::kUnknownMethod, std::string_view("unknown_method")},
    std::pair{ErrorCode::kDenied, std::string_view("denied")},
    std::pair{ErrorCode::kNotFound, std::string_view("not_found")},
    std::pair{ErrorCode::kConflict, std::string_view("conflict")},
    std::pair{ErrorCode::kUnavailable, std::string_view("unavailable")},
    std::pair{ErrorCode::kFailed, std::string_view("failed")},
};

ErrorCode code_of_errno(int os_error) {
  switch (os_error) {
    case ENOENT:
    case ESRCH:
    case ENODEV:
      return ErrorCode::kNotFound;
    case EPERM:
    case EACCES:
      return ErrorCode::kDenied;
    case EEXIST:
    case EBUSY:
      return ErrorCode::kConflict;
    default:
      return ErrorCode::kFailed;
  }
}

}  // namespace

std::string_view error_code_name(ErrorCode code) {
  for (const auto& [known, name] : kErrorCodes)
    if (known == code) return name;
  return "failed";
}

std::optional<ErrorCode> error_code_from_name(std::string_view name) {
  for (const auto& [code, known] : kErrorCodes)
    if (known == name) return code;
  return std::nullopt;
}

Error Error::with_context(std::string what) const& {
  return Error(*this).with_context(std::move(what));
}

Error Error::with_context(std::string what) && {
  context.push_back(std::move(what));
  return std::move(*this);
}

Error Error::with_hint(std::string what) && {
  hint = std::move(what);
  return std::move(*this);
}

std::string Error::describe() const {
  std::string text;
  for (auto what = context.rbegin(); what != context.rend(); ++what) text += *what + ": ";
  if (!object.empty()) text += object + ": ";
  text += message;
  if (!hint.empty()) text += fmt::format(" ({})", hint);
  return text;
}

Error errno_error(int os_error, std::string_view call, std::string object) {
  return {.code = code_of_errno(os_error),
          .object = std::move(object),
          .message = fmt::format("{}: {}", call, std::strerror(os_error)),
          .os_error = os_error};
}

}  // namespace memsluice
