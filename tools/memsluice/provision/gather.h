// SPDX-License-Identifier: GPL-2.0
#pragma once

#include "tools/memsluice/doctor/host_files.h"
#include "tools/memsluice/provision/evidence.h"

namespace memsluice::provision {

// Reads all that the host says of its memory. What is not there is left out; what is there and
// cannot be used is among the problems.
Evidence gather_evidence(const doctor::HostFiles& host);

}  // namespace memsluice::provision
