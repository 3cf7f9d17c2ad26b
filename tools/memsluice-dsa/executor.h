// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "tools/memsluice-dsa/descriptor.h"
#include "tools/memsluice-dsa/engines.h"
#include "tools/memsluice-dsa/guest_memory.h"
#include "tools/memsluice-dsa/injection.h"
#include "tools/memsluice-dsa/operations.h"
#include "tools/memsluice-dsa/statistics.h"

namespace memsluice::dsa {

// An error that no completion record tells of.
struct Failure {
  unsigned queue = 0;
  std::optional<unsigned> batch_index = {};
  Descriptor descriptor = {};
  Outcome outcome = {};
};

// What engines know and want of the device that they are in. Called by their threads.
class Board {
 public:
  virtual ~Board() = default;
  virtual Limits limits(unsigned queue) const = 0;
  virtual void interrupt(unsigned vector) = 0;
  virtual void report(const Failure& failure) = 0;
  virtual void halt(ResetType reset) = 0;
};

// What an engine does with a job.
class Executor {
 public:
  Executor(const GuestMemory& memory, Injection& injection, Statistics& statistics, Board& board)
      : memory_(memory), injection_(injection), statistics_(statistics), board_(board) {}

  // By the thread of the job's engine, one of @engines.
  void run(Engines& engines, const Job& job) const;

 private:
  struct Step {
    Engines& engines;
    const Job& job;
    const Limits limits;
    std::optional<unsigned> batch_index = {};
    Descriptor descriptor = {};
  };

  // Each returns nothing when the device has been reset meanwhile.
  std::optional<Outcome> end(const Step& step) const;
  std::optional<Outcome> perform(const Step& step, const Verdict& verdict) const;
  std::optional<Outcome> run_batch(const Step& step) const;
  bool read_descriptor(uint64_t address, Descriptor& descriptor) const;
  bool has_record(const Descriptor& descriptor) const;
  bool write_record(const Descriptor& descriptor, const Outcome& outcome) const;
  void complete(const Step& step, const Outcome& outcome, bool drops_interrupt) const;

  const GuestMemory& memory_;
  Injection& injection_;
  Statistics& statistics_;
  Board& board_;
};

}  // namespace memsluice::dsa
