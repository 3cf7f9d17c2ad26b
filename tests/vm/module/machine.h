// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/vm/module/world.h"

// Mappings of other kinds than Pages, and what tests change of the machine.
namespace memsluice::test {

// A mapping of this process, whatever of.
class Mapping {
 public:
  Mapping(size_t bytes, int flags, int fd = -1);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  [[nodiscard]] char* data() const { return data_; }
  [[nodiscard]] size_t bytes() const { return bytes_; }
  [[nodiscard]] size_t count_on(int node) const;

 private:
  char* data_;
  size_t bytes_;
};

void fill(char* data, size_t bytes, uint8_t seed);
bool is_filled(const char* data, size_t bytes, uint8_t seed);

// Swap in memory that compresses: fast, and needs no disk.
class Swap {
 public:
  Swap();
  ~Swap();
  Swap(const Swap&) = delete;
  Swap& operator=(const Swap&) = delete;
};

// A file system on a disk in memory, at kFolder.
class Ext4 {
 public:
  static constexpr char kFolder[] = "/mnt/ext4";
  Ext4();
  ~Ext4();
  Ext4(const Ext4&) = delete;
  Ext4& operator=(const Ext4&) = delete;
};

// The files `state` of a node's blocks of memory, those last that hold the kernel's own boot data.
std::vector<std::string> memory_blocks(int node);
// Takes away and gives back what it can of a node's memory. Return: how many blocks that were.
int cycle_memory(int node, int most_blocks = 3);

// Where the module is.
const char* module_file();
// 0 or a negative errno.
int load_module();
int unload_module();

// The engine that fails on purpose, while it is loaded.
class TestEngine {
 public:
  TestEngine();
  ~TestEngine();
  TestEngine(const TestEngine&) = delete;
  TestEngine& operator=(const TestEngine&) = delete;
  static void set(const std::string& name, const std::string& value);
  static uint64_t get(const std::string& name);
};

}  // namespace memsluice::test
