// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/base/result.h"

namespace memsluice {

// "4096", "512M", "512MiB", "1.5G": bytes. The units are powers of 1024: K, M, G, T, P.
Result<uint64_t> parse_bytes(std::string_view text);

// "30%": a whole number from 0 to 100.
Result<uint32_t> parse_percent(std::string_view text);

// A whole number from low to high; nothing before or after it.
Result<uint64_t> parse_number(std::string_view text, uint64_t low, uint64_t high);

// For people: "0 B", "512 MiB", "1.5 GiB".
std::string format_bytes(uint64_t bytes);

// For parse_bytes: the shortest text that means exactly these bytes, "512M".
std::string format_bytes_exact(uint64_t bytes);

}  // namespace memsluice
