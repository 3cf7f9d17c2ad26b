// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/provision/sample_tables.h"

#include <numeric>

namespace memsluice::provision::sample {
namespace {

std::string joined(const std::vector<std::string>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::string());
}

std::string zeros(size_t bytes) {
  return std::string(bytes, '\0');
}

std::string smbios_structure(uint8_t type, uint16_t handle, const std::string& fields,
                             std::string_view text = {}) {
  std::string structure =
      number(type, 1) + number(4 + fields.size(), 1) + number(handle, 2) + fields;
  if (!text.empty()) structure += std::string(text) + zeros(1);
  return structure + zeros(text.empty() ? 2 : 1);
}

std::string extended_addresses(const PhysicalRange& range) {
  return number(range.start, 8) + number(range.end() - 1, 8);
}

}  // namespace

std::string number(uint64_t value, size_t bytes) {
  std::string result;
  for (size_t i = 0; i < bytes; i++) result += static_cast<char>(value >> (8 * i));
  return result;
}

std::string acpi_table(std::string_view signature, uint8_t revision, std::string_view body) {
  std::string table = std::string(signature) + number(36 + body.size(), 4) + number(revision, 1) +
                      number(0, 1) + "SAMPLE" + "SAMPLETB" + number(7, 4) + "TEST" + number(1, 4);
  table += body;
  uint8_t sum = 0;
  for (const char byte : table) sum = static_cast<uint8_t>(sum + static_cast<uint8_t>(byte));
  table[9] = static_cast<char>(-sum);
  return table;
}

std::string srat_cpu(uint32_t domain, uint8_t apic_id) {
  return number(0, 1) + number(16, 1) + number(domain, 1) + number(apic_id, 1) + number(1, 4) +
         number(0, 1) + number(domain >> 8, 3) + number(0, 4);
}

std::string srat_x2apic(uint32_t domain, uint32_t apic_id) {
  return number(2, 1) + number(24, 1) + number(0, 2) + number(domain, 4) + number(apic_id, 4) +
         number(1, 4) + zeros(8);
}

std::string srat_initiator(uint32_t domain) {
  return number(5, 1) + number(32, 1) + zeros(2) + number(domain, 4) + zeros(16) + number(1, 4) +
         zeros(4);
}

std::string srat_memory(uint32_t domain, const PhysicalRange& range, uint32_t flags) {
  return number(1, 1) + number(40, 1) + number(domain, 4) + zeros(2) + number(range.start, 8) +
         number(range.bytes, 8) + zeros(4) + number(flags, 4) + zeros(8);
}

std::string srat(const std::vector<std::string>& entries, uint8_t revision) {
  return acpi_table("SRAT", revision, number(1, 4) + zeros(8) + joined(entries));
}

std::string hmat_locality(uint8_t type, uint64_t base, const std::vector<uint32_t>& initiators,
                          const std::vector<uint32_t>& targets,
                          const std::vector<uint16_t>& entries) {
  std::string lists;
  for (const uint32_t domain : initiators) lists += number(domain, 4);
  for (const uint32_t domain : targets) lists += number(domain, 4);
  for (const uint16_t entry : entries) lists += number(entry, 2);
  return number(1, 2) + zeros(2) + number(32 + lists.size(), 4) + number(0, 1) + number(type, 1) +
         zeros(2) + number(initiators.size(), 4) + number(targets.size(), 4) + zeros(4) +
         number(base, 8) + lists;
}

std::string hmat(const std::vector<std::string>& structures, uint8_t revision) {
  return acpi_table("HMAT", revision, zeros(4) + joined(structures));
}

std::string cedt_window(const PhysicalRange& range, uint8_t encoded_ways,
                        const std::vector<uint32_t>& bridges) {
  std::string targets;
  for (const uint32_t bridge : bridges) targets += number(bridge, 4);
  constexpr uint16_t kType3Volatile = 0x6;
  return number(1, 1) + zeros(1) + number(36 + targets.size(), 2) + zeros(4) +
         number(range.start, 8) + number(range.bytes, 8) + number(encoded_ways, 1) + zeros(7) +
         number(kType3Volatile, 2) + zeros(2) + targets;
}

std::string cedt(const std::vector<std::string>& structures) {
  return acpi_table("CEDT", 1, joined(structures));
}

std::string smbios_array(uint16_t handle, uint8_t use, uint32_t capacity_kib) {
  return smbios_structure(16, handle,
                          number(3, 1) + number(use, 1) + number(6, 1) + number(capacity_kib, 4) +
                              number(0xfffe, 2) + number(8, 2));
}

std::string smbios_module(uint16_t handle, uint16_t array, uint64_t mib, std::string_view locator) {
  const bool is_large = mib >= 0x7fff;
  return smbios_structure(17, handle,
                          number(array, 2) + zeros(6) + number(is_large ? 0x7fff : mib, 2) +
                              zeros(2) + number(1, 1) + zeros(4) + number(4800, 2) + zeros(5) +
                              number(is_large ? mib : 0, 4) + number(4400, 2),
                          locator);
}

std::string smbios_array_mapping(uint16_t array, const PhysicalRange& range) {
  return smbios_structure(19, static_cast<uint16_t>(0x1900 + range.start / kGib),
                          number(0xffffffff, 4) + number(0xffffffff, 4) + number(array, 2) +
                              number(1, 1) + extended_addresses(range));
}

std::string smbios_module_mapping(uint16_t module, const PhysicalRange& range, uint8_t position) {
  return smbios_structure(20, static_cast<uint16_t>(0x2000 + module),
                          number(0xffffffff, 4) + number(0xffffffff, 4) + number(module, 2) +
                              number(0x1900, 2) + number(1, 1) + number(position, 1) +
                              number(position == 0 ? 0 : 1, 1) + extended_addresses(range));
}

std::string smbios(const std::vector<std::string>& structures) {
  return joined(structures) + smbios_structure(127, 0xfeff, "");
}

}  // namespace memsluice::provision::sample
