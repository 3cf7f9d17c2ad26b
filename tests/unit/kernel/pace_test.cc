// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include <random>

extern "C" {
#include "kernel/migrate/pace.h"
}

namespace {

constexpr uint64_t kMib = 1 << 20;

// What a batch takes on a machine of a steady pace.
memsluice_pace_sample batch_on(const memsluice_pace& machine, uint64_t folios, uint64_t bytes) {
  const uint64_t copy_ns = bytes * machine.mib_ns / kMib;
  return {.folios = folios,
          .bytes = bytes,
          .copy_ns = copy_ns,
          .total_ns = copy_ns + folios * machine.folio_ns};
}

void expect_near(uint64_t value, uint64_t wanted) {
  EXPECT_NEAR(static_cast<double>(value), static_cast<double>(wanted),
              static_cast<double>(wanted) * 0.02 + 2);
}

TEST(Pace, PredictsFromBothParts) {
  const memsluice_pace pace = {.folio_ns = 100, .mib_ns = 1000};
  EXPECT_EQ(memsluice_pace_ns(&pace, 0, 0), 0U);
  EXPECT_EQ(memsluice_pace_ns(&pace, 3, 0), 300U);
  EXPECT_EQ(memsluice_pace_ns(&pace, 0, kMib / 2), 500U);
  EXPECT_EQ(memsluice_pace_ns(&pace, 512, 2 * kMib), 512 * 100 + 2000U);
}

TEST(Pace, LearnsAnyMachine) {
  for (const memsluice_pace machine :
       {memsluice_pace{500, 50000}, {2000, 100000}, {40000, 9000000}, {1, 1}, {300000, 30000000}}) {
    memsluice_pace pace = memsluice_pace_initial();
    for (int i = 0; i < 200; i++) {
      // Base pages and huge ones by turns.
      const auto sample = i % 2 ? batch_on(machine, 4, 8 * kMib) : batch_on(machine, 512, 2 * kMib);
      pace = memsluice_pace_learn(&pace, &sample);
    }
    expect_near(pace.folio_ns, machine.folio_ns);
    expect_near(pace.mib_ns, machine.mib_ns);
  }
}

TEST(Pace, OneInterruptedBatchChangesLittle) {
  const memsluice_pace machine = {.folio_ns = 1000, .mib_ns = 100000};
  memsluice_pace pace = machine;
  auto sample = batch_on(machine, 100, 400 << 10);
  sample.total_ns += 5000000000;
  sample.copy_ns += 4000000000;
  pace = memsluice_pace_learn(&pace, &sample);
  EXPECT_LE(pace.folio_ns, machine.folio_ns * 9 / 8 + 2);
  EXPECT_LE(pace.mib_ns, machine.mib_ns * 9 / 8 + 2);
  EXPECT_GT(pace.mib_ns, machine.mib_ns);
}

TEST(Pace, StaysWithinItsBoundsWhateverItIsTold) {
  std::mt19937_64 random(7);
  memsluice_pace pace = memsluice_pace_initial();
  const auto any = [&](int bits) { return random() >> (64 - 1 - random() % bits); };
  for (int i = 0; i < 100000; i++) {
    const memsluice_pace_sample sample = {
        .folios = any(20), .bytes = any(33), .copy_ns = any(43), .total_ns = any(43)};
    pace = memsluice_pace_learn(&pace, &sample);
    ASSERT_GE(pace.folio_ns, 1U);
    ASSERT_LE(pace.folio_ns, 1000000000U);
    ASSERT_GE(pace.mib_ns, 1U);
    ASSERT_LE(pace.mib_ns, 1000000000U);
    // A larger batch never takes less.
    ASSERT_LE(memsluice_pace_ns(&pace, 10, kMib), memsluice_pace_ns(&pace, 11, kMib));
    ASSERT_LE(memsluice_pace_ns(&pace, 10, kMib), memsluice_pace_ns(&pace, 10, 2 * kMib));
  }
}

}  // namespace
