// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "include/uapi/memsluice.h"

// What tests of the module need of the guest: the device, cgroups, pages on a chosen node.
namespace memsluice::test {

constexpr int kFast = 0;
constexpr int kSlow = 1;
constexpr int kHome = 0;  // with the CPUs, on the machine "channels"
constexpr size_t kPageBytes = 4096;
constexpr size_t kHugeBytes = size_t{2} << 20;
constexpr size_t kMib = size_t{1} << 20;
constexpr uint32_t kAll = MEMSLUICE_MIGRATE_ALL_MAPPINGS;

// An open descriptor; -1 when opening failed.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

// 0 or more: what ioctl(2) returned; less: a negative errno.
int device_ioctl(unsigned long command, void* argument);
int ioctl_on(int fd, unsigned long command, void* argument);

// A structure of the ABI, zero but for its size.
template <typename T>
T sized() {
  T value = {};
  value.size = sizeof(T);
  return value;
}

// A cgroup below the root, removed again with everything in it.
class Cgroup {
 public:
  explicit Cgroup(const std::string& name, const std::string& parent = "");
  ~Cgroup();
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;
  [[nodiscard]] uint64_t id() const;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string name() const;
  void enter(pid_t pid) const;
  void write(const std::string& file, const std::string& text) const;
  void remove();

 private:
  std::string path_;
};

memsluice_policy policy_off();
memsluice_policy policy_tiering(uint64_t fast_limit_bytes);
int set_tenant(const Cgroup& cgroup, const memsluice_policy& policy);
int clear_tenant(uint64_t id);
// ENOENT and the like as a negative number in `size`.
memsluice_tenant_status tenant_status(uint64_t id, int* error);

// Anonymous memory with contents that depend on address and seed.
class Pages {
 public:
  enum class Huge { kNever, kAlways };
  // Allocated on a node, whatever the policy of the thread is.
  Pages(size_t bytes, int node, Huge huge = Huge::kNever, unsigned seed = 1);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  [[nodiscard]] char* data() const { return data_; }
  [[nodiscard]] size_t bytes() const { return bytes_; }
  [[nodiscard]] uint64_t address() const { return reinterpret_cast<uint64_t>(data_); }
  // True when every byte is what was written.
  [[nodiscard]] bool intact() const;
  // Pages on a node, by move_pages(2).
  [[nodiscard]] size_t count_on(int node) const;

 private:
  void* mapping_;
  size_t mapping_bytes_;
  char* data_;
  size_t bytes_;
  unsigned seed_;
};

// Node of each page of a range; a negative errno for a page that is not there.
std::vector<int> nodes_of(const char* start, size_t bytes);

// A request for a range of this process.
memsluice_migrate range_request(uint64_t address, uint64_t length, int target_node,
                                memsluice_request_status* status);
memsluice_migrate range_request(const Pages& pages, int target_node,
                                memsluice_request_status* status);

// The rows of a node, or with -1 of all. Return: 0 or a negative errno.
int take_census(int node, std::vector<memsluice_census_row>* rows);

// Pages that the kernel counts as isolated, once nobody isolates any more.
uint64_t isolated_pages();

// Runs a function in a child that is killed with this process. Returns its exit status.
int in_child(const std::function<int()>& body);
pid_t start_child(const std::function<int()>& body);
int wait_child(pid_t pid);
// Like start_child(), and returns when the child has called what it was given; when it ends without
// doing so, the test fails.
pid_t start_ready_child(const std::function<int(const std::function<void()>& ready)>& body);

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& text);
// The first number after a name at the beginning of a line; 0 when there is none.
uint64_t field(const std::string& file, const std::string& name);
void touch(const std::string& path);

// Polls until the condition holds; false when it never did.
bool eventually(const std::function<bool()>& condition, int seconds = 240);

}  // namespace memsluice::test
