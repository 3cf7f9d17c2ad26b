// SPDX-License-Identifier: GPL-2.0
// What a virtual machine may send to an emulated DSA: messages, one after the other, each of two
// bytes of its command, two of its length, and so much payload.
#include <sys/mman.h>

#include <cstring>
#include <span>

#include "tools/memsluice-dsa/vfio_user.h"

namespace {

using namespace memsluice;
using namespace memsluice::dsa;

constexpr uint16_t kMap = 2;
constexpr uint64_t kFileBytes = 1 << 16;

// Memory that can be mapped is in most of the messages that map.
std::vector<Fd> files_of(uint16_t command) {
  std::vector<Fd> files;
  if (command != kMap) return files;
  files.emplace_back(memfd_create("guest", MFD_CLOEXEC));
  if (ftruncate(files[0].get(), kFileBytes)) files.clear();
  return files;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Shape shape{.engines = 2};
  const Log log(LogLevel::kError, [](std::string_view) {});
  GuestMemory memory;
  Device device(shape, memory, log);
  VfioUser protocol(shape, device, memory, log);
  std::span<const uint8_t> input(data, size);
  while (input.size() >= 4) {
    uint16_t command = 0, length = 0;
    std::memcpy(&command, input.data(), 2);
    std::memcpy(&length, input.data() + 2, 2);
    input = input.subspan(4);
    const auto payload = input.first(std::min<size_t>(length, input.size()));
    input = input.subspan(payload.size());
    const VfioUserHeader header{.command = static_cast<uint16_t>(command % 17)};
    protocol.answer(header, payload, files_of(header.command));
  }
  protocol.disconnect();
  return 0;
}
