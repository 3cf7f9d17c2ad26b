// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/files.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>

namespace memsluice {

Result<std::string> read_file(int directory, const std::string& path) {
  Fd file(::openat(directory, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return errno_error(errno, "open", path);
  std::string content;
  std::array<char, 4096> buffer;
  for (;;) {
    ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(errno, "read", path);
    if (count == 0) return content;
    content.append(buffer.data(), count);
  }
}

Result<void> write_file(int directory, const std::string& path, std::string_view content) {
  Fd file(::openat(directory, path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (!file.valid()) return errno_error(errno, "open", path);
  ssize_t count = ::write(file.get(), content.data(), content.size());
  if (count < 0) return errno_error(errno, "write", path);
  if (static_cast<size_t>(count) != content.size()) return errno_error(EIO, "write", path);
  return {};
}

Result<void> replace_file(const std::string& path, std::string_view content, mode_t mode) {
  const std::string new_path = path + ".new";
  ::unlink(new_path.c_str());
  Fd file(::open(new_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return errno_error(errno, "open", new_path);
  while (!content.empty()) {
    const ssize_t count = ::write(file.get(), content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(errno, "write", new_path);
    content.remove_prefix(static_cast<size_t>(count));
  }
  // Whatever the umask is.
  if (::fchmod(file.get(), mode) != 0) return errno_error(errno, "fchmod", new_path);
  if (::rename(new_path.c_str(), path.c_str()) != 0) return errno_error(errno, "rename", path);
  return {};
}

Result<Fd> open_directory(int directory, const std::string& path) {
  Fd opened(::openat(directory, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid()) return errno_error(errno, "open", path);
  return opened;
}

Result<std::vector<std::string>> list_directory(const Fd& directory) {
  // fdopendir() takes its descriptor over; "." gives it one with an offset of its own.
  int own = ::openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return errno_error(errno, "open", ".");
  std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(own), ::closedir);
  if (stream == nullptr) {
    ::close(own);
    return errno_error(errno, "fdopendir", ".");
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(stream.get())) {
    std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n";
  size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::vector<int> parse_id_list(std::string_view text) {
  // More ids than any kernel has nodes or CPUs are no list of the kernel's.
  constexpr int kMost = 1 << 16;
  std::vector<int> ids;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    int low = 0;
    auto parsed = std::from_chars(at, end, low);
    if (parsed.ec != std::errc()) break;
    int high = low;
    if (parsed.ptr < end && *parsed.ptr == '-') parsed = std::from_chars(parsed.ptr + 1, end, high);
    if (parsed.ec != std::errc() || low < 0 || high > kMost) break;
    for (int id = low; id <= high; id++) ids.push_back(id);
    at = parsed.ptr;
    if (at == end || *at != ',') break;
    at++;
  }
  return ids;
}

uint64_t number_after(std::string_view text, std::string_view key) {
  size_t at = text.find(key);
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + key.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace memsluice
