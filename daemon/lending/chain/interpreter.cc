// SPDX-License-Identifier: GPL-2.0
#include "daemon/lending/chain/interpreter.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace memsluice::chain {
namespace {

using Effect = Interpreter::Effect;

bool is_atomic(Opcode opcode) {
  return opcode == Opcode::kCompareSwap || opcode == Opcode::kFetchAdd;
}

void mix(uint64_t& hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15;
  hash ^= hash >> 29;
}

template <typename Pick>
uint32_t count_steps(const Program& program, const std::string& queue, Pick pick) {
  return static_cast<uint32_t>(std::ranges::count_if(
      program.steps, [&](const chain::Step& step) { return step.queue == queue && pick(step); }));
}

}  // namespace

void Interpreter::add(std::shared_ptr<const Program> program,
                      std::shared_ptr<const Bindings> bindings, uint32_t instances) {
  const auto number = static_cast<uint32_t>(chains_.size());
  Chain chain{std::move(program), std::move(bindings), {}, number, {}, {}};
  for (const Queue& queue : chain.program->queues) {
    const auto id = static_cast<uint32_t>(chain.bindings->queues.at(queue.name));
    chain.queue_numbers[queue.name] = id;
    QueueState& state = queues_[id];
    state.chain = number;
    state.managed = queue.managed;
    state.managed_receive = queue.managed_receive;
    state.receives = instances * count_steps(*chain.program, queue.name,
                                             [](const auto& step) { return step.is_receive; });
    if (!queue.managed)
      state.enabled = instances * count_steps(*chain.program, queue.name,
                                              [](const auto& step) { return !step.is_receive; });
  }
  for (const chain::Step& step : chain.program->steps) {
    if (const auto& first = *chain.program->step(chain.program->start);
        step.queue == first.queue && !step.is_receive && &step <= &first)
      queues_.at(chain.queue_numbers.at(step.queue)).enabled++;
  }
  live_begins_.push_back(live_.size());
  for (uint32_t instance = 0; instance < instances; instance++)
    for (const chain::Step& step : chain.program->steps) {
      Live live{step.opcode, {}};
      field(live, Field::kOpcode) = static_cast<uint64_t>(step.opcode);
      if (step.remote)
        field(live, Field::kRemoteAddress) = address_of(chain, *step.remote, instance);
      for (const auto& [which, value] : step.values) {
        const auto* symbol = std::get_if<std::string>(&value);
        field(live, which) =
            symbol ? chain.bindings->symbols.at(*symbol) : std::get<uint64_t>(value);
      }
      live_.push_back(live);
    }
  live_ends_.push_back(live_.size());
  for (size_t i = 0; i < chain.program->steps.size(); i++) {
    const chain::Step& step = chain.program->steps[i];
    if (!step.is_receive) chain.steps[chain.queue_numbers.at(step.queue)].push_back(i);
    const chain::Step* awaited = chain.program->step(step.awaited);
    chain.awaited.push_back({});
    if (awaited)
      chain.awaited.back() = {chain.queue_numbers.at(awaited->queue), awaited->is_receive,
                              completions_through(*chain.program, *awaited),
                              completions_of_instance(*chain.program, *awaited)};
  }
  chains_.push_back(std::make_shared<const Chain>(std::move(chain)));
}

Interpreter::Cursor Interpreter::cursor(uint32_t queue, uint32_t position) const {
  const QueueState& state = queues_.at(queue);
  const Chain& chain = *chains_[state.chain];
  const std::vector<size_t>& steps = chain.steps.at(queue);
  const auto instance = static_cast<uint32_t>(position / steps.size());
  const size_t number = steps[position % steps.size()];
  return {&chain.program->steps[number], instance,
          live_begins_[state.chain] + instance * chain.program->steps.size() + number};
}

Interpreter::Cursor Interpreter::receive_cursor(uint32_t queue, uint32_t position) const {
  const QueueState& state = queues_.at(queue);
  const Chain& chain = *chains_[state.chain];
  for (const chain::Step& step : chain.program->steps)  // one receive of a queue in an instance
    if (step.is_receive && chain.queue_numbers.at(step.queue) == queue) return {&step, position, 0};
  return {};
}

bool Interpreter::awaited(const Chain& chain, const Cursor& at) const {
  const Awaited& what = chain.awaited[at.step - chain.program->steps.data()];
  const QueueState& on = queues_.at(what.queue);
  return (what.is_receive ? on.received : on.completed) >= at.instance * what.each + what.first;
}

bool Interpreter::can_run(uint32_t number, const QueueState& queue) const {
  if (queue.failed || queue.next >= queue.enabled) return false;
  const Cursor at = cursor(number, queue.next);
  if (at.instance * chains_[queue.chain]->program->steps.size() + live_begins_[queue.chain] >=
      live_ends_[queue.chain])
    return false;  // not posted
  return at.step->opcode != Opcode::kWait || awaited(*chains_[queue.chain], at);
}

std::vector<uint32_t> Interpreter::runnable() const {
  std::vector<uint32_t> numbers;
  for (const auto& [number, queue] : queues_)
    if (can_run(number, queue)) numbers.push_back(number);
  return numbers;
}

bool Interpreter::next_is_private(uint32_t number) const {
  const Cursor at = cursor(number, queues_.at(number).next);
  switch (static_cast<Opcode>(field(live_[at.live], Field::kOpcode))) {
    case Opcode::kNop:
    case Opcode::kWait:
    case Opcode::kSendEnable:
    case Opcode::kReceiveEnable:
    case Opcode::kSend:
      return true;
    default:
      return false;
  }
}

Interpreter::Step Interpreter::step(uint32_t number) {
  QueueState& queue = queues_.at(number);
  if (!can_run(number, queue)) return {};
  const Cursor at = cursor(number, queue.next);
  Step done = execute(queue, number, at);
  queue.next++;
  if (done.effect == Effect::kRefused) {
    fail(queue);
    done.queue = number;
  } else if (at.step->signaled) {
    queue.completed++;
  }
  return done;
}

Interpreter::Step Interpreter::execute(QueueState& queue, uint32_t number, const Cursor& at) {
  const Chain& chain = *chains_[queue.chain];
  const Live& live = live_[at.live];
  switch (static_cast<Opcode>(field(live, Field::kOpcode))) {
    case Opcode::kNop:
    case Opcode::kWait:
      return {Effect::kLocal};
    case Opcode::kSendEnable:
    case Opcode::kReceiveEnable:
      enable(chain, at);
      return {Effect::kLocal};
    case Opcode::kSend:
      return {Effect::kReply, 0, number, gather(chain, at)};
    case Opcode::kBind:
    case Opcode::kLocalInvalidate:
      return change_window(at, number);
    case Opcode::kRead:
    case Opcode::kWrite:
    case Opcode::kCompareSwap:
    case Opcode::kFetchAdd:
      return exchange(chain, at);
    default:
      return {Effect::kRefused};
  }
}

void Interpreter::enable(const Chain& chain, const Cursor& at) {
  const Live& live = live_[at.live];
  if (at.step->opcode == Opcode::kReceiveEnable && at.step->through.empty()) {
    allow_receives(static_cast<uint32_t>(field(live, Field::kTarget)),
                   static_cast<uint32_t>(field(live, Field::kIndex)));
    return;
  }
  const chain::Step* last = chain.program->step(at.step->through);
  QueueState& target = queues_.at(chain.queue_numbers.at(last->queue));
  uint32_t ordinal = 0;
  const uint32_t all =
      count_steps(*chain.program, last->queue, [](const auto& step) { return !step.is_receive; });
  for (const chain::Step& step : chain.program->steps) {
    ordinal += step.queue == last->queue && !step.is_receive;
    if (&step == last) break;
  }
  target.enabled =
      std::max(target.enabled, (at.instance + (at.step->of_next ? 1 : 0)) * all + ordinal);
}

void Interpreter::allow_receives(uint32_t queue, uint32_t index) {
  QueueState& state = queues_.at(queue);
  state.receives_allowed = std::max(state.receives_allowed, index);
}

// Everything is flushed, and a completion is a completion.
void Interpreter::fail(QueueState& queue) {
  queue.failed = true;
  queue.completed = queue.received = std::numeric_limits<uint32_t>::max() / 2;
}

void Interpreter::stop(uint32_t number) {
  const uint32_t chain = queues_.at(number).chain;
  for (auto& [other, queue] : queues_)
    if (queue.chain == chain) fail(queue);
}

bool Interpreter::can_send(uint32_t number) const {
  const QueueState& queue = queues_.at(number);
  return !queue.failed && queue.received < queue.receives &&
         (!queue.managed_receive || queue.received < queue.receives_allowed);
}

bool Interpreter::send(uint32_t number, std::span<const std::byte> message) {
  if (!can_send(number)) return false;
  QueueState& queue = queues_.at(number);
  if (!scatter(*chains_[queue.chain], receive_cursor(number, queue.received), message))
    return false;
  queue.received++;
  return true;
}

uint64_t Interpreter::address_of(const Chain& chain, const Place& place, uint32_t instance) const {
  return chain.bindings->buffers.at(place.buffer).address + place.offset +
         chain.program->buffer(place.buffer)->stride_bytes * instance;
}

bool Interpreter::in_memory(const Chain& chain, const std::string& buffer, uint64_t address,
                            uint64_t bytes) const {
  const uint64_t begin = chain.bindings->buffers.at(buffer).address;
  const uint64_t length = chain.program->buffer(buffer)->bytes;
  return address >= begin && bytes <= length && address - begin <= length - bytes;
}

bool Interpreter::scatter(const Chain& chain, const Cursor& at, std::span<const std::byte> data) {
  for (const Element& element : at.step->elements) {
    const auto bytes = std::min<uint64_t>(element_bytes(element), data.size());
    const std::span<const std::byte> piece = data.first(bytes);
    data = data.subspan(bytes);
    if (const auto* place = std::get_if<Place>(&element)) {
      write(address_of(chain, *place, at.instance), piece);
      continue;
    }
    const auto& part = std::get<Part>(element);
    const auto number =
        static_cast<size_t>(chain.program->step(part.step) - chain.program->steps.data());
    Live& live =
        live_[live_begins_[chain.number] + at.instance * chain.program->steps.size() + number];
    std::memcpy(reinterpret_cast<std::byte*>(&field(live, part.field)) + part.first, piece.data(),
                piece.size());
  }
  return data.empty();
}

std::vector<std::byte> Interpreter::gather(const Chain& chain, const Cursor& at) const {
  std::vector<std::byte> data;
  for (const Element& element : at.step->elements) {
    const auto& place = std::get<Place>(element);
    const auto begin = memory_.begin() +
                       static_cast<std::ptrdiff_t>(address_of(chain, place, at.instance) - base_);
    data.insert(data.end(), begin, begin + place.bytes);
  }
  return data;
}

Interpreter::Step Interpreter::exchange(const Chain& chain, const Cursor& at) {
  const Live live = live_[at.live];
  const auto opcode = static_cast<Opcode>(field(live, Field::kOpcode));
  const uint64_t address = field(live, Field::kRemoteAddress);
  const uint64_t bytes = is_atomic(opcode) ? 8 : at.step->remote->bytes;
  if (!in_memory(chain, at.step->remote->buffer, address, bytes)) return {Effect::kRefused};
  if (opcode == Opcode::kWrite) {
    write(address, gather(chain, at));
    return {Effect::kMemory};
  }
  const auto begin = memory_.begin() + static_cast<std::ptrdiff_t>(address - base_);
  const std::vector<std::byte> before(begin, begin + static_cast<std::ptrdiff_t>(bytes));
  if (is_atomic(opcode)) {
    const uint64_t old = word(address);
    if (opcode == Opcode::kFetchAdd) set_word(address, old + field(live, Field::kOperand));
    if (opcode == Opcode::kCompareSwap && old == field(live, Field::kOperand))
      set_word(address, field(live, Field::kSwap));
  }
  scatter(chain, at, before);
  return {Effect::kMemory};
}

Interpreter::Step Interpreter::change_window(const Cursor& at, uint32_t number) {
  const Live& live = live_[at.live];
  const auto key = static_cast<uint32_t>(field(live, Field::kKey));
  const auto found = windows_.find(key >> 8);
  if (found == windows_.end() || found->second.tag != (key & nic::kTagMask))
    return {Effect::kRefused};
  Window& window = found->second;
  if (static_cast<Opcode>(field(live, Field::kOpcode)) == Opcode::kLocalInvalidate) {
    if (!window.bound || (!at.step->any_queue_pair && window.queue != number))
      return {Effect::kRefused};
    window.bound = false;
    return {Effect::kUnbind, key, number};
  }
  if (window.bound) return {Effect::kRefused};
  window = {static_cast<uint8_t>(field(live, Field::kNewTag)), true,
            static_cast<uint32_t>(field(live, Field::kTarget))};
  return {Effect::kBind, (key & ~nic::kTagMask) | window.tag, window.queue};
}

uint64_t Interpreter::word(uint64_t address) const {
  uint64_t value = 0;
  std::memcpy(&value, &memory_[address - base_], 8);
  return value;
}

void Interpreter::set_word(uint64_t address, uint64_t value) {
  std::memcpy(&memory_[address - base_], &value, 8);
}

void Interpreter::write(uint64_t address, std::span<const std::byte> bytes) {
  std::ranges::copy(bytes, memory_.begin() + static_cast<std::ptrdiff_t>(address - base_));
}

uint64_t Interpreter::hash() const {
  uint64_t hash = 0;
  for (size_t i = 0; i + 8 <= memory_.size(); i += 8) mix(hash, word(base_ + i));
  for (const Live& live : live_)
    for (uint64_t value : live.fields) mix(hash, value);
  for (const auto& [number, queue] : queues_) {
    mix(hash, uint64_t{queue.next} << 32 | queue.enabled);
    mix(hash, uint64_t{queue.completed} << 32 | queue.received);
    mix(hash, uint64_t{queue.receives_allowed} << 1 | (queue.failed ? 1 : 0));
  }
  for (const auto& [index, window] : windows_)
    mix(hash, uint64_t{window.queue} << 9 | uint64_t{window.tag} << 1 | (window.bound ? 1 : 0));
  return hash;
}

}  // namespace memsluice::chain
