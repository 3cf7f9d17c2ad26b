// SPDX-License-Identifier: GPL-2.0
#include <cstdlib>

#include "daemon/lending/nic/emulated/checks.h"

namespace memsluice::nic {

bool is_checked(Check check) {
  static const std::string_view without = [] {
    const char* name = std::getenv("MEMSLUICE_NIC_WITHOUT");
    return std::string_view(name ? name : "");
  }();
  return kCheckNames[static_cast<size_t>(check)] != without;
}

}  // namespace memsluice::nic
