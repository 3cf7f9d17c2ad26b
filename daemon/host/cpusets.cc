// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/cpusets.h"

#include <sys/xattr.h>

#include <array>
#include <cerrno>
#include <sstream>

#include "daemon/host/files.h"

namespace memsluice {
namespace {

constexpr const char* kMems = "cpuset.mems";
constexpr const char* kSubtree = "cgroup.subtree_control";
constexpr const char* kNote = "user.memsluice.cpuset_mems";

bool has_word(const std::string& text, const std::string& wanted) {
  std::istringstream words(text);
  for (std::string word; words >> word;)
    if (word == wanted) return true;
  return false;
}

Result<void> put_note(const Fd& cgroup, const std::string& path, const std::string& note) {
  if (::fsetxattr(cgroup.get(), kNote, note.data(), note.size(), 0) == 0) return {};
  return errno_error(errno, "fsetxattr", path);
}

Result<void> drop_note(const Fd& cgroup, const std::string& path) {
  if (::fremovexattr(cgroup.get(), kNote) == 0 || errno == ENODATA) return {};
  return errno_error(errno, "fremovexattr", path);
}

}  // namespace

Result<void> Cpusets::switch_on_below(const std::string& path) const {
  auto cgroup = cgroups_.open(path);
  if (!cgroup.ok()) return std::move(cgroup).error();
  auto now = read_file(cgroup->get(), kSubtree);
  if (!now.ok()) return std::move(now).error();
  if (has_word(*now, "cpuset")) return {};
  return write_file(cgroup->get(), kSubtree, "+cpuset");
}

Result<std::string> Cpusets::mems(const std::string& path) const {
  auto cgroup = cgroups_.open(path);
  if (!cgroup.ok()) return std::move(cgroup).error();
  auto text = read_file(cgroup->get(), kMems);
  if (!text.ok()) return std::move(text).error();
  return std::string(trimmed(*text));
}

std::optional<std::string> Cpusets::note(const std::string& path) const {
  auto cgroup = cgroups_.open(path);
  if (!cgroup.ok()) return std::nullopt;
  std::array<char, 4096> text;
  const ssize_t size = ::fgetxattr(cgroup->get(), kNote, text.data(), text.size());
  if (size < 0) return std::nullopt;
  return std::string(text.data(), static_cast<size_t>(size));
}

Result<void> Cpusets::write(const std::string& path, const std::string& mems,
                            const std::optional<std::string>& note) const {
  auto cgroup = cgroups_.open(path);
  if (!cgroup.ok()) return std::move(cgroup).error();
  if (note)
    if (auto noted = put_note(*cgroup, path, *note); !noted.ok()) return noted;
  // A lone newline is "as the cgroup above"; nothing at all would not be written.
  auto written = write_file(cgroup->get(), kMems, mems + "\n");
  if (!written.ok() || note) return written;
  return drop_note(*cgroup, path);
}

}  // namespace memsluice
