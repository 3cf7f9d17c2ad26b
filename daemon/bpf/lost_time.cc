// SPDX-License-Identifier: GPL-2.0
#include "daemon/bpf/lost_time.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <string>
#include <vector>

#include "lost_time.skel.h"

namespace memsluice {
namespace {

constexpr const char* kBtf = "/sys/kernel/btf/vmlinux";

// The last thing that libbpf has complained about: its errno alone says little. Of this thread.
thread_local std::string last_complaint;

int keep_complaint(libbpf_print_level level, const char* format, va_list arguments) {
  if (level != LIBBPF_WARN) return 0;
  char text[512];
  const int length = std::vsnprintf(text, sizeof text, format, arguments);
  if (length > 0) last_complaint.assign(text, std::min<size_t>(length, sizeof text - 1));
  while (!last_complaint.empty() && last_complaint.back() == '\n') last_complaint.pop_back();
  return 0;
}

Error load_error(int os_error, std::string_view call) {
  Error error = errno_error(os_error, call, "BPF programs");
  if (!last_complaint.empty()) error.message += fmt::format(" ({})", last_complaint);
  if (::access(kBtf, R_OK) != 0) {
    error.code = ErrorCode::kUnavailable;
    error.hint = fmt::format("they need {}: a kernel with CONFIG_DEBUG_INFO_BTF", kBtf);
  } else if (error.code == ErrorCode::kDenied) {
    error.hint =
        "they need CAP_SYS_ADMIN, or CAP_BPF and CAP_PERFMON, and bpf() in the seccomp filter";
  }
  return error;
}

struct DestroySkeleton {
  void operator()(lost_time_bpf* skeleton) const { lost_time_bpf__destroy(skeleton); }
};

class BpfLostTimeCounters : public LostTimeCounters {
 public:
  static Result<std::unique_ptr<LostTimeCounters>> load() {
    libbpf_set_print(keep_complaint);
    last_complaint.clear();
    const int cpus = libbpf_num_possible_cpus();
    if (cpus < 0) return load_error(-cpus, "libbpf_num_possible_cpus");
    std::unique_ptr<lost_time_bpf, DestroySkeleton> skeleton(lost_time_bpf__open());
    if (skeleton == nullptr) return load_error(errno, "open");
    if (const int failed = lost_time_bpf__load(skeleton.get()); failed != 0)
      return load_error(-failed, "load");
    if (const int failed = lost_time_bpf__attach(skeleton.get()); failed != 0)
      return load_error(-failed, "attach");
    return std::unique_ptr<LostTimeCounters>(
        new BpfLostTimeCounters(std::move(skeleton), static_cast<size_t>(cpus)));
  }

  Result<void> set_tenants(const std::set<uint64_t>& tenants) override {
    for (const uint64_t tenant : tenants_)
      if (!tenants.contains(tenant)) bpf_map_delete_elem(map_, &tenant);
    std::erase_if(tenants_, [&](uint64_t tenant) { return !tenants.contains(tenant); });
    for (const uint64_t tenant : tenants) {
      if (tenants_.contains(tenant)) continue;
      const std::vector<lost_time> nothing(cpus_);
      if (bpf_map_update_elem(map_, &tenant, nothing.data(), BPF_NOEXIST) != 0)
        return errno_error(errno, "bpf_map_update_elem", fmt::format("tenant {}", tenant));
      tenants_.insert(tenant);
    }
    return {};
  }

  Result<lost_time> of(uint64_t tenant) override {
    std::vector<lost_time> of_cpus(cpus_);
    if (bpf_map_lookup_elem(map_, &tenant, of_cpus.data()) != 0)
      return errno_error(errno, "bpf_map_lookup_elem", fmt::format("tenant {}", tenant));
    lost_time sum = {};
    for (const lost_time& of_cpu : of_cpus) {
      for (int cause = 0; cause < LOST_TIME_CAUSES; cause++) {
        sum.causes[cause].total_ns += of_cpu.causes[cause].total_ns;
        for (int bin = 0; bin < LOST_TIME_BINS; bin++)
          sum.causes[cause].count[bin] += of_cpu.causes[cause].count[bin];
      }
    }
    return sum;
  }

 private:
  BpfLostTimeCounters(std::unique_ptr<lost_time_bpf, DestroySkeleton> skeleton, size_t cpus)
      : skeleton_(std::move(skeleton)), map_(bpf_map__fd(skeleton_->maps.tenants)), cpus_(cpus) {}

  std::unique_ptr<lost_time_bpf, DestroySkeleton> skeleton_;
  const int map_;
  const size_t cpus_;
  std::set<uint64_t> tenants_;
};

}  // namespace

Result<std::unique_ptr<LostTimeCounters>> load_lost_time_counters() {
  return BpfLostTimeCounters::load();
}

}  // namespace memsluice
