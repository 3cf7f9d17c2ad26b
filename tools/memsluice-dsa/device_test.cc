// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/device.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tools/memsluice-dsa/test_host.h"

namespace memsluice::dsa {
namespace {

using namespace registers;

constexpr uint64_t kNowhere = 0x7000000;

class DeviceTest : public testing::Test {
 protected:
  void fill_source(size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
      host_.at(TestHost::kSource)[i] = static_cast<uint8_t>(i * 7 + 1);
  }
  bool is_copied(size_t bytes) {
    return std::equal(host_.at(TestHost::kSource), host_.at(TestHost::kSource) + bytes,
                      host_.at(TestHost::kDestination));
  }
  Descriptor copy(unsigned record, uint32_t bytes = 4096) {
    return TestHost::copy(record, TestHost::kSource, TestHost::kDestination, bytes);
  }
  void wait_until_held() {
    const auto is_held = [](const Json& engine) { return engine["held"] == true; };
    Json engines;
    do engines = device_.status()["engines"];
    while (std::none_of(engines.begin(), engines.end(), is_held));
  }
  void inject(const Rule& rule) { device_.injection().add(rule); }
  uint32_t state() { return host_.read(kGeneralStatus) & 3; }

  TestHost host_;
  Device& device_ = host_.device();
};

TEST_F(DeviceTest, SaysWhatItHas) {
  const auto general = host_.read<uint64_t>(kGeneralCapability);
  EXPECT_EQ(general >> 16 & 0x1f, 31U);
  EXPECT_EQ(general >> 21 & 0xf, 10U);
  EXPECT_EQ(general >> 31 & 1, 1U);
  EXPECT_EQ(general >> 13 & 3, 1U);  // the event log: without it 6.12's idxd crashes
  const auto queues = host_.read<uint64_t>(kQueueCapability);
  EXPECT_EQ(queues & 0xffff, 128U);
  EXPECT_EQ(queues >> 16 & 0xff, 8U);
  EXPECT_EQ(host_.read<uint64_t>(kEngineCapability), 4U);
  EXPECT_EQ(host_.read<uint64_t>(kGroupCapability) & 0xff, 4U);
  EXPECT_EQ(host_.read<uint64_t>(kOperationCapability), 0x10003007fULL);
  EXPECT_EQ(host_.read<uint64_t>(kBytes), 0U);
}

TEST_F(DeviceTest, CopiesWhatIsSubmitted) {
  host_.set_up();
  fill_source(4096);
  EXPECT_EQ(host_.run(copy(0)), DSA_COMP_SUCCESS);
  EXPECT_TRUE(is_copied(4096));
  EXPECT_EQ(host_.wait(0).bytes_completed, 4096U);
}

TEST_F(DeviceTest, AssemblesADescriptorFromItsParts) {
  host_.set_up();
  fill_source(4096);
  const Descriptor descriptor = copy(0);
  uint8_t bytes[sizeof(descriptor)];
  std::memcpy(bytes, &descriptor, sizeof(descriptor));
  // In any order, and at any place of the portal.
  for (const unsigned part : {7, 0, 3, 1, 2, 6, 5, 4}) {
    EXPECT_EQ(host_.status(0), 0U);
    device_.write_portal(640 + part * 8, {&bytes[part * 8], 8});
  }
  EXPECT_EQ(host_.wait(0).status, DSA_COMP_SUCCESS);
  EXPECT_TRUE(is_copied(4096));
}

TEST(Device, HasPortalsForAnyNumberOfQueues) {
  TestHost host({.queues = 3});
  EXPECT_EQ(host.device().portal_bytes(), 0x10000U);
  host.configure_group(0, 7, 1);
  for (unsigned i = 0; i < 3; i++) host.configure_queue(i);
  ASSERT_EQ(host.command(kEnableDevice), kDone);
  for (unsigned i = 0; i < 3; i++) ASSERT_EQ(host.command(kEnableQueue, i), kDone);
  for (unsigned i = 0; i < 3; i++) {
    host.submit(TestHost::copy(i, TestHost::kSource, TestHost::kDestination, 64), i);
    EXPECT_EQ(host.wait(i).status, DSA_COMP_SUCCESS) << i;
  }
  // There is no fourth.
  host.submit(TestHost::copy(3, TestHost::kSource, TestHost::kDestination, 64), 3);
  EXPECT_EQ(host.command(kDrainAll), kDone);
  EXPECT_EQ(host.status(3), 0U);
}

TEST_F(DeviceTest, WritesNoRecordThatNobodyAskedFor) {
  host_.set_up();
  Descriptor quiet = copy(0);
  quiet.flags = IDXD_OP_FLAG_CRAV | IDXD_OP_FLAG_RCI;
  quiet.int_handle = 1;
  host_.submit(quiet);
  EXPECT_EQ(host_.interrupts(1), 1U);
  EXPECT_EQ(host_.status(0), 0U);
  quiet.xfer_size = 0;
  host_.submit(quiet);
  EXPECT_EQ(host_.interrupts(1), 1U);
  EXPECT_EQ(host_.status(0), DSA_COMP_XFER_ERANGE);
}

TEST_F(DeviceTest, InterruptsAfterTheRecord) {
  host_.set_up();
  Descriptor descriptor = copy(0);
  descriptor.flags |= IDXD_OP_FLAG_RCI;
  descriptor.int_handle = 3;
  host_.submit(descriptor);
  EXPECT_EQ(host_.interrupts(3), 1U);
  EXPECT_EQ(host_.status(0), DSA_COMP_SUCCESS);
}

TEST_F(DeviceTest, TellsWhyItRefuses) {
  host_.set_up();
  Descriptor descriptor = copy(0);
  descriptor.opcode = 0x99;
  EXPECT_EQ(host_.run(descriptor), DSA_COMP_BAD_OPCODE);
  descriptor = copy(1);
  descriptor.flags |= IDXD_OP_FLAG_FENCE;
  EXPECT_EQ(host_.run(descriptor), DSA_COMP_INVALID_FLAGS);
  EXPECT_EQ(host_.wait(1).invalid_flags, static_cast<uint32_t>(IDXD_OP_FLAG_FENCE));
  EXPECT_EQ(host_.run(copy(2, (2 << 20) + 1)), DSA_COMP_XFER_ERANGE);
  descriptor = copy(3);
  descriptor.flags |= IDXD_OP_FLAG_RCI;
  descriptor.int_handle = 9;
  EXPECT_EQ(host_.run(descriptor), DSA_COMP_INT_HANDLE_INVAL);
  descriptor = copy(4);
  descriptor.src_addr = kNowhere;
  EXPECT_EQ(host_.run(descriptor), DSA_COMP_PAGE_FAULT_NOBOF);
  EXPECT_EQ(host_.wait(4).fault_addr, kNowhere);
  descriptor = copy(5);
  descriptor.dst_addr = kNowhere;
  EXPECT_EQ(host_.run(descriptor), DSA_COMP_PAGE_FAULT_NOBOF | DSA_COMP_STATUS_WRITE);
}

TEST_F(DeviceTest, ABatchEndsWithThoseThatItHas) {
  host_.set_up();
  fill_source(3 * 4096);
  const auto part = [&](unsigned i) {
    return TestHost::copy(10 + i, TestHost::kSource + i * 4096, TestHost::kDestination + i * 4096,
                          4096);
  };
  EXPECT_EQ(host_.run(host_.batch(0, {part(0), part(1), part(2)})), DSA_COMP_SUCCESS);
  EXPECT_EQ(host_.wait(0).bytes_completed, 3U);
  EXPECT_TRUE(is_copied(3 * 4096));
  EXPECT_EQ(host_.status(12), DSA_COMP_SUCCESS);
}

TEST_F(DeviceTest, ABatchTellsOfAFailureAndGoesOn) {
  host_.set_up();
  fill_source(4096);
  Descriptor bad = copy(10);
  bad.src_addr = kNowhere;
  EXPECT_EQ(host_.run(host_.batch(0, {bad, copy(11)})), DSA_COMP_BATCH_FAIL);
  EXPECT_EQ(host_.wait(0).bytes_completed, 2U);
  EXPECT_EQ(host_.status(10), DSA_COMP_PAGE_FAULT_NOBOF);
  EXPECT_EQ(host_.status(11), DSA_COMP_SUCCESS);
  EXPECT_TRUE(is_copied(4096));
}

TEST_F(DeviceTest, AFenceIsNotPassedAfterAFailure) {
  host_.set_up();
  Descriptor bad = copy(10), fenced = copy(11);
  bad.src_addr = kNowhere;
  fenced.flags |= IDXD_OP_FLAG_FENCE;
  EXPECT_EQ(host_.run(host_.batch(0, {bad, fenced, copy(12)})), DSA_COMP_BATCH_FAIL);
  EXPECT_EQ(host_.wait(0).bytes_completed, 1U);
  EXPECT_EQ(host_.status(11), 0U);
  EXPECT_EQ(host_.status(12), 0U);
  // And is when all went well.
  EXPECT_EQ(host_.run(host_.batch(1, {copy(13), fenced})), DSA_COMP_SUCCESS);
}

TEST_F(DeviceTest, RefusesBatchesThatItCannotHave) {
  host_.set_up();
  EXPECT_EQ(host_.run(host_.batch(0, {copy(10)})), DSA_COMP_DESC_CNT_ERANGE);
  Descriptor batch = host_.batch(1, {copy(10), copy(11)});
  batch.desc_count = 33;
  EXPECT_EQ(host_.run(batch), DSA_COMP_DESC_CNT_ERANGE);
  batch = host_.batch(2, {copy(10), copy(11)});
  batch.desc_list_addr += 32;
  EXPECT_EQ(host_.run(batch), DSA_COMP_DESCLIST_ALIGN);
  batch = host_.batch(3, {copy(10), copy(11)});
  batch.desc_list_addr = kNowhere;
  EXPECT_EQ(host_.run(batch), DSA_COMP_BATCH_PAGE_FAULT);
  Descriptor inner = host_.batch(14, {copy(10), copy(11)});
  EXPECT_EQ(host_.run(host_.batch(4, {inner, copy(15)})), DSA_COMP_BATCH_FAIL);
  EXPECT_EQ(host_.status(14), DSA_COMP_BAD_OPCODE);
}

TEST_F(DeviceTest, ADrainEndsAfterWhatCameBefore) {
  host_.set_up();
  inject({.action = Rule::Action::kHold});
  host_.submit(copy(0));
  wait_until_held();
  Descriptor drain = copy(1);
  drain.opcode = DSA_OPCODE_DRAIN;
  drain.src_addr = drain.dst_addr = drain.xfer_size = 0;
  host_.submit(drain);
  host_.submit(copy(2));
  EXPECT_EQ(host_.wait(2).status, DSA_COMP_SUCCESS);
  EXPECT_EQ(host_.status(1), 0U);
  for (unsigned i = 0; i < 4; i++) EXPECT_TRUE(device_.hold(i, false).ok());
  EXPECT_EQ(host_.wait(1).status, DSA_COMP_SUCCESS);
  EXPECT_EQ(host_.status(0), DSA_COMP_SUCCESS);
}

TEST_F(DeviceTest, ChecksBeforeItIsEnabled) {
  host_.configure_queue(0, 100);
  host_.configure_queue(1, 29);
  EXPECT_EQ(host_.command(kEnableDevice), kQueueSizesTooLarge);
  host_.configure_queue(1, 28);
  host_.configure_group(0, 3, 0);
  EXPECT_EQ(host_.command(kEnableDevice), kGroupIncomplete);
  host_.configure_group(0, 3, 1);
  host_.configure_group(1, 2, 2);
  EXPECT_EQ(host_.command(kEnableDevice), kQueuesMisplaced);
  host_.configure_group(1, 4, 1);
  EXPECT_EQ(host_.command(kEnableDevice), kEnginesMisplaced);
  host_.configure_group(1, 0, 0);
  device_.set_bus_master(false);
  EXPECT_EQ(host_.command(kEnableDevice), kBusMasterDisabled);
  device_.set_bus_master(true);
  EXPECT_EQ(host_.command(kEnableDevice), kDone);
  EXPECT_EQ(host_.command(kEnableDevice), kDeviceEnabled);
  EXPECT_EQ(host_.interrupts(0), 7U);
  EXPECT_EQ(host_.read(kInterruptCause), kCauseCommand);
  host_.write(kInterruptCause, kCauseCommand);
  EXPECT_EQ(host_.read(kInterruptCause), 0U);
}

TEST_F(DeviceTest, ChecksAQueueBeforeItIsEnabled) {
  const auto mode = TestHost::queue_register(0, kQueueMode);
  EXPECT_EQ(host_.command(kEnableQueue, 0), kDeviceNotEnabled);
  host_.configure_group(0, 1, 1);
  EXPECT_EQ(host_.command(kEnableDevice), kDone);
  EXPECT_EQ(host_.command(kEnableQueue, 8), kInvalidQueue);
  EXPECT_EQ(host_.command(kEnableQueue, 0), kQueueSizeZero);
  EXPECT_EQ(host_.command(kDisableDevice), kDone);
  host_.configure_queue(0);
  EXPECT_EQ(host_.command(kEnableDevice), kDone);
  host_.write(mode, 1U);
  EXPECT_EQ(host_.command(kEnableQueue, 0), kQueuePriorityZero);
  host_.write(mode, 10U << 4);
  EXPECT_EQ(host_.command(kEnableQueue, 0), kQueueModeInvalid);
  host_.write(mode, 1U | 10U << 4 | 1U << 28);
  EXPECT_EQ(host_.command(kEnableQueue, 0), kPasidInvalid);
  host_.write(mode, 1U | 10U << 4);
  host_.write(TestHost::queue_register(0, kQueueShifts), 21U | 11U << 5);
  EXPECT_EQ(host_.command(kEnableQueue, 0), kMaxBatchInvalid);
  host_.write(TestHost::queue_register(0, kQueueShifts), 21U | 5U << 5);
  EXPECT_EQ(host_.command(kEnableQueue, 0), kDone);
  EXPECT_EQ(host_.command(kEnableQueue, 0), kQueueAlreadyEnabled);
  // Of a queue that is enabled nothing changes.
  host_.write(mode, 0U);
  EXPECT_EQ(host_.read(mode), 1U | 10U << 4);
}

TEST_F(DeviceTest, KnowsNoOtherCommands) {
  EXPECT_EQ(host_.command(0), kInvalidCommand);
  EXPECT_EQ(host_.command(13), kInvalidCommand);
  EXPECT_EQ(host_.command(kDisableDevice), kDeviceOff);
  EXPECT_EQ(host_.command(kDrainQueue, 1), kQueueNotEnabled);
  host_.set_up();
  EXPECT_EQ(host_.command(kDrainQueue, 1 << 8), kInvalidQueue);
  EXPECT_EQ(host_.command(kDrainQueue, 1 | 1 << 16), kInvalidQueue);
  EXPECT_EQ(host_.command(kDrainAll), kDone);
}

TEST_F(DeviceTest, ADisabledQueueEndsWhatItHadAndTakesNoMore) {
  host_.set_up();
  for (unsigned i = 0; i < 8; i++) host_.submit(copy(i));
  EXPECT_EQ(host_.command(kDisableQueue, 1), kDone);
  for (unsigned i = 0; i < 8; i++) EXPECT_EQ(host_.status(i), DSA_COMP_SUCCESS) << i;
  host_.submit(copy(20));
  EXPECT_EQ(host_.read<uint64_t>(kSoftwareError) & 1, 1U);
  EXPECT_EQ(host_.status(20), 0U);
  EXPECT_EQ(host_.command(kEnableQueue, 0), kDone);
  EXPECT_EQ(host_.run(copy(21)), DSA_COMP_SUCCESS);
}

TEST_F(DeviceTest, AnAbortForgetsWhatWaits) {
  host_.set_up();
  for (unsigned i = 0; i < 4; i++) EXPECT_TRUE(device_.hold(i, true).ok());
  for (unsigned i = 0; i < 3; i++) host_.submit(copy(i));
  EXPECT_EQ(host_.read<uint16_t>(TestHost::queue_register(0, kQueueState)), 3U);
  EXPECT_EQ(host_.command(kAbortQueue, 1), kDone);
  for (unsigned i = 0; i < 4; i++) EXPECT_TRUE(device_.hold(i, false).ok());
  EXPECT_EQ(host_.run(copy(9)), DSA_COMP_SUCCESS);
  for (unsigned i = 0; i < 3; i++) EXPECT_EQ(host_.status(i), 0U);
}

TEST_F(DeviceTest, AFullQueueLosesWhatDoesNotFit) {
  host_.set_up();
  for (unsigned i = 0; i < 4; i++) EXPECT_TRUE(device_.hold(i, true).ok());
  for (unsigned i = 0; i < 17; i++) host_.submit(copy(i));
  for (unsigned i = 0; i < 4; i++) EXPECT_TRUE(device_.hold(i, false).ok());
  EXPECT_EQ(host_.command(kDrainQueue, 1), kDone);
  EXPECT_EQ(host_.status(15), DSA_COMP_SUCCESS);
  EXPECT_EQ(host_.status(16), 0U);
  EXPECT_EQ(device_.statistics().to_json()["refused_by_queue"]["0"], 1);
}

TEST_F(DeviceTest, AResetQueueHasNoConfiguration) {
  host_.set_up();
  EXPECT_EQ(host_.command(kResetQueue, 1), kDone);
  EXPECT_EQ(host_.read(TestHost::queue_register(0, kQueueMode)), 0U);
  EXPECT_EQ(host_.read(TestHost::queue_register(0, 0)), 16U);
  EXPECT_EQ(host_.command(kEnableQueue, 0), kQueuePriorityZero);
}

TEST_F(DeviceTest, NothingIsWrittenAfterAReset) {
  host_.set_up();
  fill_source(4096);
  inject({.action = Rule::Action::kHold});
  host_.submit(copy(0));
  wait_until_held();
  // It hangs in a drain, too.
  host_.start_command(kDrainAll);
  device_.reset();
  EXPECT_EQ(host_.read(kCommandStatus), 0U);
  EXPECT_EQ(state(), static_cast<uint32_t>(State::kDisabled));
  EXPECT_EQ(host_.read(TestHost::queue_register(0, kQueueMode)), 0U);
  EXPECT_FALSE(is_copied(4096));
  EXPECT_EQ(host_.status(0), 0U);
  EXPECT_EQ(host_.interrupts_so_far(0), 2U);  // of the two commands that set it up
  host_.set_up();
  EXPECT_EQ(host_.run(copy(1)), DSA_COMP_SUCCESS);
}

TEST_F(DeviceTest, TheCommandResetGivesBackTheDefaults) {
  host_.set_up();
  host_.write(kGeneralControl, 7U);
  EXPECT_EQ(host_.command(kResetDevice), kDone);
  EXPECT_EQ(state(), static_cast<uint32_t>(State::kDisabled));
  EXPECT_EQ(host_.read(kGeneralControl), 0U);
  EXPECT_EQ(host_.read(kVersion), 0x100U);
}

TEST_F(DeviceTest, AHaltEndsEverythingUntilTheRightReset) {
  host_.set_up();
  host_.write(kGeneralControl, kHaltInterrupt);
  host_.interrupts(0);
  host_.write(kInterruptCause, ~0U);
  inject({.action = Rule::Action::kHalt, .reset = ResetType::kFunctionLevel});
  host_.submit(copy(0));
  EXPECT_EQ(host_.interrupts(0), 1U);
  EXPECT_EQ(host_.read(kInterruptCause), kCauseHalt);
  EXPECT_EQ(host_.read(kGeneralStatus), 3U | 1U << 2);
  EXPECT_EQ(host_.status(0), 0U);
  EXPECT_EQ(host_.command(kEnableDevice), kHardwareError);
  EXPECT_EQ(host_.command(kResetDevice), kHardwareError);
  device_.reset();
  EXPECT_EQ(state(), static_cast<uint32_t>(State::kDisabled));
  device_.fail(ResetType::kSoftware);
  EXPECT_EQ(host_.command(kResetDevice), kDone);
  EXPECT_EQ(state(), static_cast<uint32_t>(State::kDisabled));
}

TEST_F(DeviceTest, InjectedFailuresDoAsMuchAsTheyAreTold) {
  host_.set_up();
  fill_source(4096);
  inject({.action = Rule::Action::kStatus,
          .status = DSA_COMP_PAGE_FAULT_NOBOF | DSA_COMP_STATUS_WRITE,
          .completed_bytes = 1000});
  EXPECT_EQ(host_.run(copy(0)), DSA_COMP_PAGE_FAULT_NOBOF | DSA_COMP_STATUS_WRITE);
  EXPECT_EQ(host_.wait(0).bytes_completed, 1000U);
  EXPECT_EQ(host_.wait(0).fault_addr, TestHost::kDestination + 1000);
  EXPECT_TRUE(is_copied(1000));
  EXPECT_EQ(host_.at(TestHost::kDestination)[1000], 0U);
  EXPECT_EQ(host_.run(copy(1)), DSA_COMP_SUCCESS);
}

TEST_F(DeviceTest, LostInterruptsHaveTheirRecord) {
  host_.set_up();
  inject({.action = Rule::Action::kDropInterrupt});
  Descriptor descriptor = copy(0);
  descriptor.flags |= IDXD_OP_FLAG_RCI;
  descriptor.int_handle = 2;
  EXPECT_EQ(host_.run(descriptor), DSA_COMP_SUCCESS);
  EXPECT_EQ(host_.command(kDrainQueue, 1), kDone);
  EXPECT_EQ(host_.interrupts_so_far(2), 0U);
}

class ErrorTest : public DeviceTest {
 protected:
  // Without a place for its record nobody but the device can tell of its failure.
  Descriptor untold() {
    Descriptor descriptor = copy(0);
    descriptor.flags = 0;
    descriptor.src_addr = kNowhere;
    return descriptor;
  }
  void end(const Descriptor& descriptor) {
    host_.submit(descriptor);
    EXPECT_EQ(host_.command(kDrainQueue, 1), kDone);
  }
};

TEST_F(ErrorTest, GoToTheRegister) {
  host_.set_up();
  end(untold());
  const auto error = host_.read<uint64_t>(kSoftwareError);
  EXPECT_EQ(error & 3, 1U);
  EXPECT_EQ(error >> 8 & 0xff, static_cast<uint64_t>(DSA_COMP_PAGE_FAULT_NOBOF));
  EXPECT_EQ(error >> 32 & 0xff, static_cast<uint64_t>(DSA_OPCODE_MEMMOVE));
  EXPECT_EQ(host_.read<uint64_t>(kSoftwareError + 16), kNowhere);
  // One more while nobody has read the first is lost, and that is told.
  end(untold());
  EXPECT_EQ(host_.read<uint64_t>(kSoftwareError) & 3, 3U);
  host_.write<uint64_t>(kSoftwareError, 3);
  EXPECT_EQ(host_.read<uint64_t>(kSoftwareError) & 3, 0U);
}

TEST_F(ErrorTest, ComeOfRecordsThatCannotBeWritten) {
  host_.set_up();
  fill_source(4096);
  Descriptor descriptor = copy(0);
  descriptor.completion_addr = kNowhere;
  end(descriptor);
  EXPECT_EQ(host_.read<uint64_t>(kSoftwareError) >> 8 & 0xff,
            static_cast<uint64_t>(DSA_COMP_CRA_XLAT));
  EXPECT_FALSE(is_copied(4096));
  host_.write<uint64_t>(kSoftwareError, 3);
  descriptor = copy(0);
  descriptor.completion_addr += 8;
  end(descriptor);
  EXPECT_EQ(host_.read<uint64_t>(kSoftwareError) >> 8 & 0xff,
            static_cast<uint64_t>(DSA_COMP_CRA_ALIGN));
}

TEST_F(ErrorTest, GoToTheLogIfThereIsOne) {
  host_.set_up();
  host_.write<uint64_t>(kEventLogConfiguration, TestHost::kLog);
  host_.write<uint64_t>(kEventLogConfiguration + 8, 64);
  host_.write(kGeneralControl, kEventLogInterrupt);
  host_.write(kGeneralConfiguration, kEventLogEnable);
  host_.write(kInterruptCause, ~0U);
  end(untold());
  end(untold());
  EXPECT_EQ(host_.read<uint16_t>(kEventLogStatus + 4), 2U);
  EXPECT_TRUE(host_.read(kEventLogStatus + 4) & kEventLogPending);
  EXPECT_TRUE(host_.read(kInterruptCause) & kCauseEventLog);
  EXPECT_EQ(host_.read<uint64_t>(kSoftwareError), 0U);
  uint64_t entry[8];
  std::memcpy(entry, host_.at(TestHost::kLog) + 64, sizeof(entry));
  EXPECT_EQ(entry[0] >> 8 & 0xff, static_cast<uint64_t>(DSA_COMP_PAGE_FAULT_NOBOF));
  EXPECT_EQ(entry[2], kNowhere);
  host_.write(kEventLogStatus + 4, kEventLogPending);
  EXPECT_FALSE(host_.read(kEventLogStatus + 4) & kEventLogPending);
}

TEST_F(ErrorTest, GoToTheRegisterWhenTheLogIsFull) {
  host_.set_up();
  host_.write<uint64_t>(kEventLogConfiguration, TestHost::kLog);
  host_.write<uint64_t>(kEventLogConfiguration + 8, 64);
  host_.write(kGeneralConfiguration, kEventLogEnable);
  for (int i = 0; i < 63; i++) end(untold());
  EXPECT_EQ(host_.read<uint64_t>(kSoftwareError), 0U);
  end(untold());
  EXPECT_EQ(host_.read<uint64_t>(kSoftwareError) & 1, 1U);
  // Room again.
  host_.write(kEventLogStatus, 10U);
  end(untold());
  EXPECT_EQ(host_.read<uint16_t>(kEventLogStatus + 4), 0U);
}

// Whatever a driver writes where: the device stays one that a reset brings back.
TEST_F(DeviceTest, SurvivesWritesOfAnything) {
  uint64_t random = 1;
  const auto next = [&random] {
    random ^= random << 13;
    random ^= random >> 7;
    return random ^= random << 17;
  };
  for (int i = 0; i < 20000; i++) {
    uint8_t bytes[64];
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(next());
    const size_t count = 1 + next() % sizeof(bytes);
    // Mostly where registers are.
    const uint64_t offset = next() % (i % 8 ? 0x2000 : ~0ULL) & ~(i % 4 ? 3ULL : 0ULL);
    device_.write_registers(offset, {bytes, i % 3 ? (count + 3) / 4 * 4 : count});
    device_.write_portal(next() % (device_.portal_bytes() + 64) & ~7ULL, bytes);
    device_.read_registers(offset, {bytes, count});
  }
  device_.reset();
  host_.set_up();
  fill_source(4096);
  EXPECT_EQ(host_.run(copy(0)), DSA_COMP_SUCCESS);
  EXPECT_TRUE(is_copied(4096));
}

}  // namespace
}  // namespace memsluice::dsa
