// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace memsluice {

// A directory for one test, gone afterwards: a cgroup tree, a sysfs, a place for a socket.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "memsluice-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string path(std::string_view below = "") const { return path_ + std::string(below); }
  void make_directory(std::string_view below) const {
    std::filesystem::create_directories(path(below));
  }
  void write(std::string_view below, std::string_view content) const {
    std::filesystem::create_directories(std::filesystem::path(path(below)).parent_path());
    std::ofstream(path(below)) << content;
  }
  void remove(std::string_view below) const { std::filesystem::remove_all(path(below)); }

 private:
  std::string path_;
};

}  // namespace memsluice
