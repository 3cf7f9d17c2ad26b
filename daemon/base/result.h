// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace memsluice {

// The codes of docs/api.md: the command's exit status and what a client can act on follow from
// them.
enum class ErrorCode {
  kBadRequest,
  kUnknownMethod,
  kDenied,
  kNotFound,
  kConflict,
  kUnavailable,
  kFailed,
};

std::string_view error_code_name(ErrorCode code);
std::optional<ErrorCode> error_code_from_name(std::string_view name);

struct Error {
  ErrorCode code = ErrorCode::kFailed;
  std::string object = {};   // what it is about: a path, an id, a key
  std::string message = {};  // what is wrong with it
  std::string hint = {};     // what to do; may be empty
  int os_error = 0;
  std::vector<std::string> context = {};  // what was being done, innermost first

  Error with_context(std::string what) const&;
  Error with_context(std::string what) &&;
  Error with_hint(std::string what) &&;

  // "reading the configuration: /etc/x.toml: open: Permission denied (try: ...)"
  std::string describe() const;

  bool operator==(const Error&) const = default;
};

// The error of a call that set errno; its code follows from the errno.
Error errno_error(int os_error, std::string_view call, std::string object);

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }

  // Asking for the value of an error, or for the error of a value, is a bug and ends the process.
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

  Result with_context(std::string what) && {
    if (ok()) return std::move(*this);
    return std::move(*this).error().with_context(std::move(what));
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  const Error& error() const& { return error_.value(); }
  Error&& error() && { return std::move(error_).value(); }

  Result with_context(std::string what) && {
    if (ok()) return {};
    return std::move(*this).error().with_context(std::move(what));
  }

 private:
  std::optional<Error> error_;
};

}  // namespace memsluice
