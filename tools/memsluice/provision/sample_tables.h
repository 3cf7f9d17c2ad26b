// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/host/physical_memory.h"

namespace memsluice::provision::sample {

// Tables of a firmware for tests, laid out by hand after the specifications.

inline constexpr uint64_t kMib = uint64_t{1} << 20;
inline constexpr uint64_t kGib = uint64_t{1} << 30;

std::string number(uint64_t value, size_t bytes);

// With a header of OEM "SAMPLE", revision 7, and the right length and checksum.
std::string acpi_table(std::string_view signature, uint8_t revision, std::string_view body);

std::string srat_cpu(uint32_t domain, uint8_t apic_id);
std::string srat_x2apic(uint32_t domain, uint32_t apic_id);
std::string srat_initiator(uint32_t domain);
std::string srat_memory(uint32_t domain, const PhysicalRange& range, uint32_t flags = 1);
std::string srat(const std::vector<std::string>& entries, uint8_t revision = 3);

// One structure of locality: entries of a row for each initiator.
std::string hmat_locality(uint8_t type, uint64_t base, const std::vector<uint32_t>& initiators,
                          const std::vector<uint32_t>& targets,
                          const std::vector<uint16_t>& entries);
std::string hmat(const std::vector<std::string>& structures, uint8_t revision = 2);

std::string cedt_window(const PhysicalRange& range, uint8_t encoded_ways,
                        const std::vector<uint32_t>& bridges);
std::string cedt(const std::vector<std::string>& structures);

std::string smbios_array(uint16_t handle, uint8_t use, uint32_t capacity_kib);
std::string smbios_module(uint16_t handle, uint16_t array, uint64_t mib, std::string_view locator);
std::string smbios_array_mapping(uint16_t array, const PhysicalRange& range);
std::string smbios_module_mapping(uint16_t module, const PhysicalRange& range, uint8_t position);
std::string smbios(const std::vector<std::string>& structures);

}  // namespace memsluice::provision::sample
