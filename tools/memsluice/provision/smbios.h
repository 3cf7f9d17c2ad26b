// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/host/physical_memory.h"

namespace memsluice::provision {

// What SMBIOS (DSP0134 3.7) says of memory: 7.17 arrays of modules, 7.18 modules, 7.20 and 7.21
// where they are mapped.
struct SmbiosArray {  // type 16
  uint16_t handle = 0;
  bool is_system_memory = false;
  uint64_t capacity_bytes = 0;
  uint16_t slots = 0;
};

struct SmbiosModule {  // type 17
  uint16_t handle = 0;
  uint16_t array = 0;
  std::optional<uint64_t> bytes;  // none: a slot that is empty, or whose module is not known
  std::string locator;            // "DIMM_A1"
  std::string bank;
  uint32_t speed_mt_per_s = 0;
};

struct SmbiosArrayMapping {  // type 19
  PhysicalRange range;
  uint16_t array = 0;
  uint8_t modules_per_row = 0;
};

struct SmbiosModuleMapping {  // type 20
  PhysicalRange range;
  uint16_t module = 0;
  uint8_t interleave_position = 0;  // 0: not interleaved; 255: not known
  uint8_t interleave_depth = 0;
};

struct Smbios {
  std::vector<SmbiosArray> arrays;
  std::vector<SmbiosModule> modules;
  std::vector<SmbiosArrayMapping> array_mappings;
  std::vector<SmbiosModuleMapping> module_mappings;

  const SmbiosModule* module(uint16_t handle) const;
  uint64_t module_bytes() const;  // of all modules of system memory
};

// The structures, as in /sys/firmware/dmi/tables/DMI. Fails at the first that is cut off.
Result<Smbios> parse_smbios(std::string_view bytes);

}  // namespace memsluice::provision
