// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/memsluice/doctor/facts.h"
#include "tools/memsluice/doctor/findings.h"

namespace memsluice::doctor {

// The parts of judge(), each adds its findings.
using Findings = std::vector<Finding>;
void judge_software(const Facts& facts, std::string_view version, Findings* findings);
void judge_memory(const Facts& facts, Findings* findings);
void judge_devices(const Facts& facts, Findings* findings);

std::string joined(const std::vector<std::string>& words);
// "always [madvise] never": madvise
std::string chosen(const std::string& choices);

}  // namespace memsluice::doctor
