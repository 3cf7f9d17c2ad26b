// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/result.h"

namespace memsluice {

struct MovedPages {
  std::string reason;   // request, promotion, demotion
  std::string to_tier;  // fast, slow
  std::string size;     // base, large, huge
  uint64_t pages = 0;
  uint64_t bytes = 0;

  bool operator==(const MovedPages&) const = default;
};

// What the module has moved since it was loaded, from /proc/memsluice/migration.
struct MigrationStatistics {
  std::vector<MovedPages> moved = {};
  uint64_t batches = 0;
  uint64_t copied_bytes = 0;
  uint64_t unmap_ns = 0;
  uint64_t copy_ns = 0;
  uint64_t map_ns = 0;
  uint64_t fell_back_folios = 0;
  // Batches that were unmapped for less than 1 us, 2 us, 4 us, and so on; the last: for longer.
  std::vector<uint64_t> stall_us = {};
};

// Lines that are not known, or not as they are known, are left out.
MigrationStatistics parse_migration_statistics(std::string_view text);
Result<MigrationStatistics> read_migration_statistics(const std::string& path);

}  // namespace memsluice
