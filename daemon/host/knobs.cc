// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/knobs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>

#include "daemon/host/files.h"

namespace memsluice {

Result<std::vector<std::string>> Knobs::names() const {
  auto directory = open_directory(AT_FDCWD, directory_);
  if (!directory.ok()) return std::move(directory).error();
  auto names = list_directory(*directory);
  if (!names.ok()) return std::move(names).error();
  // By the mode, not by access(): root may "write" to everything.
  std::erase_if(*names, [&](const std::string& name) {
    struct stat status;
    return ::fstatat(directory->get(), name.c_str(), &status, 0) != 0 || !S_ISREG(status.st_mode) ||
           (status.st_mode & S_IWUSR) == 0;
  });
  return names;
}

Result<std::string> Knobs::read(const std::string& name) const {
  auto text = read_file(AT_FDCWD, directory_ + "/" + name);
  if (!text.ok()) return std::move(text).error();
  return std::string(trimmed(*text));
}

Result<size_t> Knobs::apply(const std::map<std::string, std::string>& values) const {
  auto known = names();
  if (!known.ok()) return std::move(known).error();
  for (const auto& [name, value] : values)
    if (!std::binary_search(known->begin(), known->end(), name))
      return Error{.code = ErrorCode::kBadRequest,
                   .object = "module." + name,
                   .message = fmt::format("the module has no such value in {}", directory_),
                   .hint = fmt::format("it has: {}", fmt::join(*known, ", "))};

  std::map<std::string, std::string> before;
  for (const auto& [name, value] : values) {
    auto old = read(name);
    if (!old.ok()) return std::move(old).error();
    if (*old == value) continue;
    auto written = write_file(AT_FDCWD, directory_ + "/" + name, value);
    if (written.ok()) {
      before[name] = *old;
      continue;
    }
    for (const auto& [changed, old_value] : before) {
      // What the module said a moment ago it also takes; if it is gone, so are its values.
      [[maybe_unused]] auto restored = write_file(AT_FDCWD, directory_ + "/" + changed, old_value);
    }
    return Error{
        .code = ErrorCode::kBadRequest,
        .object = "module." + name,
        .message = fmt::format("the module refuses \"{}\": {}", value, written.error().message),
        .hint = fmt::format("it is {} now; docs/abi says what it may be", *old),
        .os_error = written.error().os_error};
  }
  return before.size();
}

}  // namespace memsluice
