// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <string>
#include <string_view>

namespace memsluice::provision {

// An uncompressed archive (newc) with one file in it, and the folders on the way to it: what Linux
// looks for ACPI tables in, at the front of the initrd. `path` has no slash in front.
std::string cpio_archive(std::string_view path, std::string_view content);

}  // namespace memsluice::provision
