// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/lending/chain/program.h"

namespace memsluice::chain {

struct BufferBinding {
  uint64_t address = 0;
  nic::Key key = 0;  // of the queues' protection domain; of what READs and WRITEs reach, remotely
};

// What a program's names stand for.
struct Bindings {
  std::map<std::string, nic::QueuePair> queues;
  std::map<std::string, nic::CompletionQueue> send_completions;     // by queue
  std::map<std::string, nic::CompletionQueue> receive_completions;  // by queue
  std::map<std::string, BufferBinding> buffers;
  std::map<std::string, uint64_t> symbols;
};

// Posts a program to a NIC that executes chains, instance after instance. The queues are its own,
// nothing has been posted to them before, and their completion queues count nothing else.
class Loader {
 public:
  // @program and @nic stay. kBadRequest: a name of the program stands for nothing.
  static Result<Loader> make(nic::Nic& nic, const Program& program, Bindings bindings);

  // kUnavailable: there is no room for another instance yet; those before it are posted.
  Result<void> post(uint32_t instances);
  uint32_t posted() const { return instances_; }
  // What lets the first instance begin: for any queue of the same protection domain that is not
  // managed, once.
  nic::WorkRequest start() const { return start_; }
  // For a RECEIVE_ENABLE from outside: receives of @queue when @instances may be asked for.
  uint32_t receives_of(const std::string& queue, uint32_t instances) const;

 private:
  Loader(nic::Nic& nic, const Program& program, Bindings bindings);

  Result<void> post_instance();
  Result<void> post_step(size_t number);
  Result<nic::WorkRequest> request(const Step& step) const;
  std::vector<nic::ScatterEntry> entries(const Step& step) const;
  nic::ScatterEntry field(const Part& part) const;
  uint64_t address_of(const Place& place) const;
  uint32_t block_count(const Step& step) const;
  std::vector<uint32_t> place_steps(std::map<std::string, uint32_t>& next) const;

  nic::Nic* nic_;
  const Program* program_;
  Bindings bindings_;
  uint32_t instances_ = 0;
  std::map<std::string, nic::SendQueueMemory> memory_;
  std::map<std::string, uint32_t> next_;  // block of each queue
  std::vector<uint32_t> begins_;          // of the steps of the instance that is being posted
  std::vector<uint32_t> next_begins_;     // of the one after
  nic::WorkRequest start_;
};

}  // namespace memsluice::chain
