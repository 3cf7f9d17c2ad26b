// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "tests/vm/module/world.h"

namespace memsluice::test {
namespace {

void name(char (&field)[MEMSLUICE_ENGINE_NAME_BYTES], std::string_view text) {
  ASSERT_LE(text.size(), sizeof(field));
  std::memcpy(field, text.data(), text.size());
}

int act(std::string_view engine, std::string_view queue, uint32_t action = MEMSLUICE_ENGINE_TEST) {
  auto act = sized<memsluice_engine_act>();
  act.action = action;
  name(act.engine, engine);
  name(act.queue, queue);
  return device_ioctl(MEMSLUICE_IOC_ENGINE_ACT, &act);
}

int queue_of(std::string_view engine, uint32_t index) {
  auto queue = sized<memsluice_engine_queue>();
  queue.index = index;
  name(queue.engine, engine);
  return device_ioctl(MEMSLUICE_IOC_ENGINE_QUEUE, &queue);
}

TEST(Engines, TheLastIsTheCpu) {
  std::string last;
  int32_t rank = 1000;
  for (uint32_t index = 0;; index++) {
    auto status = sized<memsluice_engine_status>();
    status.index = index;
    const int error = device_ioctl(MEMSLUICE_IOC_ENGINE_STATUS, &status);
    if (error == -ENOENT) break;
    ASSERT_EQ(error, 0);
    EXPECT_LT(status.rank, rank);
    rank = status.rank;
    last = status.name;
  }
  EXPECT_EQ(last, "cpu");
  EXPECT_EQ(rank, 0);
}

TEST(Engines, AnIndexBeyondAllIsNone) {
  auto status = sized<memsluice_engine_status>();
  status.index = ~0U;
  EXPECT_EQ(device_ioctl(MEMSLUICE_IOC_ENGINE_STATUS, &status), -ENOENT);
}

TEST(Engines, TheCpuHasNoQueues) {
  EXPECT_EQ(queue_of("cpu", 0), -ENOENT);
  EXPECT_EQ(act("cpu", "wq0.0"), -EOPNOTSUPP);
}

TEST(Engines, WhatIsNotThereIsNotFound) {
  EXPECT_EQ(queue_of("gpu", 0), -ENOENT);
  EXPECT_EQ(act("gpu", "wq0.0"), -ENOENT);
}

TEST(Engines, NamesAreChecked) {
  const std::string endless(MEMSLUICE_ENGINE_NAME_BYTES, 'x');
  EXPECT_EQ(queue_of("", 0), -EINVAL);
  EXPECT_EQ(queue_of(endless, 0), -EINVAL);
  EXPECT_EQ(act("", "wq0.0"), -EINVAL);
  EXPECT_EQ(act("cpu", ""), -EINVAL);
  EXPECT_EQ(act(endless, "wq0.0"), -EINVAL);
  EXPECT_EQ(act("cpu", endless), -EINVAL);
}

TEST(Engines, AStructureThatIsTooShortIsRefused) {
  auto status = sized<memsluice_engine_status>();
  status.size -= 8;
  EXPECT_EQ(device_ioctl(MEMSLUICE_IOC_ENGINE_STATUS, &status), -EINVAL);
  auto act = sized<memsluice_engine_act>();
  act.size -= 8;
  EXPECT_EQ(device_ioctl(MEMSLUICE_IOC_ENGINE_ACT, &act), -EINVAL);
}

}  // namespace
}  // namespace memsluice::test
