// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace memsluice::nic {

// What the emulated NIC refuses. In a build with MEMSLUICE_NIC_MUTATIONS each can be switched off,
// to see that a test notices (mutation/mutation_test.cc).
#define MEMSLUICE_NIC_CHECKS(X) \
  X(key_tag)                    \
  X(region_domain)              \
  X(region_bounds)              \
  X(region_rights)              \
  X(window_bound)               \
  X(window_queue_pair)          \
  X(window_domain)              \
  X(window_bounds)              \
  X(window_rights)              \
  X(queue_pair_rights)          \
  X(local_bounds)               \
  X(local_domain)               \
  X(local_write)                \
  X(local_is_region)            \
  X(bind_free)                  \
  X(bind_key)                   \
  X(bind_domain)                \
  X(bind_region_domain)         \
  X(bind_region_key)            \
  X(bind_allowed)               \
  X(bind_writable)              \
  X(bind_rights)                \
  X(bind_range)                 \
  X(bind_length)                \
  X(bind_type1_based)           \
  X(bind_same_address)          \
  X(bind_target)                \
  X(invalidate_key)             \
  X(invalidate_type)            \
  X(invalidate_bound)           \
  X(invalidate_domain)          \
  X(invalidate_queue_pair)      \
  X(atomic_alignment)           \
  X(atomic_length)              \
  X(receive_length)             \
  X(receive_enabled)            \
  X(request_index)              \
  X(request_posted)             \
  X(request_shape)              \
  X(request_wrap)               \
  X(request_opcode)             \
  X(enable_managed)             \
  X(enable_domain)              \
  X(completion_overrun)         \
  X(reads_served)               \
  X(reads_issued)               \
  X(fence)                      \
  X(prefetch)                   \
  X(region_in_use)              \
  X(queue_pair_in_use)          \
  X(domain_in_use)              \
  X(completions_in_use)

enum class Check : uint8_t {
#define MEMSLUICE_NIC_CHECK(name) name,
  MEMSLUICE_NIC_CHECKS(MEMSLUICE_NIC_CHECK)
#undef MEMSLUICE_NIC_CHECK
};

inline constexpr std::array kCheckNames = {
#define MEMSLUICE_NIC_CHECK(name) std::string_view(#name),
    MEMSLUICE_NIC_CHECKS(MEMSLUICE_NIC_CHECK)
#undef MEMSLUICE_NIC_CHECK
};

#ifdef MEMSLUICE_NIC_MUTATIONS
// By MEMSLUICE_NIC_WITHOUT in the environment, a name of kCheckNames.
bool is_checked(Check check);
#else
constexpr bool is_checked(Check) {
  return true;
}
#endif

// Whether @check is made and finds that it does not hold.
inline bool fails(Check check, bool holds) {
  return !holds && is_checked(check);
}

}  // namespace memsluice::nic
