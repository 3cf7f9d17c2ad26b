// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/fd.h"
#include "daemon/base/result.h"

namespace memsluice {

// `directory` is AT_FDCWD or an open directory that relative paths start from.
Result<std::string> read_file(int directory, const std::string& path);
// In one write(), as the files of sysfs want it.
Result<void> write_file(int directory, const std::string& path, std::string_view content);

// Whoever opens the path finds either what was there before or all of the content. What is next to
// it and called like it with ".new" behind is taken away.
Result<void> replace_file(const std::string& path, std::string_view content, mode_t mode);

Result<Fd> open_directory(int directory, const std::string& path);
// Names, sorted, without "." and "..".
Result<std::vector<std::string>> list_directory(const Fd& directory);

std::string_view trimmed(std::string_view text);

// The kernel's lists of numbers: "0-2,5" is {0, 1, 2, 5}. What does not parse is left out.
std::vector<int> parse_id_list(std::string_view text);

// The number that follows `key` in text, as in "anon N0=4096"; 0 if there is none.
uint64_t number_after(std::string_view text, std::string_view key);

}  // namespace memsluice
