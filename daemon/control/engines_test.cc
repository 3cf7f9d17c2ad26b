// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/engines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "daemon/host/fake_dsa_devices.h"
#include "daemon/host/fake_module.h"

namespace memsluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class EnginesTest : public testing::Test {
 protected:
  EnginesTest() {
    module_.add_engine("dsa", 100, {"wq0.0", "wq1.0"});
    module_.add_engine("other", 50, {"wq1.0"});
    module_.add_engine("cpu", 0, {});
    devices_.add("dsa0", 3, 2);
    devices_.configure(sample_dsa_configuration());
  }

  template <typename T>
  Result<T> answer_of(const std::function<Result<void>(Engines::Reply<T>)>& ask) {
    std::optional<Result<T>> answer;
    auto begun = ask([&](const Result<T>& result) { answer = result; });
    if (!begun.ok()) return begun.error();
    while (engines_->busy()) EXPECT_TRUE(loop_->run_once(Milliseconds(100)).ok());
    return answer.value_or(Error{.message = "never answered"});
  }
  Result<std::vector<EngineInfo>> list() {
    return answer_of<std::vector<EngineInfo>>(
        [&](auto reply) { return engines_->list(std::move(reply)); });
  }
  Result<QueueName> act(const QueueName& name, memsluice_engine_action action) {
    return answer_of<QueueName>(
        [&](auto reply) { return engines_->act(name, action, std::move(reply)); });
  }
  Result<DsaResetOutcome> reset(const std::string& device) {
    return answer_of<DsaResetOutcome>(
        [&](auto reply) { return engines_->reset(device, "/nowhere", std::move(reply)); });
  }
  uint32_t state(const std::string& queue) { return module_.engine_queue(queue).state; }

  FakeModule module_;
  FakeDsaDevices devices_;
  SystemClock clock_;
  std::string logged_;
  Log log_{LogLevel::kInfo, [this](std::string_view line) { logged_ += line; }};
  std::unique_ptr<EventLoop> loop_ = *EventLoop::create(clock_);
  std::unique_ptr<Engines> engines_ = *Engines::create(module_, devices_, *loop_, log_);
};

TEST_F(EnginesTest, AreListed) {
  auto engines = list();
  ASSERT_TRUE(engines.ok());
  ASSERT_EQ(engines->size(), 3u);
  EXPECT_EQ(engines->at(0).name(), "dsa");
  EXPECT_EQ(engine_name(engines->at(0).queues.at(1).name), "wq1.0");
  EXPECT_TRUE(engines->at(2).queues.empty());
}

TEST_F(EnginesTest, AnOlderModuleHasNone) {
  module_.forget_engines();
  const Error error = list().error();
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_EQ(error.message, "the module that is loaded does not tell of its copy engines");
  EXPECT_EQ(act({.queue = "wq0.0"}, MEMSLUICE_ENGINE_TEST).error(), error);
  module_.unload();
  EXPECT_THAT(list().error().message, HasSubstr("the module is not loaded"));
}

TEST_F(EnginesTest, DrainAndTestAQueue) {
  auto drained = act({.queue = "wq0.0"}, MEMSLUICE_ENGINE_DRAIN);
  ASSERT_TRUE(drained.ok());
  EXPECT_EQ(*drained, (QueueName{"dsa", "wq0.0"}));
  EXPECT_EQ(state("wq0.0"), uint32_t{MEMSLUICE_QUEUE_DRAINED});
  EXPECT_TRUE(act({"dsa", "wq0.0"}, MEMSLUICE_ENGINE_TEST).ok());
  EXPECT_EQ(state("wq0.0"), uint32_t{MEMSLUICE_QUEUE_UP});
  EXPECT_THAT(logged_, HasSubstr("the drain of wq0.0: done"));
}

TEST_F(EnginesTest, NameWhatIsNotThereOrNotClear) {
  auto complaint = [&](const QueueName& name) {
    return act(name, MEMSLUICE_ENGINE_TEST).error().describe();
  };
  EXPECT_EQ(complaint({.queue = "wq7.0"}),
            "wq7.0: no engine has such a queue (there are: dsa/wq0.0, dsa/wq1.0, other/wq1.0)");
  EXPECT_EQ(complaint({"dsa", "wq7.0"}),
            "wq7.0: engine dsa has no such queue (there are: dsa/wq0.0, dsa/wq1.0, other/wq1.0)");
  EXPECT_EQ(complaint({.queue = "wq1.0"}),
            "wq1.0: dsa and other have a queue of this name (say which: dsa/wq1.0)");
  EXPECT_EQ(complaint({"cpu", "wq1.0"}), "cpu: is an engine without queues");
  EXPECT_TRUE(act({"other", "wq1.0"}, MEMSLUICE_ENGINE_TEST).ok());
}

struct Meaning {
  int os_error;
  memsluice_engine_action action;
  ErrorCode code;
  const char* message;
  const char* hint;
};

class EngineErrors : public EnginesTest, public testing::WithParamInterface<Meaning> {};

TEST_P(EngineErrors, SayWhatTheyMean) {
  module_.fail_next("engine act", GetParam().os_error);
  const Error error = act({.queue = "wq0.0"}, GetParam().action).error();
  EXPECT_EQ(error.code, GetParam().code);
  EXPECT_EQ(error.object, "dsa/wq0.0");
  EXPECT_THAT(error.message, HasSubstr(GetParam().message));
  EXPECT_THAT(error.hint, HasSubstr(GetParam().hint));
}

constexpr auto kTest = MEMSLUICE_ENGINE_TEST;
constexpr auto kDrain = MEMSLUICE_ENGINE_DRAIN;

INSTANTIATE_TEST_SUITE_P(
    Engines, EngineErrors,
    testing::Values(
        Meaning{EIO, kTest, ErrorCode::kFailed, "a copy failed", "until it passes a test"},
        Meaning{EBADMSG, kTest, ErrorCode::kFailed, "differs from its source", "drain its queues"},
        Meaning{ETIMEDOUT, kTest, ErrorCode::kFailed, "did not end in time",
                "memsluice engine reset dsa0"},
        Meaning{EBUSY, kTest, ErrorCode::kConflict, "holds descriptors that are late",
                "memsluice engine reset dsa0"},
        Meaning{EBUSY, kDrain, ErrorCode::kConflict, "stays in quarantine",
                "memsluice engine reset dsa0"},
        Meaning{ENOMEM, kTest, ErrorCode::kFailed, "no memory to copy", "try again"},
        Meaning{ENOENT, kDrain, ErrorCode::kNotFound, "is gone", "engine list"},
        Meaning{EOPNOTSUPP, kDrain, ErrorCode::kBadRequest, "the engine has no queues", ""},
        Meaning{EPERM, kTest, ErrorCode::kDenied, "engine act: Operation not permitted",
                "CAP_SYS_ADMIN"},
        Meaning{ENOTTY, kTest, ErrorCode::kUnavailable, "engine act: ", "older than this daemon"}));

TEST_F(EnginesTest, ResetADevice) {
  auto done = reset("dsa0");
  ASSERT_TRUE(done.ok()) << done.error().describe();
  EXPECT_THAT(done->queues, ElementsAre("wq0.0", "wq0.1"));
  EXPECT_THAT(logged_, HasSubstr("reset of dsa0: to be put back: [{\"dev\":\"dsa0\""));
  EXPECT_THAT(logged_, HasSubstr("reset of dsa0: done, queues enabled: wq0.0, wq0.1"));
}

TEST_F(EnginesTest, AResetThatFailsSaysSo) {
  devices_.fail_next("reset dsa0", ENOTTY);
  EXPECT_EQ(reset("dsa0").error().code, ErrorCode::kFailed);
  EXPECT_THAT(logged_, HasSubstr("reset of dsa0: dsa0: resetting dsa0: "));
  EXPECT_EQ(reset("dsa9").error().code, ErrorCode::kNotFound);
}

TEST_F(EnginesTest, OneChangeRunsAtATimeAndWhoLooksDoesNotWait) {
  std::optional<Result<DsaResetOutcome>> first;
  ASSERT_TRUE(
      engines_->reset("dsa0", "/nowhere", [&](const auto& outcome) { first = outcome; }).ok());
  EXPECT_EQ(act({.queue = "wq0.0"}, MEMSLUICE_ENGINE_TEST).error().describe(),
            "the test of wq0.0: the reset of dsa0 is under way (try again when it has ended)");
  EXPECT_EQ(reset("dsa0").error().code, ErrorCode::kConflict);
  EXPECT_TRUE(list().ok());
  ASSERT_TRUE(first.has_value());
  EXPECT_TRUE(first->ok());
  EXPECT_TRUE(act({.queue = "wq0.0"}, MEMSLUICE_ENGINE_TEST).ok());
}

}  // namespace
}  // namespace memsluice
