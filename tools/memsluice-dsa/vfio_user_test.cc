// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/vfio_user.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace memsluice::dsa {
namespace {

// A client that says whatever a test wants.
class VfioUserTest : public testing::Test {
 protected:
  struct Answer {
    VfioUserHeader header;
    std::vector<uint8_t> payload;
  };

  static void put(std::vector<uint8_t>& bytes, std::initializer_list<uint64_t> values,
                  size_t size) {
    for (const uint64_t value : values) {
      const auto* begin = reinterpret_cast<const uint8_t*>(&value);
      bytes.insert(bytes.end(), begin, begin + size);
    }
  }
  static std::vector<uint8_t> words(std::initializer_list<uint64_t> values) {
    std::vector<uint8_t> bytes;
    put(bytes, values, 4);
    return bytes;
  }
  template <typename T>
  static T word(const std::vector<uint8_t>& bytes, size_t offset) {
    T value = 0;
    if (offset + sizeof(value) <= bytes.size()) std::memcpy(&value, &bytes[offset], sizeof(value));
    return value;
  }

  Answer send(uint16_t command, const std::vector<uint8_t>& payload, std::vector<Fd> files = {}) {
    const VfioUserHeader header{.id = ++id_, .command = command};
    const auto reply = protocol_.answer(header, payload, std::move(files));
    Answer answer;
    if (!reply) return answer;
    std::memcpy(&answer.header, reply->data(), sizeof(answer.header));
    answer.payload.assign(reply->begin() + sizeof(answer.header), reply->end());
    EXPECT_EQ(answer.header.size, reply->size());
    EXPECT_EQ(answer.header.id, id_);
    EXPECT_EQ(answer.header.flags & 1, 1U);
    EXPECT_EQ((answer.header.flags & 0x20) != 0, answer.header.error != 0);
    return answer;
  }
  uint32_t error_of(uint16_t command, const std::vector<uint8_t>& payload) {
    return send(command, payload).header.error;
  }
  Answer map(uint64_t address, uint64_t bytes, uint64_t offset, std::vector<Fd> files) {
    std::vector<uint8_t> request = words({32, VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE});
    put(request, {offset, address, bytes}, 8);
    return send(2, request, std::move(files));
  }
  static std::vector<Fd> memory_file(off_t bytes) {
    std::vector<Fd> files;
    files.emplace_back(memfd_create("guest", MFD_CLOEXEC));
    EXPECT_EQ(ftruncate(files[0].get(), bytes), 0);
    return files;
  }
  Answer read_region(uint32_t region, uint64_t offset, uint32_t count) {
    std::vector<uint8_t> request;
    put(request, {offset}, 8);
    put(request, {region, count}, 4);
    return send(9, request);
  }
  Answer write_region(uint32_t region, uint64_t offset, const std::vector<uint8_t>& data) {
    std::vector<uint8_t> request;
    put(request, {offset}, 8);
    put(request, {region, data.size()}, 4);
    request.insert(request.end(), data.begin(), data.end());
    return send(10, request);
  }
  bool is_mapped(uint64_t address) {
    return !GuestMemory::View(memory_).from(address, 1, GuestMemory::Access::kRead).empty();
  }

  uint16_t id_ = 0;
  const Shape shape_ = {};
  const Log log_{LogLevel::kError, [](std::string_view) {}};
  GuestMemory memory_;
  Device device_{shape_, memory_, log_};
  VfioUser protocol_{shape_, device_, memory_, log_};
};

TEST_F(VfioUserTest, AgreesOnAVersion) {
  std::vector<uint8_t> request;
  put(request, {0, 1}, 2);
  const Answer answer = send(1, request);
  EXPECT_EQ(word<uint16_t>(answer.payload, 0), 0U);
  EXPECT_EQ(answer.payload.back(), 0U);
  EXPECT_NE(std::string(answer.payload.begin() + 4, answer.payload.end()).find("write_multiple"),
            std::string::npos);
  request[0] = 1;
  EXPECT_EQ(error_of(1, request), static_cast<uint32_t>(EINVAL));
  EXPECT_EQ(error_of(1, {0}), static_cast<uint32_t>(EINVAL));
}

TEST_F(VfioUserTest, SaysWhatKindOfDeviceItIs) {
  const Answer device = send(4, words({16, 0, 0, 0}));
  EXPECT_EQ(word<uint32_t>(device.payload, 4),
            static_cast<uint32_t>(VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET));
  EXPECT_EQ(word<uint32_t>(device.payload, 8), static_cast<uint32_t>(VFIO_PCI_NUM_REGIONS));
  std::vector<uint8_t> request(sizeof(vfio_region_info));
  for (const auto& [region, bytes] : {std::pair{0, 0x10000}, {1, 0}, {2, 0x20000}, {7, 4096}}) {
    request[8] = static_cast<uint8_t>(region);
    EXPECT_EQ(word<uint64_t>(send(5, request).payload, 16), static_cast<uint64_t>(bytes)) << region;
  }
  request[8] = 9;
  EXPECT_EQ(error_of(5, request), static_cast<uint32_t>(EINVAL));
  EXPECT_EQ(word<uint32_t>(send(7, words({16, 0, 2, 0})).payload, 12), 9U);
  EXPECT_EQ(word<uint32_t>(send(7, words({16, 0, 0, 0})).payload, 12), 0U);
  EXPECT_EQ(error_of(7, words({16, 0, 5, 0})), static_cast<uint32_t>(EINVAL));
}

TEST_F(VfioUserTest, MapsAndUnmapsTheGuestsMemory) {
  EXPECT_EQ(map(0x10000, 8192, 4096, memory_file(12288)).header.error, 0U);
  EXPECT_TRUE(is_mapped(0x11fff));
  EXPECT_FALSE(is_mapped(0x12000));
  EXPECT_NE(map(0x11000, 4096, 0, memory_file(4096)).header.error, 0U);  // is there already
  EXPECT_NE(map(0x20000, 8192, 0, memory_file(4096)).header.error, 0U);  // the file is shorter
  EXPECT_EQ(map(0x40000, 4096, 0, {}).header.error, 0U);
  EXPECT_FALSE(is_mapped(0x40000));  // known, but not to be had
  std::vector<uint8_t> request = words({24, 0});
  put(request, {0x10000, 8192}, 8);
  EXPECT_EQ(word<uint64_t>(send(3, request).payload, 16), 8192U);
  EXPECT_FALSE(is_mapped(0x10000));
}

TEST_F(VfioUserTest, UnmapsEverythingWhenAsked) {
  map(0x10000, 4096, 0, memory_file(4096));
  map(0x90000, 4096, 0, memory_file(4096));
  std::vector<uint8_t> request = words({24, 2});
  put(request, {0, 0}, 8);
  EXPECT_EQ(send(3, request).header.error, 0U);
  EXPECT_FALSE(is_mapped(0x10000) || is_mapped(0x90000));
}

TEST_F(VfioUserTest, ReadsAndWritesRegions) {
  const Answer answer = read_region(VFIO_PCI_CONFIG_REGION_INDEX, PCI_VENDOR_ID, 4);
  EXPECT_EQ(word<uint32_t>(answer.payload, 16), 0x0b258086U);
  EXPECT_EQ(word<uint32_t>(read_region(0, registers::kVersion, 4).payload, 16), 0x100U);
  EXPECT_EQ(write_region(0, registers::kGeneralControl, words({7})).header.error, 0U);
  EXPECT_EQ(word<uint32_t>(read_region(0, registers::kGeneralControl, 4).payload, 16), 7U);
  EXPECT_EQ(read_region(0, 0, 4097).header.error, static_cast<uint32_t>(EINVAL));
  EXPECT_EQ(write_region(5, 0, words({7})).header.error, static_cast<uint32_t>(EINVAL));
  EXPECT_EQ(error_of(10, words({0, 0, 0, 4})), static_cast<uint32_t>(EINVAL));  // nothing follows
}

TEST_F(VfioUserTest, TakesManyWritesAtOnce) {
  std::vector<uint8_t> request;
  put(request, {2, registers::kGeneralControl}, 8);
  put(request, {0, 4, 5, 0}, 4);
  put(request, {registers::kGroupTable}, 8);
  put(request, {0, 8, 0x55, 0x66}, 4);
  EXPECT_EQ(send(15, request).header.error, 0U);
  EXPECT_EQ(word<uint32_t>(read_region(0, registers::kGeneralControl, 4).payload, 16), 5U);
  EXPECT_EQ(word<uint32_t>(read_region(0, registers::kGroupTable + 4, 4).payload, 16), 0x66U);
  request[0] = 3;
  EXPECT_EQ(error_of(15, request), static_cast<uint32_t>(EINVAL));
  request[0] = 2;
  request[20] = 9;  // bytes, of 8
  EXPECT_EQ(error_of(15, request), static_cast<uint32_t>(EINVAL));
}

TEST_F(VfioUserTest, InterruptsThroughTheFilesThatItWasGiven) {
  const Fd event(eventfd(0, EFD_CLOEXEC));
  std::vector<Fd> files;
  files.emplace_back(dup(event.get()));
  const uint32_t flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
  const auto request = words({20, flags, VFIO_PCI_MSIX_IRQ_INDEX, 0, 1});
  EXPECT_EQ(send(8, request, std::move(files)).header.error, 0U);
  // An interrupt never waits, whatever it was given.
  EXPECT_TRUE(fcntl(event.get(), F_GETFL) & O_NONBLOCK);
  write_region(0, registers::kCommand, words({0xf00000 | 1U << 31}));
  uint64_t count = 0;
  while (read(event.get(), &count, sizeof(count)) < 0) ASSERT_EQ(errno, EAGAIN);
  EXPECT_EQ(count, 1U);
  EXPECT_NE(error_of(8, words({20, flags, 2, 0, 10})), 0U);
  EXPECT_NE(error_of(8, words({20, flags, 2, 0xffffffff, 2})), 0U);
  EXPECT_NE(error_of(8, words({20, flags, 2})), 0U);
}

TEST_F(VfioUserTest, ResetsOnEitherWay) {
  write_region(0, registers::kGeneralControl, words({7}));
  EXPECT_EQ(error_of(13, {}), 0U);
  EXPECT_EQ(word<uint32_t>(read_region(0, registers::kGeneralControl, 4).payload, 16), 0U);
  write_region(0, registers::kGeneralControl, words({7}));
  write_region(VFIO_PCI_CONFIG_REGION_INDEX, 0x40 + PCI_EXP_DEVCTL, {0, 0x80});
  EXPECT_EQ(word<uint32_t>(read_region(0, registers::kGeneralControl, 4).payload, 16), 0U);
}

TEST_F(VfioUserTest, KeepsNothingOfAClientThatIsGone) {
  map(0x10000, 4096, 0, memory_file(4096));
  write_region(0, registers::kGeneralControl, words({7}));
  protocol_.disconnect();
  EXPECT_FALSE(is_mapped(0x10000));
  EXPECT_EQ(word<uint32_t>(read_region(0, registers::kGeneralControl, 4).payload, 16), 0U);
}

TEST_F(VfioUserTest, AnswersOnlyWhoWantsAnAnswer) {
  const VfioUserHeader header{.id = 1, .command = 13, .flags = 0x10};
  EXPECT_FALSE(protocol_.answer(header, {}, {}).has_value());
}

TEST_F(VfioUserTest, KnowsNoOtherMessages) {
  for (const int command : {0, 6, 11, 12, 14, 16, 0xffff})
    EXPECT_EQ(error_of(static_cast<uint16_t>(command), {}), static_cast<uint32_t>(ENOTSUP));
}

TEST_F(VfioUserTest, BelievesNoMessageThatIsShort) {
  for (uint16_t command = 1; command < 16; command++)
    for (size_t bytes = 0; bytes < 8; bytes++) {
      const Answer answer = send(command, std::vector<uint8_t>(bytes, 0xff));
      if (command != 4 && command != 13) {
        EXPECT_NE(answer.header.error, 0U) << command;
      }
    }
}

}  // namespace
}  // namespace memsluice::dsa
