// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/lending/nic/nic.h"

namespace memsluice::chain {

using nic::Field;
using nic::Opcode;

// Bytes of a buffer. In a buffer with a stride, of the instance's own part of it.
struct Place {
  std::string buffer;
  uint64_t offset = 0;
  uint32_t bytes = 0;
};

// A step's field, or of its bytes those from the @first-th on; the least significant is the first.
struct Part {
  std::string step;
  Field field = Field::kKey;
  uint32_t first = 0;
  uint32_t bytes = 0;
};

// What is scattered to, in this order; what is gathered from is a Place.
using Element = std::variant<Place, Part>;

// A number that is known when the chain is written down, or one that the pool gives it a name for.
using Value = std::variant<uint64_t, std::string>;

struct Step {
  std::string name;
  std::string queue;
  bool is_receive = false;  // posted to the queue's receives
  Opcode opcode = Opcode::kNop;
  bool signaled = false;
  bool fence = false;
  bool any_queue_pair = false;
  nic::Rights rights = 0;
  std::vector<Element> elements = {};
  std::map<Field, Value> values = {};
  // WRITE, READ and atomics: where, or at least by which buffer's key.
  std::optional<Place> remote = {};
  std::string region = {};   // BIND: what the key of the window's region is called
  std::string awaited = {};  // WAIT: for this step of the same instance
  std::string through = {};  // ENABLE: of its queue, all up to this step of the same instance
  bool of_next = false;      // ENABLE: of the next instance instead
};

struct Queue {
  std::string name;
  bool managed = false;
  bool to_peer = false;  // connected to a compute node; otherwise to itself
  bool managed_receive = false;
};

struct Buffer {
  std::string name;
  uint64_t bytes = 0;
  uint64_t stride_bytes = 0;  // what an instance has of it; 0: all share it
};

// A management chain: what a NIC does by itself for one request of a compute node. It is posted
// many times ahead; each time is an instance. Steps of a queue are executed in the order they stand
// in.
struct Program {
  std::string name;
  std::vector<Queue> queues;
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::string start = {};  // of the first instance the memory node's CPU enables all through this

  const Step* step(const std::string& step_name) const;
  const Queue* queue(const std::string& queue_name) const;
  const Buffer* buffer(const std::string& buffer_name) const;
};

uint32_t field_bytes(Field field);
std::string_view field_name(Field field);
uint64_t element_bytes(const Element& element);

// A request to which data comes back.
bool reads(const Step& step);

// For an instance: how many completions of the step's queue (of its kind) there have been when it
// has completed, and how many there are of an instance.
uint32_t completions_through(const Program& program, const Step& step);
uint32_t completions_of_instance(const Program& program, const Step& like);

// Parts that others fill in, by step.
std::map<std::string, std::vector<Part>> filled_parts(const Program& program);

// A table that people can read, one line for each step.
std::string listing(const Program& program);

}  // namespace memsluice::chain
