// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "daemon/base/fd.h"
#include "daemon/base/json.h"
#include "daemon/base/log.h"
#include "tools/memsluice-dsa/engines.h"
#include "tools/memsluice-dsa/executor.h"
#include "tools/memsluice-dsa/guest_memory.h"
#include "tools/memsluice-dsa/injection.h"
#include "tools/memsluice-dsa/register_file.h"
#include "tools/memsluice-dsa/registers.h"
#include "tools/memsluice-dsa/shape.h"
#include "tools/memsluice-dsa/statistics.h"

namespace memsluice::dsa {

// A DSA without its bus: registers, portals, commands, errors. Everything public is for one thread,
// that of the bus; commands and engines have theirs.
class Device : private Board {
 public:
  Device(const Shape& shape, const GuestMemory& memory, const Log& log);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() override;

  // A power of two, of which the queues may need less.
  size_t portal_bytes() const;
  // Beyond the registers there are zeros, and nothing to write.
  void read_registers(uint64_t offset, std::span<uint8_t> into);
  void write_registers(uint64_t offset, std::span<const uint8_t> from);
  // A descriptor is there when each of its eight parts is.
  void write_portal(uint64_t offset, std::span<const uint8_t> from);
  // The function-level reset. No byte of memory is written afterwards.
  void reset();

  void set_bus_master(bool enabled);
  // An invalid one: nobody is told.
  void set_vector(unsigned vector, Fd event);

  // Halts it, as a fault in it would.
  void fail(ResetType reset) { halt(reset); }
  Result<void> hold(unsigned engine, bool held);
  Injection& injection() { return injection_; }
  Statistics& statistics() { return statistics_; }
  Json status() const;

 private:
  struct PendingCommand {
    uint32_t command = 0;
    uint64_t resets = 0;
  };

  Limits limits(unsigned queue) const override;
  void interrupt(unsigned vector) override;
  void report(const Failure& failure) override;
  void halt(ResetType reset) override;

  // With mutex_ held.
  void set_defaults();
  void write_register(uint32_t offset, uint32_t value);
  void write_queue_register(uint32_t offset, uint32_t value);
  void start_command(uint32_t command);
  registers::State state() const;
  uint32_t queue_register(unsigned queue, uint32_t offset) const;
  bool is_enabled(unsigned queue) const;
  void set_enabled(unsigned queue, bool enabled);
  QueueMask group_queues(unsigned group) const;
  uint64_t group_engines(unsigned group) const;
  unsigned group_of(unsigned queue) const;
  registers::CommandError check_groups() const;
  registers::CommandError check_queue(unsigned queue) const;
  void raise(uint32_t cause);
  bool log_event(const Failure& failure);
  void set_software_error(const Failure& failure);

  // By the commands' thread, without mutex_.
  void serve_commands();
  registers::CommandError run_command(uint32_t command, uint32_t operand);
  registers::CommandError enable_device();
  registers::CommandError disable_device();
  registers::CommandError reset_device();
  registers::CommandError enable_queue(uint32_t queue);
  registers::CommandError command_queues(uint32_t command, uint32_t operand);
  registers::CommandError settle(uint32_t command, QueueMask queues);

  const Shape shape_;
  const GuestMemory& memory_;
  const Log& log_;
  Injection injection_;
  Statistics statistics_;

  std::vector<uint8_t> portals_;
  std::vector<uint8_t> portal_parts_;  // for each descriptor's place, which eighths are there

  mutable std::mutex mutex_;
  RegisterFile registers_{registers::kBytes};
  bool bus_master_ = false;
  uint64_t resets_ = 0;
  std::optional<PendingCommand> command_;
  bool ending_ = false;
  std::condition_variable command_changed_;

  std::mutex vectors_mutex_;
  std::vector<Fd> vectors_;

  Executor executor_;
  Engines engines_;
  std::thread commands_;
};

}  // namespace memsluice::dsa
