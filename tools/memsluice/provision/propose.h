// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/memsluice/provision/evidence.h"

namespace memsluice::provision {

// Memory that may be one channel.
struct Proposal {
  PhysicalRanges ranges;
  std::string source;  // what says so
};

struct Proposals {
  std::vector<Proposal> channels;  // by address
  // They follow from an assumption that nothing on this host states; only counters can prove it.
  bool assumed = false;
  std::vector<std::string> unusable;  // each source that gives none, and why
};

// Asks the sources in order of how exact they are, until one divides the RAM into channels: SMBIOS
// 20 (each module's place), SRAT (domains without CPUs), and last the sizes of the modules, laid
// end to end as they are listed. Pure.
Proposals propose_channels(const Evidence& evidence);

}  // namespace memsluice::provision
