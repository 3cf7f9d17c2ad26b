// SPDX-License-Identifier: GPL-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "daemon/base/json.h"
#include "daemon/base/temporary_directory.h"
#include "tools/memsluice/provision/sample_tables.h"
#include "tools/memsluice/run.h"

namespace memsluice {
namespace {

using namespace provision::sample;
using testing::HasSubstr;

// The command on a recorded host: 2 GiB with the CPUs, and a node of 6 GiB.
class ProvisionCommandRuns : public testing::Test {
 protected:
  ProvisionCommandRuns() {
    host_.write("/sys/firmware/memmap/0/start", "0x0");
    host_.write("/sys/firmware/memmap/0/end", "0x7fffffff");
    host_.write("/sys/firmware/memmap/0/type", "System RAM");
    host_.write("/sys/firmware/memmap/1/start", "0x100000000");
    host_.write("/sys/firmware/memmap/1/end", "0x27fffffff");
    host_.write("/sys/firmware/memmap/1/type", "System RAM");
    host_.write("/proc/iomem",
                "00000000-7fffffff : System RAM\n100000000-27fffffff : System RAM\n");
    host_.write("/sys/firmware/acpi/tables/SRAT",
                srat({srat_cpu(0, 0), srat_memory(0, {0, 2 * kGib}),
                      srat_memory(0, {4 * kGib, 6 * kGib})}));
    host_.write("/proc/sys/kernel/osrelease", "6.12\n");
    host_.write("/boot/config-6.12", "CONFIG_ACPI_TABLE_UPGRADE=y\n");
  }

  int run_with(std::vector<std::string> arguments) {
    out_.str({});
    err_.str({});
    arguments.insert(arguments.begin(), "provision");
    arguments.insert(arguments.end(), {"--root", host_.path()});
    return run(arguments, Environment{.out = out_, .err = err_});
  }
  std::string content(const std::string& below) const {
    std::ifstream file(host_.path(below), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TemporaryDirectory host_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(ProvisionCommandRuns, LooksAndPlansNothing) {
  EXPECT_EQ(run_with({}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("  0x100000000-0x27fffffff  6 GiB\n"
                                    "    e820          System RAM\n"
                                    "    SRAT          domain 0\n"
                                    "    /proc/iomem   System RAM\n"));
  EXPECT_THAT(out_.str(), HasSubstr("Nothing says where channels begin and end:\n"));
  EXPECT_EQ(run_with({"--json"}), 0);
  const Json answer = Json::parse(out_.str());
  EXPECT_EQ(answer["plan"], nullptr);
  EXPECT_EQ(answer["evidence"]["ranges"][1]["claims"][1]["source"], "SRAT");
}

TEST_F(ProvisionCommandRuns, PlansAndWritesNothing) {
  EXPECT_EQ(run_with({"--range", "0x200000000+2G"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("dram-0   dram      1  0x200000000+2G  named\n"));
  EXPECT_THAT(out_.str(), HasSubstr("  memmap=2G$0x200000000\n"));
  EXPECT_THAT(out_.str(), HasSubstr("memmap=2G\\\\\\$0x200000000\""));
  EXPECT_THAT(out_.str(), HasSubstr("Nothing has been written"));
  EXPECT_EQ(run_with({"--json", "--range", "0x200000000+2G"}), 0);
  const Json answer = Json::parse(out_.str());
  EXPECT_EQ(answer["plan"]["channels"][0]["node"], 1);
  EXPECT_EQ(answer["plan"]["kernel_arguments"], Json::array({"memmap=2G$0x200000000"}));
  EXPECT_EQ(answer["written"], Json::array());
}

TEST_F(ProvisionCommandRuns, Writes) {
  EXPECT_EQ(run_with({"--range", "0x200000000+2G", "--write", host_.path("/out")}), 0);
  EXPECT_EQ(content("/out/kernel-arguments"), "memmap=2G$0x200000000\n");
  EXPECT_THAT(content("/out/channels.toml"), HasSubstr("start = 0x200000000\nlength = \"2G\"\n"));
  EXPECT_THAT(content("/out/memsluice-grub.cfg"), HasSubstr("memsluice-srat.cpio\"\n"));
  EXPECT_TRUE(content("/out/memsluice-srat.cpio").starts_with("070701"));
  EXPECT_EQ(run_with({"--range", "0x200000000+2G", "--write", host_.path("/out")}), 5);
  EXPECT_THAT(err_.str(), HasSubstr("is there already, and is not replaced"));
}

TEST_F(ProvisionCommandRuns, RefusesWithWords) {
  EXPECT_EQ(run_with({"--range", "0x100000000+6G"}), 5);
  EXPECT_THAT(err_.str(), HasSubstr("memsluice: host: would keep 2 GiB of 8 GiB, and needs 4 GiB"));
  EXPECT_EQ(run_with({"--range", "4G"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("memsluice: --range: \"4G\" is no range of memory"));
  EXPECT_EQ(run_with({"--channels", "0"}), 2);
  EXPECT_EQ(run_with({"--node", "x"}), 2);
  EXPECT_EQ(run_with({"--node", "0", "--host", "0"}), 2);
  EXPECT_EQ(run_with({"--node", "0", "--for", "fun"}), 2);
  EXPECT_EQ(run_with({"--write", host_.path("/out")}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("say which channels"));
  EXPECT_FALSE(std::filesystem::exists(host_.path("/out")));
}

}  // namespace
}  // namespace memsluice
