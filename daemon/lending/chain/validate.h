// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/lending/chain/program.h"

namespace memsluice::chain {

// What is wrong with it, in words; nothing: @nic can take @instances of it.
std::vector<std::string> problems(const Program& program, const nic::Nic& nic, uint32_t instances);

// Whether a step has certainly completed before another is issued, whatever the NIC does first.
bool completes_before(const Program& program, const std::string& step, const std::string& other);

}  // namespace memsluice::chain
