// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/arguments.h"

#include <gtest/gtest.h>

#include <sstream>

namespace memsluice {
namespace {

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

struct Call {
  const char* line;
  const char* method;
  const char* params;
};

class ApiCalls : public testing::TestWithParam<Call> {};

TEST_P(ApiCalls, AreMade) {
  const auto invocation = parse_arguments(words(GetParam().line));
  ASSERT_TRUE(invocation.ok()) << invocation.error().describe();
  const auto* call = std::get_if<CallCommand>(&invocation->command);
  ASSERT_NE(call, nullptr);
  EXPECT_EQ(call->method, GetParam().method);
  EXPECT_EQ(call->params, Json::parse(GetParam().params));
}

INSTANTIATE_TEST_SUITE_P(
    Arguments, ApiCalls,
    testing::Values(
        Call{"status", "status", "{}"}, Call{"reload", "config.reload", "{}"},
        Call{"tenant list", "tenant.list", "{}"},
        Call{"tenant show redis.slice/", "tenant.get", R"({"cgroup": "/redis.slice"})"},
        Call{"tenant clear /sys/fs/cgroup/a/b", "tenant.clear", R"({"cgroup": "/a/b"})"},
        Call{"tenant set /x", "tenant.set", R"({"cgroup": "/x"})"},
        Call{"tenant set /x --tiering off --fast-limit 1.5G --promote-mib-per-s 0 "
             "--demote-mib-per-s 1048576",
             "tenant.set",
             R"({"cgroup": "/x", "tiering": false, "fast_limit_bytes": 1610612736,
                 "promote_mib_per_s": 0, "demote_mib_per_s": 1048576})"},
        Call{"tenant set /x --channels 1:3,2 --granule 4K", "tenant.set",
             R"({"cgroup": "/x", "channels": "1:3,2", "granule_bytes": 4096})"},
        Call{"tenant set --fast-limit none /x", "tenant.set",
             R"({"cgroup": "/x", "fast_limit_bytes": null})"},
        Call{"request list", "request.list", "{}"},
        Call{"request show 7", "request.get", R"({"id": 7})"},
        Call{"request cancel 7", "request.cancel", R"({"id": 7})"},
        Call{"engine list", "engine.list", "{}"}, Call{"census", "census", "{}"},
        Call{"metrics", "metrics", "{}"},
        Call{"census --node 3 --tenants", "census", R"({"node": 3, "by_tenant": true})"},
        Call{"channel list", "channel.list", "{}"},
        Call{"channel add ch1 --node 1 --group dram", "channel.add",
             R"({"name": "ch1", "node": 1, "group": "dram"})"},
        Call{"channel add ch2 --start 0x140000000 --length 16G --node 2", "channel.add",
             R"({"name": "ch2", "node": 2, "start": 5368709120, "length_bytes": 17179869184})"}));

struct MigrateLine {
  const char* line;
  const char* params;
  bool detach;
};

class Migrations : public testing::TestWithParam<MigrateLine> {};

TEST_P(Migrations, AreAsked) {
  const auto invocation = parse_arguments(words(GetParam().line));
  ASSERT_TRUE(invocation.ok()) << invocation.error().describe();
  const auto* migrate = std::get_if<MigrateCommand>(&invocation->command);
  ASSERT_NE(migrate, nullptr);
  EXPECT_EQ(migrate->params, Json::parse(GetParam().params));
  EXPECT_EQ(migrate->detach, GetParam().detach);
}

INSTANTIATE_TEST_SUITE_P(
    Arguments, Migrations,
    testing::Values(
        MigrateLine{"migrate --pid 4711 --to 1", R"({"pid": 4711, "target_node": 1})", false},
        MigrateLine{"migrate --to=0 --pid=1 --all-mappings --detach",
                    R"({"pid": 1, "target_node": 0, "all_mappings": true})", true},
        MigrateLine{"migrate --pid 1 --address 0x7f0000001000 --length 2M --to 1",
                    R"({"pid": 1, "address": 139637976731648, "length_bytes": 2097152,
                      "target_node": 1})",
                    false},
        MigrateLine{"migrate --pid 1 --address 4096 --length 4096 --to 1",
                    R"({"pid": 1, "address": 4096, "length_bytes": 4096, "target_node": 1})",
                    false},
        MigrateLine{"migrate --tenant a.slice --from 0 --to 1 --mib-per-s 9",
                    R"({"cgroup": "/a.slice", "source_node": 0, "target_node": 1,
                      "mib_per_s": 9})",
                    false}));

struct ChannelsLine {
  const char* line;
  const char* tenant_set;
  const char* params;
  bool detach = false;
};

class ChannelChanges : public testing::TestWithParam<ChannelsLine> {};

TEST_P(ChannelChanges, AreAsked) {
  const auto invocation = parse_arguments(words(GetParam().line));
  ASSERT_TRUE(invocation.ok()) << invocation.error().describe();
  const auto* command = std::get_if<MigrateCommand>(&invocation->command);
  ASSERT_NE(command, nullptr);
  EXPECT_EQ(command->method, "redistribute");
  EXPECT_EQ(command->params, Json::parse(GetParam().params));
  EXPECT_EQ(command->tenant_set, Json::parse(GetParam().tenant_set));
  EXPECT_EQ(command->detach, GetParam().detach);
}

INSTANTIATE_TEST_SUITE_P(
    Arguments, ChannelChanges,
    testing::Values(ChannelsLine{"tenant channels a.slice", "null", R"({"cgroup": "/a.slice"})"},
                    ChannelsLine{
                        "tenant channels a.slice --add 3:2,4 --remove 1 --mib-per-s 7 --detach",
                        R"({"cgroup": "/a.slice", "channels": "+3:2,+4,-1"})",
                        R"({"cgroup": "/a.slice", "mib_per_s": 7})", true},
                    ChannelsLine{"tenant channels /a.slice --remove 1,2 --lazily",
                                 R"({"cgroup": "/a.slice", "channels": "-1,-2"})",
                                 R"({"cgroup": "/a.slice", "on_touch": true})"},
                    ChannelsLine{"tenant channels /a.slice --set 1:3,2 --from 0",
                                 R"({"cgroup": "/a.slice", "channels": "1:3,2"})",
                                 R"({"cgroup": "/a.slice", "source_node": 0})"}));

struct QueueCommand {
  const char* line;
  const char* method;
  const char* queues;
};

class QueueCommands : public testing::TestWithParam<QueueCommand> {};

TEST_P(QueueCommands, NameTheirQueues) {
  const auto invocation = parse_arguments(words(GetParam().line));
  ASSERT_TRUE(invocation.ok()) << invocation.error().describe();
  const auto* command = std::get_if<EngineQueuesCommand>(&invocation->command);
  ASSERT_NE(command, nullptr);
  EXPECT_EQ(command->method, GetParam().method);
  EXPECT_EQ(Json(command->queues), Json::parse(GetParam().queues));
}

INSTANTIATE_TEST_SUITE_P(
    Arguments, QueueCommands,
    testing::Values(QueueCommand{"engine test", "engine.test", "[]"},
                    QueueCommand{"engine test wq0.0 dsa/wq0.1", "engine.test",
                                 R"([{"queue": "wq0.0"}, {"queue": "wq0.1", "engine": "dsa"}])"},
                    QueueCommand{"engine drain wq0.0 --json", "engine.drain",
                                 R"([{"queue": "wq0.0"}])"}));

TEST(Arguments, AResetNamesItsDevice) {
  const auto asking = parse_arguments(words("engine reset dsa0"));
  ASSERT_TRUE(asking.ok());
  EXPECT_EQ(std::get<EngineResetCommand>(asking->command).device, "dsa0");
  EXPECT_FALSE(std::get<EngineResetCommand>(asking->command).yes);
  const auto sure = parse_arguments(words("engine reset --yes iax1"));
  ASSERT_TRUE(sure.ok());
  EXPECT_EQ(std::get<EngineResetCommand>(sure->command).device, "iax1");
  EXPECT_TRUE(std::get<EngineResetCommand>(sure->command).yes);
}

struct Mistake {
  const char* line;
  const char* object;
  const char* message;
};

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, NameTheirObject) {
  const auto invocation = parse_arguments(words(GetParam().line));
  ASSERT_FALSE(invocation.ok());
  EXPECT_EQ(invocation.error().code, ErrorCode::kBadRequest);
  EXPECT_EQ(invocation.error().object, GetParam().object);
  EXPECT_EQ(invocation.error().message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Arguments, Mistakes,
    testing::Values(
        Mistake{"", "command", "say what is to be done"},
        Mistake{"--json", "command", "say what is to be done"},
        Mistake{"stauts", "stauts", "no such command"},
        Mistake{"tenant", "tenant", "say what is to be done"},
        Mistake{"tenant lst", "lst", "no such command"},
        Mistake{"tenant list status", "status", "one argument too many"},
        Mistake{"status now", "now", "one argument too many"},
        Mistake{"status --jsn", "--jsn", "no such option"},
        Mistake{"status --socket", "--socket", "takes exactly one value, and once"},
        Mistake{"status --json=maybe", "--json", "takes no value"},
        Mistake{"tenant show", "CGROUP", "is missing"},
        Mistake{"tenant show /a /b", "/b", "one argument too many"},
        Mistake{"tenant show /a/../b", "CGROUP", "\"/a/../b\" has an empty part, . or .."},
        Mistake{"tenant show a//b", "CGROUP", "\"a//b\" has an empty part, . or .."},
        Mistake{"tenant set /x --tiering yes", "--tiering", "\"yes\" is neither on nor off"},
        Mistake{"tenant set /x --fast-limit 3Q", "--fast-limit", "\"3Q\" is no size"},
        Mistake{"tenant set /x --fast-limit -1", "--fast-limit", "\"-1\" is no size"},
        Mistake{"tenant set /x --promote-mib-per-s 1048577", "--promote-mib-per-s",
                "\"1048577\" is no whole number from 0 to 1048576"},
        Mistake{"tenant set /x --demote-mib-per-s 1.5", "--demote-mib-per-s",
                "\"1.5\" is no whole number from 0 to 1048576"},
        Mistake{"request show", "ID", "is missing"},
        Mistake{"request cancel seven", "ID",
                "\"seven\" is no whole number from 0 to 9223372036854775807"},
        Mistake{"engine", "engine", "say what is to be done"},
        Mistake{"engine tst", "tst", "no such command"},
        Mistake{"engine list wq0.0", "wq0.0", "one argument too many"},
        Mistake{"engine drain", "QUEUE", "is missing"},
        Mistake{"engine test a/b/c", "QUEUE", "\"a/b/c\" is no queue"},
        Mistake{"engine test /wq0.0", "QUEUE", "\"/wq0.0\" is no queue"},
        Mistake{"engine test dsa/", "QUEUE", "\"dsa/\" is no queue"},
        Mistake{"engine drain wq0000000000.0000", "QUEUE", "\"wq0000000000.0000\" is no queue"},
        Mistake{"engine reset", "DEVICE", "is missing"},
        Mistake{"census --node 1024", "--node", "\"1024\" is no whole number from 0 to 1023"},
        Mistake{"census 1", "1", "one argument too many"},
        Mistake{"tenant set /x --channels 1:", "--channels", "\"1:\" names no channels"},
        Mistake{"tenant set /x --granule 3M", "--granule",
                "3145728 is no power of two from 4 KiB to 1 GiB"},
        Mistake{"channel", "channel", "say what is to be done"},
        Mistake{"channel add --node 1", "NAME", "is missing"},
        Mistake{"channel add a", "--node, --start", "say which node, or which memory"},
        Mistake{"channel add a --start 0x10", "--length", "is missing"},
        Mistake{"channel add a --length 1G", "--start", "is missing"},
        Mistake{"channel add a --start 1g --length 1G", "--start", "\"1g\" is no address"},
        Mistake{"channel add a --start 0 --length 0", "--length", "\"0\" is no size"},
        Mistake{"channel add a --node 1024", "--node",
                "\"1024\" is no whole number from 0 to 1023"},
        Mistake{"channel remove", "NAME", "is missing"},
        Mistake{"channel remove a --deadline 0", "--deadline",
                "\"0\" is no whole number from 1 to 3600"},
        Mistake{"engine reset dsa0 dsa1", "dsa1", "one argument too many"},
        Mistake{"tenant channels", "CGROUP", "is missing"},
        Mistake{"tenant channels /x --add 1:", "--add", "\"+1:\" is no change of channels"},
        Mistake{"tenant channels /x --remove 1:2", "--add, --remove",
                "\"-1:2\" is no change of channels"},
        Mistake{"tenant channels /x --set 1 --add 2", "--set", "goes not with --add or --remove"},
        Mistake{"tenant channels /x --set none", "--set", "\"none\" leaves nothing to move to"},
        Mistake{"tenant channels /x --lazily --mib-per-s 3", "--mib-per-s",
                "goes not with --lazily: pages move when they are touched"},
        Mistake{"tenant channels /x --mib-per-s 9999999", "--mib-per-s",
                "\"9999999\" is no whole number from 0 to 1048576"},
        Mistake{"migrate --to 1", "--pid, --tenant", "say exactly one of the two: whose pages"},
        Mistake{"migrate --pid 1 --tenant /x --to 1", "--pid, --tenant",
                "say exactly one of the two: whose pages"},
        Mistake{"migrate --pid 1", "--to", "is missing: the node to move to"},
        Mistake{"migrate --pid 0 --to 1", "--pid", "\"0\" is no whole number from 1 to 4194304"},
        Mistake{"migrate --pid 1 --to -1", "--to", "\"-1\" is no whole number from 0 to 1023"},
        Mistake{"migrate --pid 1 --pid 2 --to 1", "--pid", "takes exactly one value, and once"},
        Mistake{"migrate --pid 1 --to 1 --from 0", "--from", "goes with --tenant only"},
        Mistake{"migrate --pid 1 --to 1 --address 0", "--length", "is missing"},
        Mistake{"migrate --pid 1 --to 1 --length 1M", "--address", "is missing"},
        Mistake{"migrate --pid 1 --to 1 --address 7fxx --length 1M", "--address",
                "\"7fxx\" is no address"},
        Mistake{"migrate --pid 1 --to 1 --address 0 --length 0", "--length", "\"0\" is no size"},
        Mistake{"migrate --tenant /x --to 1", "--from", "is missing: the node to move from"},
        Mistake{"migrate --tenant /x --from 0 --to 1 --all-mappings", "--all-mappings",
                "goes with --pid only"},
        Mistake{"migrate --tenant /x --from 0 --to 1 --address 1", "--address",
                "goes with --pid only"},
        Mistake{"top --interval 0", "--interval", "\"0\" is no number of seconds from 0.1 to 3600"},
        Mistake{"top --interval nan", "--interval",
                "\"nan\" is no number of seconds from 0.1 to 3600"},
        Mistake{"top --interval 1s", "--interval",
                "\"1s\" is no number of seconds from 0.1 to 3600"}));

TEST(Arguments, GlobalOptionsStandAnywhere) {
  for (const char* line : {"--json --socket /a status", "status --socket /a --json"}) {
    const auto invocation = parse_arguments(words(line));
    ASSERT_TRUE(invocation.ok()) << invocation.error().describe();
    EXPECT_TRUE(invocation->json);
    EXPECT_EQ(invocation->socket, "/a");
  }
}

TEST(Arguments, HelpOfEveryCommandTeaches) {
  for (const char* line : {"",
                           "status",
                           "tenant",
                           "tenant list",
                           "tenant show",
                           "tenant set",
                           "tenant clear",
                           "migrate",
                           "request",
                           "request list",
                           "request show",
                           "request cancel",
                           "engine",
                           "engine list",
                           "engine test",
                           "engine drain",
                           "engine reset",
                           "census",
                           "channel",
                           "channel list",
                           "channel add",
                           "channel remove",
                           "metrics",
                           "top",
                           "reload",
                           "doctor",
                           "version"}) {
    const auto invocation = parse_arguments(words(std::string(line) + " --help"));
    ASSERT_TRUE(invocation.ok()) << line;
    const auto* help = std::get_if<HelpCommand>(&invocation->command);
    ASSERT_NE(help, nullptr) << line;
    EXPECT_NE(help->text.find("Usage: memsluice " + std::string(line)), std::string::npos)
        << help->text;
    EXPECT_EQ(help->text.find("--root"), std::string::npos) << "--root is for tests";
  }
}

TEST(Arguments, ARemovalHasADeadline) {
  for (const auto& [line, deadline_ms] :
       {std::pair{"channel remove ch2", 60000}, {"channel remove ch2 --deadline 5", 5000}}) {
    const auto invocation = parse_arguments(words(line));
    ASSERT_TRUE(invocation.ok());
    EXPECT_EQ(std::get<ChannelRemoveCommand>(invocation->command).params,
              Json({{"name", "ch2"}, {"deadline_ms", deadline_ms}}));
  }
}

TEST(Arguments, TopTakesFractionsOfASecond) {
  const auto invocation = parse_arguments(words("top --once --interval 0.25"));
  ASSERT_TRUE(invocation.ok());
  const auto& top = std::get<TopCommand>(invocation->command);
  EXPECT_TRUE(top.once);
  EXPECT_EQ(top.interval, Milliseconds(250));
}

}  // namespace
}  // namespace memsluice
