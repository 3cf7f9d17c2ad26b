// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/memsluice/provision/evidence.h"

namespace memsluice::provision {

// What a source says of a range.
struct Claim {
  std::string source;
  std::string says;

  bool operator==(const Claim&) const = default;
};

// Memory of which every source says the same from its begin to its end.
struct SurveyedRange {
  PhysicalRange range;
  std::vector<Claim> claims = {};
  std::vector<std::string> conflicts = {};
};

struct Survey {
  std::vector<SurveyedRange> ranges;   // by address
  std::vector<Claim> host;             // what is said of no range
  std::vector<std::string> conflicts;  // between sources, of no range
};

// Puts the evidence together, and names where sources contradict each other. Pure.
Survey survey(const Evidence& evidence);

}  // namespace memsluice::provision
