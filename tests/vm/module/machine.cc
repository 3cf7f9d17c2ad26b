// SPDX-License-Identifier: GPL-2.0
#include "tests/vm/module/machine.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/kernel-page-flags.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace memsluice::test {
namespace {

const char kModule[] = "/opt/memsluice/modules/memsluice.ko";
const char kEngine[] = "/opt/memsluice/modules/memsluice_test_engine.ko";
const char kEngineParameters[] = "/sys/module/memsluice_test_engine/parameters/";

int load(const char* path) {
  Descriptor file(open(path, O_RDONLY | O_CLOEXEC));
  return syscall(SYS_finit_module, file.get(), "", 0) ? -errno : 0;
}

int unload(const char* name) {
  return syscall(SYS_delete_module, name, O_NONBLOCK) ? -errno : 0;
}

char filled(size_t at, uint8_t seed) {
  return static_cast<char>(at * 31 + at / kPageBytes + seed);
}

// Whether a page of the block has failed.
bool has_failed(const std::string& state) {
  const size_t frames =
      std::stoull(read_file("/sys/devices/system/memory/block_size_bytes"), nullptr, 16) /
      kPageBytes;
  const size_t index =
      std::stoull(read_file(state.substr(0, state.rfind('/')) + "/phys_index"), nullptr, 16);
  std::vector<uint64_t> flags(frames);
  const size_t bytes = frames * sizeof(uint64_t);
  Descriptor file(open("/proc/kpageflags", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(pread(file.get(), flags.data(), bytes, static_cast<off_t>(index * bytes)),
            static_cast<ssize_t>(bytes));
  return std::any_of(flags.begin(), flags.end(),
                     [](uint64_t page) { return page >> KPF_HWPOISON & 1; });
}

}  // namespace

Mapping::Mapping(size_t bytes, int flags, int fd)
    : data_(static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0))),
      bytes_(bytes) {
  EXPECT_NE(static_cast<void*>(data_), MAP_FAILED) << std::strerror(errno);
}

Mapping::~Mapping() {
  munmap(data_, bytes_);
}

size_t Mapping::count_on(int node) const {
  size_t count = 0;
  for (int at : nodes_of(data_, bytes_)) count += at == node;
  return count;
}

void fill(char* data, size_t bytes, uint8_t seed) {
  for (size_t at = 0; at < bytes; at++) data[at] = filled(at, seed);
}

bool is_filled(const char* data, size_t bytes, uint8_t seed) {
  for (size_t at = 0; at < bytes; at++)
    if (data[at] != filled(at, seed)) return false;
  return true;
}

Swap::Swap() {
  EXPECT_EQ(std::system("modprobe zram && echo 256M > /sys/block/zram0/disksize && "
                        "mkswap /dev/zram0 > /dev/null && swapon /dev/zram0"),
            0);
}

Swap::~Swap() {
  EXPECT_EQ(std::system("swapoff /dev/zram0 && echo 1 > /sys/block/zram0/reset"), 0);
}

Ext4::Ext4() {
  EXPECT_EQ(std::system("modprobe brd rd_nr=1 rd_size=65536; "
                        "mke2fs -q -F -t ext4 /dev/ram0 && mkdir -p /mnt/ext4 && "
                        "mount /dev/ram0 /mnt/ext4"),
            0);
}

Ext4::~Ext4() {
  EXPECT_EQ(std::system("umount /mnt/ext4 && rmmod brd"), 0);
}

std::vector<std::string> memory_blocks(int node) {
  const std::string folder = "/sys/devices/system/node/node" + std::to_string(node);
  std::vector<std::string> blocks;
  DIR* directory = opendir(folder.c_str());
  while (dirent* entry = readdir(directory))
    if (std::strncmp(entry->d_name, "memory", 6) == 0 && std::isdigit(entry->d_name[6]))
      blocks.push_back(folder + "/" + entry->d_name + "/state");
  closedir(directory);
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

int cycle_memory(int node, int most_blocks) {
  int cycled = 0;
  for (const std::string& state : memory_blocks(node)) {
    if (has_failed(state)) continue;  // the kernel would take it away and never give it back
    Descriptor file(open(state.c_str(), O_RDWR | O_CLOEXEC));
    if (pwrite(file.get(), "offline", 7, 0) != 7) continue;  // something unmovable is there
    cycled++;
    EXPECT_EQ(pwrite(file.get(), "online_movable", 14, 0), 14)
        << state << ": " << std::strerror(errno);
    if (cycled == most_blocks) break;
  }
  return cycled;
}

const char* module_file() {
  return kModule;
}

int load_module() {
  return load(kModule);
}

int unload_module() {
  return unload("memsluice");
}

TestEngine::TestEngine() {
  EXPECT_EQ(load(kEngine), 0);
}

TestEngine::~TestEngine() {
  EXPECT_EQ(unload("memsluice_test_engine"), 0);
}

void TestEngine::set(const std::string& name, const std::string& value) {
  write_file(kEngineParameters + name, value);
}

uint64_t TestEngine::get(const std::string& name) {
  return std::stoull(read_file(kEngineParameters + name));
}

}  // namespace memsluice::test
