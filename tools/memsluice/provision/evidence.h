// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/host/channels_file.h"
#include "daemon/host/physical_memory.h"
#include "tools/memsluice/provision/cedt.h"
#include "tools/memsluice/provision/hmat.h"
#include "tools/memsluice/provision/smbios.h"
#include "tools/memsluice/provision/srat.h"

namespace memsluice::provision {

// What the host says of its memory, not compared yet.

// Of the map that the firmware gave the kernel (e820), before any memmap=.
struct FirmwareRange {
  PhysicalRange range;
  std::string type;  // "System RAM", "Soft Reserved", ...
};

struct KernelNode {
  int id = 0;
  bool has_cpus = false;
  PhysicalRanges memory = {};  // its memory blocks, online or not
};

struct DaxDevice {
  std::string name;
  PhysicalRange range;
  std::optional<int> target_node = {};
};

struct EdacModule {
  std::string controller;  // "mc0"
  std::string label;
  std::string location;  // "channel 0 slot 1"
  uint64_t bytes = 0;
};

// A source that is there and cannot be used, or only with care.
struct SourceProblem {
  std::string source;
  std::string message;
};

struct Evidence {
  std::vector<FirmwareRange> firmware_map;
  std::vector<IomemEntry> iomem;  // empty for who may not see addresses
  std::optional<Srat> srat;
  std::optional<Hmat> hmat;
  std::optional<Cedt> cedt;
  std::optional<Smbios> smbios;
  std::vector<EdacModule> edac;
  bool adxl = false;  // the firmware can decode addresses, for the kernel alone
  std::vector<KernelNode> nodes;
  std::vector<int> possible_nodes;
  std::vector<DaxDevice> dax;
  std::vector<SourceProblem> problems;
  uint64_t block_bytes = kMemoryBlockBytesMin;
  uint64_t used_bytes = 0;  // MemTotal without MemAvailable
  std::string command_line;
  std::string kernel_release;
  std::optional<bool> table_upgrade;  // whether this kernel takes tables from the initrd
  std::optional<std::string> lockdown;

  PhysicalRanges firmware_ram() const;  // of the firmware; without its map, of the kernel
  HostMemory host_memory() const;
};

// A memmap= of the command line that takes memory away from the kernel.
struct Withheld {
  std::string argument;
  PhysicalRange range;
};
std::vector<Withheld> withheld_by(const std::string& command_line);

}  // namespace memsluice::provision
