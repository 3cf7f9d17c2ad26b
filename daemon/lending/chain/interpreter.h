// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/lending/chain/loader.h"

namespace memsluice::chain {

// What a chain means, step by step, without a NIC: the reference that NICs are compared with, and
// small enough to be copied at each step by whoever looks at all orders. Keys are checked as far as
// chains rely on it: a window is bound when it is free, by the key that it has, and freed by the
// queue that it serves.
class Interpreter {
 public:
  enum class Effect : uint8_t { kNothing, kLocal, kMemory, kBind, kUnbind, kReply, kRefused };
  struct Step {
    Effect effect = Effect::kNothing;
    uint32_t key = 0;    // BIND, LOCAL_INVALIDATE
    uint32_t queue = 0;  // BIND: whom the window serves; kRefused: which queue is in error now
    std::vector<std::byte> message = {};  // kReply
  };
  struct Window {
    uint8_t tag = 0;
    bool bound = false;
    uint32_t queue = 0;
    auto operator<=>(const Window&) const = default;
  };

  // Memory has the addresses from @base on.
  Interpreter(uint64_t base, size_t bytes) : base_(base), memory_(bytes) {}

  // As Loader: posts instances. Queue numbers of @bindings are the caller's; completion queues are
  // not looked at. The program and the bindings are not copied with the state.
  void add(std::shared_ptr<const Program> program, std::shared_ptr<const Bindings> bindings,
           uint32_t instances);
  void add_window(uint32_t key) { windows_[key >> 8] = {static_cast<uint8_t>(key)}; }

  // Queues, by number, whose next step can be done.
  std::vector<uint32_t> runnable() const;
  Step step(uint32_t queue);
  // Whether the next step touches nothing that another tenant or the CPU looks at.
  bool next_is_private(uint32_t queue) const;
  // A SEND of the compute node to the queue. False: the queue has no receive for it yet.
  bool send(uint32_t queue, std::span<const std::byte> message);
  bool can_send(uint32_t queue) const;
  void allow_receives(uint32_t queue, uint32_t index);
  // All queues of the program that has it, as when its tenant is lost.
  void stop(uint32_t queue);
  bool is_stopped(uint32_t queue) const { return queues_.at(queue).failed; }

  uint64_t word(uint64_t address) const;
  void set_word(uint64_t address, uint64_t value);
  void write(uint64_t address, std::span<const std::byte> bytes);
  std::map<uint32_t, Window>& windows() { return windows_; }
  const std::map<uint32_t, Window>& windows() const { return windows_; }
  uint64_t hash() const;

 private:
  static constexpr size_t kFields = 11;
  struct Live {
    Opcode opcode = Opcode::kNop;
    std::array<uint64_t, kFields> fields = {};
  };
  // What a WAIT of the first instance waits for, and what each further one adds.
  struct Awaited {
    uint32_t queue = 0;
    bool is_receive = false;
    uint32_t first = 0;
    uint32_t each = 0;
  };
  // The same in all copies of the state.
  struct Chain {
    std::shared_ptr<const Program> program;
    std::shared_ptr<const Bindings> bindings;
    std::map<std::string, uint32_t> queue_numbers;
    uint32_t number = 0;
    std::map<uint32_t, std::vector<size_t>> steps;  // of a send queue
    std::vector<Awaited> awaited;                   // by step
  };
  struct QueueState {
    uint32_t chain = 0;
    bool managed = false;
    bool managed_receive = false;
    bool failed = false;
    uint32_t next = 0;  // steps of all instances, in order
    uint32_t enabled = 0;
    uint32_t completed = 0;
    uint32_t received = 0;
    uint32_t receives_allowed = 0;
    uint32_t receives = 0;  // posted
  };
  struct Cursor {
    const chain::Step* step = nullptr;
    uint32_t instance = 0;
    size_t live = 0;
  };

  static void fail(QueueState& queue);
  Cursor cursor(uint32_t queue, uint32_t position) const;
  Cursor receive_cursor(uint32_t queue, uint32_t position) const;
  bool can_run(uint32_t number, const QueueState& queue) const;
  bool awaited(const Chain& chain, const Cursor& at) const;
  uint64_t address_of(const Chain& chain, const Place& place, uint32_t instance) const;
  bool in_memory(const Chain& chain, const std::string& buffer, uint64_t address,
                 uint64_t bytes) const;
  bool scatter(const Chain& chain, const Cursor& at, std::span<const std::byte> data);
  std::vector<std::byte> gather(const Chain& chain, const Cursor& at) const;
  Step execute(QueueState& queue, uint32_t number, const Cursor& at);
  Step exchange(const Chain& chain, const Cursor& at);
  Step change_window(const Cursor& at, uint32_t number);
  void enable(const Chain& chain, const Cursor& at);
  uint64_t& field(Live& live, Field which) { return live.fields[static_cast<size_t>(which)]; }
  uint64_t field(const Live& live, Field which) const {
    return live.fields[static_cast<size_t>(which)];
  }

  uint64_t base_;
  std::vector<std::byte> memory_;
  std::vector<std::shared_ptr<const Chain>> chains_;
  std::vector<Live> live_;  // of each chain, each instance, each step
  std::vector<size_t> live_begins_, live_ends_;
  std::map<uint32_t, QueueState> queues_;
  std::map<uint32_t, Window> windows_;  // by index of the key
};

}  // namespace memsluice::chain
