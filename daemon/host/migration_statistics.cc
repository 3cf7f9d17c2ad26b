// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/migration_statistics.h"

#include <fcntl.h>

#include <array>
#include <sstream>

#include "daemon/host/files.h"

namespace memsluice {
namespace {

struct CountOfLine {
  std::string_view name;
  uint64_t MigrationStatistics::*count;
};
constexpr std::array kCounts = {
    CountOfLine{"batches", &MigrationStatistics::batches},
    CountOfLine{"copied_bytes", &MigrationStatistics::copied_bytes},
    CountOfLine{"unmap_ns", &MigrationStatistics::unmap_ns},
    CountOfLine{"copy_ns", &MigrationStatistics::copy_ns},
    CountOfLine{"map_ns", &MigrationStatistics::map_ns},
    CountOfLine{"fell_back_folios", &MigrationStatistics::fell_back_folios}};

}  // namespace

MigrationStatistics parse_migration_statistics(std::string_view text) {
  MigrationStatistics statistics;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    uint64_t number = 0;
    if (what == "moved") {
      MovedPages moved;
      uint64_t folios = 0;
      if (words >> moved.reason >> moved.to_tier >> moved.size >> folios >> moved.pages >>
          moved.bytes)
        statistics.moved.push_back(std::move(moved));
    } else if (what == "stall_us") {
      while (words >> number) statistics.stall_us.push_back(number);
    } else {
      for (const CountOfLine& known : kCounts)
        if (known.name == what && words >> number) statistics.*known.count = number;
    }
  }
  return statistics;
}

Result<MigrationStatistics> read_migration_statistics(const std::string& path) {
  auto text = read_file(AT_FDCWD, path);
  if (!text.ok()) return std::move(text).error();
  return parse_migration_statistics(*text);
}

}  // namespace memsluice
