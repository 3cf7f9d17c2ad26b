// SPDX-License-Identifier: GPL-2.0
#pragma once

#include "tools/memsluice/fields.h"

namespace memsluice {

// What `top` shows, and what it prints with --json: the nodes and tenants of a `status` reply;
// each tenant also has promoted_pages_per_s, demoted_pages_per_s and refused_pages_per_s, null
// where the earlier reply does not have this tenant or its counters began again.
Json top_sample(const Json& status, const Json& earlier_status, double interval_s);

}  // namespace memsluice
