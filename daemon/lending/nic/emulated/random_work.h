// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "daemon/lending/nic/nic.h"

namespace memsluice::nic {

// Somebody who posts anything, right or wrong, and who must not get at what lies around the memory
// that it registered. For tests; of a thread of its own, if there are several.
class RandomWork {
 public:
  // @draw gives numbers; the same ones give the same work. @edits: requests may write into send
  // queues, also where this is just posting, as nobody should while the NIC has a thread.
  RandomWork(Nic& nic, std::function<uint64_t()> draw, bool edits)
      : nic_(nic), draw_(std::move(draw)), edits_(edits) {
    for (ProtectionDomain& domain : domains_) domain = *nic.create_protection_domain();
    memory_.fill(kUntouched);
    for (CompletionQueue& queue : completions_)
      queue = *nic.create_completion_queue({.entries = 64});
    counter_ = *nic.create_completion_queue({.entries = 64, .ignores_overrun = true});
    for (int i = 0; i < 6; i++) add_queue_pair(i % 3 == 2);
    for (int i = 0; i < 4; i++) add_region();
    for (int i = 0; i < 6; i++)
      keys_.push_back(
          *nic.create_window(domains_[i % 2], i ? WindowType::kType2 : WindowType::kType1));
  }

  void act() {
    switch (pick(16)) {
      case 0:
        connect();
        break;
      case 1:
        (void)nic_.fail(queue_pair());
        break;
      case 2:
        (void)nic_.reset(queue_pair());
        break;
      case 3:
        (void)nic_.revoke_window(key());
        break;
      case 4:
        receive();
        break;
      case 5:
        poll();
        break;
      case 6:
        (void)nic_.next_event();
        break;
      default:
        send();
        break;
    }
    for (uint64_t turns = pick(8); turns > 0; turns--) nic_.progress();
  }

  // After all NIC threads have come to rest.
  bool untouched() const {
    const auto same = [](std::byte value) { return value == kUntouched; };
    return std::all_of(memory_.begin(), memory_.begin() + kInside, same) &&
           std::all_of(memory_.end() - kInside, memory_.end(), same);
  }

 private:
  static constexpr std::byte kUntouched{0xA5};
  static constexpr uint64_t kInside = 4096, kRegions = 8192;

  uint64_t pick(uint64_t below) { return draw_() % below; }
  template <typename T>
  const T& one_of(const std::vector<T>& from) {
    return from[pick(from.size())];
  }

  void add_queue_pair(bool managed) {
    QueuePairOptions options = {.send_completions = pick(4) ? completions_[pick(2)] : counter_,
                                .receive_completions = completions_[pick(2)],
                                .send_blocks = 32,
                                .receives = 8,
                                .max_scatter_entries = 6,
                                .managed_send = managed,
                                .managed_receive = managed};
    queue_pairs_.push_back(*nic_.create_queue_pair(domains_[pick(2)], options));
    if (!edits_) return;
    keys_.push_back(nic_.send_queue_memory(queue_pairs_.back())->key);
    queue_memory_.push_back(nic_.send_queue_memory(queue_pairs_.back())->address);
  }
  void add_region() {
    const std::span inside = std::span(memory_).subspan(kInside, kRegions);
    const auto begin = pick(kRegions / 2);
    Rights rights = static_cast<Rights>(pick(32));
    if (rights & (kRemoteWrite | kRemoteAtomic)) rights |= kLocalWrite;
    keys_.push_back(*nic_.register_memory(domains_[pick(2)],
                                          inside.subspan(begin, 1 + pick(kRegions / 2)), rights));
  }

  // Mostly what exists.
  QueuePair queue_pair() {
    return pick(16) ? one_of(queue_pairs_) : static_cast<QueuePair>(draw_());
  }
  Key key() {
    const uint64_t how = pick(8);
    if (how == 0) return static_cast<Key>(draw_());
    const Key known = one_of(keys_);
    return how < 3 ? (known & ~kTagMask) | static_cast<Key>(pick(256)) : known;
  }
  uint64_t address() {
    const uint64_t how = pick(16);
    if (how == 0) return draw_();
    if (how == 1 && edits_) return one_of(queue_memory_) + pick(32 * 64);
    const auto begin = reinterpret_cast<uint64_t>(memory_.data());
    return (begin + pick(memory_.size())) & (pick(2) ? ~uint64_t{7} : ~uint64_t{0});
  }
  uint32_t length() { return static_cast<uint32_t>(pick(16) ? pick(300) : draw_()); }

  std::span<const ScatterEntry> entries() {
    entries_.clear();
    for (uint64_t count = pick(8); count > 0; count--)
      entries_.push_back({address(), length(), key()});
    return entries_;
  }

  void connect() {
    const QueuePair first = queue_pair(), second = pick(3) ? queue_pair() : first;
    const ConnectionOptions options = {.max_reads_under_way = static_cast<uint8_t>(pick(20)),
                                       .max_peer_reads_under_way = static_cast<uint8_t>(pick(20)),
                                       .receiver_not_ready_retries = static_cast<uint8_t>(pick(9))};
    (void)nic_.connect(first, second, options);
    (void)nic_.connect(second, first, options);
  }

  void send() {
    const WorkRequest request = {
        .id = draw_(),
        .opcode = pick(32) ? kOpcodes[pick(kOpcodes.size())] : static_cast<Opcode>(draw_()),
        .signaled = pick(2) == 0,
        .fence = pick(8) == 0,
        .entries = entries(),
        .remote_address = address(),
        .remote_key = key(),
        .operand = draw_(),
        .swap = draw_(),
        .completion_queue = pick(8) ? counter_ : static_cast<CompletionQueue>(draw_()),
        .target = queue_pair(),
        .index = static_cast<uint32_t>(pick(64)),
        .key = key(),
        .new_tag = static_cast<uint8_t>(draw_()),
        .region_key = key(),
        .address = address(),
        .length = length(),
        .rights = static_cast<Rights>(pick(64)),
        .any_queue_pair = pick(4) == 0};
    nic_.post_send(queue_pair_of_mine(), {&request, 1});
  }
  void receive() {
    const ReceiveRequest request = {.id = draw_(), .entries = entries()};
    nic_.post_receive(queue_pair_of_mine(), {&request, 1});
  }
  QueuePair queue_pair_of_mine() { return one_of(queue_pairs_); }
  void poll() {
    std::array<Completion, 16> some;
    nic_.poll(completions_[pick(2)], some);
    nic_.poll(counter_, some);
  }

  Nic& nic_;
  std::function<uint64_t()> draw_;
  bool edits_;
  std::array<ProtectionDomain, 2> domains_ = {};
  std::array<CompletionQueue, 2> completions_ = {};
  CompletionQueue counter_ = {};
  std::vector<QueuePair> queue_pairs_;
  std::vector<uint64_t> queue_memory_;
  std::vector<Key> keys_;
  std::vector<ScatterEntry> entries_;
  alignas(64) std::array<std::byte, kInside + kRegions + kInside> memory_ = {};
};

}  // namespace memsluice::nic
