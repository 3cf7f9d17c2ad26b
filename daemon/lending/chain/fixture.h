// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "daemon/lending/chain/alloc_free.h"
#include "daemon/lending/chain/loader.h"
#include "daemon/lending/chain/validate.h"

namespace memsluice::chain {

// A memory node and its tenants on one NIC, for tests and benches: the least that Alloc and Free
// need around them. A number that is not there ends the process.
class PoolFixture {
 public:
  struct Side {  // of one reliable connection to a tenant
    nic::QueuePair client = {}, server = {};
    nic::CompletionQueue client_completions = {};
  };
  struct AllocQueue {
    Side side;
    std::optional<Loader> chain;
    uint64_t ring = 0, credits = 0;
    uint32_t published = 0;  // slots of the ring
    uint32_t asked = 0;
    std::vector<uint32_t> groups;  // by slot
  };
  struct Tenant {
    std::vector<Side> access;
    std::vector<AllocQueue> alloc;
    Side free;
    std::optional<Loader> free_chain;
    uint64_t returns = 0;
    uint32_t freed = 0;
  };

  // @shape says how many Alloc queue pairs a tenant has.
  PoolFixture(nic::Nic& nic, const Shape& shape, uint32_t tenants)
      : nic_(nic),
        shape_(shape),
        memory_(static_cast<std::byte*>(std::aligned_alloc(kAlignment, kBytes))),
        alloc_program_(alloc_program(shape)),
        free_program_(free_program(shape)) {
    lender_ = *nic.create_protection_domain();
    borrower_ = *nic.create_protection_domain();
    records_ = take(uint64_t{kRecordBytes} * shape.entries, kAlignment);
    shared_queue_ = take(uint64_t{kSlotBytes} * kSharedSlots, 1 << 16);
    chunks_ = take(shape.chunk_bytes * shape.entries, 4096);
    entries_ = take(uint64_t{entry_bytes(shape)} * (shape.entries + 1));
    owners_ = take(uint64_t{8} * shape.entries);
    head_ = take(8);
    empty_ = entries_ + uint64_t{entry_bytes(shape)} * shape.entries;
    store(empty_, encode_empty_entry(shape, empty_));
    set_word(head_, shared_queue_ << 48);
    all_key_ = *nic.register_memory(lender_, {memory_.get(), kBytes},
                                    nic::kLocalWrite | nic::kRemoteAll | nic::kWindowBind);
    // The table is a region of its own: its end is the check of a group's number.
    records_key_ = *nic.register_memory(
        lender_, {at(records_), uint64_t{kRecordBytes} * shape.entries}, nic::kRemoteRead);
    client_key_ = *nic.register_memory(borrower_, client_memory_, nic::kLocalWrite);
    for (uint32_t id = 0; id < shape.entries; id++) groups_.push_back(new_group(id));
    control_completions_ = *nic.create_completion_queue({});
    control_ = loop(control_completions_, false);
    for (uint32_t tenant = 0; tenant < tenants; tenant++) add_tenant(tenant);
  }
  PoolFixture(const PoolFixture&) = delete;
  PoolFixture& operator=(const PoolFixture&) = delete;

  // The CPU gives a group to an Alloc queue, under new tags, and allows a request for it.
  void grant(uint32_t tenant, uint32_t alloc, uint32_t id, bool allow = true) {
    AllocQueue& queue = tenants_[tenant].alloc[alloc];
    Group& group = groups_[id];
    for (uint32_t window = 0; window < shape_.windows; window++) group.new_tags[window]++;
    group.epoch++;
    group.credit_address = queue.credits;
    group.alloc_queue = static_cast<uint32_t>(queue.side.server);
    const uint64_t entry = entries_ + uint64_t{entry_bytes(shape_)} * id;
    store(records_ + uint64_t{kRecordBytes} * id, encode_record(shape_, group));
    store(entry, encode_entry(shape_, group, entry));
    // The windows have these keys when they have been bound, and keep them when they are freed.
    for (uint32_t window = 0; window < shape_.windows; window++)
      group.keys[window] = (group.keys[window] & ~nic::kTagMask) | group.new_tags[window];
    publish(queue, id, entry);
    if (allow) allow_one_more(queue);
  }
  // As at first, and when there was nothing to free: the chain allows one after each Free itself.
  void allow_one_more(AllocQueue& queue) {
    const uint64_t next = word(queue.credits);
    set_word(queue.credits, next + 1);
    const nic::WorkRequest request = {.opcode = Opcode::kReceiveEnable,
                                      .signaled = true,
                                      .target = queue.side.server,
                                      .index = static_cast<uint32_t>(next)};
    nic_.post_send(control_, {&request, 1});
    await(control_completions_);
  }

  void post_request(uint32_t tenant, uint32_t alloc) {
    AllocQueue& queue = tenants_[tenant].alloc[alloc];
    queue.asked++;
    set_client_word(0, queue.asked);
    exchange(queue.side, kRequestBytes, reply_bytes(shape_));
  }
  // Nothing, if the queue pair is in error.
  std::optional<Reply> allocate(uint32_t tenant, uint32_t alloc) {
    post_request(tenant, alloc);
    if (!await_reply(tenants_[tenant].alloc[alloc].side)) return {};
    return decode_reply(shape_, std::span(client_memory_).subspan(kReplyAt));
  }
  // False: refused.
  bool release(uint32_t tenant, uint32_t id) {
    Tenant& of = tenants_[tenant];
    set_client_word(0, ++of.freed);
    set_client_word(8, id);
    exchange(of.free, kFreeRequestBytes, 16);
    return await_reply(of.free);
  }
  // What the Free chain has handed back and the CPU has not seen yet, in order.
  std::optional<uint32_t> next_returned(uint32_t tenant, uint32_t number) const {
    const uint64_t value = word(tenants_[tenant].returns + uint64_t{8} * number);
    if (value == 0) return {};
    return static_cast<uint32_t>(value - 1);
  }

  nic::Status access(uint32_t tenant, uint32_t window, Opcode opcode, uint64_t address,
                     uint32_t key, uint32_t bytes) {
    const Side& side = tenants_[tenant].access[window - 1];
    const nic::ScatterEntry entry = client_entry(0, bytes);
    const nic::WorkRequest request = {.opcode = opcode,
                                      .signaled = true,
                                      .entries = {&entry, 1},
                                      .remote_address = address,
                                      .remote_key = key};
    nic_.post_send(side.client, {&request, 1});
    return await(side.client_completions)->status;
  }

  std::optional<nic::Completion> await(nic::CompletionQueue queue) {
    nic::Completion completion;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    for (uint32_t idle = 0; nic_.poll(queue, {&completion, 1}) == 0;) {
      if (nic_.progress()) continue;
      if (!nic_has_thread_) return {};
      if (++idle % 64 != 0) continue;
      std::this_thread::yield();
      if (std::chrono::steady_clock::now() > until) return {};
    }
    return completion;
  }

  uint64_t word(uint64_t address) const {
    return __atomic_load_n(reinterpret_cast<const uint64_t*>(address), __ATOMIC_ACQUIRE);
  }
  void set_word(uint64_t address, uint64_t value) {
    __atomic_store_n(reinterpret_cast<uint64_t*>(address), value, __ATOMIC_RELEASE);
  }
  uint64_t owner(uint32_t id) const { return word(owners_ + uint64_t{8} * id); }
  void set_owner(uint32_t id, uint64_t value) { set_word(owners_ + uint64_t{8} * id, value); }
  Tenant& tenant(uint32_t number) { return tenants_[number]; }
  const Group& group(uint32_t id) const { return groups_[id]; }
  const Program& program_of_alloc() const { return alloc_program_; }
  const Program& program_of_free() const { return free_program_; }
  void nic_has_thread() { nic_has_thread_ = true; }

 private:
  static constexpr size_t kAlignment = 1 << 24;
  static constexpr size_t kBytes = size_t{1} << 26;
  static constexpr uint32_t kReplyAt = 1024;
  static constexpr uint32_t kClientReceives = 16;

  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  static std::byte* at(uint64_t address) { return reinterpret_cast<std::byte*>(address); }
  void store(uint64_t address, const std::vector<std::byte>& bytes) {
    std::copy(bytes.begin(), bytes.end(), at(address));
  }
  uint64_t take(uint64_t bytes, uint64_t alignment = 64) {
    const auto begin = reinterpret_cast<uint64_t>(memory_.get());
    used_ = (used_ + alignment - 1) / alignment * alignment;
    const uint64_t address = begin + used_;
    used_ += bytes;
    if (used_ > kBytes) std::abort();
    std::fill_n(at(address), bytes, std::byte{0});
    return address;
  }
  nic::ScatterEntry client_entry(uint32_t offset, uint32_t bytes) const {
    return {reinterpret_cast<uint64_t>(client_memory_.data()) + offset, bytes, client_key_};
  }
  void set_client_word(uint32_t offset, uint64_t value) {
    std::memcpy(client_memory_.data() + offset, &value, 8);
  }

  Group new_group(uint32_t id) {
    Group group{.id = id,
                .address = chunks_ + shape_.chunk_bytes * id,
                .keys = {},
                .new_tags = {},
                .owner_address = owners_ + uint64_t{8} * id};
    for (uint32_t window = 0; window < shape_.windows; window++) {
      group.keys.push_back(*nic_.create_window(lender_, nic::WindowType::kType2));
      group.new_tags.push_back(static_cast<uint8_t>(group.keys.back()));
    }
    return group;
  }

  void publish(AllocQueue& queue, uint32_t id, uint64_t entry) {
    if (shape_.mode == Mode::kRings) {
      queue.groups.push_back(id);
      set_word(queue.ring + uint64_t{kSlotBytes} * queue.published++, entry);
    } else {
      set_word(shared_queue_ + uint64_t{kSlotBytes} * (shared_published_++ % kSharedSlots), entry);
    }
  }

  nic::QueuePair queue_pair(nic::ProtectionDomain domain, nic::CompletionQueue sends,
                            nic::CompletionQueue receives, bool managed, bool managed_receive,
                            bool wide) {
    return *nic_.create_queue_pair(domain, {.send_completions = sends,
                                            .receive_completions = receives,
                                            .send_blocks = wide ? 1U << 13 : 64U,
                                            .receives = wide ? 1U << 9 : 64U,
                                            .max_scatter_entries = 30,
                                            .managed_send = managed,
                                            .managed_receive = managed_receive});
  }
  nic::QueuePair loop(nic::CompletionQueue completions, bool managed) {
    const nic::QueuePair made = queue_pair(lender_, completions, completions, managed, false, true);
    if (!nic_.connect(made, made, {}).ok()) std::abort();
    return made;
  }
  Side connected(nic::QueuePair server) {
    Side side;
    side.client_completions = *nic_.create_completion_queue({});
    side.client = queue_pair(borrower_, side.client_completions, side.client_completions, false,
                             false, false);
    side.server = server;
    if (!nic_.connect(side.client, server, {.receiver_not_ready_retries = 7}).ok() ||
        !nic_.connect(server, side.client, {.receiver_not_ready_retries = 7}).ok())
      std::abort();
    return side;
  }
  nic::CompletionQueue counter() {
    return *nic_.create_completion_queue({.ignores_overrun = true});
  }

  // The chain's queues; the one to the compute node is called @to_peer.
  Side bind_queues(const Program& program, const std::string& to_peer, Bindings& bindings) {
    Side side;
    for (const Queue& queue : program.queues) {
      const nic::CompletionQueue sends = counter();
      bindings.send_completions[queue.name] = sends;
      if (queue.name != to_peer) {
        bindings.queues[queue.name] = loop(sends, queue.managed);
        continue;
      }
      const nic::CompletionQueue receives = counter();
      bindings.receive_completions[queue.name] = receives;
      side = connected(
          queue_pair(lender_, sends, receives, queue.managed, queue.managed_receive, true));
      bindings.queues[queue.name] = side.server;
    }
    return side;
  }

  Bindings common(const Program& program, uint64_t constants, uint64_t credits) {
    Bindings bindings;
    for (const Buffer& buffer : program.buffers) {
      uint64_t address = 0;
      if (buffer.name == "entries") address = entries_;
      if (buffer.name == "owners") address = owners_;
      if (buffer.name == "records") address = records_;
      if (buffer.name == "queue") address = shared_queue_;
      if (buffer.name == "head") address = head_;
      if (buffer.name == "constants") address = constants;
      if (buffer.name == "credits") address = credits;
      if (address == 0) address = take(buffer.bytes);
      bindings.buffers[buffer.name] = {address, buffer.name == "records" ? records_key_ : all_key_};
    }
    return bindings;
  }

  void add_tenant(uint32_t number) {
    Tenant tenant;
    const uint64_t constants = take(kConstantBytes);
    store(constants, encode_constants(number));
    const uint64_t credits = take(uint64_t{8} * shape_.alloc_queues);
    for (uint32_t window = 1; window < shape_.windows; window++) {
      const nic::CompletionQueue completions = *nic_.create_completion_queue({});
      tenant.access.push_back(
          connected(queue_pair(lender_, completions, completions, false, false, false)));
    }
    Bindings free_bindings = common(free_program_, constants, credits);
    tenant.free = bind_queues(free_program_, "free", free_bindings);
    tenant.returns = free_bindings.buffers["returns"].address;
    tenant.free_chain = load(free_program_, std::move(free_bindings));
    for (uint32_t i = 0; i < shape_.alloc_queues; i++)
      tenant.alloc.push_back(make_alloc(tenant, constants, credits + uint64_t{8} * i));
    tenants_.push_back(std::move(tenant));
  }

  AllocQueue make_alloc(const Tenant& tenant, uint64_t constants, uint64_t credits) {
    AllocQueue queue;
    Bindings bindings = common(alloc_program_, constants, credits);
    queue.side = bind_queues(alloc_program_, "alloc", bindings);
    bindings.symbols = {{"region_key", all_key_},
                        {"chunk_bytes", shape_.chunk_bytes},
                        {"alloc", static_cast<uint64_t>(queue.side.server)},
                        {"window0", static_cast<uint64_t>(tenant.free.server)}};
    for (uint32_t window = 1; window < shape_.windows; window++)
      bindings.symbols["window" + std::to_string(window)] =
          static_cast<uint64_t>(tenant.access[window - 1].server);
    queue.credits = bindings.buffers["credits"].address;
    set_word(queue.credits, 1);
    if (shape_.mode == Mode::kRings) {
      queue.ring = bindings.buffers["ring"].address;
      for (uint32_t i = 0; i < shape_.instances; i++)
        set_word(queue.ring + uint64_t{kSlotBytes} * i, empty_);
    }
    queue.chain = load(alloc_program_, std::move(bindings));
    return queue;
  }

  Loader load(const Program& program, Bindings bindings) {
    if (!problems(program, nic_, shape_.instances).empty()) std::abort();
    Loader loader = *Loader::make(nic_, program, std::move(bindings));
    if (!loader.post(shape_.instances).ok()) std::abort();
    const nic::WorkRequest start = loader.start();
    nic_.post_send(control_, {&start, 1});
    await(control_completions_);
    return loader;
  }

  void exchange(const Side& side, uint32_t request_bytes, uint32_t expected_bytes) {
    const nic::ScatterEntry room = client_entry(kReplyAt, expected_bytes);
    const nic::ReceiveRequest receive = {.entries = {&room, 1}};
    nic_.post_receive(side.client, {&receive, 1});
    const nic::ScatterEntry entry = client_entry(0, request_bytes);
    const nic::WorkRequest request = {.opcode = Opcode::kSend, .entries = {&entry, 1}};
    nic_.post_send(side.client, {&request, 1});
  }
  bool await_reply(const Side& side) {
    const std::optional<nic::Completion> completion = await(side.client_completions);
    return completion && completion->is_receive && completion->status == nic::Status::kSuccess;
  }

  nic::Nic& nic_;
  Shape shape_;
  std::unique_ptr<std::byte, Free> memory_;
  uint64_t used_ = 0;
  Program alloc_program_, free_program_;
  nic::ProtectionDomain lender_ = {}, borrower_ = {};
  uint64_t records_ = 0, shared_queue_ = 0, chunks_ = 0, entries_ = 0, owners_ = 0, head_ = 0,
           empty_ = 0;
  nic::Key all_key_ = 0, records_key_ = 0, client_key_ = 0;
  alignas(64) std::array<std::byte, 8192> client_memory_ = {};
  std::vector<Group> groups_;
  nic::CompletionQueue control_completions_ = {};
  nic::QueuePair control_ = {};
  std::vector<Tenant> tenants_;
  uint64_t shared_published_ = 0;
  bool nic_has_thread_ = false;
};

}  // namespace memsluice::chain
