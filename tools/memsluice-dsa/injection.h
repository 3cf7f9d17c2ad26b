// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "daemon/base/json.h"
#include "tools/memsluice-dsa/descriptor.h"

namespace memsluice::dsa {

// Why a device that has halted needs what to work again; the numbers are those of its register.
enum class ResetType : uint8_t { kSoftware = 0, kFunctionLevel, kWarm, kCold };

// What shall go wrong with the descriptors that it matches.
struct Rule {
  enum class Action { kStatus, kDelay, kDropInterrupt, kHold, kHalt };

  Action action = Action::kStatus;
  // Which descriptors: those of a batch count each for itself.
  std::optional<unsigned> queue = {};
  std::optional<unsigned> opcode = {};
  std::optional<uint64_t> address = {};  // that it reads or writes
  std::optional<bool> in_batch = {};
  // Which of them: after the first @skip every @every-th, @count times (0: for ever).
  uint64_t skip = 0;
  uint64_t every = 1;
  uint64_t count = 1;
  // What of kStatus: these many bytes are done, and then it fails so.
  uint8_t status = 0;
  uint64_t completed_bytes = 0;
  std::chrono::microseconds delay{0};
  ResetType reset = ResetType::kSoftware;
};

// All that goes wrong with one descriptor.
struct Verdict {
  uint8_t status = 0;
  uint64_t completed_bytes = 0;
  std::chrono::microseconds delay{0};
  bool drops_interrupt = false;
  bool holds = false;
  std::optional<ResetType> halts = {};
};

// {"do": "status"|"delay"|"drop-interrupt"|"hold"|"halt", ...} of docs/memsluice-dsa.md.
Result<Rule> rule_from_json(const Json& object);
Json to_json(const Rule& rule);

// The rules in force. Any thread may use it.
class Injection {
 public:
  uint64_t add(const Rule& rule);
  // Return: whether there was such a rule.
  bool remove(uint64_t id);
  void clear();
  // Each with its id, and how often it has acted.
  Json list() const;

  Verdict judge(unsigned queue, const Descriptor& descriptor, bool in_batch = false);

 private:
  struct State {
    Rule rule;
    uint64_t matched = 0;
    uint64_t acted = 0;
  };

  mutable std::mutex mutex_;
  std::map<uint64_t, State> rules_;
  uint64_t next_id_ = 1;
};

}  // namespace memsluice::dsa
