// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/injection.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace memsluice::dsa {
namespace {

Rule rule(const char* text) {
  auto read = rule_from_json(Json::parse(text));
  EXPECT_TRUE(read.ok()) << text << ": " << read.error().describe();
  return read.ok() ? *read : Rule();
}

struct MistakenRule {
  const char* rule;
  const char* object;
  const char* message;
};

class MistakenRules : public testing::TestWithParam<MistakenRule> {};

TEST_P(MistakenRules, AreRefusedByName) {
  const auto read = rule_from_json(Json::parse(GetParam().rule));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kBadRequest);
  EXPECT_EQ(read.error().object, GetParam().object);
  EXPECT_EQ(read.error().message, GetParam().message);
}

constexpr const char* kUnknownAction = "is not status, delay, drop-interrupt, hold or halt";

INSTANTIATE_TEST_SUITE_P(
    Injection, MistakenRules,
    testing::Values(
        MistakenRule{"[]", "", "must be an object"}, MistakenRule{"7", "", "must be an object"},
        MistakenRule{"{}", "do", "is missing"},
        MistakenRule{R"({"do": null})", "do", kUnknownAction},
        MistakenRule{R"({"do": 3})", "do", kUnknownAction},
        MistakenRule{R"({"do": "explode"})", "do", kUnknownAction},
        MistakenRule{R"({"do": "", "queue": 1})", "do", kUnknownAction},
        MistakenRule{R"({"do": "explode", "status": 3})", "do", kUnknownAction},
        MistakenRule{R"({"do": "hold", "queu": 1})", "queu", "no such key"},
        MistakenRule{R"({"do": "hold", "status": 3})", "status", "no such key"},
        MistakenRule{R"({"do": "delay", "delay_us": 1, "reset": "warm"})", "reset", "no such key"},
        MistakenRule{R"({"do": "status", "status": 3, "delay_us": 1})", "delay_us", "no such key"},
        MistakenRule{R"({"do": "status"})", "status", "is missing"},
        MistakenRule{R"({"do": "status", "status": 0})", "status",
                     "must be a whole number from 1 to 255"},
        MistakenRule{R"({"do": "status", "status": 256})", "status",
                     "must be a whole number from 1 to 255"},
        MistakenRule{R"({"do": "status", "status": "3"})", "status",
                     "must be a whole number from 1 to 255"},
        MistakenRule{R"({"do": "status", "status": 3, "completed_bytes": 4294967296})",
                     "completed_bytes", "must be a whole number from 0 to 4294967295"},
        MistakenRule{R"({"do": "delay"})", "delay_us", "is missing"},
        MistakenRule{R"({"do": "delay", "delay_us": 0})", "delay_us",
                     "must be a whole number from 1 to 600000000"},
        MistakenRule{R"({"do": "delay", "delay_us": 600000001})", "delay_us",
                     "must be a whole number from 1 to 600000000"},
        MistakenRule{R"({"do": "halt", "reset": "hot"})", "reset",
                     "is not software, flr, warm or cold"},
        MistakenRule{R"({"do": "halt", "reset": 1})", "reset", "must be a string"},
        MistakenRule{R"({"do": "hold", "queue": 64})", "queue",
                     "must be a whole number from 0 to 63"},
        MistakenRule{R"({"do": "hold", "queue": -1})", "queue",
                     "must be a whole number from 0 to 63"},
        MistakenRule{R"({"do": "hold", "queue": 1.5})", "queue",
                     "must be a whole number from 0 to 63"},
        MistakenRule{R"({"do": "hold", "opcode": 256})", "opcode",
                     "must be a whole number from 0 to 255"},
        MistakenRule{R"({"do": "hold", "address": -1})", "address",
                     "must be a whole number from 0 to 18446744073709551615"},
        MistakenRule{R"({"do": "hold", "skip": -1})", "skip",
                     "must be a whole number from 0 to 18446744073709551615"},
        MistakenRule{R"({"do": "hold", "every": 0})", "every",
                     "must be a whole number from 1 to 18446744073709551615"},
        MistakenRule{R"({"do": "hold", "count": true})", "count",
                     "must be a whole number from 0 to 18446744073709551615"}));

TEST(Injection, ActsOnceOnAnythingUnlessTold) {
  const Rule hold = rule(R"({"do": "hold"})");
  EXPECT_EQ(hold.action, Rule::Action::kHold);
  EXPECT_EQ(hold.queue, std::nullopt);
  EXPECT_EQ(hold.opcode, std::nullopt);
  EXPECT_EQ(hold.address, std::nullopt);
  EXPECT_EQ(hold.skip, 0u);
  EXPECT_EQ(hold.every, 1u);
  EXPECT_EQ(hold.count, 1u);
}

TEST(Injection, ReadsWhatIsMatched) {
  const Rule hold = rule(R"({"do": "hold", "queue": 63, "opcode": 255, "skip": 7, "every": 3,
                             "address": 18446744073709551615, "count": 0})");
  EXPECT_EQ(hold.queue, 63u);
  EXPECT_EQ(hold.opcode, 255u);
  EXPECT_EQ(hold.address, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(hold.skip, 7u);
  EXPECT_EQ(hold.every, 3u);
  EXPECT_EQ(hold.count, 0u);
}

TEST(Injection, ReadsWhatIsParticular) {
  const Rule status = rule(R"({"do": "status", "status": 131, "completed_bytes": 4294967295})");
  EXPECT_EQ(status.action, Rule::Action::kStatus);
  EXPECT_EQ(status.status, 131);
  EXPECT_EQ(status.completed_bytes, UINT32_MAX);
  const Rule delay = rule(R"({"do": "delay", "delay_us": 600000000})");
  EXPECT_EQ(delay.action, Rule::Action::kDelay);
  EXPECT_EQ(delay.delay, std::chrono::minutes(10));
  EXPECT_EQ(rule(R"({"do": "drop-interrupt"})").action, Rule::Action::kDropInterrupt);
}

TEST(Injection, ReadsWhatResetAHaltNeeds) {
  EXPECT_EQ(rule(R"({"do": "halt"})").action, Rule::Action::kHalt);
  EXPECT_EQ(rule(R"({"do": "halt"})").reset, ResetType::kSoftware);
  EXPECT_EQ(rule(R"({"do": "halt", "reset": "software"})").reset, ResetType::kSoftware);
  EXPECT_EQ(rule(R"({"do": "halt", "reset": "flr"})").reset, ResetType::kFunctionLevel);
  EXPECT_EQ(rule(R"({"do": "halt", "reset": "warm"})").reset, ResetType::kWarm);
  EXPECT_EQ(rule(R"({"do": "halt", "reset": "cold"})").reset, ResetType::kCold);
}

TEST(Injection, RulesAreShownWithTheirDefaults) {
  EXPECT_EQ(to_json(rule(R"({"do": "hold"})")),
            Json::parse(R"({"do": "hold", "skip": 0, "every": 1, "count": 1})"));
  EXPECT_EQ(to_json(rule(R"({"do": "status", "status": 33, "skip": 10})")),
            Json::parse(R"({"do": "status", "status": 33, "completed_bytes": 0, "skip": 10,
                            "every": 1, "count": 1})"));
}

TEST(Injection, RulesAreShownAsTheyWereGiven) {
  for (const char* text :
       {R"({"do": "status", "status": 131, "completed_bytes": 5, "skip": 1, "every": 2,
            "count": 3, "queue": 0, "opcode": 0, "address": 0})",
        R"({"do": "delay", "delay_us": 1500, "skip": 0, "every": 1, "count": 0, "opcode": 3})",
        R"({"do": "drop-interrupt", "skip": 0, "every": 1, "count": 1, "queue": 63})",
        R"({"do": "hold", "skip": 0, "every": 18446744073709551615, "count": 1,
            "address": 18446744073709551615})",
        R"({"do": "halt", "reset": "flr", "skip": 0, "every": 1, "count": 1})"}) {
    const Json json = Json::parse(text);
    EXPECT_EQ(to_json(rule(text)), json);
    EXPECT_EQ(to_json(rule(to_json(rule(text)).dump().c_str())), json);
  }
}

Descriptor move(uint64_t source = 0x1000, uint64_t destination = 0x8000, uint32_t bytes = 0x100) {
  Descriptor descriptor = {};
  descriptor.opcode = DSA_OPCODE_MEMMOVE;
  descriptor.src_addr = source;
  descriptor.dst_addr = destination;
  descriptor.xfer_size = bytes;
  return descriptor;
}

// Which of the first @count descriptors a rule acts on, counted from 1.
std::vector<int> acts_on(const char* text, int count) {
  Injection injection;
  injection.add(rule(text));
  std::vector<int> numbers;
  for (int i = 1; i <= count; i++)
    if (injection.judge(0, move()).holds) numbers.push_back(i);
  return numbers;
}

TEST(Injection, WithoutRulesNothingGoesWrong) {
  Injection injection;
  const Verdict verdict = injection.judge(0, move());
  EXPECT_EQ(verdict.status, 0);
  EXPECT_EQ(verdict.completed_bytes, 0u);
  EXPECT_EQ(verdict.delay.count(), 0);
  EXPECT_FALSE(verdict.drops_interrupt);
  EXPECT_FALSE(verdict.holds);
  EXPECT_EQ(verdict.halts, std::nullopt);
  EXPECT_EQ(injection.list(), Json::array());
}

TEST(Injection, ChoosesBySkipEveryAndCount) {
  using Numbers = std::vector<int>;
  EXPECT_EQ(acts_on(R"({"do": "hold"})", 4), (Numbers{1}));
  EXPECT_EQ(acts_on(R"({"do": "hold", "count": 2})", 4), (Numbers{1, 2}));
  EXPECT_EQ(acts_on(R"({"do": "hold", "count": 0})", 4), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(acts_on(R"({"do": "hold", "skip": 2})", 5), (Numbers{3}));
  EXPECT_EQ(acts_on(R"({"do": "hold", "every": 3, "count": 0})", 9), (Numbers{3, 6, 9}));
  EXPECT_EQ(acts_on(R"({"do": "hold", "skip": 2, "every": 3, "count": 0})", 11),
            (Numbers{5, 8, 11}));
  EXPECT_EQ(acts_on(R"({"do": "hold", "skip": 1, "every": 2, "count": 2})", 9), (Numbers{3, 5}));
  EXPECT_EQ(acts_on(R"({"do": "hold", "skip": 18446744073709551615})", 4), (Numbers{}));
  EXPECT_EQ(acts_on(R"({"do": "hold", "every": 18446744073709551615})", 4), (Numbers{}));
}

TEST(Injection, CountsOnlyDescriptorsThatItMatches) {
  Injection injection;
  injection.add(rule(R"({"do": "hold", "queue": 1, "skip": 1})"));
  EXPECT_FALSE(injection.judge(0, move()).holds);
  EXPECT_FALSE(injection.judge(1, move()).holds);
  EXPECT_FALSE(injection.judge(0, move()).holds);
  EXPECT_TRUE(injection.judge(1, move()).holds);
}

bool matches(const char* text, unsigned queue, const Descriptor& descriptor) {
  Injection injection;
  injection.add(rule(text));
  return injection.judge(queue, descriptor).holds;
}

TEST(Injection, MatchesQueues) {
  EXPECT_TRUE(matches(R"({"do": "hold", "queue": 0})", 0, move()));
  EXPECT_FALSE(matches(R"({"do": "hold", "queue": 0})", 1, move()));
  EXPECT_TRUE(matches(R"({"do": "hold"})", 63, move()));
}

TEST(Injection, MatchesOperations) {
  EXPECT_TRUE(matches(R"({"do": "hold", "opcode": 3})", 0, move()));
  EXPECT_FALSE(matches(R"({"do": "hold", "opcode": 4})", 0, move()));
  EXPECT_FALSE(matches(R"({"do": "hold", "opcode": 0})", 0, move()));
}

TEST(Injection, TellsTheDescriptorsOfABatchFromOthers) {
  for (const bool in_batch : {false, true}) {
    Injection injection;
    injection.add(rule(Json{{"do", "hold"}, {"in_batch", in_batch}, {"count", 0}}.dump().c_str()));
    EXPECT_EQ(injection.judge(0, move(), false).holds, !in_batch);
    EXPECT_EQ(injection.judge(0, move(), true).holds, in_batch);
  }
  Injection injection;
  injection.add(rule(R"({"do": "hold", "count": 0})"));
  EXPECT_TRUE(injection.judge(0, move(), false).holds);
  EXPECT_TRUE(injection.judge(0, move(), true).holds);
  EXPECT_EQ(to_json(rule(R"({"do": "hold", "in_batch": true})"))["in_batch"], true);
}

TEST(Injection, MatchesOnlyWhereEverythingDoes) {
  constexpr const char* kRule = R"({"do": "hold", "queue": 2, "opcode": 3, "address": 4096})";
  EXPECT_TRUE(matches(kRule, 2, move()));
  EXPECT_FALSE(matches(kRule, 1, move()));
  EXPECT_FALSE(matches(kRule, 2, move(0x1001)));
  Descriptor fill = move();
  fill.opcode = DSA_OPCODE_MEMFILL;
  EXPECT_FALSE(matches(kRule, 2, fill));
}

bool matches_at(uint64_t address, const Descriptor& descriptor) {
  return matches(Json{{"do", "hold"}, {"address", address}}.dump().c_str(), 0, descriptor);
}

TEST(Injection, MatchesAddressesThatAreReadOrWritten) {
  EXPECT_FALSE(matches_at(0xfff, move()));
  EXPECT_TRUE(matches_at(0x1000, move()));
  EXPECT_TRUE(matches_at(0x10ff, move()));
  EXPECT_FALSE(matches_at(0x1100, move()));
  EXPECT_FALSE(matches_at(0x7fff, move()));
  EXPECT_TRUE(matches_at(0x8000, move()));
  EXPECT_TRUE(matches_at(0x80ff, move()));
  EXPECT_FALSE(matches_at(0x8100, move()));
}

TEST(Injection, TakesNoPatternForAnAddress) {
  Descriptor fill = move();
  fill.opcode = DSA_OPCODE_MEMFILL;
  EXPECT_FALSE(matches_at(0x1000, fill));
  EXPECT_TRUE(matches_at(0x8000, fill));
  Descriptor compare = move();
  compare.opcode = DSA_OPCODE_COMPVAL;
  EXPECT_TRUE(matches_at(0x1000, compare));
  EXPECT_FALSE(matches_at(0x8000, compare));
}

TEST(Injection, TakesNoUnusedFieldForAnAddress) {
  Descriptor sum = move(0x1000, 0);
  sum.opcode = DSA_OPCODE_CRCGEN;
  EXPECT_TRUE(matches_at(0x1000, sum));
  EXPECT_FALSE(matches_at(0x80, sum));
  Descriptor flush = move(0, 0x8000);
  flush.opcode = DSA_OPCODE_CFLUSH;
  EXPECT_TRUE(matches_at(0x8000, flush));
  EXPECT_FALSE(matches_at(0x80, flush));
}

TEST(Injection, MatchesTheWholeListOfABatch) {
  Descriptor batch = {};
  batch.opcode = DSA_OPCODE_BATCH;
  batch.desc_list_addr = 0x4000;
  batch.desc_count = 2;
  EXPECT_TRUE(matches_at(0x4000, batch));
  EXPECT_TRUE(matches_at(0x407f, batch));
  EXPECT_FALSE(matches_at(0x4080, batch));
  EXPECT_FALSE(matches_at(0, batch));
}

TEST(Injection, SaysWhatGoesWrong) {
  Injection injection;
  injection.add(rule(R"({"do": "status", "status": 131, "completed_bytes": 17})"));
  const Verdict status = injection.judge(0, move());
  EXPECT_EQ(status.status, 131);
  EXPECT_EQ(status.completed_bytes, 17u);
  EXPECT_FALSE(status.holds);

  injection.add(rule(R"({"do": "delay", "delay_us": 250})"));
  EXPECT_EQ(injection.judge(0, move()).delay, std::chrono::microseconds(250));
  injection.add(rule(R"({"do": "drop-interrupt"})"));
  EXPECT_TRUE(injection.judge(0, move()).drops_interrupt);
  injection.add(rule(R"({"do": "hold"})"));
  EXPECT_TRUE(injection.judge(0, move()).holds);
  injection.add(rule(R"({"do": "halt", "reset": "cold"})"));
  EXPECT_EQ(injection.judge(0, move()).halts, ResetType::kCold);
}

TEST(Injection, AllRulesThatMatchActTogether) {
  Injection injection;
  injection.add(rule(R"({"do": "status", "status": 26})"));
  injection.add(rule(R"({"do": "delay", "delay_us": 100})"));
  injection.add(rule(R"({"do": "delay", "delay_us": 20})"));
  injection.add(rule(R"({"do": "drop-interrupt"})"));
  injection.add(rule(R"({"do": "hold", "queue": 1})"));
  const Verdict verdict = injection.judge(0, move());
  EXPECT_EQ(verdict.status, 26);
  EXPECT_EQ(verdict.delay, std::chrono::microseconds(120));
  EXPECT_TRUE(verdict.drops_interrupt);
  EXPECT_FALSE(verdict.holds);
}

TEST(Injection, TheLastStatusIsTheOneThatIsTold) {
  Injection injection;
  injection.add(rule(R"({"do": "status", "status": 26, "completed_bytes": 3})"));
  injection.add(rule(R"({"do": "status", "status": 27})"));
  const Verdict verdict = injection.judge(0, move());
  EXPECT_EQ(verdict.status, 27);
  EXPECT_EQ(verdict.completed_bytes, 0u);
}

TEST(Injection, ListsHowOftenItsRulesHaveActed) {
  Injection injection;
  const uint64_t hold = injection.add(rule(R"({"do": "hold", "skip": 1, "count": 2})"));
  const uint64_t halt = injection.add(rule(R"({"do": "halt", "queue": 1})"));
  EXPECT_NE(hold, halt);
  for (int i = 0; i < 5; i++) injection.judge(0, move());
  EXPECT_EQ(
      injection.list(),
      Json::array(
          {{{"id", hold}, {"do", "hold"}, {"skip", 1}, {"every", 1}, {"count", 2}, {"acted", 2}},
           {{"id", halt},
            {"do", "halt"},
            {"reset", "software"},
            {"queue", 1},
            {"skip", 0},
            {"every", 1},
            {"count", 1},
            {"acted", 0}}}));
}

TEST(Injection, RemovedRulesDoNotAct) {
  Injection injection;
  const uint64_t hold = injection.add(rule(R"({"do": "hold"})"));
  injection.add(rule(R"({"do": "drop-interrupt"})"));
  EXPECT_TRUE(injection.remove(hold));
  EXPECT_FALSE(injection.remove(hold));
  EXPECT_FALSE(injection.remove(0));
  const Verdict verdict = injection.judge(0, move());
  EXPECT_FALSE(verdict.holds);
  EXPECT_TRUE(verdict.drops_interrupt);
}

TEST(Injection, ClearedRulesDoNotActAndTheirIdsDoNotComeAgain) {
  Injection injection;
  const uint64_t hold = injection.add(rule(R"({"do": "hold"})"));
  injection.clear();
  EXPECT_EQ(injection.list(), Json::array());
  EXPECT_FALSE(injection.judge(0, move()).holds);
  EXPECT_GT(injection.add(rule(R"({"do": "hold"})")), hold);
}

}  // namespace
}  // namespace memsluice::dsa
