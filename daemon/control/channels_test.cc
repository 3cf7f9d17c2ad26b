// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/channels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>

#include "daemon/base/temporary_directory.h"
#include "daemon/host/fake_module.h"

namespace memsluice {
namespace {

using testing::HasSubstr;

constexpr uint64_t kBlockBytes = uint64_t{128} << 20;
const ChannelSpec kWithheld = {
    .name = "ch2", .group = "dram", .node = 2, .start = kBlockBytes, .length_bytes = kBlockBytes};

class ChannelsTest : public testing::Test {
 protected:
  template <typename T>
  Result<T> answer_of(const std::function<Result<void>(Channels::Reply<T>)>& ask) {
    std::optional<Result<T>> answer;
    auto begun = ask([&](const Result<T>& result) { answer = result; });
    if (!begun.ok()) return begun.error();
    while (channels_->busy()) EXPECT_TRUE(loop_->run_once(Milliseconds(100)).ok());
    return answer.value_or(Error{.message = "never answered"});
  }
  Result<memsluice_channel_status> add(const ChannelSpec& spec) {
    return answer_of<memsluice_channel_status>(
        [&](auto reply) { return channels_->add(spec, std::move(reply)); });
  }
  Result<RemovedChannel> remove(const std::string& name) {
    return answer_of<RemovedChannel>(
        [&](auto reply) { return channels_->remove(name, Milliseconds(1000), std::move(reply)); });
  }
  std::string why_not_removed(const ChannelRemoval& removal) {
    module_.refuse_removal(removal);
    auto removed = remove("ch2");
    return removed.ok() ? "removed" : removed.error().describe();
  }

  TemporaryDirectory cgroups_;
  FakeModule module_;
  SystemClock clock_;
  std::string logged_;
  Log log_{LogLevel::kInfo, [this](std::string_view line) { logged_ += line; }};
  std::unique_ptr<EventLoop> loop_ = *EventLoop::create(clock_);
  std::unique_ptr<Channels> channels_ = *Channels::create(module_, cgroups_.path(""), *loop_, log_);
};

TEST_F(ChannelsTest, AreAddedListedAndRemovedByName) {
  EXPECT_TRUE(channels_->list()->empty());
  auto added = add(kWithheld);
  ASSERT_TRUE(added.ok()) << added.error().describe();
  EXPECT_EQ(channel_name(added->name), "ch2");
  EXPECT_EQ(channel_name(added->group), "dram");
  ASSERT_TRUE(add({.name = "there", .node = 1}).ok());
  EXPECT_EQ(channels_->list()->size(), 2u);
  auto removed = remove("ch2");
  ASSERT_TRUE(removed.ok());
  EXPECT_EQ(removed->node, 2);
  EXPECT_EQ(removed->moved_pages, 7u);
  EXPECT_EQ(channels_->list()->size(), 1u);
  EXPECT_THAT(remove("ch2").error().describe(), HasSubstr("ch2: is no channel"));
  EXPECT_THAT(logged_, HasSubstr("channel ch2: node 2"));
  EXPECT_THAT(logged_, HasSubstr("channel ch2: removed, 7 pages moved"));
}

TEST_F(ChannelsTest, RefusalsOfAdditionsNameWhatIsWrong) {
  const std::pair<int, const char*> cases[] = {
      {EINVAL, "ch2: is no name"},
      {ENOTUNIQ, "ch2: is the name of another channel"},
      {EEXIST, "ch2: 0x8000000-0xfffffff overlaps with a channel, or node 2 is one"},
      {ENOTEMPTY, "ch2: node 2 has memory already"},
      {ENODEV, "ch2: node 2 cannot be made: its id was not possible at boot"},
      {ERANGE, "ch2: 0x8000000-0xfffffff does not consist of whole memory blocks"},
      {EADDRINUSE, "ch2: 0x8000000-0xfffffff is in use, as memory or by a driver"},
      {EADDRNOTAVAIL, "ch2: the firmware does not say that all of 0x8000000-0xfffffff is memory"},
      {EOPNOTSUPP, "the module cannot do this on this kernel"},
  };
  for (const auto& [os_error, text] : cases) {
    module_.fail_next("channel add", os_error);
    auto added = add(kWithheld);
    ASSERT_FALSE(added.ok());
    EXPECT_THAT(added.error().describe(), HasSubstr(text));
    EXPECT_EQ(added.error().os_error, os_error);
  }
  EXPECT_THAT(add({.name = "far", .node = 3}).error().describe(),
              HasSubstr("far: node 3 has no memory"));
  EXPECT_THAT(add({.name = std::string(32, 'x'), .node = 1}).error().describe(),
              HasSubstr("is no name"));
  EXPECT_TRUE(channels_->list()->empty());
}

TEST_F(ChannelsTest, RefusalsOfRemovalsSayWhatStaysAndWhy) {
  ASSERT_TRUE(add(kWithheld).ok());
  cgroups_.make_directory("/holder.slice");
  uint64_t holder = 0;
  for (const Cgroup& cgroup : Cgroups(cgroups_.path("")).all())
    if (cgroup.path == "/holder.slice") holder = cgroup.id;
  ChannelRemoval late{.result = {.node = 2, .blocks = 2, .kept_blocks = 1}, .os_error = ETIMEDOUT};
  late.result.pages[MEMSLUICE_FRAMES_ANON] = 4;
  late.result.pages[MEMSLUICE_FRAMES_FILE] = 1;
  late.result.pages[MEMSLUICE_FRAMES_FREE] = 30000;
  late.result.held_pages[MEMSLUICE_FRAMES_ANON] = 3;
  late.result.holder_id = holder;
  EXPECT_THAT(why_not_removed(late),
              HasSubstr("ch2: 1 of 2 memory blocks do not go: 4 anon, 1 file pages stay; it is a "
                        "channel as before. Held, most of them by /holder.slice: 3 anon"));
  late.result.lost_blocks = 1;
  late.result.holder_id = 999999;
  EXPECT_THAT(why_not_removed(late), HasSubstr("1 of its memory blocks do not come online again"));
  ChannelRemoval used{.result = {.tenant_id = holder}, .os_error = EBUSY};
  EXPECT_THAT(why_not_removed(used), HasSubstr("ch2: is among the channels of /holder.slice"));
  ChannelRemoval full{.os_error = ENOSPC};
  full.result.pages[MEMSLUICE_FRAMES_SHMEM] = 9;
  EXPECT_THAT(why_not_removed(full), HasSubstr("finds no room elsewhere: 9 shmem pages"));
  EXPECT_THAT(why_not_removed({.os_error = EINTR}), HasSubstr("was interrupted; it is a channel"));
  EXPECT_THAT(why_not_removed({.os_error = ENOENT}), HasSubstr("ch2: is no channel any more"));
  EXPECT_EQ(channels_->list()->size(), 1u);
}

TEST_F(ChannelsTest, TheEndOfTheDaemonInterruptsARemoval) {
  ASSERT_TRUE(add(kWithheld).ok());
  module_.hold_removals();
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(channels_->remove("ch2", Milliseconds(3600000), [](const auto&) {}).ok());
  channels_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(10));
}

TEST_F(ChannelsTest, WithoutTheModuleNothingIsPossible) {
  module_.unload();
  EXPECT_EQ(channels_->list().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(add(kWithheld).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(remove("ch2").error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace memsluice
