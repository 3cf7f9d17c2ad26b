// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/provision/hmat.h"

#include <algorithm>

#include "tools/memsluice/provision/little_endian.h"

namespace memsluice::provision {
namespace {

constexpr StructureLayout kHmatLayout = {
    .first = 40, .header_bytes = 8, .type_bytes = 2, .length_offset = 4, .length_bytes = 4};

// System Locality Latency and Bandwidth Information.
constexpr uint16_t kLocality = 1;
constexpr size_t kInitiatorsOffset = 32;
constexpr uint8_t kMemoryHierarchy = 0;

// What each number of such a structure is.
enum DataType : uint8_t {
  kAccessLatency,
  kReadLatency,
  kWriteLatency,
  kAccessBandwidth,
  kReadBandwidth,
  kWriteBandwidth,
};

// In ns or MB/s, as Linux reads them: revision 1 told both in tenths, and latency is told in
// picoseconds since. Nothing for the values that mean that it is not known.
std::optional<uint32_t> normalized(uint16_t entry, uint64_t base, uint8_t type, uint8_t revision) {
  if (entry == 0 || entry == 0xffff || base == 0 || base > UINT32_MAX / entry) return std::nullopt;
  const auto value = static_cast<uint32_t>(entry * base);
  const uint32_t divisor = revision < 2 ? 10 : type <= kWriteLatency ? 1000 : 1;
  const uint32_t rounded_up = value / divisor + (value % divisor != 0);
  if (rounded_up == 0) return std::nullopt;
  return rounded_up;
}

void add_speed(ChannelSpeeds& speeds, uint8_t type, std::optional<uint32_t> value) {
  if (!value) return;
  if (type == kAccessLatency || type == kReadLatency) speeds.read_latency_ns = value;
  if (type == kAccessLatency || type == kWriteLatency) speeds.write_latency_ns = value;
  if (type == kAccessBandwidth || type == kReadBandwidth) speeds.read_mib_per_s = value;
  if (type == kAccessBandwidth || type == kWriteBandwidth) speeds.write_mib_per_s = value;
}

ChannelSpeeds& speeds_of(Hmat& hmat, uint32_t initiator, uint32_t target) {
  for (HmatSpeeds& known : hmat.speeds)
    if (known.initiator == initiator && known.target == target) return known.speeds;
  return hmat.speeds.emplace_back(HmatSpeeds{initiator, target, {}}).speeds;
}

void read_locality(Hmat& hmat, std::string_view entry) {
  const auto flags = little_endian<uint8_t>(entry, 8);
  const auto type = little_endian<uint8_t>(entry, 9);
  const uint64_t initiators = little_endian<uint32_t>(entry, 12);
  const uint64_t targets = little_endian<uint32_t>(entry, 16);
  const auto base = little_endian<uint64_t>(entry, 24);
  // The other hierarchies are caches on the side of memory.
  if ((flags & 0xf) != kMemoryHierarchy || type > kWriteBandwidth) return;
  // As many as have room in the structure; more are not there.
  const uint64_t words =
      entry.size() < kInitiatorsOffset ? 0 : (entry.size() - kInitiatorsOffset) / 2;
  if (initiators > words || targets > words ||
      2 * initiators + 2 * targets + initiators * targets > words)
    return;
  const size_t targets_offset = kInitiatorsOffset + 4 * initiators;
  const size_t entries_offset = targets_offset + 4 * targets;
  for (uint64_t i = 0; i < initiators; i++)
    for (uint64_t t = 0; t < targets; t++) {
      const auto value =
          normalized(little_endian<uint16_t>(entry, entries_offset + 2 * (i * targets + t)), base,
                     type, hmat.table.revision());
      if (!value) continue;
      add_speed(speeds_of(hmat, little_endian<uint32_t>(entry, kInitiatorsOffset + 4 * i),
                          little_endian<uint32_t>(entry, targets_offset + 4 * t)),
                type, value);
    }
}

template <typename Better>
void keep_better(std::optional<uint32_t>& best, const std::optional<uint32_t>& other,
                 Better better) {
  if (other && (!best || better(*other, *best))) best = other;
}

}  // namespace

ChannelSpeeds Hmat::nearest(uint32_t target) const {
  ChannelSpeeds best;
  for (const HmatSpeeds& known : speeds) {
    if (known.target != target) continue;
    keep_better(best.read_mib_per_s, known.speeds.read_mib_per_s, std::greater<>());
    keep_better(best.write_mib_per_s, known.speeds.write_mib_per_s, std::greater<>());
    keep_better(best.read_latency_ns, known.speeds.read_latency_ns, std::less<>());
    keep_better(best.write_latency_ns, known.speeds.write_latency_ns, std::less<>());
  }
  return best;
}

Result<Hmat> parse_hmat(std::string_view bytes) {
  auto table = parse_acpi_table(bytes, "HMAT", kHmatLayout.first);
  if (!table.ok()) return table.error();
  Hmat hmat{.table = *std::move(table), .speeds = {}};
  auto read = each_structure(hmat.table, kHmatLayout, [&](uint16_t type, std::string_view entry) {
    if (type == kLocality) read_locality(hmat, entry);
  });
  if (!read.ok()) return read.error();
  return hmat;
}

}  // namespace memsluice::provision
