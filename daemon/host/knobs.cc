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
    if (*old != value) before[name] = *std::move(old);
  }
  std::map<std::string, std::string> wanted;
  for (const auto& [name, old] : before) wanted[name] = values.at(name);
  auto refused = write_all(wanted);
  if (!refused) return before.size();

  // What the module said a moment ago it also takes; if it is gone, so are its values.
  write_all(before);
  return Error{
      .code = ErrorCode::kBadRequest,
      .object = "module." + refused->name,
      .message = fmt::format("the module refuses \"{}\": {}", values.at(refused->name),
                             refused->error.message),
      .hint = fmt::format("it was {}; docs/abi says what it may be", before.at(refused->name)),
      .os_error = refused->error.os_error};
}

std::optional<Knobs::Refusal> Knobs::write_all(std::map<std::string, std::string> values) const {
  // Values can bound one another (a low and a high mark), so that only some order is accepted.
  while (!values.empty()) {
    std::optional<Refusal> refusal;
    const size_t before = values.size();
    std::erase_if(values, [&](const auto& entry) {
      auto written = write_file(AT_FDCWD, directory_ + "/" + entry.first, entry.second);
      if (written.ok()) return true;
      if (!refusal) refusal = Refusal{entry.first, std::move(written).error()};
      return false;
    });
    if (values.size() == before) return refusal;
  }
  return std::nullopt;
}

}  // namespace memsluice
