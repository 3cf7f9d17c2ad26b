// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/json.h"
#include "tools/memsluice/doctor/facts.h"

namespace memsluice::doctor {

enum class Level { kOk, kNote, kWarning, kError };

std::string_view level_name(Level level);

struct Finding {
  std::string id;
  Level level = Level::kOk;
  std::string object;
  std::string found;
  std::string advice;  // empty when nothing is to be done
};

// Judges the facts; nothing else is looked at. `version` is that of this command.
std::vector<Finding> judge(const Facts& facts, std::string_view version);

bool any_error(const std::vector<Finding>& findings);
Json to_json(const std::vector<Finding>& findings);
std::string to_text(const std::vector<Finding>& findings);

}  // namespace memsluice::doctor
