// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/vm/module/machine.h"
#include "tests/vm/module/world.h"

// On the machine "channels": node 0 has the CPUs, nodes 1 to 3 are channels.
namespace memsluice::test {

using ChannelList = std::vector<memsluice_channel>;
using Counts = std::map<int, size_t>;

constexpr size_t kGranulePages = kHugeBytes / kPageBytes;
const ChannelList kThreeTwoOne = {{1, 3}, {2, 2}, {3, 1}};

inline memsluice_placement placement(const Cgroup& cgroup, const ChannelList& channels,
                                     uint32_t granule_order = MEMSLUICE_GRANULE_ORDER_DEFAULT) {
  auto placement = sized<memsluice_placement>();
  placement.cgroup_id = cgroup.id();
  placement.count = static_cast<uint32_t>(channels.size());
  placement.granule_order = granule_order;
  std::copy(channels.begin(), channels.end(), placement.channels);
  return placement;
}

inline int set(memsluice_placement placement) {
  return device_ioctl(MEMSLUICE_IOC_PLACEMENT_SET, &placement);
}

inline memsluice_placement get(const Cgroup& cgroup, int* result) {
  auto placement = sized<memsluice_placement>();
  placement.cgroup_id = cgroup.id();
  *result = device_ioctl(MEMSLUICE_IOC_PLACEMENT_GET, &placement);
  return placement;
}

inline Counts counts(const char* data, size_t bytes) {
  Counts counted;
  for (int node : nodes_of(data, bytes)) counted[node]++;
  return counted;
}

inline void expect_by_weight(Counts counted, size_t slack_pages,
                             const ChannelList& channels = kThreeTwoOne) {
  size_t pages = 0, weights = 0;
  for (const auto& channel : channels) weights += channel.weight;
  for (const auto& [node, count] : counted) pages += count;
  std::string all;
  for (const auto& [node, count] : counted)
    all += " node " + std::to_string(node) + ": " + std::to_string(count);
  for (const auto& channel : channels) {
    const double due = static_cast<double>(pages * channel.weight) / static_cast<double>(weights);
    const auto count = static_cast<double>(counted[static_cast<int>(channel.node)]);
    EXPECT_LE(std::abs(count - due), static_cast<double>(slack_pages)) << all;
    counted.erase(static_cast<int>(channel.node));
  }
  EXPECT_TRUE(counted.empty()) << all;
}

// Anonymous memory that nobody has set a policy for, aligned as huge pages are.
class Plain {
 public:
  explicit Plain(size_t bytes, int advice = MADV_NOHUGEPAGE)
      : mapping_(bytes + kHugeBytes, MAP_PRIVATE | MAP_ANONYMOUS), bytes_(bytes) {
    const auto at = reinterpret_cast<uintptr_t>(mapping_.data());
    data_ = mapping_.data() + (kHugeBytes - at % kHugeBytes) % kHugeBytes;
    EXPECT_EQ(madvise(data_, bytes, advice), 0);
  }
  void touch() {
    for (size_t at = 0; at < bytes_; at += kPageBytes) data_[at] = 1;
  }
  [[nodiscard]] Counts where() const { return counts(data_, bytes_); }
  [[nodiscard]] char* data() const { return data_; }
  [[nodiscard]] size_t bytes() const { return bytes_; }

 private:
  Mapping mapping_;
  char* data_;
  size_t bytes_;
};

inline Counts new_pages(size_t bytes = 24 * kMib, int advice = MADV_NOHUGEPAGE) {
  Plain plain(bytes, advice);
  plain.touch();
  return plain.where();
}

// With a tenant that is not placed yet.
class PlacedTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(set_tenant(cgroup_, policy_off()), 0); }

  // In a process of the tenant; what fails there fails here.
  static void inside(const Cgroup& cgroup, const std::function<void()>& body) {
    EXPECT_EQ(in_child([&] {
                cgroup.enter(getpid());
                body();
                return testing::Test::HasFailure() ? 1 : 0;
              }),
              0);
  }
  void inside(const std::function<void()>& body) { inside(cgroup_, body); }

  Cgroup cgroup_{"placed"};
};

}  // namespace memsluice::test
