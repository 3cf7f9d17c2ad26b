// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace memsluice {

// The line of the first byte beyond ASCII that stands neither in a one-line string nor in a
// comment. toml++ 3.3 runs into code it takes for unreachable when it asks whether such a letter is
// a space, which it does anywhere else. TOML has a place for one in multi-line strings too; no
// setting has.
std::optional<uint32_t> line_of_stray_letter(std::string_view toml);

}  // namespace memsluice
