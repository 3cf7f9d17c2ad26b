// SPDX-License-Identifier: GPL-2.0
// The file that the traffic plugin, the guest (as BAR 2 of an ivshmem-plain device) and host
// processes share. Everybody who maps it can write all of it, so nobody may take an offset or a
// count from it twice: readers copy the layout once and check it, the plugin keeps its own.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "tests/vm/traffic/channel_model.h"

namespace memsluice::traffic {

inline constexpr uint64_t kMagic = 0x434946464152544d;  // "MTRAFFIC"
inline constexpr uint32_t kVersion = 1;
// ivshmem takes powers of two, and QEMU must know the size before the plugin has been loaded.
inline constexpr uint64_t kFileBytes = 1 << 20;
inline constexpr uint32_t kNoChannel = UINT32_MAX;

static_assert(std::atomic<uint64_t>::is_always_lock_free, "the counters are shared by processes");

// Where things are. Written by the plugin when QEMU starts, constant from then on.
struct Layout {
  uint64_t magic;
  uint32_t version;
  uint32_t vcpus;  // slots 0 to vcpus - 1 belong to vCPUs, slot number vcpus to all other agents
  uint32_t blocks;
  uint32_t channels;
  uint64_t block_bytes;  // guest-physical address / block_bytes = block
  uint64_t line_bytes;
  uint64_t cache_bytes;
  uint64_t cache_ways;
  uint64_t start_ns;  // the host's CLOCK_MONOTONIC when the channels' clocks were zero

  // The areas, in the order of the file. The first three have fixed sizes per element.
  static constexpr uint64_t kControlOffset = 256;
  static constexpr uint64_t kSettingsOffset = 4096;

  bool valid(uint64_t file_bytes) const;
  uint64_t rates_offset() const;
  uint64_t queues_offset() const;
  uint64_t slots_offset() const;
  uint64_t slot_bytes() const;
  uint64_t used_bytes() const { return slots_offset() + (vcpus + uint64_t{1}) * slot_bytes(); }
};

// Whoever wants something writes what, adds one to `requested`, and waits until `applied` has
// reached the sum. The plugin applies it while all vCPUs stand still.
struct Control {
  std::atomic<uint64_t> requested;
  std::atomic<uint64_t> applied;
  std::atomic<uint64_t> resets_requested;  // each one zeroes all counters
  std::atomic<uint32_t> counting_requested;
  std::atomic<uint32_t> counting;
};

struct BlockSettings {
  std::atomic<uint32_t> latency_ns;  // added to each miss
  std::atomic<uint32_t> channel;     // or kNoChannel
};

// One channel's queue, alone in its cache line: the time at which it will be free (see
// channel_model.h).
struct alignas(64) ChannelClock {
  std::atomic<uint64_t> next_free_ps;
};

struct BlockCounters {
  std::atomic<uint64_t> read_bytes;
  std::atomic<uint64_t> write_bytes;
};

// The block counters of a slot follow it.
struct alignas(64) SlotCounters {
  std::atomic<uint64_t> accesses;        // to guest RAM, before the cache
  std::atomic<uint64_t> misses;          // of the cache
  std::atomic<uint64_t> io_accesses;     // to devices; not counted anywhere else
  std::atomic<uint64_t> other_accesses;  // to RAM beyond the last block, such as this file
  std::atomic<uint64_t> delay_ps;        // time the vCPU was held back
};

constexpr uint64_t round_up(uint64_t value, uint64_t step) {
  return (value + step - 1) / step * step;
}

inline uint64_t Layout::rates_offset() const {
  return round_up(kSettingsOffset + blocks * sizeof(BlockSettings), 64);
}
inline uint64_t Layout::queues_offset() const {
  return round_up(rates_offset() + channels * sizeof(std::atomic<uint64_t>), 64);
}
inline uint64_t Layout::slots_offset() const {
  return round_up(queues_offset() + channels * sizeof(ChannelClock), 4096);
}
// Slots of different vCPUs share no host page.
inline uint64_t Layout::slot_bytes() const {
  return round_up(sizeof(SlotCounters) + blocks * sizeof(BlockCounters), 4096);
}
// The counts are bounded first, so that the sums cannot wrap.
inline bool Layout::valid(uint64_t file_bytes) const {
  return magic == kMagic && version == kVersion && vcpus >= 1 && vcpus <= 1024 && blocks >= 1 &&
         blocks <= 1 << 20 && channels <= 1 << 10 && std::has_single_bit(block_bytes) &&
         std::has_single_bit(line_bytes) && line_bytes <= block_bytes && used_bytes() <= file_bytes;
}

static_assert(sizeof(Layout) <= Layout::kControlOffset);
static_assert(Layout::kControlOffset + sizeof(Control) <= Layout::kSettingsOffset);

// A mapped file, with a checked copy of its layout. Indexes are the caller's to keep in range.
class TrafficFile {
 public:
  static std::optional<TrafficFile> attach(std::span<std::byte> mapping) {
    Layout layout;
    if (mapping.size() < sizeof layout) return std::nullopt;
    std::memcpy(&layout, mapping.data(), sizeof layout);
    if (!layout.valid(mapping.size())) return std::nullopt;
    return TrafficFile(layout, mapping.data());
  }

  const Layout& layout() const { return layout_; }
  uint32_t other_agents_slot() const { return layout_.vcpus; }

  Control& control() const { return at<Control>(Layout::kControlOffset); }
  BlockSettings& settings(uint32_t block) const {
    return (&at<BlockSettings>(Layout::kSettingsOffset))[block];
  }
  std::atomic<uint64_t>& bytes_per_second(uint32_t channel) const {  // 0: no limit
    return (&at<std::atomic<uint64_t>>(layout_.rates_offset()))[channel];
  }
  std::atomic<uint64_t>& next_free_ps(uint32_t channel) const {
    return (&at<ChannelClock>(layout_.queues_offset()))[channel].next_free_ps;
  }
  SlotCounters& slot(uint32_t index) const { return at<SlotCounters>(slot_offset(index)); }
  BlockCounters& counters(uint32_t slot, uint32_t block) const {
    return (&at<BlockCounters>(slot_offset(slot) + sizeof(SlotCounters)))[block];
  }

 private:
  TrafficFile(const Layout& layout, std::byte* base) : layout_(layout), base_(base) {}

  uint64_t slot_offset(uint32_t index) const {
    return layout_.slots_offset() + index * layout_.slot_bytes();
  }
  template <typename T>
  T& at(uint64_t offset) const {
    return *reinterpret_cast<T*>(base_ + offset);
  }

  Layout layout_;
  std::byte* base_;
};

// Bytes per second, within what the model can bear; 0: no limit.
inline uint64_t channel_rate(const TrafficFile& file, uint32_t channel) {
  const uint64_t rate = file.bytes_per_second(channel).load(std::memory_order_relaxed);
  return rate == 0 ? 0 : std::max(rate, kMinBytesPerSecond);
}

// Charges what a device model or another process moves in guest memory while traffic is being
// counted. It passes no cache, takes its place in the channels' queues, and may be called by
// anybody at any time. Returns when the last byte has been moved, on the host's CLOCK_MONOTONIC,
// or 0 if nothing slows it down.
inline uint64_t charge_other_agent(const TrafficFile& file, uint64_t guest_physical, uint64_t bytes,
                                   bool is_write, uint64_t now_ns) {
  const Layout& layout = file.layout();
  if (file.control().counting.load(std::memory_order_relaxed) == 0) return 0;
  uint64_t done_ps = 0;
  while (bytes > 0 && guest_physical / layout.block_bytes < layout.blocks) {
    const uint32_t block = static_cast<uint32_t>(guest_physical / layout.block_bytes);
    const uint64_t part = std::min(bytes, layout.block_bytes - guest_physical % layout.block_bytes);
    BlockCounters& counters = file.counters(file.other_agents_slot(), block);
    (is_write ? counters.write_bytes : counters.read_bytes)
        .fetch_add(part, std::memory_order_relaxed);
    const uint32_t channel = file.settings(block).channel.load(std::memory_order_relaxed);
    const uint64_t rate = channel < layout.channels ? channel_rate(file, channel) : 0;
    if (rate != 0) {
      const uint64_t now_ps = (now_ns - layout.start_ns) * kPicosecondsPerNanosecond;
      done_ps = std::max(
          done_ps, occupy_channel(file.next_free_ps(channel), now_ps, service_time_ps(part, rate)));
    }
    guest_physical += part;
    bytes -= part;
  }
  return done_ps == 0 ? 0 : layout.start_ns + done_ps / kPicosecondsPerNanosecond;
}

}  // namespace memsluice::traffic
