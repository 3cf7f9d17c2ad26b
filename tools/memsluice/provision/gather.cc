// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/provision/gather.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>

#include "daemon/base/units.h"
#include "daemon/host/files.h"
#include "daemon/host/paths.h"

namespace memsluice::provision {
namespace {

using doctor::HostFiles;

constexpr const char* kFirmwareMap = "/sys/firmware/memmap";
constexpr const char* kAcpiTables = "/sys/firmware/acpi/tables/";
constexpr const char* kDmi = "/sys/firmware/dmi/tables/DMI";
constexpr const char* kEdac = "/sys/devices/system/edac/mc";
constexpr const char* kAcpiDevices = "/sys/bus/acpi/devices";
constexpr const char* kAdxl = "\\_SB_.ADXL";
constexpr const char* kDaxDevices = "/sys/bus/dax/devices";
constexpr const char* kMemoryBlockSize = "/sys/devices/system/memory/block_size_bytes";

// With 0x in front or, as the size of memory blocks, without.
std::optional<uint64_t> hexadecimal(std::optional<std::string> text) {
  if (!text) return std::nullopt;
  std::string_view digits = *text;
  if (digits.starts_with("0x")) digits.remove_prefix(2);
  uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

std::optional<uint64_t> decimal(std::optional<std::string> text) {
  if (!text) return std::nullopt;
  auto number = parse_number(*text, 0, INT64_MAX);
  if (!number.ok()) return std::nullopt;
  return *number;
}

std::optional<PhysicalRange> range_of(std::optional<uint64_t> start,
                                      std::optional<uint64_t> bytes) {
  if (!start || !bytes || *bytes == 0 || *start >= kPhysicalEnd || *bytes > kPhysicalEnd - *start)
    return std::nullopt;
  return PhysicalRange{*start, *bytes};
}

std::vector<FirmwareRange> gather_firmware_map(const HostFiles& host) {
  std::vector<FirmwareRange> map;
  for (const std::string& name : host.list(kFirmwareMap)) {
    const std::string path = fmt::format("{}/{}", kFirmwareMap, name);
    const auto start = hexadecimal(host.read(path + "/start"));
    const auto last = hexadecimal(host.read(path + "/end"));
    const auto type = host.read(path + "/type");
    if (!start || !last || !type || *last < *start) continue;
    if (auto range = range_of(start, *last - *start + 1)) map.push_back({*range, *type});
  }
  return map;
}

// Not with HostFiles::read(), for which a newline at the end is none of the content.
template <typename Parsed>
std::optional<Parsed> gather_binary(const HostFiles& host, const std::string& path,
                                    const char* source, Result<Parsed> (*parse)(std::string_view),
                                    Evidence& evidence) {
  auto bytes = read_file(AT_FDCWD, host.host_path(path));
  if (!bytes.ok()) {
    if (bytes.error().os_error != ENOENT)
      evidence.problems.push_back({source, bytes.error().message});
    return std::nullopt;
  }
  auto parsed = parse(*bytes);
  if (parsed.ok()) return *std::move(parsed);
  evidence.problems.push_back({source, parsed.error().message});
  return std::nullopt;
}

template <typename Parsed>
std::optional<Parsed> gather_table(const HostFiles& host, const char* signature,
                                   Result<Parsed> (*parse)(std::string_view), Evidence& evidence) {
  auto parsed =
      gather_binary(host, std::string(kAcpiTables) + signature, signature, parse, evidence);
  if (parsed && !parsed->table.checksum_is_right())
    evidence.problems.push_back({signature, "its checksum is wrong"});
  return parsed;
}

std::vector<EdacModule> gather_edac(const HostFiles& host) {
  std::vector<EdacModule> modules;
  for (const std::string& controller : host.list(kEdac)) {
    if (!controller.starts_with("mc")) continue;
    const std::string directory = fmt::format("{}/{}", kEdac, controller);
    for (const std::string& name : host.list(directory)) {
      if (!name.starts_with("dimm") && !name.starts_with("rank")) continue;
      const std::string path = directory + "/" + name;
      const auto mib = decimal(host.read(path + "/size"));
      if (!mib || *mib == 0 || *mib > kPhysicalEnd >> 20) continue;
      modules.push_back({controller, host.read(path + "/dimm_label").value_or(name),
                         host.read(path + "/dimm_location").value_or(""), *mib << 20});
    }
  }
  return modules;
}

bool gather_adxl(const HostFiles& host) {
  for (const std::string& device : host.list(kAcpiDevices))
    if (host.read(fmt::format("{}/{}/path", kAcpiDevices, device)) == kAdxl) return true;
  return false;
}

PhysicalRanges memory_of_node(const HostFiles& host, const std::string& path,
                              uint64_t block_bytes) {
  constexpr std::string_view kBlock = "memory";
  PhysicalRanges memory;
  for (const std::string& name : host.list(path)) {
    if (!name.starts_with(kBlock)) continue;
    const auto number = decimal(name.substr(kBlock.size()));
    if (!number || *number >= kPhysicalEnd / block_bytes) continue;
    if (auto range = range_of(*number * block_bytes, block_bytes)) memory.push_back(*range);
  }
  return united(std::move(memory));
}

void gather_nodes(const HostFiles& host, Evidence& evidence) {
  const std::string directory = Paths().nodes;
  const auto ids = [&](const char* file) {
    return parse_id_list(host.read(directory + "/" + file).value_or(""));
  };
  evidence.possible_nodes = ids("possible");
  for (const int id : ids("online")) {
    const std::string path = fmt::format("{}/node{}", directory, id);
    const bool has_cpus = !parse_id_list(host.read(path + "/cpulist").value_or("")).empty();
    evidence.nodes.push_back({id, has_cpus, memory_of_node(host, path, evidence.block_bytes)});
  }
}

std::vector<DaxDevice> gather_dax(const HostFiles& host) {
  std::vector<DaxDevice> devices;
  for (const std::string& name : host.list(kDaxDevices)) {
    const std::string path = fmt::format("{}/{}", kDaxDevices, name);
    const auto range =
        range_of(hexadecimal(host.read(path + "/resource")), decimal(host.read(path + "/size")));
    if (!range) continue;
    DaxDevice device{.name = name, .range = *range};
    if (auto node = decimal(host.read(path + "/target_node")); node && *node <= INT16_MAX)
      device.target_node = static_cast<int>(*node);
    devices.push_back(std::move(device));
  }
  return devices;
}

std::optional<bool> takes_tables(const HostFiles& host, const std::string& release) {
  std::optional<bool> found;
  host.each_line("/boot/config-" + release, [&](std::string_view line) {
    found = line == "CONFIG_ACPI_TABLE_UPGRADE=y";
    return !*found;
  });
  return found;
}

uint64_t used_bytes(const HostFiles& host) {
  const std::string text = host.read("/proc/meminfo").value_or("");
  const uint64_t total_kib = number_after(text, "MemTotal:");
  const uint64_t available_kib = number_after(text, "MemAvailable:");
  if (available_kib > total_kib || total_kib > kPhysicalEnd >> 10) return 0;
  return (total_kib - available_kib) << 10;
}

void gather_kernel(const HostFiles& host, Evidence& evidence) {
  evidence.kernel_release = host.read("/proc/sys/kernel/osrelease").value_or("");
  evidence.command_line = host.read("/proc/cmdline").value_or("");
  evidence.table_upgrade = takes_tables(host, evidence.kernel_release);
  evidence.lockdown = host.read("/sys/kernel/security/lockdown");
  evidence.used_bytes = used_bytes(host);
  // A power of two, as everything that reads it relies on.
  const uint64_t block = hexadecimal(host.read(kMemoryBlockSize)).value_or(0);
  if (block >= kMemoryBlockBytesMin && (block & (block - 1)) == 0 && block < kPhysicalEnd)
    evidence.block_bytes = block;
  evidence.iomem = parse_iomem(host.read("/proc/iomem").value_or(""));
  if (evidence.iomem.empty())
    evidence.problems.push_back({"/proc/iomem", "shows no addresses to who is not root"});
}

}  // namespace

Evidence gather_evidence(const HostFiles& host) {
  Evidence evidence;
  gather_kernel(host, evidence);
  evidence.firmware_map = gather_firmware_map(host);
  evidence.srat = gather_table(host, "SRAT", parse_srat, evidence);
  evidence.hmat = gather_table(host, "HMAT", parse_hmat, evidence);
  evidence.cedt = gather_table(host, "CEDT", parse_cedt, evidence);
  evidence.smbios = gather_binary(host, kDmi, "SMBIOS", parse_smbios, evidence);
  evidence.edac = gather_edac(host);
  evidence.adxl = gather_adxl(host);
  gather_nodes(host, evidence);
  evidence.dax = gather_dax(host);
  return evidence;
}

}  // namespace memsluice::provision
