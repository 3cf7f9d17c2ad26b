// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace memsluice {

// The line of the first byte beyond ASCII that stands neither in a string nor in a comment. TOML
// has no place for one there, and toml++ 3.3 runs into code it takes for unreachable when it meets
// one.
std::optional<uint32_t> line_of_stray_letter(std::string_view toml);

}  // namespace memsluice
