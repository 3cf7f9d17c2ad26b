// SPDX-License-Identifier: GPL-2.0
#include "daemon/api/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "daemon/api/fixture.h"
#include "daemon/host/files.h"

namespace memsluice {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// What promtool checks, and that no sample is there twice.
std::vector<std::string> lint_metrics(const std::string& text) {
  static const std::regex help(R"(# HELP ([a-z_]+) [A-Z].*[.])");
  static const std::regex type(R"(# TYPE ([a-z_]+) (gauge|counter|histogram))");
  static const std::regex sample(
      R"(([a-z_]+)((?:\{(?:[a-z]+="(?:[^"\\\n]|\\\\|\\"|\\n)*",?)+\})?) (?:[0-9.e+-]+|[+-]Inf|NaN))");
  std::vector<std::string> complaints;
  std::set<std::string> families;
  std::set<std::string> samples;
  std::string family;
  std::string kind;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, help)) {
      family = match[1];
      kind.clear();
      if (!families.insert(family).second) complaints.push_back("twice: " + line);
    } else if (std::regex_match(line, match, type)) {
      kind = match[2];
      if (match[1] != family) complaints.push_back("not of its family: " + line);
      if ((kind == "counter") != family.ends_with("_total"))
        complaints.push_back("_total is for counters: " + line);
    } else if (std::regex_match(line, match, sample)) {
      const std::string name = match[1];
      const bool of_family =
          kind == "histogram"
              ? name == family + "_bucket" || name == family + "_sum" || name == family + "_count"
              : name == family;
      if (kind.empty() || !of_family) complaints.push_back("not of its family: " + line);
      if (!samples.insert(name + match[2].str()).second) complaints.push_back("twice: " + line);
    } else {
      complaints.push_back("no line of the format: " + line);
    }
  }
  if (!text.ends_with('\n')) complaints.emplace_back("no end of line");
  return complaints;
}

class MetricsTest : public testing::Test, protected ApiFixture {
 protected:
  std::string collected() {
    std::optional<std::string> text;
    metrics_->collect([&](const std::string& collected) { text = collected; });
    turn_while_busy();
    return text.value_or("not answered");
  }
};

TEST_F(MetricsTest, TellEverythingThatIsKnown) {
  host_.make_directory("/cgroup/odd\"\\x2d.slice");
  host_.write("/counters",
              "memsluice-counters 1\na node=1 read_bytes=1000 write_bytes=9\n"
              "b read_bytes=1 write_bytes=0\n");
  host_.write(
      "/migration",
      "moved request fast base 3 3 12288\ncopied_bytes 7\nunmap_ns 500000000\nstall_us 1 2\n");
  bandwidth_->configure({.source = host_.path("/counters")});
  ASSERT_TRUE(tenants_->set("/redis.slice", {}).ok());
  ASSERT_TRUE(tenants_->set("/odd\"\\x2d.slice", {}).ok());
  turn_while_busy();
  const std::string text = collected();
  EXPECT_THAT(lint_metrics(text), IsEmpty()) << text;
  for (const char* line :
       {"memsluice_build_info{version=\"0.1\"} 1", "memsluice_module_loaded 1",
        "memsluice_node_memory_bytes{node=\"1\",tier=\"1\"} 2097152",
        "memsluice_counters_readable 1",
        "memsluice_channel_read_bytes_total{channel=\"a\",node=\"1\"} 1000",
        "memsluice_channel_written_bytes_total{channel=\"b\",node=\"\"} 0",
        "memsluice_tenant_memory_bytes{tenant=\"/redis.slice\",node=\"0\"} 4096",
        R"(memsluice_tenant_promoted_pages_total{tenant="/odd\"\\x2d.slice"} 0)",
        "memsluice_tenant_refused_pages_total{tenant=\"/redis.slice\",reason=\"pinned\"} 3",
        "memsluice_migrated_bytes_total{reason=\"request\",to=\"fast\",size=\"base\"} 12288",
        "memsluice_migration_stall_seconds_bucket{le=\"1e-06\"} 1",
        "memsluice_migration_stall_seconds_bucket{le=\"+Inf\"} 3",
        "memsluice_migration_stall_seconds_sum 0.5",
        "memsluice_engine_queue_up{engine=\"dsa\",queue=\"wq0.1\"} 1"})
    EXPECT_THAT(text, HasSubstr(std::string(line) + "\n"));
  EXPECT_THAT(text, Not(HasSubstr("engine=\"cpu\""))) << "it counts nothing";
}

TEST_F(MetricsTest, OfAHostWithoutModuleOrCounters) {
  module_.unload();
  const std::string text = collected();
  EXPECT_THAT(lint_metrics(text), IsEmpty()) << text;
  EXPECT_THAT(text, HasSubstr("memsluice_module_loaded 0\n"));
  EXPECT_THAT(text, HasSubstr("memsluice_counters_readable 0\n"));
  for (const char* part : {"tenant", "migrat", "engine", "channel_"})
    EXPECT_THAT(text, Not(HasSubstr(std::string("memsluice_") + part))) << "not known is not zero";
}

TEST_F(MetricsTest, AFileIsKeptUntilTheEnd) {
  const std::string path = host_.path("/memsluice.prom");
  metrics_->configure({.textfile = path});
  turn_while_busy();
  EXPECT_THAT(lint_metrics(*read_file(AT_FDCWD, path)), IsEmpty());
  host_.remove("/memsluice.prom");
  clock_.now += MetricsSettings().period;
  turn();
  turn_while_busy();
  EXPECT_TRUE(read_file(AT_FDCWD, path).ok());
  const std::string other = host_.path("/other.prom");
  metrics_->configure({.textfile = other});
  turn_while_busy();
  EXPECT_FALSE(read_file(AT_FDCWD, path).ok());
  metrics_.reset();
  EXPECT_FALSE(read_file(AT_FDCWD, other).ok());
}

TEST_F(MetricsTest, AFileThatCannotBeWrittenIsToldOnce) {
  metrics_->configure({.textfile = host_.path("/none/x.prom"), .period = Milliseconds(1000)});
  turn_while_busy();
  clock_.now += Milliseconds(1000);
  turn();
  turn_while_busy();
  EXPECT_THAT(logged_, HasSubstr("none/x.prom.new: open: No such file or directory"));
  EXPECT_EQ(logged_.find("metrics:"), logged_.rfind("metrics:"));
  host_.make_directory("/none");
  clock_.now += Milliseconds(1000);
  turn();
  turn_while_busy();
  EXPECT_TRUE(read_file(AT_FDCWD, host_.path("/none/x.prom")).ok());
}

}  // namespace
}  // namespace memsluice
