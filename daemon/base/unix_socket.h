// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <sys/stat.h>

#include <string>

#include "daemon/base/fd.h"
#include "daemon/base/result.h"

namespace memsluice {

// A socket that is listening, in place of one that nobody listens on any more. It does not block.
Result<Fd> listen_at(const std::string& path, mode_t mode);

// A blocking connection to who listens there.
Result<Fd> connect_to(const std::string& path);

}  // namespace memsluice
