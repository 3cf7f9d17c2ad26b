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

// Chains are written with the steps that make one queue wait for another between them.
class Builder {
 public:
  explicit Builder(Program& program) : program_(program) {}

  Step& add(Step step) { return program_.steps.emplace_back(std::move(step)); }
  void wait(const std::string& awaited) {
    add({.name = "after_" + awaited,
         .queue = "master",
         .opcode = Opcode::kWait,
         .awaited = awaited});
  }
  void enable(const std::string& through) {
    add({.name = "go_" + through,
         .queue = "master",
         .opcode = Opcode::kSendEnable,
         .through = through});
  }
  // The master lets a queue go on, and waits until it has.
  void run(const std::string& through) {
    enable(through);
    wait(through);
  }

 private:
  Program& program_;
};

void add_pop(Builder& builder, const Shape& shape) {
  if (shape.mode == Mode::kRings) {
    builder.add({.name = "slot",
                 .queue = "master",
                 .opcode = Opcode::kRead,
                 .signaled = true,
                 .elements = {whole("entry", Field::kRemoteAddress)},
                 .remote = Place{"ring", 0, kSlotBytes}});
    builder.wait("slot");
    return;
  }
  // The upper 16 bits of the head are the offset of the next slot: they end up as the lower 16 bits
  // of its address, and wrap by themselves.
  builder.add({.name = "head",
               .queue = "master",
               .opcode = Opcode::kFetchAdd,
               .signaled = true,
               .elements = {Place{"scratch", 0, 6}, Part{"slot", Field::kRemoteAddress, 0, 2}},
               .values = {{Field::kOperand, kNextSlot}},
               .remote = Place{"head", 0, 8}});
  builder.wait("head");
  builder.run("slot");
}

void add_binder_steps(Builder& builder, const Shape& shape) {
  if (shape.mode == Mode::kSharedQueue)
    builder.add({.name = "slot",
                 .queue = "binder",
                 .opcode = Opcode::kRead,
                 .signaled = true,
                 .elements = {whole("entry", Field::kRemoteAddress)},
                 .remote = Place{"queue", 0, kSlotBytes}});
  for (uint32_t part = 0; part < part_count(shape); part++)
    builder.add({.name = part_name(part),
                 .queue = "binder",
                 .opcode = Opcode::kRead,
                 .signaled = true,
                 .elements = part_elements(shape, part),
                 .remote = Place{"entries", 0, part_bytes(shape, part)}});
  builder.add({.name = "own",
               .queue = "binder",
               .opcode = Opcode::kWrite,
               .signaled = true,
               .elements = {Place{"constants", kOwnedConstant, 8}},
               .remote = Place{"owners", 0, 8}});
  for (uint32_t window = 0; window < shape.windows; window++)
    builder.add({.name = bind_name(window),
                 .queue = "binder",
                 .opcode = Opcode::kBind,
                 .signaled = window + 1 == shape.windows,
                 .rights = window == 0 ? nic::Rights{0} : nic::kRemoteAll,
                 .values = {{Field::kTarget, fmt::format("window{}", window)},
                            {Field::kLength, "chunk_bytes"}}});
  // An empty slot costs the tenant none of the receives that it is allowed.
  for (Step& step : std::array{Step{.name = "credit",
                    .queue = "binder",
                    .opcode = Opcode::kFetchAdd,
                    .signaled = true,
                    .elements = {Part{"again", Field::kIndex, 0, 4}, Place{"scratch", 0, 4}},
                    .values = {{Field::kOperand, uint64_t{1}}},
                    .remote = Place{"credits", 0, 8}},
                               Step{.name = "again",
                               .queue = "binder",
                               .opcode = Opcode::kReceiveEnable,
                               .signaled = true,
                               .values = {{Field::kTarget, "alloc"}}}})
    builder.add(std::move(step));
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
                 {.name = "master"},
                 {.name = "binder", .managed = true}},
      .buffers = {{"entries", uint64_t{entry_bytes(shape)} * (shape.entries + 1), 0},
                  {"owners", uint64_t{8} * shape.entries, 0},
                  {"credits", 8, 0},
                  {"constants", kConstantBytes, 0},
                  {"scratch", 8, 0},
                  {"replies", uint64_t{reply_bytes(shape)} * shape.instances, reply_bytes(shape)}},
      .steps = {}};
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
  builder.wait("request");
  add_pop(builder, shape);
  for (uint32_t part = 0; part < part_count(shape); part++) builder.run(part_name(part));
  builder.run("own");
  builder.run(bind_name(shape.windows - 1));
  builder.run("credit");
  builder.run("again");
  builder.enable("reply");
  add_binder_steps(builder, shape);
  builder.add({.name = "reply",
               .queue = "alloc",
               .opcode = Opcode::kSend,
               .elements = {Place{"replies", 0, reply_bytes(shape)}}});
  return program;
}

Program free_program(const Shape& shape) {
  Program program{.name = "free",
                  .queues = {{.name = "free", .managed = true, .to_peer = true},
                             {.name = "master"},
                             {.name = "unbinder", .managed = true}},
                  .buffers = {{"records", uint64_t{kRecordBytes} * shape.entries, 0},
                              {"owners", uint64_t{8} * shape.entries, 0},
                              {"credits", 8, 0},
                              {"constants", kConstantBytes, 0},
                              {"returns", uint64_t{8} * shape.instances, 8},
                              {"scratch", 8, 0},
                              {"returned", uint64_t{8} * shape.instances, 8},
                              {"replies", uint64_t{kFreedReply} * shape.instances, kFreedReply}},
                  .steps = {}};
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
  fills.push_back(whole("credit", Field::kRemoteAddress));
  fills.push_back(whole("allow", Field::kTarget));
  fills.push_back(Place{"returned", 0, 8});
  uint64_t record = 0;
  for (const Element& element : fills) record += element_bytes(element);

  builder.wait("request");
  builder.run("record");
  builder.run("unbind0");
  builder.run("freeing");
  if (shape.windows > 1) builder.run(unbind_name(shape.windows - 1));
  builder.run("return");
  if (shape.mode == Mode::kRings) {
    builder.run("credit");
    builder.run("allow");
  }
  builder.enable("reply");
  builder.add({.name = "record",
               .queue = "unbinder",
               .opcode = Opcode::kRead,
               .signaled = true,
               .elements = fills,
               .remote = Place{"records", 0, static_cast<uint32_t>(record)}});
  // On the queue pair that window 0 serves, and no other: this is the proof of who frees.
  builder.add(
      {.name = "unbind0", .queue = "free", .opcode = Opcode::kLocalInvalidate, .signaled = true});
  const auto write = [&](const std::string& name, uint32_t constant) {
    builder.add({.name = name,
                 .queue = "unbinder",
                 .opcode = Opcode::kWrite,
                 .signaled = name == "freeing",
                 .elements = {Place{"constants", constant, 8}},
                 .remote = Place{"owners", 0, 8}});
  };
  write("freeing", kFreeingConstant);
  for (uint32_t window = 1; window < shape.windows; window++)
    builder.add({.name = unbind_name(window),
                 .queue = "unbinder",
                 .opcode = Opcode::kLocalInvalidate,
                 .signaled = window + 1 == shape.windows,
                 .any_queue_pair = true});
  write("dirty", kDirtyConstant);
  builder.add({.name = "return",
               .queue = "unbinder",
               .opcode = Opcode::kWrite,
               .signaled = true,
               .elements = {Place{"returned", 0, 8}},
               .remote = Place{"returns", 0, 8}});
  if (shape.mode == Mode::kRings) {
    builder.add({.name = "credit",
                 .queue = "unbinder",
                 .opcode = Opcode::kFetchAdd,
                 .signaled = true,
                 .elements = {Part{"allow", Field::kIndex, 0, 4}, Place{"scratch", 0, 4}},
                 .values = {{Field::kOperand, uint64_t{1}}},
                 .remote = Place{"credits", 0, 8}});
    builder.add(
        {.name = "allow", .queue = "unbinder", .opcode = Opcode::kReceiveEnable, .signaled = true});
  }
  builder.add(
      {.name = "reply",
       .queue = "free",
       .opcode = Opcode::kSend,
       .elements = {Place{"replies", 0, kRequestBytes}, Place{"constants", kFreedConstant, 8}}});
  if (shape.mode == Mode::kSharedQueue)  // the CPU allows receives when it has published
    for (Step& step : program.steps)
      if (step.name == "record")
        for (Element& element : step.elements)
          if (const auto* part = std::get_if<Part>(&element))
            if (part->step == "credit" || part->step == "allow")
              element = Place{"scratch", 0, part->bytes};
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
