// SPDX-License-Identifier: GPL-2.0
#include "daemon/lending/chain/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace memsluice::chain {
namespace {

bool is_enable(const Step& step) {
  return step.opcode == Opcode::kSendEnable || step.opcode == Opcode::kReceiveEnable;
}
bool is_remote(const Step& step) {
  return step.opcode == Opcode::kRead || step.opcode == Opcode::kWrite ||
         step.opcode == Opcode::kCompareSwap || step.opcode == Opcode::kFetchAdd;
}

// What happens before what within an instance. Each step is issued and completes.
class Order {
 public:
  explicit Order(const Program& program) : program_(program), after_(2 * program.steps.size()) {
    // The instance before lets these go on.
    const Step* start = program.step(program.start);
    for (const Step& step : program.steps)
      if (start && step.queue == start->queue && !step.is_receive && &step <= start)
        enabled_.insert(&step);
    for (size_t i = 0; i < program.steps.size(); i++) add(i);
  }

  bool completes_before(size_t step, size_t other) const {
    return reaches(done(step), issue(other));
  }
  bool has_cycle() const {
    for (size_t node = 0; node < after_.size(); node++)
      for (size_t next : after_[node])
        if (reaches(next, node)) return true;
    return false;
  }

 private:
  static size_t issue(size_t step) { return 2 * step; }
  static size_t done(size_t step) { return 2 * step + 1; }

  size_t index_of(const std::string& name) const {
    return static_cast<size_t>(program_.step(name) - program_.steps.data());
  }

  void add(size_t i) {
    const Step& step = program_.steps[i];
    after_[issue(i)].push_back(done(i));
    if (const Step* next = following(i)) {
      const size_t n = static_cast<size_t>(next - program_.steps.data());
      after_[issue(i)].push_back(issue(n));
      after_[done(i)].push_back(done(n));
      // What a NIC does by itself is done before the next; what goes over a connection is not.
      if (!is_remote(step) && step.opcode != Opcode::kSend) after_[done(i)].push_back(issue(n));
    }
    if (step.fence)
      for (size_t before = 0; before < i; before++)
        if (program_.steps[before].queue == step.queue && reads(program_.steps[before]))
          after_[done(before)].push_back(issue(i));
    if (!step.awaited.empty() && program_.step(step.awaited))
      after_[done(index_of(step.awaited))].push_back(done(i));
    if (step.opcode == Opcode::kSendEnable && !step.through.empty()) enable(i, step);
  }

  // Nothing of an instance is issued before what first enables it.
  void enable(size_t i, const Step& step) {
    const Step* last = program_.step(step.through);
    if (!last) return;
    for (const Step& covered : program_.steps) {
      if (covered.queue == last->queue && !covered.is_receive && enabled_.insert(&covered).second)
        after_[issue(i)].push_back(issue(static_cast<size_t>(&covered - program_.steps.data())));
      if (&covered == last && !step.of_next) break;
    }
  }

  const Step* following(size_t i) const {
    const Step& step = program_.steps[i];
    for (size_t n = i + 1; n < program_.steps.size(); n++)
      if (program_.steps[n].queue == step.queue && program_.steps[n].is_receive == step.is_receive)
        return &program_.steps[n];
    return nullptr;
  }

  bool reaches(size_t from, size_t to) const {
    std::vector<bool> seen(after_.size());
    std::vector<size_t> todo = {from};
    while (!todo.empty()) {
      const size_t here = todo.back();
      todo.pop_back();
      if (here == to) return true;
      if (seen[here]) continue;
      seen[here] = true;
      todo.insert(todo.end(), after_[here].begin(), after_[here].end());
    }
    return false;
  }

  const Program& program_;
  std::vector<std::vector<size_t>> after_;
  std::set<const Step*> enabled_;
};

class Validator {
 public:
  Validator(const Program& program, const nic::Nic& nic, uint32_t instances)
      : program_(program), nic_(nic), limits_(nic.attributes()), instances_(instances) {}

  std::vector<std::string> run() {
    check_names();
    for (const Step& step : program_.steps) check_step(step);
    if (!found_.empty()) return found_;  // the rest relies on references that hold
    for (const Queue& queue : program_.queues) check_space(queue);
    check_fills();
    check_order();
    return found_;
  }

 private:
  template <typename... Values>
  void say(const Step& step, fmt::format_string<Values...> text, Values&&... values) {
    found_.push_back(step.name + ": " + fmt::format(text, std::forward<Values>(values)...));
  }

  void check_names() {
    std::set<std::string> names;
    for (const Step& step : program_.steps)
      if (!names.insert(step.name).second) say(step, "there are two of this name");
  }

  void check_step(const Step& step) {
    const Queue* queue = program_.queue(step.queue);
    if (!queue) say(step, "there is no queue {}", step.queue);
    if (step.elements.size() > limits_.max_scatter_entries)
      say(step, "{} scatter entries, and the NIC takes {}", step.elements.size(),
          limits_.max_scatter_entries);
    for (const Element& element : step.elements) check_element(step, element);
    if (step.remote) check_place(step, *step.remote);
    if (is_remote(step) && !step.is_receive && !step.remote)
      say(step, "says by which buffer's key it reaches memory nowhere");
    if (step.opcode == Opcode::kBind && step.region.empty())
      say(step, "says nowhere which region it binds to");
    check_sizes(step);
    check_references(step);
  }

  void check_element(const Step& step, const Element& element) {
    if (const auto* place = std::get_if<Place>(&element)) return check_place(step, *place);
    const auto& part = std::get<Part>(element);
    if (!step.is_receive && (step.opcode == Opcode::kWrite || step.opcode == Opcode::kSend))
      say(step, "gathers from a field of {}", part.step);
    const Step* target = program_.step(part.step);
    if (!target) return say(step, "there is no step {} to fill", part.step);
    if (part.bytes == 0 || part.first + part.bytes > field_bytes(part.field))
      say(step, "{}.{} has {} bytes", part.step, field_name(part.field), field_bytes(part.field));
    const Queue* queue = program_.queue(target->queue);
    if (target->is_receive || (queue && !queue->managed))
      say(step, "{} is read by the NIC before it is filled: its queue is not managed", part.step);
  }

  void check_place(const Step& step, const Place& place) {
    const Buffer* buffer = program_.buffer(place.buffer);
    if (!buffer) return say(step, "there is no buffer {}", place.buffer);
    const uint64_t bytes = buffer->stride_bytes ? buffer->stride_bytes : buffer->bytes;
    if (place.offset + place.bytes > bytes)
      say(step, "{}+{}[{}] ends behind the {} bytes that there are", place.buffer, place.offset,
          place.bytes, bytes);
    if (buffer->stride_bytes * instances_ > buffer->bytes)
      say(step, "buffer {} is too small for {} instances", place.buffer, instances_);
  }

  void check_sizes(const Step& step) {
    uint64_t bytes = 0;
    for (const Element& element : step.elements) bytes += element_bytes(element);
    const bool atomic = step.opcode == Opcode::kCompareSwap || step.opcode == Opcode::kFetchAdd;
    if (!step.is_receive && atomic && bytes != 8) say(step, "an atomic has 8 bytes, not {}", bytes);
    if (step.remote && !atomic && step.remote->bytes != bytes)
      say(step, "moves {} bytes, and has room for {}", bytes, step.remote->bytes);
  }

  void check_references(const Step& step) {
    if (step.opcode == Opcode::kWait) {
      const Step* awaited = program_.step(step.awaited);
      if (!awaited)
        say(step, "waits for {}, which does not exist", step.awaited);
      else if (!awaited->signaled && !awaited->is_receive)
        say(step, "waits for {}, which does not complete", step.awaited);
    }
    if (!is_enable(step) || (step.through.empty() && step.opcode == Opcode::kReceiveEnable)) return;
    const Step* last = program_.step(step.through);
    if (!last) return say(step, "enables {}, which does not exist", step.through);
    const Queue* queue = program_.queue(last->queue);
    if (queue && !(last->is_receive ? queue->managed_receive : queue->managed))
      say(step, "{} needs no enabling: its queue is not managed", step.through);
  }

  void check_space(const Queue& queue) {
    uint64_t blocks = 0;
    uint64_t receives = 0;
    uint64_t widest = 0;
    for (const Step& step : program_.steps) {
      if (step.queue != queue.name) continue;
      const uint64_t own = nic_.blocks_of(step.opcode, static_cast<uint32_t>(step.elements.size()));
      (step.is_receive ? receives : blocks) += step.is_receive ? 1 : own;
      if (!step.is_receive) widest = std::max(widest, own);
    }
    // Padding before the end of the queue costs less than a request.
    const uint64_t padded = blocks * instances_ + (widest > 1 ? widest : 0);
    if (padded > limits_.max_send_blocks)
      found_.push_back(fmt::format("queue {}: {} blocks, and the NIC has {}", queue.name, padded,
                                   limits_.max_send_blocks));
    if (receives * instances_ > limits_.max_receives)
      found_.push_back(fmt::format("queue {}: {} receives, and the NIC has {}", queue.name,
                                   receives * instances_, limits_.max_receives));
  }

  // Each field has one source.
  void check_fills() {
    for (const auto& [name, parts] : filled_parts(program_)) {
      const Step& step = *program_.step(name);
      std::set<std::pair<Field, uint32_t>> bytes;
      for (const Part& part : parts) {
        if (!nic_.field_place(step.opcode, part.field))
          say(step, "{} has no field {}", nic::opcode_name(step.opcode), field_name(part.field));
        // An opcode may be given as well: it says which fields there are.
        if (part.bytes == field_bytes(part.field) && step.values.contains(part.field))
          say(step, "{} has a value, and is filled", field_name(part.field));
        for (uint32_t i = 0; i < part.bytes; i++)
          if (!bytes.insert({part.field, part.first + i}).second)
            say(step, "{} is filled twice", field_name(part.field));
      }
    }
  }

  // Nothing is enabled before its last fill has completed, nor waits for itself.
  void check_order() {
    const Order order(program_);
    if (order.has_cycle()) found_.push_back("steps wait for one another in a circle");
    for (size_t filler = 0; filler < program_.steps.size(); filler++)
      for (const Element& element : program_.steps[filler].elements)
        if (const auto* part = std::get_if<Part>(&element)) check_enables(order, filler, *part);
  }

  void check_enables(const Order& order, size_t filler, const Part& part) {
    const Step* target = program_.step(part.step);
    bool enabled = false;
    for (size_t i = 0; i < program_.steps.size(); i++) {
      const Step& step = program_.steps[i];
      const Step* last = step.opcode == Opcode::kSendEnable ? program_.step(step.through) : nullptr;
      if (!last || last->queue != target->queue || (last < target && !step.of_next)) continue;
      enabled = true;
      if (!order.completes_before(filler, i))
        say(step, "enables {} before {} has filled it", part.step, program_.steps[filler].name);
    }
    if (!enabled) say(*target, "is never enabled");
  }

  const Program& program_;
  const nic::Nic& nic_;
  const nic::Attributes& limits_;
  uint32_t instances_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> problems(const Program& program, const nic::Nic& nic, uint32_t instances) {
  return Validator(program, nic, instances).run();
}

bool completes_before(const Program& program, const std::string& step, const std::string& other) {
  const Step* first = program.step(step);
  const Step* second = program.step(other);
  if (!first || !second) return false;
  return Order(program).completes_before(static_cast<size_t>(first - program.steps.data()),
                                         static_cast<size_t>(second - program.steps.data()));
}

}  // namespace memsluice::chain
