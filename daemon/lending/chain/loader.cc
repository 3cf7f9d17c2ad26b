// SPDX-License-Identifier: GPL-2.0
#include "daemon/lending/chain/loader.h"

#include <fmt/format.h>

#include <algorithm>

namespace memsluice::chain {
namespace {

Error unbound(const Program& program, std::string_view what, const std::string& name) {
  return {ErrorCode::kBadRequest, "chain " + program.name,
          fmt::format("nothing is known of {} {}", what, name)};
}

void set_field(nic::WorkRequest& request, Field field, uint64_t value) {
  const bool remote = request.opcode == Opcode::kWrite || request.opcode == Opcode::kRead ||
                      request.opcode == Opcode::kCompareSwap || request.opcode == Opcode::kFetchAdd;
  switch (field) {
    case Field::kOpcode:
      request.opcode = static_cast<Opcode>(value);
      break;
    case Field::kKey:
      (remote ? request.remote_key : request.key) = static_cast<nic::Key>(value);
      break;
    case Field::kNewTag:
      request.new_tag = static_cast<uint8_t>(value);
      break;
    case Field::kTarget:
      request.target = static_cast<nic::QueuePair>(value);
      break;
    case Field::kIndex:
      request.index = static_cast<uint32_t>(value);
      break;
    case Field::kRemoteAddress:
      request.remote_address = value;
      break;
    case Field::kOperand:
      request.operand = value;
      break;
    case Field::kSwap:
      request.swap = value;
      break;
    case Field::kWindowAddress:
    case Field::kRegionAddress:
      request.address = value;
      break;
    case Field::kLength:
      request.length = value;
      break;
  }
}

}  // namespace

Loader::Loader(nic::Nic& nic, const Program& program, Bindings bindings)
    : nic_(&nic), program_(&program), bindings_(std::move(bindings)) {}

Result<Loader> Loader::make(nic::Nic& nic, const Program& program, Bindings bindings) {
  Loader loader(nic, program, std::move(bindings));
  for (const Queue& queue : program.queues) {
    const auto found = loader.bindings_.queues.find(queue.name);
    if (found == loader.bindings_.queues.end()) return unbound(program, "queue", queue.name);
    Result<nic::SendQueueMemory> memory = nic.send_queue_memory(found->second);
    if (!memory.ok()) return std::move(memory).error();
    loader.memory_[queue.name] = *memory;
  }
  for (const Buffer& buffer : program.buffers)
    if (!loader.bindings_.buffers.contains(buffer.name))
      return unbound(program, "buffer", buffer.name);
  for (const Step& step : program.steps) {
    if (!step.region.empty() && !loader.bindings_.symbols.contains(step.region))
      return unbound(program, "region", step.region);
    for (const auto& [field, value] : step.values)
      if (const auto* symbol = std::get_if<std::string>(&value);
          symbol && !loader.bindings_.symbols.contains(*symbol))
        return unbound(program, "number", *symbol);
  }
  return loader;
}

Result<void> Loader::post(uint32_t instances) {
  for (uint32_t i = 0; i < instances; i++)
    if (Result<void> posted = post_instance(); !posted.ok()) return posted;
  return {};
}

uint32_t Loader::receives_of(const std::string& queue, uint32_t instances) const {
  const auto count = std::ranges::count_if(
      program_->steps, [&](const Step& step) { return step.queue == queue && step.is_receive; });
  return instances * static_cast<uint32_t>(count);
}

uint32_t Loader::block_count(const Step& step) const {
  return nic_->blocks_of(step.opcode, static_cast<uint32_t>(step.elements.size()));
}

// A step may fill one that is posted after it, so where all of them will be is worked out first.
std::vector<uint32_t> Loader::place_steps(std::map<std::string, uint32_t>& next) const {
  std::vector<uint32_t> begins;
  for (const Step& step : program_->steps) {
    uint32_t& block = next[step.queue];
    if (step.is_receive) {
      begins.push_back(0);
      continue;
    }
    const uint32_t blocks = block_count(step);
    block += nic::padding_before(block, blocks, memory_.at(step.queue).blocks);
    begins.push_back(block);
    block += blocks;
  }
  return begins;
}

Result<void> Loader::post_instance() {
  const auto before = next_;
  begins_ = place_steps(next_);
  auto after = next_;
  next_begins_ = place_steps(after);
  // Receives last: with them a peer can begin.
  for (bool receives : {false, true})
    for (size_t i = 0; i < program_->steps.size(); i++) {
      if (program_->steps[i].is_receive != receives) continue;
      if (Result<void> posted = post_step(i); !posted.ok()) {
        next_ = before;
        return std::move(posted).with_context(
            fmt::format("posting instance {} of chain {}", instances_, program_->name));
      }
    }
  if (const Step* first = instances_++ == 0 ? program_->step(program_->start) : nullptr)
    start_ = {.opcode = Opcode::kSendEnable,
              .signaled = true,
              .target = bindings_.queues.at(first->queue),
              .index = begins_[first - program_->steps.data()] + block_count(*first)};
  return {};
}

Result<void> Loader::post_step(size_t number) {
  const Step& step = program_->steps[number];
  const std::vector<nic::ScatterEntry> list = entries(step);
  const nic::QueuePair queue = bindings_.queues.at(step.queue);
  nic::Posted posted;
  if (step.is_receive) {
    const nic::ReceiveRequest receive = {.id = instances_, .entries = list};
    posted = nic_->post_receive(queue, {&receive, 1});
  } else {
    Result<nic::WorkRequest> made = request(step);
    if (!made.ok()) return std::move(made).error();
    made->entries = list;
    posted = nic_->post_send(queue, {&*made, 1});
  }
  if (posted.status == nic::PostStatus::kQueueFull)
    return Error{ErrorCode::kUnavailable, "queue " + step.queue, "is full"};
  if (posted.status != nic::PostStatus::kPosted)
    return Error{ErrorCode::kFailed, "step " + step.name, "cannot be posted"};
  if (!step.is_receive && posted.end != begins_[number] + block_count(step))
    return Error{ErrorCode::kConflict, "queue " + step.queue, "somebody else posts to it, too"};
  return {};
}

Result<nic::WorkRequest> Loader::request(const Step& step) const {
  nic::WorkRequest made = {.id = instances_,
                           .opcode = step.opcode,
                           .signaled = step.signaled,
                           .fence = step.fence,
                           .rights = step.rights,
                           .any_queue_pair = step.any_queue_pair};
  if (step.remote) {
    made.remote_key = bindings_.buffers.at(step.remote->buffer).key;
    made.remote_address = address_of(*step.remote);
  }
  if (!step.region.empty())
    made.region_key = static_cast<nic::Key>(bindings_.symbols.at(step.region));
  if (!step.awaited.empty()) {
    const Step& awaited = *program_->step(step.awaited);
    const auto& counters =
        awaited.is_receive ? bindings_.receive_completions : bindings_.send_completions;
    const auto counter = counters.find(awaited.queue);
    if (counter == counters.end()) return unbound(*program_, "completions of", awaited.queue);
    made.completion_queue = counter->second;
    made.index = instances_ * completions_of_instance(*program_, awaited) +
                 completions_through(*program_, awaited);
  }
  if (!step.through.empty()) {
    const Step* last = program_->step(step.through);
    made.target = bindings_.queues.at(last->queue);
    const std::vector<uint32_t>& begins = step.of_next ? next_begins_ : begins_;
    made.index = last->is_receive ? receives_of(last->queue, instances_ + 1)
                                  : begins[last - program_->steps.data()] + block_count(*last);
  }
  for (const auto& [field, value] : step.values) {
    const auto* symbol = std::get_if<std::string>(&value);
    set_field(made, field, symbol ? bindings_.symbols.at(*symbol) : std::get<uint64_t>(value));
  }
  return made;
}

uint64_t Loader::address_of(const Place& place) const {
  return bindings_.buffers.at(place.buffer).address + place.offset +
         program_->buffer(place.buffer)->stride_bytes * instances_;
}

nic::ScatterEntry Loader::field(const Part& part) const {
  const Step* step = program_->step(part.step);
  const nic::SendQueueMemory& memory = memory_.at(step->queue);
  // The validator has seen to it that the field exists.
  const nic::FieldPlace place = nic_->field_place(step->opcode, part.field).value();
  const uint32_t first = place.big_endian ? place.bytes - part.first - part.bytes : part.first;
  const uint64_t block = begins_[step - program_->steps.data()] % memory.blocks;
  return {memory.address + block * nic_->attributes().block_bytes + place.offset + first,
          part.bytes, memory.key};
}

std::vector<nic::ScatterEntry> Loader::entries(const Step& step) const {
  std::vector<nic::ScatterEntry> list;
  for (const Element& element : step.elements) {
    if (const auto* place = std::get_if<Place>(&element))
      list.push_back({address_of(*place), place->bytes, bindings_.buffers.at(place->buffer).key});
    else
      list.push_back(field(std::get<Part>(element)));
  }
  return list;
}

}  // namespace memsluice::chain
