// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "daemon/host/physical_memory.h"
#include "tools/memsluice/provision/acpi_table.h"

namespace memsluice::provision {

// CXL Early Discovery Table (CXL 3.1, 9.18.1): the windows of address space that CXL memory can be
// seen in. Linux keeps a node for each that the SRAT does not know.
struct CxlWindow {
  PhysicalRange range;
  unsigned ways = 0;  // host bridges that it is interleaved over; 0: not known
  bool is_volatile = false;
  std::vector<uint32_t> bridges;
};

struct Cedt {
  AcpiTable table;
  std::vector<CxlWindow> windows;
};

Result<Cedt> parse_cedt(std::string_view bytes);

}  // namespace memsluice::provision
