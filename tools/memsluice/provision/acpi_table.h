// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "daemon/base/result.h"

namespace memsluice::provision {

// A table of ACPI 6.5, with the header that all have (5.2.6).
struct AcpiTable {
  std::string bytes;  // as long as its header says; at least the header

  std::string signature() const { return bytes.substr(0, 4); }
  uint8_t revision() const { return static_cast<uint8_t>(bytes[8]); }
  std::string oem_id() const;
  std::string oem_table_id() const;
  uint32_t oem_revision() const;
  bool checksum_is_right() const;
  bool is_replacement() const;  // made by as_replacement()
};

inline constexpr size_t kAcpiHeaderBytes = 36;

// Refuses another signature, and what is shorter than `minimum_bytes`. A wrong checksum is kept.
Result<AcpiTable> parse_acpi_table(std::string_view bytes, std::string_view signature,
                                   size_t minimum_bytes);

// Raises the OEM revision, by which Linux knows that a table replaces the firmware's, says who has
// created it, and puts length and checksum right. Fails if the revision is the last there is.
Result<AcpiTable> as_replacement(AcpiTable table);

// How the structures behind a table's header tell their type and length.
struct StructureLayout {
  size_t first;         // offset in the table
  size_t header_bytes;  // the least a structure has
  size_t type_bytes;    // 1 or 2, at offset 0
  size_t length_offset;
  size_t length_bytes;  // 1, 2 or 4
};

// Visits them in order; fails at the first whose length cannot be.
Result<void> each_structure(const AcpiTable& table, const StructureLayout& layout,
                            const std::function<void(uint16_t, std::string_view)>& visit);

}  // namespace memsluice::provision
