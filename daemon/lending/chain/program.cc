// SPDX-License-Identifier: GPL-2.0
#include "daemon/lending/chain/program.h"

#include <fmt/format.h>

#include <algorithm>

namespace memsluice::chain {
namespace {

template <typename Items>
auto by_name(const Items& items, const std::string& name) -> decltype(items.data()) {
  const auto found = std::ranges::find(items, name, [](const auto& item) { return item.name; });
  return found == items.end() ? nullptr : &*found;
}

// Whether both complete to the same counter.
bool alike(const Step& a, const Step& b) {
  return a.queue == b.queue && a.is_receive == b.is_receive;
}

bool completes(const Step& step) {
  return step.is_receive || step.signaled;
}

std::string place_text(const Place& place) {
  return fmt::format("{}+{}[{}]", place.buffer, place.offset, place.bytes);
}

std::string part_text(const Part& part) {
  if (part.first == 0 && part.bytes == field_bytes(part.field))
    return fmt::format("{}.{}", part.step, field_name(part.field));
  return fmt::format("{}.{}:{}..{}", part.step, field_name(part.field), part.first,
                     part.first + part.bytes - 1);
}

std::string element_text(const Element& element) {
  const auto* place = std::get_if<Place>(&element);
  return place ? place_text(*place) : part_text(std::get<Part>(element));
}

std::string detail(const Step& step, const std::vector<Part>& filled) {
  std::string text;
  if (step.fence) text += "fenced ";
  if (!step.awaited.empty()) text += step.awaited;
  if (!step.through.empty()) text += (step.of_next ? "through next " : "through ") + step.through;
  for (const auto& [field, value] : step.values) {
    const auto* number = std::get_if<uint64_t>(&value);
    text += fmt::format("{}={} ", field_name(field),
                        number ? std::to_string(*number) : std::get<std::string>(value));
  }
  for (const Part& part : filled) {
    text += fmt::format("{}=?", field_name(part.field));
    if (part.bytes != field_bytes(part.field))
      text += fmt::format(":{}..{}", part.first, part.first + part.bytes - 1);
    text += ' ';
  }
  if (step.remote) text += "@" + place_text(*step.remote) + " ";
  for (size_t i = 0; i < step.elements.size(); i++)
    text += fmt::format("{}{}",
                        i > 0                            ? ", "
                        : step.is_receive || reads(step) ? "-> "
                                                         : "<- ",
                        element_text(step.elements[i]));
  return text;
}

}  // namespace

bool reads(const Step& step) {
  return !step.is_receive && (step.opcode == Opcode::kRead || step.opcode == Opcode::kCompareSwap ||
                              step.opcode == Opcode::kFetchAdd);
}

const Step* Program::step(const std::string& step_name) const {
  return by_name(steps, step_name);
}
const Queue* Program::queue(const std::string& queue_name) const {
  return by_name(queues, queue_name);
}
const Buffer* Program::buffer(const std::string& buffer_name) const {
  return by_name(buffers, buffer_name);
}

uint32_t field_bytes(Field field) {
  switch (field) {
    case Field::kOpcode:
    case Field::kNewTag:
      return 1;
    case Field::kTarget:
      return 3;
    case Field::kKey:
    case Field::kIndex:
      return 4;
    default:
      return 8;
  }
}

std::string_view field_name(Field field) {
  switch (field) {
    case Field::kOpcode:
      return "opcode";
    case Field::kKey:
      return "key";
    case Field::kNewTag:
      return "new_tag";
    case Field::kTarget:
      return "target";
    case Field::kIndex:
      return "index";
    case Field::kRemoteAddress:
      return "remote_address";
    case Field::kOperand:
      return "operand";
    case Field::kSwap:
      return "swap";
    case Field::kWindowAddress:
      return "window_address";
    case Field::kRegionAddress:
      return "region_address";
    case Field::kLength:
      return "length";
  }
  return "?";
}

uint64_t element_bytes(const Element& element) {
  return std::visit([](const auto& what) -> uint64_t { return what.bytes; }, element);
}

uint32_t completions_through(const Program& program, const Step& step) {
  uint32_t count = 0;
  for (const Step& other : program.steps) {
    if (alike(other, step) && completes(other)) count++;
    if (&other == &step) break;
  }
  return count;
}

uint32_t completions_of_instance(const Program& program, const Step& like) {
  return static_cast<uint32_t>(std::ranges::count_if(
      program.steps, [&](const Step& step) { return alike(step, like) && completes(step); }));
}

std::map<std::string, std::vector<Part>> filled_parts(const Program& program) {
  std::map<std::string, std::vector<Part>> filled;
  for (const Step& step : program.steps)
    for (const Element& element : step.elements)
      if (const auto* part = std::get_if<Part>(&element)) filled[part->step].push_back(*part);
  return filled;
}

std::string listing(const Program& program) {
  auto filled = filled_parts(program);
  std::string text = fmt::format("chain {}\n", program.name);
  for (const Queue& queue : program.queues)
    text +=
        fmt::format("  queue {}: {}{}\n", queue.name, queue.managed ? "managed" : "runs by itself",
                    queue.to_peer ? ", to the compute node" : "");
  for (const Step& step : program.steps) {
    const std::string_view what = step.is_receive ? "RECV" : nic::opcode_name(step.opcode);
    std::string line =
        fmt::format("  {:<8} {:<16} {:<9}{} {}", step.queue, step.name, what,
                    step.signaled || step.is_receive ? "!" : " ", detail(step, filled[step.name]));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace memsluice::chain
