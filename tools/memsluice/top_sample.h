// SPDX-License-Identifier: GPL-2.0
#pragma once

#include "tools/memsluice/fields.h"

namespace memsluice {

// What `top` shows, and what it prints with --json: the nodes and tenants of a `status` reply;
// each tenant also has promoted_pages_per_s, demoted_pages_per_s and refused_pages_per_s, null
// where the earlier reply does not have this tenant or its counters began again. With what
// `counters` replied each node also has read_bytes_per_s and write_bytes_per_s, null unless all of
// its channels were counted, and "channels" lists every channel with its own; rates are means over
// the samples of the reply. Without counters "channels" is empty.
// A tenant whose lost time is counted has lost_ns_per_s, by cause.
Json top_sample(const Json& status, const Json& earlier_status, double interval_s,
                const Json& counters = nullptr);

}  // namespace memsluice
