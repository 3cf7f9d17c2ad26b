// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include "tools/memsluice-dsa/device.h"
#include "tools/memsluice-dsa/test_memory.h"

namespace memsluice::dsa {

// What a driver does with a device, for tests: it configures, submits and waits.
class TestHost {
 public:
  static constexpr uint64_t kBase = 0x100000, kBytes = 1 << 20;
  // Where things are in memory: records, lists of descriptors, the event log, data.
  static constexpr uint64_t kRecords = kBase, kLists = kBase + 0x10000, kLog = kBase + 0x20000;
  static constexpr uint64_t kSource = kBase + 0x40000, kDestination = kBase + 0x80000;

  explicit TestHost(const Shape& shape = {}) : shape_(shape) {
    data_ = memory_.add(kBase, kBytes);
    device_.emplace(shape, memory_.memory(), log_);
    device_->set_bus_master(true);
    for (unsigned i = 0; i < shape.vectors(); i++) {
      events_.emplace_back(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
      device_->set_vector(i, Fd(dup(events_[i].get())));
    }
  }

  Device& device() { return *device_; }
  GuestMemory& memory() { return memory_.memory(); }
  uint8_t* at(uint64_t address) { return data_ + (address - kBase); }

  template <typename T = uint32_t>
  T read(uint64_t offset) {
    T value;
    uint8_t bytes[sizeof(T)];
    device_->read_registers(offset, bytes);
    std::memcpy(&value, bytes, sizeof(value));
    return value;
  }
  template <typename T = uint32_t>
  void write(uint64_t offset, T value) {
    uint8_t bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(value));
    device_->write_registers(offset, bytes);
  }

  static uint64_t queue_register(unsigned queue, uint32_t offset) {
    return registers::kQueueTable + queue * registers::kQueueStride + offset;
  }
  // Return: the command's error.
  uint32_t command(uint32_t command, uint32_t operand = 0) {
    start_command(command, operand);
    uint32_t status = 0;
    while ((status = read(registers::kCommandStatus)) & registers::kCommandActive)
      std::this_thread::yield();
    return status;
  }
  void start_command(uint32_t command, uint32_t operand = 0) {
    write(registers::kCommand, operand | command << 20 | registers::kCommandInterrupt);
  }

  void configure_group(unsigned group, uint64_t queues, uint64_t engines) {
    const uint64_t part = registers::kGroupTable + group * registers::kGroupStride;
    write<uint64_t>(part, queues);
    write<uint64_t>(part + registers::kGroupEngines, engines);
  }
  void configure_queue(unsigned queue, uint32_t entries = 16) {
    write(queue_register(queue, 0), entries);
    write(queue_register(queue, registers::kQueueMode), 1U | 10U << 4);    // dedicated, priority 10
    write(queue_register(queue, registers::kQueueShifts), 21U | 5U << 5);  // 2 MiB, 32 descriptors
    for (unsigned i = 0; i < 4; i++)
      write<uint64_t>(queue_register(queue, registers::kQueueOperations + 8 * i), ~0ULL);
  }
  // One queue, with all engines.
  void set_up() {
    configure_group(0, 1, (1U << shape_.engines) - 1);
    configure_queue(0);
    ASSERT_EQ(command(registers::kEnableDevice), registers::kDone);
    ASSERT_EQ(command(registers::kEnableQueue, 0), registers::kDone);
  }

  // A copy that asks for a record, the one with this number.
  static Descriptor copy(unsigned record, uint64_t from, uint64_t to, uint32_t bytes) {
    Descriptor descriptor = {};
    descriptor.opcode = DSA_OPCODE_MEMMOVE;
    descriptor.flags = IDXD_OP_FLAG_CRAV | IDXD_OP_FLAG_RCR;
    descriptor.completion_addr = kRecords + record * sizeof(CompletionRecord);
    descriptor.src_addr = from;
    descriptor.dst_addr = to;
    descriptor.xfer_size = bytes;
    return descriptor;
  }
  // The descriptors are laid where a list is.
  Descriptor batch(unsigned record, std::initializer_list<Descriptor> descriptors) {
    Descriptor descriptor = {};
    descriptor.opcode = DSA_OPCODE_BATCH;
    descriptor.flags = IDXD_OP_FLAG_CRAV | IDXD_OP_FLAG_RCR;
    descriptor.completion_addr = kRecords + record * sizeof(CompletionRecord);
    descriptor.desc_list_addr = kLists;
    for (const Descriptor& child : descriptors)
      std::memcpy(at(kLists) + descriptor.desc_count++ * sizeof(child), &child, sizeof(child));
    return descriptor;
  }
  void submit(const Descriptor& descriptor, unsigned queue = 0) {
    uint8_t bytes[sizeof(descriptor)];
    std::memcpy(bytes, &descriptor, sizeof(descriptor));
    device_->write_portal(uint64_t{queue} * registers::kPortalsOfQueue * registers::kPortalBytes,
                          bytes);
  }
  uint8_t status(unsigned record) {
    return std::atomic_ref(at(kRecords)[record * sizeof(CompletionRecord)])
        .load(std::memory_order_acquire);
  }
  CompletionRecord wait(unsigned record) {
    while (!status(record)) std::this_thread::yield();
    CompletionRecord found;
    std::memcpy(reinterpret_cast<uint8_t*>(&found), at(kRecords) + record * sizeof(found),
                sizeof(found));
    return found;
  }
  // Return: the status of its record.
  uint8_t run(const Descriptor& descriptor) {
    submit(descriptor);
    return wait(static_cast<unsigned>((descriptor.completion_addr - kRecords) /
                                      sizeof(CompletionRecord)))
        .status;
  }
  // How often the interrupt came since the last time that this was asked. Waits for one.
  uint64_t interrupts(unsigned vector) {
    pollfd event = {.fd = events_[vector].get(), .events = POLLIN, .revents = 0};
    poll(&event, 1, -1);
    return interrupts_so_far(vector);
  }
  uint64_t interrupts_so_far(unsigned vector) {
    uint64_t count = 0;
    return ::read(events_[vector].get(), &count, sizeof(count)) < 0 ? 0 : count;
  }

 private:
  const Shape shape_;
  const Log log_{LogLevel::kError, [](std::string_view) {}};
  TestMemory memory_;
  uint8_t* data_ = nullptr;
  std::vector<Fd> events_;
  std::optional<Device> device_;
};

}  // namespace memsluice::dsa
