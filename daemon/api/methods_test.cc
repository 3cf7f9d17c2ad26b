// SPDX-License-Identifier: GPL-2.0
#include "daemon/api/methods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "daemon/api/fixture.h"

namespace memsluice {
namespace {

class MethodsTest : public testing::Test, protected ApiFixture {
 protected:
  Result<Json> call(const std::string& method, Json params = Json::object(),
                    bool may_change = true) {
    std::optional<Result<Json>> answer;
    pending_ = methods_->call({.id = 1, .method = method, .params = std::move(params)}, may_change,
                              [&](const Result<Json>& result) { answer = result; });
    if (!answer && (method == "census" || method == "metrics" || method.starts_with("engine.") ||
                    method.starts_with("channel.")))
      turn_while_busy();
    return answer.value_or(Error{.message = "not answered yet"});
  }
  std::string complaint(const std::string& method, Json params = Json::object()) {
    auto result = call(method, std::move(params));
    return result.ok() ? "none" : result.error().describe();
  }
  static std::set<std::string> keys(const Json& object) {
    std::set<std::string> names;
    for (const auto& [key, value] : object.items()) names.insert(key);
    return names;
  }

  Methods::Pending pending_;
};

TEST_F(MethodsTest, HelloTellsWhoMayWhat) {
  EXPECT_EQ(*call("hello"), (Json{{"version", "0.1"}, {"api_version", 1}, {"may_change", true}}));
  EXPECT_EQ(call("hello", Json::object(), false)->at("may_change"), false);
}

TEST_F(MethodsTest, CountersOfEachChannelWithTheirSamples) {
  EXPECT_EQ(call("counters")->at("counters").at("error").at("code"), "unavailable")
      << "not read yet";
  host_.write("/counters", "memsluice-counters 1\na node=1 read_bytes=1000 write_bytes=0\n");
  bandwidth_->configure({.source = host_.path("/counters")});
  turn_while_busy();
  const auto second = [&] {
    clock_.now += Bandwidth::kPeriod;
    turn();
    turn_while_busy();
  };
  second();
  host_.remove("/counters");
  second();
  Json counters = call("counters")->at("counters");
  EXPECT_EQ(counters.at("error").at("code"), "not_found");
  EXPECT_TRUE(counters.at("channels").empty());
  host_.write("/counters", "memsluice-counters 1\na node=1 read_bytes=5000 write_bytes=64\n");
  second();
  counters = call("counters", {{"samples", 300}})->at("counters");
  EXPECT_EQ(counters.at("source"), host_.path("/counters"));
  EXPECT_EQ(counters.at("period_ms"), 1000);
  EXPECT_TRUE(counters.at("error").is_null());
  const Json channel = counters.at("channels").at(0);
  EXPECT_EQ(channel.at("name"), "a");
  EXPECT_EQ(channel.at("node"), 1);
  EXPECT_EQ(channel.at("read_bytes"), 5000);
  ASSERT_EQ(channel.at("samples").size(), 4u);
  EXPECT_TRUE(channel.at("samples").at(1).is_null()) << "the file was not written again";
  EXPECT_TRUE(channel.at("samples").at(2).is_null()) << "it was not there";
  EXPECT_GT(channel.at("samples").at(3).at("read_bytes_per_s").get<double>(), 0);
  EXPECT_EQ(call("counters")->at("counters").at("channels").at(0).at("samples").size(), 1u);
  EXPECT_TRUE(call("counters", {{"samples", 0}})
                  ->at("counters")
                  .at("channels")
                  .at(0)
                  .at("samples")
                  .empty());
  EXPECT_EQ(complaint("counters", {{"samples", 301}}),
            "samples: must be a whole number from 0 to 300");
}

TEST_F(MethodsTest, StatusTellsEverything) {
  clock_.now = Milliseconds(61000);
  ASSERT_TRUE(call("tenant.set", {{"cgroup", "/redis.slice"}}).ok());
  Json status = *call("status");
  EXPECT_EQ(status.at("daemon"), (Json{{"version", "0.1"},
                                       {"uptime_s", 61},
                                       {"config_path", "/etc/x.toml"},
                                       {"config_loaded_unix_s", 500}}));
  EXPECT_EQ(status.at("module"), (Json{{"loaded", true},
                                       {"version", "1.2.3"},
                                       {"abi_version", 1},
                                       {"features", {"migrate", "tiering", "engines"}}}));
  EXPECT_EQ(status.at("nodes").size(), 2u);
  EXPECT_EQ(status.at("nodes").at(1).at("tier"), 1);
  EXPECT_EQ(status.at("tenants").size(), 1u);
}

TEST_F(MethodsTest, StatusWorksWithoutTheModule) {
  module_.unload();
  Json status = *call("status");
  EXPECT_EQ(status.at("module").at("loaded"), false);
  EXPECT_EQ(status.at("module").at("error").at("code"), "unavailable");
  EXPECT_EQ(status.at("tenants"), Json::array());
  EXPECT_EQ(call("tenant.list").error().code, ErrorCode::kUnavailable);
}

TEST_F(MethodsTest, ATenantHasTheDocumentedMembers) {
  ASSERT_TRUE(call("tenant.set", {{"cgroup", "/redis.slice"}, {"fast_limit_bytes", 4096}}).ok());
  Json tenant = call("tenant.get", {{"cgroup", "/redis.slice"}})->at("tenant");
  EXPECT_EQ(keys(tenant), (std::set<std::string>{"cgroup",
                                                 "cgroup_id",
                                                 "origin",
                                                 "policy",
                                                 "fast_bytes",
                                                 "slow_bytes",
                                                 "memory_current_bytes",
                                                 "node_bytes",
                                                 "promoted_pages",
                                                 "demoted_pages",
                                                 "refused_pages",
                                                 "histogram_pages",
                                                 "hot_bin",
                                                 "cold_bin",
                                                 "scans",
                                                 "scanned_pages",
                                                 "scan_cpu_us",
                                                 "processes",
                                                 "fallback_folios",
                                                 "spilled_folios",
                                                 "lost_time"}));
  EXPECT_EQ(tenant.at("origin"), "api");
  EXPECT_EQ(tenant.at("policy"), (Json{{"tiering", true},
                                       {"fast_limit_bytes", 4096},
                                       {"promote_mib_per_s", 1024},
                                       {"demote_mib_per_s", 1024},
                                       {"channels", "none"},
                                       {"granule_bytes", 2 << 20}}));
  EXPECT_EQ(tenant.at("memory_current_bytes"), 8192);
  EXPECT_EQ(tenant.at("node_bytes"), (Json{{"0", 4096}, {"1", 4096}}));
  EXPECT_EQ(tenant.at("refused_pages").size(), size_t{MEMSLUICE_REFUSALS});
  EXPECT_EQ(tenant.at("refused_pages").at("pinned"), 3);
  EXPECT_EQ(tenant.at("histogram_pages").at("slow").size(), size_t{MEMSLUICE_BINS});
  EXPECT_EQ(tenant.at("histogram_pages").at("slow").at(2), 5);
}

TEST_F(MethodsTest, TenantSetTakesNullAsNoLimitAndChecksItsKeys) {
  Json set = *call("tenant.set", {{"cgroup", "/redis.slice"}, {"fast_limit_bytes", 1}});
  EXPECT_EQ(set.at("tenant").at("policy").at("fast_limit_bytes"), 1);
  set = *call("tenant.set", {{"cgroup", "/redis.slice"}, {"tiering", false}});
  EXPECT_EQ(set.at("tenant").at("policy").at("fast_limit_bytes"), 1);
  set = *call("tenant.set", {{"cgroup", "/redis.slice"}, {"fast_limit_bytes", nullptr}});
  EXPECT_EQ(set.at("tenant").at("policy").at("fast_limit_bytes"), nullptr);
  EXPECT_EQ(set.at("tenant").at("policy").at("tiering"), false);

  EXPECT_EQ(complaint("tenant.set"), "cgroup: is missing");
  EXPECT_EQ(complaint("tenant.set", {{"cgroup", "/redis.slice"}, {"promote_mib_per_s", 1 << 21}}),
            "promote_mib_per_s: must be a whole number from 0 to 1048576");
  EXPECT_EQ(complaint("tenant.set", {{"cgroup", "/redis.slice"}, {"fast_limit", "1M"}}),
            "fast_limit: no such key (known are: cgroup, channels, demote_mib_per_s, "
            "fast_limit_bytes, granule_bytes, promote_mib_per_s, tiering)");
  EXPECT_EQ(complaint("tenant.set", {{"cgroup", "redis"}}),
            "redis: a cgroup begins with a slash (write it as below the cgroup root, such as "
            "/redis.slice)");
}

TEST_F(MethodsTest, TenantClearTakesItAway) {
  ASSERT_TRUE(call("tenant.set", {{"cgroup", "/redis.slice"}}).ok());
  EXPECT_EQ(*call("tenant.clear", {{"cgroup", "/redis.slice"}}), Json::object());
  EXPECT_EQ(call("tenant.list")->at("tenants"), Json::array());
  EXPECT_EQ(call("tenant.get", {{"cgroup", "/redis.slice"}}).error().message, "is no tenant");
}

TEST_F(MethodsTest, WhoMayNotChangeMayLook) {
  const std::set<std::string> changing = {"tenant.set",     "tenant.clear",  "migrate",
                                          "request.cancel", "config.reload", "engine.test",
                                          "engine.drain",   "engine.reset"};
  for (const char* method :
       {"hello", "status", "tenant.list", "tenant.get", "tenant.set", "tenant.clear", "migrate",
        "request.list", "request.get", "request.wait", "request.cancel", "config.reload",
        "engine.list", "engine.test", "engine.drain", "engine.reset"}) {
    auto result = call(method, Json::object(), false);
    const bool denied = !result.ok() && result.error().code == ErrorCode::kDenied;
    EXPECT_EQ(denied, changing.contains(method)) << method;
    if (denied) {
      EXPECT_EQ(result.error().hint, "be root or a member of the group memsluice");
    }
  }
}

TEST_F(MethodsTest, RedistributeBringsATenantToItsChannels) {
  EXPECT_EQ(complaint("redistribute", {{"cgroup", "/redis.slice"}}),
            "/redis.slice: is no tenant (memsluice tenant list shows them, memsluice tenant set "
            "makes one)");
  ASSERT_TRUE(call("tenant.set", {{"cgroup", "/redis.slice"}, {"channels", "1:3"}}).ok());
  Json tenant =
      call("tenant.set", {{"cgroup", "/redis.slice"}, {"channels", "-1,+0:4"}})->at("tenant");
  EXPECT_EQ(tenant.at("policy").at("channels"), "0:4");
  EXPECT_EQ(complaint("tenant.set", {{"cgroup", "/redis.slice"}, {"channels", "-1"}}),
            "channels: node 1 is none of its channels (they are 0:4)");
  EXPECT_THAT(complaint("tenant.set", {{"cgroup", "/redis.slice"}, {"channels", "+1,2"}}),
              testing::HasSubstr("is no change of channels"));

  Json request =
      call("redistribute", {{"cgroup", "/redis.slice"}, {"mib_per_s", 3}})->at("request");
  EXPECT_EQ(request.at("kind"), "tenant_placed");
  EXPECT_EQ(request.at("target_node"), nullptr);
  EXPECT_EQ(request.at("on_touch"), false);
  EXPECT_EQ(module_.requests().at(1)->migration.mib_per_s, 3u);
  request =
      call("redistribute", {{"cgroup", "/redis.slice"}, {"on_touch", true}, {"source_node", 1}})
          ->at("request");
  EXPECT_EQ(request.at("on_touch"), true);
  EXPECT_EQ(module_.requests().at(2)->migration.source_node, 1);
  EXPECT_EQ(
      complaint("redistribute", {{"cgroup", "/redis.slice"}, {"on_touch", true}, {"mib_per_s", 3}}),
      "mib_per_s: goes not with on_touch: pages move when they are touched");
  EXPECT_EQ(complaint("redistribute", {{"cgroup", "/redis.slice"}, {"mib_per_s", 9999999}}),
            "mib_per_s: must be a whole number from 0 to 1048576");
}

TEST_F(MethodsTest, MigrateTellsItsRequest) {
  Json request = call("migrate", {{"pid", ::getpid()}, {"target_node", 1}})->at("request");
  EXPECT_EQ(keys(request),
            (std::set<std::string>{"id", "kind", "object", "target_node", "on_touch", "upkeep",
                                   "state", "error", "total_pages", "seen_pages", "moved_pages",
                                   "already_there_pages", "refused_pages"}));
  EXPECT_EQ(request.at("kind"), "range");
  EXPECT_EQ(request.at("state"), "running");
  EXPECT_EQ(request.at("error"), nullptr);
  request = call("migrate", {{"cgroup", "/redis.slice"}, {"source_node", 0}, {"target_node", 1}})
                ->at("request");
  EXPECT_EQ(request.at("kind"), "tenant_node");
  EXPECT_EQ(request.at("object"), "/redis.slice");
  EXPECT_EQ(call("request.list")->at("requests").size(), 2u);
  EXPECT_EQ(call("request.get", {{"id", 2}})->at("request"), request);
  EXPECT_EQ(call("request.cancel", {{"id", 2}})->at("request").at("state"), "cancelled");
}

TEST_F(MethodsTest, MigrateChecksItsKeys) {
  EXPECT_EQ(complaint("migrate"), "pid: is missing (name a pid, or a cgroup and a source_node)");
  EXPECT_EQ(complaint("migrate", {{"pid", 1}}), "target_node: is missing");
  EXPECT_EQ(complaint("migrate", {{"pid", 0}, {"target_node", 1}}),
            "pid: must be a whole number from 1 to 4194304");
  EXPECT_EQ(complaint("migrate", {{"cgroup", "/redis.slice"}, {"target_node", 1}}),
            "source_node: is missing");
  EXPECT_THAT(
      complaint("migrate", {{"cgroup", "/a"}, {"pid", 1}, {"source_node", 0}, {"target_node", 1}}),
      testing::StartsWith("pid: no such key"));
  EXPECT_EQ(complaint("migrate", {{"pid", 1}, {"target_node", 5000}}),
            "target_node: must be a whole number from 0 to 1023");
}

TEST_F(MethodsTest, WaitAnswersWhenTheRequestEnds) {
  ASSERT_TRUE(call("migrate", {{"pid", ::getpid()}, {"target_node", 1}}).ok());
  std::string state;
  auto pending = methods_->call(
      {.id = 1, .method = "request.wait", .params = {{"id", 1}}}, false,
      [&](const Result<Json>& result) { state = result->at("request").at("state"); });
  EXPECT_NE(pending, nullptr);
  turn();
  EXPECT_EQ(state, "");
  module_.end_request(1, MEMSLUICE_REQUEST_DONE);
  turn();
  EXPECT_EQ(state, "done");
  EXPECT_EQ(call("request.wait", {{"id", 1}})->at("request").at("state"), "done");
}

TEST_F(MethodsTest, WaitAnswersWhenTheTimeIsOver) {
  ASSERT_TRUE(call("migrate", {{"pid", ::getpid()}, {"target_node", 1}}).ok());
  EXPECT_EQ(call("request.wait", {{"id", 1}, {"timeout_ms", 0}})->at("request").at("state"),
            "running");
  int answers = 0;
  auto pending =
      methods_->call({.id = 1, .method = "request.wait", .params = {{"id", 1}, {"timeout_ms", 50}}},
                     false, [&](const Result<Json>& result) { answers += result.ok(); });
  clock_.now += Milliseconds(49);
  turn();
  EXPECT_EQ(answers, 0);
  clock_.now += Milliseconds(1);
  turn();
  EXPECT_EQ(answers, 1);
}

TEST_F(MethodsTest, WaitThatNobodyHoldsAnswersNobody) {
  ASSERT_TRUE(call("migrate", {{"pid", ::getpid()}, {"target_node", 1}}).ok());
  int answers = 0;
  auto pending = methods_->call({.id = 1, .method = "request.wait", .params = {{"id", 1}}}, false,
                                [&](const Result<Json>&) { answers++; });
  pending.reset();
  module_.end_request(1, MEMSLUICE_REQUEST_DONE);
  turn();
  EXPECT_EQ(answers, 0);
}

TEST_F(MethodsTest, ReloadTellsWhetherAnythingChanged) {
  EXPECT_EQ(*call("config.reload"), (Json{{"changed", true}}));
  reload_result_ = Error{.code = ErrorCode::kBadRequest, .object = "x.toml:3", .message = "bad"};
  EXPECT_EQ(complaint("config.reload"), "x.toml:3: bad");
}

TEST_F(MethodsTest, UnknownMethodsAndKeysAreErrors) {
  auto result = call("tenant.destroy");
  EXPECT_EQ(result.error().code, ErrorCode::kUnknownMethod);
  EXPECT_EQ(result.error().object, "tenant.destroy");
  for (const char* method : {"hello", "status", "tenant.list", "request.list", "config.reload"})
    EXPECT_EQ(complaint(method, {{"verbose", true}}),
              "verbose: no such key (this method takes none)");
}

TEST_F(MethodsTest, EnginesHaveTheDocumentedMembers) {
  memsluice_engine_queue& queue = module_.engine_queue("wq0.0");
  queue.node = -1;
  queue.state = MEMSLUICE_QUEUE_STUCK;
  queue.quarantined = 3;
  module_.engine_queue("wq0.1").state = 77;
  Json engines = call("engine.list")->at("engines");
  ASSERT_EQ(engines.size(), 2u);
  const Json& dsa = engines.at(0);
  EXPECT_EQ(keys(dsa),
            (std::set<std::string>{"name", "rank", "batches", "bytes", "declined", "failed_folios",
                                   "late_folios", "differing_folios", "queues"}));
  EXPECT_EQ(dsa.at("name"), "dsa");
  EXPECT_EQ(dsa.at("rank"), 100);
  EXPECT_EQ(dsa.at("queues").at(0), (Json{{"name", "wq0.0"},
                                          {"node", nullptr},
                                          {"state", "stuck"},
                                          {"depth", 64},
                                          {"max_batch", 0},
                                          {"max_transfer_bytes", 0},
                                          {"descriptors", 0},
                                          {"batches", 0},
                                          {"bytes", 0},
                                          {"errors", 0},
                                          {"late", 0},
                                          {"quarantined", 3}}));
  EXPECT_EQ(dsa.at("queues").at(1).at("node"), 0);
  EXPECT_EQ(dsa.at("queues").at(1).at("state"), "state_77");
  EXPECT_EQ(engines.at(1).at("queues"), Json::array());
  module_.forget_engines();
  EXPECT_EQ(call("engine.list").error().code, ErrorCode::kUnavailable);
}

TEST_F(MethodsTest, QueuesAreDrainedAndTested) {
  EXPECT_EQ(*call("engine.drain", {{"queue", "wq0.1"}}),
            (Json{{"queue", {{"engine", "dsa"}, {"name", "wq0.1"}}}}));
  EXPECT_EQ(call("engine.list")->at("engines").at(0).at("queues").at(1).at("state"), "drained");
  EXPECT_TRUE(call("engine.test", {{"engine", "dsa"}, {"queue", "wq0.1"}}).ok());
  EXPECT_EQ(call("engine.test", {{"queue", "wq9.1"}}).error().code, ErrorCode::kNotFound);
  module_.fail_next("engine act", EIO);
  EXPECT_EQ(complaint("engine.test", {{"queue", "wq0.0"}}),
            "dsa/wq0.0: a copy failed (dmesg names its status; the queue copies nothing until it "
            "passes a test)");
  EXPECT_EQ(complaint("engine.test"), "queue: is missing");
  EXPECT_EQ(complaint("engine.drain", {{"queue", "wq0.0"}, {"engine", 7}}),
            "engine: must be a string");
  EXPECT_EQ(complaint("engine.list", {{"queue", "wq0.0"}}),
            "queue: no such key (this method takes none)");
}

TEST_F(MethodsTest, ADeviceIsReset) {
  EXPECT_EQ(
      *call("engine.reset", {{"device", "dsa0"}}),
      (Json{{"reset",
             {{"device", "dsa0"}, {"configuration", "device"}, {"queues", {"wq0.0", "wq0.1"}}}}}));
  EXPECT_EQ(complaint("engine.reset"), "device: is missing");
  EXPECT_EQ(call("engine.reset", {{"device", "dsa1"}}).error().code, ErrorCode::kNotFound);
}

TEST_F(MethodsTest, AResetGoesOnWhenNobodyWaitsForItsAnswer) {
  bool answered = false;
  auto pending = methods_->call({.id = 1, .method = "engine.reset", .params = {{"device", "dsa0"}}},
                                true, [&](const Result<Json>&) { answered = true; });
  EXPECT_NE(pending, nullptr);
  EXPECT_EQ(call("engine.test", {{"queue", "wq0.0"}}).error().code, ErrorCode::kConflict);
  pending.reset();
  turn_while_busy();
  EXPECT_FALSE(answered);
  EXPECT_EQ(devices_.steps().back(), "enable wq0.1");
}

TEST_F(MethodsTest, ATenantIsPlaced) {
  const auto set = [&](Json params) {
    params["cgroup"] = "/redis.slice";
    auto result = call("tenant.set", params);
    return result.ok() ? result->at("tenant").at("policy") : error_to_json(result.error());
  };
  Json policy = set({{"channels", "1:3,0"}, {"granule_bytes", 4096}});
  EXPECT_EQ(policy.at("channels"), "1:3,0:1");
  EXPECT_EQ(policy.at("granule_bytes"), 4096);
  EXPECT_EQ(call("tenant.get", {{"cgroup", "/redis.slice"}})->at("tenant").at("spilled_folios"), 1);
  EXPECT_EQ(set({{"tiering", false}}).at("channels"), "1:3,0:1") << "what is left out stays";
  EXPECT_EQ(set({{"channels", "7"}}).at("message"), "a node among them has no memory");
  EXPECT_EQ(set({{"channels", "one"}}).at("message"), "\"one\" names no channels");
  EXPECT_EQ(set({{"granule_bytes", 5000}}).at("object"), "granule");
  EXPECT_EQ(set(Json::object()).at("channels"), "1:3,0:1") << "what is refused changes nothing";
  policy = set({{"channels", "none"}});
  EXPECT_EQ(policy.at("channels"), "none");
  EXPECT_EQ(policy.at("granule_bytes"), 2 << 20);
}

TEST_F(MethodsTest, TheCensusHasTheDocumentedMembers) {
  const uint64_t redis = Cgroups(host_.path("/cgroup")).find("/redis.slice")->id;
  std::vector<memsluice_census_row> rows(3);
  rows[0].node = 1;
  rows[0].cgroup_id = redis;
  rows[0].tenant_id = redis;
  rows[0].pages[MEMSLUICE_FRAMES_SHMEM] = 5;
  rows[0].held_pages[MEMSLUICE_FRAMES_SHMEM] = 2;
  rows[1].pages[MEMSLUICE_FRAMES_FREE] = 7;
  rows[1].pages[15] = 3;
  rows[2].cgroup_id = 1 << 30;
  rows[2].tenant_id = redis;
  module_.put_census(rows);
  const Json lines = call("census")->at("census");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines.at(0),
            Json::parse(R"({"node": 1, "cgroup": "/redis.slice", "tenant": "/redis.slice",
                "pages": {"anon": 0, "shmem": 5, "file": 0, "hugetlb": 0, "kernel": 0, "pool": 0,
                          "free": 0, "poisoned": 0, "reserved": 0},
                "held_pages": {"anon": 0, "shmem": 2, "file": 0}})")
                .patch(Json::array({{{"op", "add"}, {"path", "/cgroup_id"}, {"value", redis}},
                                    {{"op", "add"}, {"path", "/tenant_id"}, {"value", redis}}})));
  EXPECT_EQ(lines.at(1).at("cgroup_id"), nullptr);
  EXPECT_EQ(lines.at(1).at("cgroup"), nullptr);
  EXPECT_EQ(lines.at(1).at("tenant"), nullptr);
  EXPECT_EQ(lines.at(1).at("pages").at("kind_15"), 3);
  EXPECT_EQ(lines.at(2).at("cgroup"), nullptr) << "removed";
  EXPECT_EQ(lines.at(2).at("tenant"), "/redis.slice");

  const Json tenants = call("census", {{"node", 0}, {"by_tenant", true}})->at("census");
  ASSERT_EQ(tenants.size(), 2u);
  EXPECT_EQ(tenants.at(0).at("cgroup"), "/redis.slice");
  EXPECT_EQ(tenants.at(1).at("cgroup_id"), nullptr);
  EXPECT_EQ(complaint("census", {{"node", -1}}), "node: must be a whole number from 0 to 1023");
  EXPECT_EQ(complaint("census", {{"nodes", 1}}), "nodes: no such key (known are: by_tenant, node)");
  module_.fail_next("census", ENODEV);
  EXPECT_EQ(complaint("census", {{"node", 9}}),
            "node 9: has no memory (memsluice status lists those that have)");
}

TEST_F(MethodsTest, TheCensusIsNotForEverybody) {
  Result<Json> answer = Json();
  methods_->call({.id = 1, .method = "census", .params = Json::object()}, false,
                 [&](const Result<Json>& result) { answer = result; });
  EXPECT_EQ(answer.error().code, ErrorCode::kDenied);
}

TEST_F(MethodsTest, ChannelsAreAddedListedAndRemoved) {
  EXPECT_EQ(*call("channel.list"), (Json{{"channels", Json::array()}}));
  const Json added = *call("channel.add", {{"name", "ch2"},
                                           {"group", "dram"},
                                           {"node", 2},
                                           {"start", 0x10000000},
                                           {"length_bytes", 0x10000000}});
  EXPECT_EQ(added.at("channel"), (Json{{"name", "ch2"},
                                       {"group", "dram"},
                                       {"node", 2},
                                       {"state", "online"},
                                       {"start", 0x10000000},
                                       {"length_bytes", 0x10000000},
                                       {"block_bytes", 0x8000000},
                                       {"blocks", 2},
                                       {"online_blocks", 2},
                                       {"movable_blocks", 2},
                                       {"onlined_by", {"module"}},
                                       {"moved_pages", 0}}));
  const Json named = call("channel.add", {{"name", "ch1"}, {"node", 1}})->at("channel");
  EXPECT_TRUE(named.at("start").is_null() && named.at("length_bytes").is_null());
  EXPECT_TRUE(named.at("group").is_null());
  EXPECT_EQ(call("channel.list")->at("channels").size(), 2u);
  EXPECT_EQ(call("channel.remove", {{"name", "ch2"}})->at("removed"),
            (Json{{"name", "ch2"}, {"node", 2}, {"moved_pages", 7}}));
  EXPECT_EQ(call("channel.list")->at("channels"), Json::array({named}));
  EXPECT_THAT(complaint("channel.remove", {{"name", "ch2"}}),
              testing::HasSubstr("ch2: is no channel"));
}

TEST_F(MethodsTest, ChannelsNeedTheirParts) {
  EXPECT_THAT(complaint("channel.add", {{"node", 1}}), testing::HasSubstr("name: is missing"));
  EXPECT_THAT(complaint("channel.add", {{"name", "a"}}), testing::HasSubstr("node: is missing"));
  EXPECT_THAT(complaint("channel.add", {{"name", "a"}, {"start", 0}}),
              testing::HasSubstr("length_bytes: is missing"));
  EXPECT_THAT(complaint("channel.add", {{"name", "a"}, {"length_bytes", 4096}}),
              testing::HasSubstr("start: is missing"));
  EXPECT_THAT(complaint("channel.add", {{"name", "a"}, {"node", 1024}}),
              testing::HasSubstr("0 to 1023"));
  EXPECT_THAT(complaint("channel.remove", {{"name", "a"}, {"deadline_ms", 0}}),
              testing::HasSubstr("1 to 3600000"));
  EXPECT_FALSE(call("channel.add", {{"name", "a"}, {"node", 1}}, false).ok());
  EXPECT_FALSE(call("channel.remove", {{"name", "a"}}, false).ok());
}

}  // namespace
}  // namespace memsluice
