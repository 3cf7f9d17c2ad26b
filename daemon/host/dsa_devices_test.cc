// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/dsa_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/base/temporary_directory.h"
#include "daemon/host/files.h"

namespace memsluice {
namespace {

using testing::ElementsAre;

// A bus as sysfs has it: what it lists are links into the PCI device.
class DsaDevicesTest : public testing::Test {
 protected:
  DsaDevicesTest() {
    file("dsa0/read_buffer_limit", "0\n");
    file("dsa0/cmd_status", "0x80000004\n");
    file("dsa0/group0.0/traffic_class_a", "1\n");
    file("dsa0/engine0.0/group_id", "0\n");
    file("dsa0/wq0.0/size", "64\n");
    file("dsa0/wq0.0/name", "\n");
    file("dsa0/wq0.0/state", "enabled\n");
    file("dsa1/wq1.0/size", "7\n");
    sysfs_.write("/pci0/reset", "");
    for (const char* part : {"dsa0", "dsa0/group0.0", "dsa0/engine0.0", "dsa0/wq0.0"})
      link(std::string("/pci0/") + part);
    link("/pci0/dsa1");
    link("/pci0/dsa1/wq1.0");
    for (const char* driver : {"idxd", "memsluice"}) {
      sysfs_.write(std::string("/bus/drivers/") + driver + "/bind", "");
      sysfs_.write(std::string("/bus/drivers/") + driver + "/unbind", "");
    }
    bound("dsa0", "idxd");
    bound("dsa0/wq0.0", "memsluice");
  }
  void file(const std::string& name, const std::string& content) {
    sysfs_.write("/pci0/" + name, content);
  }
  void link(const std::string& target) {
    sysfs_.make_directory("/bus/devices");
    std::filesystem::create_symlink(
        sysfs_.path(target),
        sysfs_.path("/bus/devices/" + std::filesystem::path(target).filename().string()));
  }
  void bound(const std::string& part, const std::string& driver) {
    std::filesystem::create_symlink(sysfs_.path("/bus/drivers/" + driver),
                                    sysfs_.path("/pci0/" + part + "/driver"));
  }
  std::string content(const std::string& path) { return *read_file(AT_FDCWD, sysfs_.path(path)); }

  TemporaryDirectory sysfs_;
  std::unique_ptr<DsaDevices> devices_ = open_dsa_devices(sysfs_.path("/bus"));
};

TEST_F(DsaDevicesTest, ReadsWhatIsSetAndBound) {
  auto found = devices_->configuration("dsa0");
  ASSERT_TRUE(found.ok()) << found.error().describe();
  EXPECT_EQ(
      found->device,
      (DsaPart{.name = "dsa0", .attributes = {{"read_buffer_limit", "0"}}, .driver = "idxd"}));
  EXPECT_THAT(found->groups,
              ElementsAre(DsaPart{.name = "group0.0", .attributes = {{"traffic_class_a", "1"}}}));
  EXPECT_THAT(found->engines,
              ElementsAre(DsaPart{.name = "engine0.0", .attributes = {{"group_id", "0"}}}));
  EXPECT_THAT(found->queues, ElementsAre(DsaPart{.name = "wq0.0",
                                                 .attributes = {{"size", "64"}, {"name", ""}},
                                                 .driver = "memsluice"}));
  EXPECT_FALSE(devices_->configuration("dsa1")->device.enabled());
}

TEST_F(DsaDevicesTest, NamesTheDevicesThatThereAre) {
  for (const char* name : {"dsa7", "wq0.0", "", "../pci0", "dsa0/../dsa0"})
    EXPECT_EQ(devices_->configuration(name).error(), no_dsa_device(name, {"dsa0", "dsa1"}));
  EXPECT_EQ(no_dsa_device("dsa7", {"dsa0", "dsa1"}).describe(),
            "dsa7: idxd has no such device (it has: dsa0, dsa1)");
  auto none = open_dsa_devices(sysfs_.path("/nowhere"))->configuration("dsa0");
  EXPECT_EQ(none.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(none.error().hint, "load it: modprobe idxd");
}

TEST_F(DsaDevicesTest, SetsEnablesDisablesAndResets) {
  EXPECT_TRUE(devices_->set("wq0.0", "size", "32").ok());
  EXPECT_EQ(content("/pci0/dsa0/wq0.0/size"), "32");
  EXPECT_TRUE(devices_->enable("wq0.0", "memsluice").ok());
  EXPECT_EQ(content("/bus/drivers/memsluice/bind"), "wq0.0");
  EXPECT_TRUE(devices_->disable("dsa0").ok());
  EXPECT_EQ(content("/bus/drivers/idxd/unbind"), "dsa0");
  EXPECT_TRUE(devices_->reset("dsa0").ok());
  EXPECT_EQ(content("/pci0/reset"), "1");
}

TEST_F(DsaDevicesTest, DoesNotWriteWhatIsThere) {
  EXPECT_TRUE(devices_->set("wq0.0", "size", "64").ok());
  EXPECT_EQ(content("/pci0/dsa0/wq0.0/size"), "64\n");
}

TEST_F(DsaDevicesTest, SaysWhatIsMissing) {
  EXPECT_EQ(devices_->set("wq0.0", "priority", "1").error().os_error, ENOENT);
  EXPECT_EQ(devices_->enable("wq0.0", "user").error().hint,
            "the driver \"user\" is not there: load its module");
  EXPECT_EQ(devices_->disable("wq1.0").error().os_error, ENOENT);
  sysfs_.remove("/bus/drivers/idxd/bind");
  sysfs_.make_directory("/bus/drivers/idxd/bind");
  EXPECT_EQ(devices_->enable("dsa0", "idxd").error().hint,
            "dmesg may say why; cmd_status of dsa0 is 0x80000004");
}

TEST(DsaNames, AreTakenApart) {
  EXPECT_EQ(dsa_device_number("dsa0"), "0");
  EXPECT_EQ(dsa_device_number("iax12"), "12");
  EXPECT_EQ(dsa_device_number("wq12.3"), "12");
  EXPECT_EQ(dsa_device_number("engine0.3"), "0");
  for (const char* name : {"", "dsa", "dsa0.1", "dsax", "wq0", "wq.1", "wq0.", "wq0.1x", "disk0"})
    EXPECT_EQ(dsa_device_number(name), "") << name;
  EXPECT_TRUE(dsa_attributes("disk0").empty());
  EXPECT_STREQ(dsa_attributes("engine0.0").front(), "group_id");
}

}  // namespace
}  // namespace memsluice
