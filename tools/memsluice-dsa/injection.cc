// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/injection.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "tools/memsluice-dsa/shape.h"

namespace memsluice::dsa {
namespace {

constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kDelayMaxUs = 600'000'000;

constexpr std::array<std::pair<std::string_view, Rule::Action>, 5> kActions = {{
    {"status", Rule::Action::kStatus},
    {"delay", Rule::Action::kDelay},
    {"drop-interrupt", Rule::Action::kDropInterrupt},
    {"hold", Rule::Action::kHold},
    {"halt", Rule::Action::kHalt},
}};
constexpr std::array<std::string_view, 4> kResets = {"software", "flr", "warm", "cold"};

bool matches(const Rule& rule, unsigned queue, const Descriptor& descriptor, bool in_batch) {
  if (rule.in_batch && *rule.in_batch != in_batch) return false;
  if (rule.queue && *rule.queue != queue) return false;
  if (rule.opcode && *rule.opcode != descriptor.opcode) return false;
  return !rule.address || touches(descriptor, *rule.address);
}

void apply(const Rule& rule, Verdict& verdict) {
  switch (rule.action) {
    case Rule::Action::kStatus:
      verdict.status = rule.status;
      verdict.completed_bytes = rule.completed_bytes;
      break;
    case Rule::Action::kDelay:
      verdict.delay += rule.delay;
      break;
    case Rule::Action::kDropInterrupt:
      verdict.drops_interrupt = true;
      break;
    case Rule::Action::kHold:
      verdict.holds = true;
      break;
    case Rule::Action::kHalt:
      verdict.halts = rule.reset;
      break;
  }
}

Error bad_member(const char* key, std::string message) {
  return {.code = ErrorCode::kBadRequest, .object = key, .message = std::move(message)};
}

// What only one action has, in the order in which it is told to be missing.
Result<void> read_particulars(ObjectReader& reader, Rule& rule) {
  switch (rule.action) {
    case Rule::Action::kStatus:
      rule.status = static_cast<uint8_t>(reader.require("status", reader.number("status", 1, 255)));
      rule.completed_bytes = reader.number("completed_bytes", 0, UINT32_MAX).value_or(0);
      break;
    case Rule::Action::kDelay:
      rule.delay = std::chrono::microseconds(
          reader.require("delay_us", reader.number("delay_us", 1, kDelayMaxUs)));
      break;
    case Rule::Action::kHalt: {
      const std::string name = reader.text("reset").value_or("software");
      const auto* found = std::find(kResets.begin(), kResets.end(), name);
      if (found == kResets.end()) return bad_member("reset", "is not software, flr, warm or cold");
      rule.reset = static_cast<ResetType>(found - kResets.begin());
      break;
    }
    default:
      break;
  }
  return {};
}

}  // namespace

Result<Rule> rule_from_json(const Json& object) {
  ObjectReader reader(object);
  Rule rule;
  const std::string name = reader.require("do", reader.text("do"));
  const auto* action = std::find_if(kActions.begin(), kActions.end(),
                                    [&](const auto& known) { return known.first == name; });
  if (object.contains("do") && action == kActions.end())
    return bad_member("do", "is not status, delay, drop-interrupt, hold or halt");
  if (action != kActions.end()) rule.action = action->second;
  if (auto read = read_particulars(reader, rule); !read.ok()) return read.error();
  if (const auto queue = reader.number("queue", 0, Shape::kQueuesMax - 1))
    rule.queue = static_cast<unsigned>(*queue);
  if (const auto opcode = reader.number("opcode", 0, 255))
    rule.opcode = static_cast<unsigned>(*opcode);
  rule.address = reader.number("address", 0, kAny);
  rule.in_batch = reader.boolean("in_batch");
  rule.skip = reader.number("skip", 0, kAny).value_or(0);
  rule.every = reader.number("every", 1, kAny).value_or(1);
  rule.count = reader.number("count", 0, kAny).value_or(1);
  if (auto finished = reader.finish(); !finished.ok()) return finished.error();
  return rule;
}

Json to_json(const Rule& rule) {
  Json json = {{"skip", rule.skip}, {"every", rule.every}, {"count", rule.count}};
  for (const auto& [name, action] : kActions)
    if (action == rule.action) json["do"] = name;
  if (rule.queue) json["queue"] = *rule.queue;
  if (rule.opcode) json["opcode"] = *rule.opcode;
  if (rule.address) json["address"] = *rule.address;
  if (rule.in_batch) json["in_batch"] = *rule.in_batch;
  if (rule.action == Rule::Action::kStatus) {
    json["status"] = rule.status;
    json["completed_bytes"] = rule.completed_bytes;
  }
  if (rule.action == Rule::Action::kDelay) json["delay_us"] = rule.delay.count();
  if (rule.action == Rule::Action::kHalt) json["reset"] = kResets[static_cast<size_t>(rule.reset)];
  return json;
}

uint64_t Injection::add(const Rule& rule) {
  const std::lock_guard lock(mutex_);
  rules_.emplace(next_id_, State{.rule = rule});
  return next_id_++;
}

bool Injection::remove(uint64_t id) {
  const std::lock_guard lock(mutex_);
  return rules_.erase(id) != 0;
}

void Injection::clear() {
  const std::lock_guard lock(mutex_);
  rules_.clear();
}

Json Injection::list() const {
  const std::lock_guard lock(mutex_);
  Json list = Json::array();
  for (const auto& [id, state] : rules_) {
    Json json = to_json(state.rule);
    json["id"] = id;
    json["acted"] = state.acted;
    list.push_back(std::move(json));
  }
  return list;
}

Verdict Injection::judge(unsigned queue, const Descriptor& descriptor, bool in_batch) {
  const std::lock_guard lock(mutex_);
  Verdict verdict;
  for (auto& [id, state] : rules_) {
    const Rule& rule = state.rule;
    if (rule.count && state.acted == rule.count) continue;
    if (!matches(rule, queue, descriptor, in_batch)) continue;
    const uint64_t match = state.matched++;
    if (match < rule.skip || (match - rule.skip) % rule.every != rule.every - 1) continue;
    state.acted++;
    apply(rule, verdict);
  }
  return verdict;
}

}  // namespace memsluice::dsa
