// SPDX-License-Identifier: GPL-2.0
#include "daemon/lending/chain/alloc_free.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace memsluice::chain {
namespace {

// Constants: words that chains write.
constexpr uint32_t kOwnedConstant = 0, kFreeingConstant = 8, kDirtyConstant = 16,
                   kFreedConstant = 24;
constexpr uint32_t kFreedReply = 16;  // request, then a word that says it has been done

uint32_t part_count(const Shape& shape) {
  return (shape.windows + kWindowsOfPart - 1) / kWindowsOfPart;
}
std::pair<uint32_t, uint32_t> windows_of(const Shape& shape, uint32_t part) {
  return {part * kWindowsOfPart, std::min(shape.windows, (part + 1) * kWindowsOfPart)};
}
std::string bind_name(uint32_t window) {
  return fmt::format("bind{}", window);
}
std::string part_name(uint32_t part) {
  return part == 0 ? "entry" : fmt::format("entry{}", part);
}
std::string unbind_name(uint32_t window) {
  return fmt::format("unbind{}", window);
}

Part whole(const std::string& step, Field field) {
  return {step, field, 0, field_bytes(field)};
}

// What the READ of a part of an entry fills, in the order in which encode_part writes it.
std::vector<Element> part_elements(const Shape& shape, uint32_t part) {
  std::vector<Element> elements;
  const auto [first, last] = windows_of(shape, part);
  if (part + 1 < part_count(shape))
    elements.push_back(whole(part_name(part + 1), Field::kRemoteAddress));
  if (part == 0) {
    elements.push_back(whole("own", Field::kOpcode));
    elements.push_back(whole("own", Field::kRemoteAddress));
    elements.push_back(whole("credit", Field::kOpcode));
    elements.push_back(whole("again", Field::kOpcode));
    elements.push_back(Place{"replies", kRequestBytes, reply_bytes(shape) - kRequestBytes});
  }
  for (uint32_t window = first; window < last; window++)
    for (Field field : {Field::kOpcode, Field::kKey, Field::kNewTag, Field::kWindowAddress,
                        Field::kRegionAddress})
      elements.push_back(whole(bind_name(window), field));
  return elements;
}

uint32_t part_bytes(const Shape& shape, uint32_t part) {
  uint64_t bytes = 0;
  for (const Element& element : part_elements(shape, part)) bytes += element_bytes(element);
  return static_cast<uint32_t>(bytes);
}

// Each part of an entry begins at a word.
uint32_t part_stride(const Shape& shape, uint32_t part) {
  return (part_bytes(shape, part) + 7) & ~7U;
}

uint32_t part_offset(const Shape& shape, uint32_t part) {
  uint32_t offset = 0;
  for (uint32_t before = 0; before < part; before++) offset += part_stride(shape, before);
  return offset;
}

class Bytes {
 public:
  template <typename Number>
  void put(Number number, size_t count = sizeof(Number)) {
    const size_t at = bytes_.size();
    bytes_.resize(at + count);
    std::memcpy(&bytes_[at], &number, count);
  }
  void pad_to(size_t size) { bytes_.resize(size); }
  size_t size() const { return bytes_.size(); }
  std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// A NIC counts the completion of a request that failed like any other, so a WAIT proves nothing.
// What may only happen if a step has succeeded is enabled by a SEND_EN behind that step on the same
// queue: an error flushes it.
class Builder {
 public:
  explicit Builder(Program& program) : program_(program) {}

  void add(Step step) { program_.steps.push_back(std::move(step)); }
  void wait(const std::string& queue, const std::string& awaited) {
    add({.name = "after_" + awaited, .queue = queue, .opcode = Opcode::kWait, .awaited = awaited});
  }
  // Fenced: what a READ or an atomic before it fills has been filled.
  void enable(const std::string& queue, const std::string& name, const std::string& through,
              bool of_next = false) {
    add({.name = name,
         .queue = queue,
         .opcode = Opcode::kSendEnable,
         .fence = true,
         .through = through,
         .of_next = of_next});
  }

 private:
  Program& program_;
};

// The address of the entry that the instance gets.
void add_pop(Builder& builder, const Shape& shape) {
  const bool rings = shape.mode == Mode::kRings;
  builder.enable("alloc", "go_pop", rings ? "go_entry" : "go_slot");
  // The upper 16 bits of the head are the offset of the next slot: they end up as the lower 16 bits
  // of its address, and wrap by themselves.
  if (!rings) {
    builder.add({.name = "head",
                 .queue = "binder",
                 .opcode = Opcode::kFetchAdd,
                 .elements = {Place{"scratch", 0, 6}, Part{"slot", Field::kRemoteAddress, 0, 2}},
                 .values = {{Field::kOperand, kNextSlot}},
                 .remote = Place{"head", 0, 8}});
    builder.enable("binder", "go_slot", "go_entry");
  }
  builder.add({.name = "slot",
               .queue = "binder",
               .opcode = Opcode::kRead,
               .elements = {whole("entry", Field::kRemoteAddress)},
               .remote = Place{rings ? "ring" : "queue", 0, kSlotBytes}});
  builder.enable("binder", "go_entry", "go_after_entry");
}

void add_entry(Builder& builder, const Shape& shape) {
  for (uint32_t part = 0; part < part_count(shape); part++) {
    builder.add({.name = part_name(part),
                 .queue = "binder",
                 .opcode = Opcode::kRead,
                 .elements = part_elements(shape, part),
                 .remote = Place{"entries", 0, part_bytes(shape, part)}});
    const bool last = part + 1 == part_count(shape);
    builder.enable("binder", "go_after_" + part_name(part),
                   last ? "go_again" : "go_after_" + part_name(part + 1));
  }
}

void add_bind(Builder& builder, const Shape& shape) {
  builder.add({.name = "own",
               .queue = "binder",
               .opcode = Opcode::kWrite,
               .signaled = true,
               .elements = {Place{"constants", kOwnedConstant, 8}},
               .remote = Place{"owners", 0, 8}});
  builder.wait("binder", "own");
  for (uint32_t window = 0; window < shape.windows; window++)
    builder.add({.name = bind_name(window),
                 .queue = "binder",
                 .opcode = Opcode::kBind,
                 .signaled = window + 1 == shape.windows,
                 .rights = window == 0 ? nic::Rights{0} : nic::kRemoteAll,
                 .values = {{Field::kTarget, fmt::format("window{}", window)},
                            {Field::kLength, "chunk_bytes"}},
                 .region = "region_key"});
  builder.wait("binder", bind_name(shape.windows - 1));
}

// One receive more for the Alloc queue pair, whichever it is.
void add_credit(Builder& builder, const std::string& queue, Step allow) {
  builder.add({.name = "credit",
               .queue = queue,
               .opcode = Opcode::kFetchAdd,
               .elements = {Part{allow.name, Field::kIndex, 0, 4}, Place{"scratch", 0, 4}},
               .values = {{Field::kOperand, uint64_t{1}}},
               .remote = Place{"credits", 0, 8}});
  builder.enable(queue, "go_" + allow.name, "go_reply");
  allow.queue = queue;
  allow.opcode = Opcode::kReceiveEnable;
  builder.add(std::move(allow));
}

}  // namespace

uint32_t reply_bytes(const Shape& shape) {
  return kRequestBytes + 16 + 4 * (shape.windows - 1);
}

uint32_t entry_bytes(const Shape& shape) {
  return part_offset(shape, part_count(shape));
}

Program alloc_program(const Shape& shape) {
  Program program{
      .name = shape.mode == Mode::kRings ? "alloc" : "alloc_shared",
      .queues = {{.name = "alloc", .managed = true, .to_peer = true, .managed_receive = true},
                 {.name = "binder", .managed = true}},
      .buffers = {{"entries", uint64_t{entry_bytes(shape)} * (shape.entries + 1), 0},
                  {"owners", uint64_t{8} * shape.entries, 0},
                  {"credits", 8, 0},
                  {"constants", kConstantBytes, 0},
                  {"scratch", 8, 0},
                  {"replies", uint64_t{reply_bytes(shape)} * shape.instances, reply_bytes(shape)}},
      .steps = {},
      .start = "go_pop"};
  if (shape.mode == Mode::kRings) {
    program.buffers.push_back({"ring", uint64_t{kSlotBytes} * shape.instances, kSlotBytes});
  } else {
    program.buffers.push_back({"queue", uint64_t{kSlotBytes} * kSharedSlots, 0});
    program.buffers.push_back({"head", 8, 0});
  }
  Builder builder(program);
  builder.add({.name = "request",
               .queue = "alloc",
               .is_receive = true,
               .elements = {Place{"replies", 0, kRequestBytes}}});
  builder.wait("alloc", "request");
  add_pop(builder, shape);
  add_entry(builder, shape);
  add_bind(builder, shape);
  // An empty slot costs the tenant none of the receives that it is allowed.
  add_credit(builder, "binder", {.name = "again", .values = {{Field::kTarget, "alloc"}}});
  builder.enable("binder", "go_reply", program.start, true);
  builder.add({.name = "reply",
               .queue = "alloc",
               .opcode = Opcode::kSend,
               .elements = {Place{"replies", 0, reply_bytes(shape)}}});
  return program;
}

Program free_program(const Shape& shape) {
  Program program{.name = "free",
                  .queues = {{.name = "free", .managed = true, .to_peer = true},
                             {.name = "unbinder", .managed = true}},
                  .buffers = {{"records", uint64_t{kRecordBytes} * shape.entries, 0},
                              {"owners", uint64_t{8} * shape.entries, 0},
                              {"credits", uint64_t{8} * shape.alloc_queues, 0},
                              {"constants", kConstantBytes, 0},
                              {"returns", uint64_t{8} * shape.instances, 8},
                              {"scratch", 8, 0},
                              {"returned", uint64_t{8} * shape.instances, 8},
                              {"replies", uint64_t{kFreedReply} * shape.instances, kFreedReply}},
                  .steps = {},
                  .start = "go_record"};
  Builder builder(program);
  // The two bytes are the group's number, and end up as the second and third byte of its record's
  // address: records are 256 bytes each, and what lies behind the last is no memory of the table.
  builder.add({.name = "request",
               .queue = "free",
               .is_receive = true,
               .elements = {Place{"replies", 0, kRequestBytes},
                            Part{"record", Field::kRemoteAddress, 1, 2}}});
  std::vector<Element> fills;
  for (uint32_t window = 0; window < shape.windows; window++)
    fills.push_back(whole(unbind_name(window), Field::kKey));
  fills.push_back(whole("freeing", Field::kRemoteAddress));
  fills.push_back(whole("dirty", Field::kRemoteAddress));
  if (shape.mode == Mode::kRings) {
    fills.push_back(whole("credit", Field::kRemoteAddress));
    fills.push_back(whole("allow", Field::kTarget));
  } else {  // the CPU allows a receive when it has published
    fills.push_back(Place{"scratch", 0, 8});
    fills.push_back(Place{"scratch", 0, 3});
  }
  fills.push_back(Place{"returned", 0, 8});
  uint64_t record = 0;
  for (const Element& element : fills) record += element_bytes(element);

  const bool rings = shape.mode == Mode::kRings;
  builder.wait("free", "request");
  builder.enable("free", "go_record", "go_unbind0");
  builder.add({.name = "record",
               .queue = "unbinder",
               .opcode = Opcode::kRead,
               .elements = fills,
               .remote = Place{"records", 0, static_cast<uint32_t>(record)}});
  builder.enable("unbinder", "go_unbind0", "go_freeing");
  // On the queue pair that window 0 serves, and no other: this is the proof of who frees.
  builder.add({.name = "unbind0", .queue = "free", .opcode = Opcode::kLocalInvalidate});
  builder.enable("free", "go_freeing", rings ? "go_allow" : "go_reply");
  const auto write = [&](const std::string& name, uint32_t constant) {
    builder.add({.name = name,
                 .queue = "unbinder",
                 .opcode = Opcode::kWrite,
                 .signaled = true,
                 .elements = {Place{"constants", constant, 8}},
                 .remote = Place{"owners", 0, 8}});
    builder.wait("unbinder", name);
  };
  write("freeing", kFreeingConstant);
  for (uint32_t window = 1; window < shape.windows; window++)
    builder.add({.name = unbind_name(window),
                 .queue = "unbinder",
                 .opcode = Opcode::kLocalInvalidate,
                 .signaled = window + 1 == shape.windows,
                 .any_queue_pair = true});
  if (shape.windows > 1) builder.wait("unbinder", unbind_name(shape.windows - 1));
  write("dirty", kDirtyConstant);
  builder.add({.name = "return",
               .queue = "unbinder",
               .opcode = Opcode::kWrite,
               .signaled = true,
               .elements = {Place{"returned", 0, 8}},
               .remote = Place{"returns", 0, 8}});
  builder.wait("unbinder", "return");
  if (rings) add_credit(builder, "unbinder", {.name = "allow"});
  builder.enable("unbinder", "go_reply", program.start, true);
  builder.add(
      {.name = "reply",
       .queue = "free",
       .opcode = Opcode::kSend,
       .elements = {Place{"replies", 0, kRequestBytes}, Place{"constants", kFreedConstant, 8}}});
  return program;
}

namespace {

std::vector<std::byte> encode_any(const Shape& shape, const Group* group, uint64_t entry_address) {
  Bytes bytes;
  const auto opcode = [&](Opcode when_full) { return group ? when_full : Opcode::kNop; };
  const uint64_t address = group ? group->address : 0;
  for (uint32_t part = 0; part < part_count(shape); part++) {
    if (part + 1 < part_count(shape)) bytes.put(entry_address + part_offset(shape, part + 1));
    const auto [first, last] = windows_of(shape, part);
    if (part == 0) {
      bytes.put(opcode(Opcode::kWrite));
      bytes.put(group ? group->owner_address : uint64_t{0});
      bytes.put(group ? Opcode::kNop : Opcode::kFetchAdd);
      bytes.put(group ? Opcode::kNop : Opcode::kReceiveEnable);
      bytes.put(group ? group->id : kNoGroup);
      bytes.put(group ? group->epoch : 0U);
      bytes.put(address);
      for (uint32_t window = 1; window < shape.windows; window++)
        bytes.put(group ? (group->keys[window] & ~nic::kTagMask) | group->new_tags[window] : 0U);
    }
    for (uint32_t window = first; window < last; window++) {
      bytes.put(opcode(Opcode::kBind));
      bytes.put(group ? group->keys[window] : 0U);
      bytes.put(group ? group->new_tags[window] : uint8_t{0});
      bytes.put(address);
      bytes.put(address);
    }
    bytes.pad_to(part_offset(shape, part + 1));
  }
  return std::move(bytes).take();
}

}  // namespace

std::vector<std::byte> encode_entry(const Shape& shape, const Group& group,
                                    uint64_t entry_address) {
  return encode_any(shape, &group, entry_address);
}

std::vector<std::byte> encode_empty_entry(const Shape& shape, uint64_t entry_address) {
  return encode_any(shape, nullptr, entry_address);
}

std::vector<std::byte> encode_record(const Shape& shape, const Group& group) {
  Bytes bytes;
  for (uint32_t window = 0; window < shape.windows; window++)
    bytes.put((group.keys[window] & ~nic::kTagMask) | group.new_tags[window]);
  bytes.put(group.owner_address);
  bytes.put(group.owner_address);
  bytes.put(group.credit_address);
  bytes.put(group.alloc_queue, 3);
  bytes.put(uint64_t{group.id} + 1);  // in `returns`, where 0 is nothing yet
  bytes.pad_to(kRecordBytes);
  return std::move(bytes).take();
}

std::vector<std::byte> encode_constants(uint32_t tenant) {
  Bytes bytes;
  bytes.put(owner_word(ChunkState::kOwned, tenant));
  bytes.put(owner_word(ChunkState::kFreeing, tenant));
  bytes.put(owner_word(ChunkState::kDirty, tenant));
  bytes.put(uint64_t{1});
  bytes.pad_to(kConstantBytes);
  return std::move(bytes).take();
}

Reply decode_reply(const Shape& shape, std::span<const std::byte> bytes) {
  Reply reply;
  reply.keys.resize(shape.windows - 1);
  std::memcpy(&reply.request, &bytes[0], 8);
  std::memcpy(&reply.group, &bytes[8], 4);
  std::memcpy(&reply.epoch, &bytes[12], 4);
  std::memcpy(&reply.address, &bytes[16], 8);
  std::memcpy(reply.keys.data(), &bytes[24], 4 * reply.keys.size());
  return reply;
}

}  // namespace memsluice::chain
