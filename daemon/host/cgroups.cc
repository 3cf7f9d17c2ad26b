// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/cgroups.h"

#include <fnmatch.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <sstream>
#include <string_view>

#include "daemon/host/files.h"

namespace memsluice {
namespace {

constexpr size_t kPathLengthMax = 4095;

std::vector<std::string> components(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    path.remove_prefix(1);
    size_t end = std::min(path.find('/'), path.size());
    if (end > 0) parts.emplace_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return parts;
}

bool component_matches(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

std::string child_path(const std::string& parent, const std::string& name) {
  return parent == "/" ? "/" + name : parent + "/" + name;
}

// What to look at: the patterns of the components, or the whole tree.
struct Selection {
  std::vector<std::string> patterns = {};
  bool everything = false;
};

std::vector<std::string> selected_children(const Fd& directory, const Selection& selection,
                                           size_t depth) {
  if (!selection.everything) {
    const std::string& pattern = selection.patterns[depth];
    if (!is_glob(pattern)) return {pattern};
  }
  auto names = list_directory(directory);
  if (!names.ok()) return {};
  if (!selection.everything)
    std::erase_if(*names, [&](const std::string& name) {
      return !component_matches(selection.patterns[depth], name);
    });
  return *std::move(names);
}

// Directories come and go while we look: what cannot be opened any more is not there.
void collect(const Fd& directory, const std::string& path, const Selection& selection, size_t depth,
             std::vector<Cgroup>& found) {
  const bool selected = selection.everything || depth == selection.patterns.size();
  if (selected)
    if (auto id = Cgroups::id_of(directory); id.ok()) found.push_back({path, *id});
  if (selected && !selection.everything) return;
  for (const std::string& name : selected_children(directory, selection, depth)) {
    auto child = open_directory(directory.get(), name);
    if (child.ok()) collect(*child, child_path(path, name), selection, depth + 1, found);
  }
}

std::vector<Cgroup> collect_from(const std::string& root, const Selection& selection) {
  std::vector<Cgroup> found;
  if (auto directory = open_directory(AT_FDCWD, root); directory.ok())
    collect(*directory, "/", selection, 0, found);
  std::sort(found.begin(), found.end(),
            [](const Cgroup& a, const Cgroup& b) { return a.path < b.path; });
  return found;
}

// "anon N0=4096 N1=8192": adds them up by node.
void add_node_bytes(std::string_view line, std::map<int, uint64_t>& node_bytes) {
  for (size_t at = line.find(" N"); at != std::string_view::npos; at = line.find(" N", at + 1)) {
    int node = 0;
    uint64_t bytes = 0;
    const char* end = line.data() + line.size();
    auto parsed = std::from_chars(line.data() + at + 2, end, node);
    if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != '=') continue;
    std::from_chars(parsed.ptr + 1, end, bytes);
    node_bytes[node] += bytes;
  }
}

}  // namespace

Result<void> check_cgroup_path(const std::string& path) {
  auto error = [&](const char* message) {
    return Error{.code = ErrorCode::kBadRequest,
                 .object = path,
                 .message = message,
                 .hint = "write it as below the cgroup root, such as /redis.slice"};
  };
  if (!path.starts_with('/')) return error("a cgroup begins with a slash");
  if (path.size() > kPathLengthMax) return error("is too long");
  if (path.find('\0') != std::string::npos) return error("has a NUL in it");
  if (path == "/") return {};
  if (path.ends_with('/')) return error("ends with a slash");
  if (path.find("//") != std::string::npos) return error("has an empty component");
  for (const std::string& part : components(path))
    if (part == "." || part == "..") return error("has a component . or ..");
  return {};
}

std::string parent_path(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

bool is_below(const std::string& path, const std::string& above) {
  if (above == "/") return path != "/";
  return path.size() > above.size() && path.starts_with(above) && path[above.size()] == '/';
}

bool is_glob(const std::string& path) {
  return path.find_first_of("*?[") != std::string::npos;
}

bool glob_matches(const std::string& pattern, const std::string& path) {
  if (pattern == path) return true;
  auto patterns = components(pattern);
  auto names = components(path);
  return std::equal(patterns.begin(), patterns.end(), names.begin(), names.end(),
                    component_matches);
}

Result<Fd> Cgroups::open(const std::string& path) const {
  if (auto checked = check_cgroup_path(path); !checked.ok()) return checked.error();
  auto root = open_directory(AT_FDCWD, root_);
  if (!root.ok()) return std::move(root).error();
  open_how how = {};
  how.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  std::string relative = path == "/" ? "." : path.substr(1);
  Fd opened(
      static_cast<int>(::syscall(SYS_openat2, root->get(), relative.c_str(), &how, sizeof(how))));
  if (opened.valid()) return opened;
  if (errno == ENOENT || errno == ENOTDIR)
    return Error{.code = ErrorCode::kNotFound,
                 .object = path,
                 .message = "no such cgroup",
                 .hint = "systemd-cgls lists them",
                 .os_error = errno};
  return errno_error(errno, "openat2", path);
}

Result<Cgroup> Cgroups::find(const std::string& path) const {
  auto opened = open(path);
  if (!opened.ok()) return std::move(opened).error();
  auto id = id_of(*opened);
  if (!id.ok()) return std::move(id).error();
  return Cgroup{path, *id};
}

Result<uint64_t> Cgroups::id_of(const Fd& cgroup) {
  struct stat status;
  if (::fstat(cgroup.get(), &status) != 0) return errno_error(errno, "fstat", {});
  return status.st_ino;
}

std::vector<Cgroup> Cgroups::match(const std::string& pattern) const {
  return collect_from(root_, {.patterns = components(pattern)});
}

std::vector<Cgroup> Cgroups::all() const {
  return collect_from(root_, {.everything = true});
}

std::vector<std::string> Cgroups::children(const std::string& path) const {
  std::vector<std::string> paths;
  auto directory = open(path);
  if (!directory.ok()) return paths;
  auto names = list_directory(*directory);
  if (!names.ok()) return paths;
  for (const std::string& name : *names)
    if (open_directory(directory->get(), name).ok()) paths.push_back(child_path(path, name));
  return paths;
}

bool Cgroups::charges_memory(const Fd& cgroup) {
  auto text = read_file(cgroup.get(), "cgroup.controllers");
  if (!text.ok()) return false;
  std::istringstream words(*text);
  for (std::string word; words >> word;)
    if (word == "memory") return true;
  return false;
}

CgroupMemory Cgroups::memory(const Fd& cgroup) {
  CgroupMemory memory;
  if (auto text = read_file(cgroup.get(), "memory.current"); text.ok()) {
    uint64_t bytes = 0;
    auto parsed = std::from_chars(text->data(), text->data() + text->size(), bytes);
    if (parsed.ec == std::errc()) memory.current_bytes = bytes;
  }
  auto text = read_file(cgroup.get(), "memory.numa_stat");
  if (!text.ok()) return memory;
  std::string_view rest = *text;
  while (!rest.empty()) {
    size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    // "file" has shared memory in it.
    if (line.starts_with("anon ") || line.starts_with("file "))
      add_node_bytes(line, memory.node_bytes);
    if (line.starts_with("anon ") || line.starts_with("shmem "))
      add_node_bytes(line, memory.placed_bytes);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return memory;
}

}  // namespace memsluice
