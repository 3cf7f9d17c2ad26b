// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <string>
#include <string_view>

#include "tools/memsluice/fields.h"

namespace memsluice {

// What the result of a method looks like to a person.
std::string render_result(std::string_view method, const Json& params, const Json& result,
                          uint64_t page_bytes);

// A request, and the lines of a census ("elsewhere") with what it has left on other nodes.
std::string render_moved(const Json& result, uint64_t page_bytes);

// "request 7: pid 4711 to node 0: done", then what became of the pages.
std::string render_request(const Json& request, uint64_t page_bytes);

// "[#####-----]  50%  256 MiB of 512 MiB, 3 s left", at most `columns` wide.
std::string progress_line(const Json& request, double elapsed_s, size_t columns,
                          uint64_t page_bytes);

// "ch2: 100 of 128 memory blocks left, 10 MiB moved", at most `columns` wide.
std::string channel_progress_line(const Json& channel, size_t columns, uint64_t page_bytes);

// Before a line of progress, in place of the one before.
inline constexpr const char* kClearLine = "\r\033[K";

}  // namespace memsluice
