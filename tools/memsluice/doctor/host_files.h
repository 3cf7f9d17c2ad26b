// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memsluice::doctor {

// The files by which a host tells about itself, below a root that tests replace. What cannot be
// read is not there: to doctor both mean that it is not known.
class HostFiles {
 public:
  explicit HostFiles(std::filesystem::path root) : root_(std::move(root)) {}

  // `path` is absolute, as on the host.
  [[nodiscard]] std::string host_path(std::string_view path) const;
  [[nodiscard]] bool exists(std::string_view path) const;
  // Without the newline at the end.
  [[nodiscard]] std::optional<std::string> read(std::string_view path) const;
  // Until `visit` returns false.
  void each_line(std::string_view path, const std::function<bool(std::string_view)>& visit) const;
  // Sorted names.
  [[nodiscard]] std::vector<std::string> list(std::string_view directory) const;
  // The last part of what a symbolic link points to.
  [[nodiscard]] std::optional<std::string> link_name(std::string_view path) const;

 private:
  std::filesystem::path root_;
};

}  // namespace memsluice::doctor
