// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/base/json.h"
#include "tools/memsluice/provision/plan.h"
#include "tools/memsluice/provision/propose.h"
#include "tools/memsluice/provision/survey.h"

namespace memsluice::provision {

// All that a run of the command has to say.
struct Report {
  Survey survey;
  Proposals proposals;
  std::optional<Plan> plan = {};          // none: nothing was wished
  std::vector<std::string> written = {};  // paths
};

Json to_json(const Report& report);
std::string to_text(const Report& report);

}  // namespace memsluice::provision
