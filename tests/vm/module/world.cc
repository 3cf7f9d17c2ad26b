// SPDX-License-Identifier: GPL-2.0
#include "tests/vm/module/world.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

namespace memsluice::test {
namespace {

const char kCgroupRoot[] = "/sys/fs/cgroup";

[[noreturn]] void fail(const std::string& what) {
  std::cerr << what << ": " << std::strerror(errno) << "\n";
  std::abort();
}

// Pages move when the module moves them: the kernel's own balancing, which Debian has switched on,
// is off while the tests run.
class NoBalancing : public testing::Environment {
 public:
  void SetUp() override {
    was_ = read_file(kSwitch);
    write_file(kSwitch, "0");
  }
  void TearDown() override { write_file(kSwitch, was_); }

 private:
  static constexpr char kSwitch[] = "/proc/sys/kernel/numa_balancing";
  std::string was_;
};

const auto* const kNoBalancing = testing::AddGlobalTestEnvironment(new NoBalancing);

uint64_t word_at(const char* address, unsigned seed) {
  return reinterpret_cast<uint64_t>(address) * 0x9e3779b97f4a7c15ULL + seed;
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

int ioctl_on(int fd, unsigned long command, void* argument) {
  int result = ioctl(fd, command, argument);
  return result < 0 ? -errno : result;
}

int device_ioctl(unsigned long command, void* argument) {
  Descriptor device(open("/dev/" MEMSLUICE_DEVICE, O_RDWR | O_CLOEXEC));
  if (device.get() < 0) fail("/dev/" MEMSLUICE_DEVICE);
  return ioctl_on(device.get(), command, argument);
}

Cgroup::Cgroup(const std::string& name, const std::string& parent)
    : path_((parent.empty() ? kCgroupRoot : parent) + "/" + name) {
  if (mkdir(path_.c_str(), 0755) && errno != EEXIST) fail(path_);
}

Cgroup::~Cgroup() {
  remove();
}

uint64_t Cgroup::id() const {
  struct stat status = {};
  if (stat(path_.c_str(), &status)) fail(path_);
  return status.st_ino;
}

std::string Cgroup::name() const {
  return path_.substr(sizeof(kCgroupRoot) - 1);
}

void Cgroup::enter(pid_t pid) const {
  write("cgroup.procs", std::to_string(pid));
}

void Cgroup::write(const std::string& file, const std::string& text) const {
  write_file(path_ + "/" + file, text);
}

void Cgroup::remove() {
  struct stat status = {};
  if (stat(path_.c_str(), &status)) return;
  write("cgroup.kill", "1");
  if (!eventually([&] { return !rmdir(path_.c_str()) || errno == ENOENT; })) fail("rmdir " + path_);
}

memsluice_policy policy_off() {
  memsluice_policy policy = {};
  policy.fast_limit_bytes = MEMSLUICE_NO_LIMIT;
  return policy;
}

memsluice_policy policy_tiering(uint64_t fast_limit_bytes) {
  memsluice_policy policy = {};
  policy.flags = MEMSLUICE_POLICY_TIERING;
  policy.promote_mib_per_s = 4096;
  policy.demote_mib_per_s = 4096;
  policy.fast_limit_bytes = fast_limit_bytes;
  return policy;
}

int set_tenant(const Cgroup& cgroup, const memsluice_policy& policy) {
  Descriptor directory(open(cgroup.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto set = sized<memsluice_tenant_set>();
  set.cgroup_fd = directory.get();
  set.policy = policy;
  return device_ioctl(MEMSLUICE_IOC_TENANT_SET, &set);
}

int clear_tenant(uint64_t id) {
  auto clear = sized<memsluice_tenant_clear>();
  clear.cgroup_id = id;
  return device_ioctl(MEMSLUICE_IOC_TENANT_CLEAR, &clear);
}

memsluice_tenant_status tenant_status(uint64_t id, int* error) {
  auto status = sized<memsluice_tenant_status>();
  status.cgroup_id = id;
  *error = device_ioctl(MEMSLUICE_IOC_TENANT_STATUS, &status);
  return status;
}

Pages::Pages(size_t bytes, int node, Huge huge, unsigned seed)
    : mapping_bytes_(bytes + kHugeBytes), bytes_(bytes), seed_(seed) {
  mapping_ =
      mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) fail("mmap");
  auto aligned = (reinterpret_cast<uint64_t>(mapping_) + kHugeBytes - 1) & ~(kHugeBytes - 1);
  data_ = reinterpret_cast<char*>(aligned);
  if (madvise(data_, bytes_, huge == Huge::kAlways ? MADV_HUGEPAGE : MADV_NOHUGEPAGE))
    fail("madvise");
  unsigned long mask = 1UL << node;
  if (syscall(SYS_mbind, data_, bytes_, MPOL_BIND, &mask, sizeof(mask) * 8, 0)) fail("mbind");
  for (char* at = data_; at < data_ + bytes_; at += sizeof(uint64_t)) {
    uint64_t word = word_at(at, seed_);
    std::memcpy(at, &word, sizeof(word));
  }
  // The pages are where they shall be; from now on nothing binds them.
  if (syscall(SYS_mbind, data_, bytes_, MPOL_DEFAULT, nullptr, 0, 0)) fail("mbind");
}

Pages::~Pages() {
  munmap(mapping_, mapping_bytes_);
}

bool Pages::intact() const {
  for (const char* at = data_; at < data_ + bytes_; at += sizeof(uint64_t)) {
    uint64_t word = word_at(at, seed_);
    if (std::memcmp(at, &word, sizeof(word)) != 0) return false;
  }
  return true;
}

size_t Pages::count_on(int node) const {
  size_t count = 0;
  for (int at : nodes_of(data_, bytes_)) count += at == node;
  return count;
}

std::vector<int> nodes_of(const char* start, size_t bytes) {
  std::vector<const void*> addresses;
  for (size_t offset = 0; offset < bytes; offset += kPageBytes) addresses.push_back(start + offset);
  std::vector<int> nodes(addresses.size());
  if (syscall(SYS_move_pages, 0, addresses.size(), addresses.data(), nullptr, nodes.data(), 0))
    fail("move_pages");
  return nodes;
}

memsluice_migrate range_request(const Pages& pages, int target_node,
                                memsluice_request_status* status) {
  return range_request(pages.address(), pages.bytes(), target_node, status);
}

memsluice_migrate range_request(uint64_t address, uint64_t length, int target_node,
                                memsluice_request_status* status) {
  auto migrate = sized<memsluice_migrate>();
  migrate.kind = MEMSLUICE_MIGRATE_RANGE;
  migrate.source_node = -1;
  migrate.target_node = target_node;
  migrate.address = address;
  migrate.length = length;
  *status = sized<memsluice_request_status>();
  migrate.status = reinterpret_cast<uint64_t>(status);
  return migrate;
}

pid_t start_child(const std::function<int()>& body) {
  std::cout.flush();
  std::cerr.flush();
  pid_t pid = fork();
  if (pid < 0) fail("fork");
  if (pid) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int status = body();
  std::cerr.flush();
  _exit(status);
}

pid_t start_ready_child(const std::function<int(const std::function<void()>&)>& body) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) fail("pipe");
  Descriptor reader(ends[0]);
  pid_t pid;
  {
    Descriptor writer(ends[1]);
    pid = start_child([&] {
      return body([&] {
        if (write(ends[1], "x", 1) != 1) fail("ready");
      });
    });
  }
  char byte;
  if (read(reader.get(), &byte, 1) != 1)
    ADD_FAILURE() << "the child ended with " << wait_child(pid) << " before it was ready";
  return pid;
}

int wait_child(pid_t pid) {
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) fail("waitpid");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int in_child(const std::function<int()>& body) {
  return wait_child(start_child(body));
}

int take_census(int node, std::vector<memsluice_census_row>* rows) {
  auto census = sized<memsluice_census>();
  rows->resize(4096);
  census.node = node;
  census.rows = reinterpret_cast<uint64_t>(rows->data());
  census.capacity = static_cast<uint32_t>(rows->size());
  census.row_size = sizeof(memsluice_census_row);
  const int result = device_ioctl(MEMSLUICE_IOC_CENSUS, &census);
  EXPECT_LE(census.count, rows->size());
  rows->resize(result ? 0 : census.count);
  return result;
}

uint64_t isolated_pages() {
  // What each CPU has counted for itself is added up.
  write_file("/proc/sys/vm/stat_refresh", "1");
  std::istringstream counters(read_file("/proc/vmstat"));
  uint64_t pages = 0, value;
  for (std::string name; counters >> name >> value;)
    if (name.starts_with("nr_isolated_")) pages += value;
  return pages;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

uint64_t field(const std::string& file, const std::string& name) {
  auto text = read_file(file);
  auto at = text.find("\n" + name);
  if (at == std::string::npos) at = text.starts_with(name) ? 0 : std::string::npos;
  if (at == std::string::npos) return 0;
  return std::stoull(text.substr(text.find_first_of("0123456789", at + name.size())));
}

void write_file(const std::string& path, const std::string& text) {
  Descriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0) fail(path);
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    fail("write " + text + " to " + path);
}

void touch(const std::string& path) {
  Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (file.get() < 0) fail(path);
}

bool eventually(const std::function<bool()>& condition, int seconds) {
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return condition();
}

}  // namespace memsluice::test
