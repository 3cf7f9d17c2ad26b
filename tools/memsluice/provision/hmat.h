// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "daemon/host/channels_file.h"
#include "tools/memsluice/provision/acpi_table.h"

namespace memsluice::provision {

// Heterogeneous Memory Attribute Table (ACPI 6.5, 5.2.27): how fast memory is, seen from a domain.
struct HmatSpeeds {
  uint32_t initiator = 0;
  uint32_t target = 0;
  ChannelSpeeds speeds;
};

struct Hmat {
  AcpiTable table;
  std::vector<HmatSpeeds> speeds;  // one for each pair that has any

  // Seen from where it is nearest. Nothing if the table does not know the domain.
  ChannelSpeeds nearest(uint32_t target) const;
};

Result<Hmat> parse_hmat(std::string_view bytes);

}  // namespace memsluice::provision
