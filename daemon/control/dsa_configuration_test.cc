// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/dsa_configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "daemon/host/fake_dsa_devices.h"

namespace memsluice {
namespace {

using testing::ElementsAre;

// As accel-config 3.5 saves it.
constexpr const char* kSaved = R"([
  {"dev": "dsa0", "token_limit": 0, "max_groups": 4,
   "groups": [
     {"dev": "group0.0", "tokens_reserved": 0, "use_token_limit": 0, "tokens_allowed": 8,
      "traffic_class_a": -1, "traffic_class_b": 1,
      "grouped_workqueues": [
        {"dev": "wq0.0", "mode": "dedicated", "size": 64, "group_id": 0, "priority": 10,
         "block_on_fault": 0, "max_batch_size": 1024, "max_transfer_size": 2097152,
         "type": "kernel", "name": "copies", "driver_name": "memsluice", "threshold": 0},
        {"dev": "wq0.1", "mode": "shared", "size": 16, "group_id": 0, "priority": 1,
         "threshold": 8, "type": "user", "name": "app1", "state": "enabled"}],
      "grouped_engines": [{"dev": "engine0.0", "group_id": 0}, {"dev": "engine0.1", "group_id": 0}]},
     {"dev": "group0.1"}],
   "ungrouped_engines": [{"dev": "engine0.2", "group_id": -1}]},
  {"dev": "iax1", "groups": []}])";

DsaConfiguration parsed(std::string_view text, const std::string& device = "dsa0") {
  auto found = parse_saved_configuration(text, device);
  EXPECT_TRUE(found.ok()) << found.error().describe();
  return found.ok() ? *found : DsaConfiguration();
}

std::string complaint(std::string_view text) {
  auto found = parse_saved_configuration(text, "dsa0");
  return found.ok() ? "none" : found.error().describe();
}

bool before(const std::vector<DsaSetting>& settings, const DsaSetting& first,
            const DsaSetting& second) {
  auto at = [&](const DsaSetting& setting) {
    auto found = std::find(settings.begin(), settings.end(), setting);
    EXPECT_NE(found, settings.end()) << setting.part << " " << setting.attribute;
    return found;
  };
  return at(first) < at(second);
}

TEST(SavedConfiguration, HasAllThatCanBeSet) {
  const DsaConfiguration found = parsed(kSaved);
  EXPECT_EQ(
      found.device,
      (DsaPart{.name = "dsa0", .attributes = {{"read_buffer_limit", "0"}}, .driver = "idxd"}));
  ASSERT_EQ(found.groups.size(), 2u);
  EXPECT_EQ(found.groups[0].attributes,
            (std::map<std::string, std::string>{{"read_buffers_reserved", "0"},
                                                {"use_read_buffer_limit", "0"},
                                                {"read_buffers_allowed", "8"},
                                                {"traffic_class_b", "1"}}));
  ASSERT_EQ(found.engines.size(), 3u);
  EXPECT_EQ(found.engines[0], (DsaPart{.name = "engine0.2", .attributes = {{"group_id", "-1"}}}));
  ASSERT_EQ(found.queues.size(), 2u);
  EXPECT_EQ(found.queues[0].driver, "memsluice");
  EXPECT_EQ(found.queues[0].attributes.at("max_transfer_size"), "2097152");
  EXPECT_EQ(found.queues[1].driver, "user") << "which is that of its type";
  EXPECT_FALSE(found.queues[1].attributes.contains("state"));
  EXPECT_TRUE(parsed(kSaved, "iax1").queues.empty());
  EXPECT_TRUE(parsed(R"({"dev": "dsa0"})").device.enabled()) << "a single device";
}

TEST(SavedConfiguration, SaysWhatIsWrongWithIt) {
  EXPECT_EQ(complaint("{"), "not JSON");
  EXPECT_EQ(complaint("[[[[[[[[[[]]]]]]]]]]"), "nested more than 8 deep");
  EXPECT_EQ(complaint("7"), "must be a list of devices");
  EXPECT_EQ(complaint("[7]"), "must be a list of devices");
  EXPECT_EQ(complaint("[]"), "dsa0: the saved configuration says nothing of it");
  auto of_device = [](const std::string& members) {
    return complaint(R"([{"dev": "dsa0", )" + members + "}]");
  };
  const std::string hint = " (write the file with accel-config save-config)";
  EXPECT_EQ(of_device(R"("groups": 7)"), "groups: must be a list" + hint);
  EXPECT_EQ(of_device(R"("groups": [7])"), "groups: must be a list of objects" + hint);
  EXPECT_EQ(of_device(R"("groups": [{"dev": "group1.0"}])"),
            "dev: \"group1.0\" is no group of dsa0" + hint);
  EXPECT_EQ(of_device(R"("groups": [{}])"), "dev: \"\" is no group of dsa0" + hint);
  EXPECT_EQ(of_device(R"("ungrouped_workqueues": [{"dev": "wq0.0/../x"}])"),
            "dev: \"wq0.0/../x\" is no wq of dsa0" + hint);
  EXPECT_EQ(of_device(R"("ungrouped_workqueues": [{"dev": "wq0.0", "size": [1]}])"),
            "wq0.0: size is neither a whole number nor a short text" + hint);
  EXPECT_EQ(of_device(R"("ungrouped_workqueues": [{"dev": "wq0.0", "name": "a\nb"}])"),
            "wq0.0: name is neither a whole number nor a short text" + hint);
  EXPECT_EQ(of_device(R"("ungrouped_workqueues": [{"dev": "wq0.0", "driver_name": "../x"}])"),
            "wq0.0: \"../x\" is no name of a driver" + hint);
}

TEST(SavedConfiguration, SurvivesEveryDamage) {
  std::mt19937 random(20261130);
  const std::string saved = kSaved;
  for (int round = 0; round < 3000; round++) {
    std::string text = saved;
    for (uint32_t changes = 1 + random() % 4; changes > 0; changes--) {
      const size_t at = random() % text.size();
      if (random() % 2 == 0)
        text[at] = "\"[]{},:0-x\n"[random() % 11];
      else
        text.erase(at, 1 + random() % 8);
    }
    auto found = parse_saved_configuration(text, "dsa0");
    if (!found.ok()) {
      ASSERT_FALSE(found.error().message.empty());
      continue;
    }
    for (const DsaSetting& setting : settings_to_restore(*found, sample_dsa_configuration()))
      ASSERT_EQ(setting.part.find('/'), setting.part.npos);
  }
}

TEST(SavedForm, LeadsBack) {
  DsaConfiguration sample = sample_dsa_configuration();
  sample.queues[1].attributes["name"] = "7";
  DsaConfiguration back = parsed(saved_form(sample).dump());
  // Of a queue that is not configured there is nothing to say, nor of a class that is not known.
  sample.queues.pop_back();
  sample.groups[0].attributes.clear();
  EXPECT_EQ(back, sample);
}

TEST(IsConfigured, WhereAQueueHasAType) {
  DsaConfiguration configuration = sample_dsa_configuration();
  EXPECT_TRUE(is_configured(configuration));
  configuration.queues[0].attributes["type"] = "none";
  EXPECT_TRUE(is_configured(configuration));
  configuration.queues[1].attributes.erase("type");
  EXPECT_FALSE(is_configured(configuration));
}

TEST(SettingsToRestore, ComeInTheOrderThatIdxdWants) {
  const DsaConfiguration wanted = parsed(kSaved);
  auto settings = settings_to_restore(wanted, wanted);
  EXPECT_TRUE(
      before(settings, {"engine0.0", "group_id", "0"}, {"group0.0", "read_buffers_allowed", "8"}));
  EXPECT_TRUE(before(settings, {"dsa0", "read_buffer_limit", "0"},
                     {"group0.0", "use_read_buffer_limit", "0"}));
  EXPECT_TRUE(before(settings, {"wq0.0", "type", "kernel"}, {"wq0.0", "name", "copies"}));
  EXPECT_TRUE(before(settings, {"wq0.1", "size", "16"}, {"wq0.1", "threshold", "8"}));
  EXPECT_TRUE(before(settings, {"wq0.1", "mode", "shared"}, {"wq0.1", "threshold", "8"}));
  for (const DsaSetting& setting : settings) {
    EXPECT_FALSE(setting.part == "wq0.0" && setting.attribute == "threshold")
        << "only shared queues have one";
    EXPECT_FALSE(setting.value.empty());
  }
}

TEST(SettingsToRestore, LeaveOutWhatTheDeviceDoesNotHave) {
  DsaConfiguration now = parsed(kSaved);
  now.device.attributes.clear();
  now.engines.clear();
  bool engines = false;
  for (const DsaSetting& setting : settings_to_restore(parsed(kSaved), now)) {
    EXPECT_NE(setting.part, "dsa0");
    engines = engines || setting.part == "engine0.0";
  }
  EXPECT_TRUE(engines) << "but not whole parts: those are missed when they are set";
}

TEST(SettingsToRestore, EmptyFirstWhatWouldBeInTheWay) {
  DsaConfiguration wanted = sample_dsa_configuration();
  DsaConfiguration now = wanted;
  now.queues[0].attributes["size"] = "32";
  now.queues[2].attributes["size"] = "64";
  wanted.queues.pop_back();
  auto settings = settings_to_restore(wanted, now);
  ASSERT_GE(settings.size(), 2u);
  EXPECT_EQ(settings[0], (DsaSetting{"wq0.0", "size", "0"}));
  EXPECT_EQ(settings[1], (DsaSetting{"wq0.2", "size", "0"}));
  EXPECT_TRUE(before(settings, {"wq0.2", "size", "0"}, {"wq0.0", "size", "64"}));
}

}  // namespace
}  // namespace memsluice
