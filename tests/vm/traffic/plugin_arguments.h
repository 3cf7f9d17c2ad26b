// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/base/units.h"
#include "tests/vm/traffic/cache.h"

namespace memsluice::traffic {

// -plugin file=memsluice-traffic.so,counters=PATH,cache-bytes=4M,...
struct PluginArguments {
  std::string counters;  // the shared file
  uint64_t block_bytes = 128 << 20;
  uint64_t blocks = 512;
  uint64_t channels = 16;
  CacheGeometry cache;
};

inline Error bad_argument(std::string_view key, std::string message) {
  return {ErrorCode::kBadRequest, std::string(key), std::move(message), {}, 0, {}};
}

inline Result<void> check(const PluginArguments& arguments) {
  if (arguments.counters.empty()) return bad_argument("counters", "missing: the file to count in");
  if (!arguments.cache.valid()) {
    return bad_argument("cache-bytes",
                        "cache-bytes / (cache-ways * line-bytes) and line-bytes must be powers of "
                        "two, and cache-ways at most 64");
  }
  if (!std::has_single_bit(arguments.block_bytes) || arguments.block_bytes < 4096) {
    return bad_argument("block-bytes", "must be a power of two and at least 4096");
  }
  return {};
}

inline Result<PluginArguments> parse_arguments(int argc, char** argv) {
  PluginArguments arguments;
  const std::pair<std::string_view, uint64_t*> sizes[] = {
      {"block-bytes", &arguments.block_bytes}, {"blocks", &arguments.blocks},
      {"channels", &arguments.channels},       {"cache-bytes", &arguments.cache.bytes},
      {"cache-ways", &arguments.cache.ways},   {"line-bytes", &arguments.cache.line_bytes}};
  for (const std::string_view argument : std::span(argv, static_cast<size_t>(argc))) {
    const size_t equals = std::min(argument.find('='), argument.size());
    const std::string_view key = argument.substr(0, equals);
    const std::string_view value = argument.substr(std::min(equals + 1, argument.size()));
    if (key == "counters") {
      arguments.counters = value;
      continue;
    }
    const auto* size = std::find_if(std::begin(sizes), std::end(sizes),
                                    [&](const auto& known) { return known.first == key; });
    if (size == std::end(sizes)) return bad_argument(key, "unknown argument");
    auto parsed = parse_bytes(value);
    if (!parsed.ok()) return std::move(parsed).with_context(std::string(key)).error();
    *size->second = *parsed;
  }
  if (auto checked = check(arguments); !checked.ok()) return checked.error();
  return arguments;
}

}  // namespace memsluice::traffic
