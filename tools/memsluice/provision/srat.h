// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "daemon/host/physical_memory.h"
#include "tools/memsluice/provision/acpi_table.h"

namespace memsluice::provision {

// System Resource Affinity Table (ACPI 6.5, 5.2.16): which memory and which CPUs are near each
// other. Linux makes a node of each proximity domain.
struct SratMemory {
  uint32_t domain = 0;
  PhysicalRange range;
  bool hot_pluggable = false;
};

struct Srat {
  AcpiTable table;
  std::vector<SratMemory> memory;               // enabled, not empty
  std::map<uint32_t, unsigned> cpus;            // how many each domain has
  std::map<uint32_t, unsigned> initiators;      // generic ones: devices
  std::vector<uint32_t> domains_in_node_order;  // as Linux meets them: the first becomes node 0

  std::optional<int> node_of(uint32_t domain) const;
};

Result<Srat> parse_srat(std::string_view bytes);

// The domain of its own that a piece of memory gets.
struct SratChange {
  uint32_t domain = 0;
  PhysicalRanges ranges;
};

// The lowest domains that nothing has, so many.
std::vector<uint32_t> free_domains(const Srat& srat, size_t count);

// The same table but for the changes, made to replace it. Entries of memory that changes are cut:
// what overlaps in two domains would cost the host all its nodes. New entries come last, so that
// nodes that are there keep their ids.
Result<Srat> changed(const Srat& srat, const std::vector<SratChange>& changes);

}  // namespace memsluice::provision
