// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/executor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

namespace memsluice::dsa {
namespace {

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

bool is_page_fault(uint8_t status) {
  const unsigned kind = status & DSA_COMP_STATUS_MASK;
  return kind == DSA_COMP_PAGE_FAULT_NOBOF || kind == DSA_COMP_PAGE_FAULT_IR;
}

// As far as it is told to come, and then what it is told to say.
Outcome fail_as_told(const Descriptor& descriptor, const GuestMemory& memory,
                     const Verdict& verdict) {
  Descriptor part = descriptor;
  Outcome outcome;
  part.xfer_size =
      static_cast<uint32_t>(std::min<uint64_t>(descriptor.xfer_size, verdict.completed_bytes));
  if (part.xfer_size && descriptor.opcode != DSA_OPCODE_BATCH) outcome = execute(part, memory);
  outcome.status = verdict.status;
  if (is_page_fault(verdict.status)) {
    const bool write = verdict.status & DSA_COMP_STATUS_WRITE;
    outcome.fault_address =
        (write ? descriptor.dst_addr : descriptor.src_addr) + outcome.bytes_completed;
  }
  return outcome;
}

}  // namespace

void Executor::run(Engines& engines, const Job& job) const {
  if (job.descriptor.opcode == DSA_OPCODE_DRAIN && !engines.wait_for_earlier(job)) return;
  end({.engines = engines,
       .job = job,
       .limits = board_.limits(job.queue),
       .descriptor = job.descriptor});
}

std::optional<Outcome> Executor::end(const Step& step) const {
  const Verdict verdict =
      injection_.judge(step.job.queue, step.descriptor, step.batch_index.has_value());
  TraceEntry entry{.began_ns = now_ns(),
                   .engine = step.job.engine,
                   .queue = step.job.queue,
                   .sequence = step.job.sequence,
                   .batch_index = step.batch_index ? static_cast<int>(*step.batch_index) : -1,
                   .descriptor = step.descriptor};
  if (verdict.halts) {
    board_.halt(*verdict.halts);
    return {};
  }
  if (verdict.holds) step.engines.hold(step.job.engine, true);
  if (!step.engines.wait_while_held(step.job)) return {};
  if (verdict.delay.count() && !step.engines.wait(step.job, verdict.delay)) return {};
  const auto outcome = perform(step, verdict);
  if (!outcome) return {};
  complete(step, *outcome, verdict.drops_interrupt);
  entry.ended_ns = now_ns();
  entry.outcome = *outcome;
  statistics_.ended(entry);
  return outcome;
}

std::optional<Outcome> Executor::perform(const Step& step, const Verdict& verdict) const {
  const Descriptor& descriptor = step.descriptor;
  const Refusal refusal = check_descriptor(descriptor, step.limits, step.batch_index.has_value());
  if (refusal.status)
    return Outcome{.status = refusal.status, .invalid_flags = refusal.invalid_flags};
  if (has_flag(descriptor, IDXD_OP_FLAG_CRAV) && !has_record(descriptor))
    return Outcome{.status = DSA_COMP_CRA_XLAT, .fault_address = descriptor.completion_addr};
  if (verdict.status) return fail_as_told(descriptor, memory_, verdict);
  if (descriptor.opcode == DSA_OPCODE_BATCH) return run_batch(step);
  return execute(descriptor, memory_);
}

std::optional<Outcome> Executor::run_batch(const Step& step) const {
  Outcome outcome;
  bool failed = false;
  for (unsigned i = 0; i < step.descriptor.desc_count; i++) {
    Step next{.engines = step.engines, .job = step.job, .limits = step.limits, .batch_index = i};
    const uint64_t address = step.descriptor.desc_list_addr + i * sizeof(Descriptor);
    if (!read_descriptor(address, next.descriptor)) {
      outcome.status = DSA_COMP_BATCH_PAGE_FAULT;
      outcome.fault_address = address;
      return outcome;
    }
    // A fence is not passed once something before it has failed: the rest is never begun.
    if (failed && has_flag(next.descriptor, IDXD_OP_FLAG_FENCE)) break;
    const auto ended = end(next);
    if (!ended) return {};
    failed |= !ended->succeeded();
    outcome.bytes_completed++;
  }
  if (failed) outcome.status = DSA_COMP_BATCH_FAIL;
  return outcome;
}

bool Executor::read_descriptor(uint64_t address, Descriptor& descriptor) const {
  const GuestMemory::View view(memory_);
  const auto bytes = view.all(address, sizeof(descriptor), GuestMemory::Access::kRead);
  if (bytes.empty()) return false;
  std::memcpy(&descriptor, bytes.data(), sizeof(descriptor));
  return true;
}

bool Executor::has_record(const Descriptor& descriptor) const {
  const GuestMemory::View view(memory_);
  return !view.all(descriptor.completion_addr, sizeof(CompletionRecord),
                   GuestMemory::Access::kWrite)
              .empty();
}

bool Executor::write_record(const Descriptor& descriptor, const Outcome& outcome) const {
  const GuestMemory::View view(memory_);
  const auto bytes =
      view.all(descriptor.completion_addr, sizeof(CompletionRecord), GuestMemory::Access::kWrite);
  if (bytes.empty()) return false;
  const CompletionRecord record = record_of(outcome);
  // Who polls the status sees the rest once he sees that.
  std::memcpy(bytes.data() + 1, reinterpret_cast<const uint8_t*>(&record) + 1, sizeof(record) - 1);
  std::atomic_ref(bytes[0]).store(outcome.status, std::memory_order_release);
  return true;
}

void Executor::complete(const Step& step, const Outcome& outcome, bool drops_interrupt) const {
  const Descriptor& descriptor = step.descriptor;
  const bool failed = !outcome.succeeded() && outcome.status != DSA_COMP_SUCCESS_PRED;
  const bool has_place =
      has_flag(descriptor, IDXD_OP_FLAG_CRAV) && outcome.status != DSA_COMP_CRA_ALIGN;
  const bool asked = !outcome.succeeded() || has_flag(descriptor, IDXD_OP_FLAG_RCR);
  const bool told = has_place && asked && write_record(descriptor, outcome);
  if (failed && !told) {
    statistics_.failed_silently();
    board_.report({.queue = step.job.queue,
                   .batch_index = step.batch_index,
                   .descriptor = descriptor,
                   .outcome = outcome});
  }
  if (!has_flag(descriptor, IDXD_OP_FLAG_RCI) || outcome.status == DSA_COMP_INT_HANDLE_INVAL ||
      descriptor.int_handle >= step.limits.vectors)
    return;
  statistics_.interrupted(drops_interrupt);
  if (!drops_interrupt) board_.interrupt(descriptor.int_handle);
}

}  // namespace memsluice::dsa
