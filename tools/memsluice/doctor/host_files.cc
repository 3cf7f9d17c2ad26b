// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/doctor/host_files.h"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace memsluice::doctor {

std::string HostFiles::host_path(std::string_view path) const {
  return root_ / std::filesystem::path(path).relative_path();
}

bool HostFiles::exists(std::string_view path) const {
  std::error_code error;
  return std::filesystem::exists(host_path(path), error);
}

std::optional<std::string> HostFiles::read(std::string_view path) const {
  std::ifstream file(host_path(path), std::ios::binary);
  if (!file) return std::nullopt;
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return std::nullopt;
  if (!content.empty() && content.back() == '\n') content.pop_back();
  return content;
}

void HostFiles::each_line(std::string_view path,
                          const std::function<bool(std::string_view)>& visit) const {
  std::ifstream file(host_path(path), std::ios::binary);
  for (std::string line; std::getline(file, line);) {
    if (!visit(line)) return;
  }
}

std::vector<std::string> HostFiles::list(std::string_view directory) const {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entries(host_path(directory), error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    names.push_back(entries->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::string> HostFiles::link_name(std::string_view path) const {
  std::error_code error;
  const auto target = std::filesystem::read_symlink(host_path(path), error);
  if (error) return std::nullopt;
  return target.filename();
}

}  // namespace memsluice::doctor
