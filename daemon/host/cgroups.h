// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/fd.h"
#include "daemon/base/result.h"

namespace memsluice {

struct Cgroup {
  std::string path;  // below the cgroup root, with a leading slash
  uint64_t id = 0;   // the inode number: never used again for another cgroup

  bool operator==(const Cgroup&) const = default;
};

struct CgroupMemory {
  std::optional<uint64_t> current_bytes;
  std::map<int, uint64_t> node_bytes;    // empty: the kernel does not say
  std::map<int, uint64_t> placed_bytes;  // of these, what is placed: without page cache of files
};

// A leading slash, no empty component, no "." or ".."; "/" is the root.
Result<void> check_cgroup_path(const std::string& path);

// "/" for those right below the root.
std::string parent_path(const std::string& path);
// Whether a cgroup lies below another, and is not the same.
bool is_below(const std::string& path, const std::string& above);

// Whether it has one of * ? [ and so is a pattern. A backslash is a letter: systemd writes "\x2d".
bool is_glob(const std::string& path);

// Whether the pattern names this path: component by component, * does not match a slash.
bool glob_matches(const std::string& pattern, const std::string& path);

// The tree of cgroups v2. Every call looks at it anew, and reads relative to an open directory, so
// that a path that is reused in between is not mixed up.
class Cgroups {
 public:
  explicit Cgroups(std::string root) : root_(std::move(root)) {}

  Result<Fd> open(const std::string& path) const;
  Result<Cgroup> find(const std::string& path) const;
  static Result<uint64_t> id_of(const Fd& cgroup);

  // Those whose path the pattern matches, sorted by path. Looks only where they can be.
  std::vector<Cgroup> match(const std::string& pattern) const;
  // The whole tree, the root included.
  std::vector<Cgroup> all() const;

  // Paths of those right below one; none when it has gone.
  std::vector<std::string> children(const std::string& path) const;

  // Whether its memory controller is on.
  static bool charges_memory(const Fd& cgroup);
  static CgroupMemory memory(const Fd& cgroup);

 private:
  std::string root_;
};

}  // namespace memsluice
