// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/dsa_devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "daemon/host/files.h"

namespace memsluice {
namespace {

constexpr std::array kDeviceAttributes = {"read_buffer_limit", "event_log_size"};
constexpr std::array kGroupAttributes = {
    "traffic_class_a",       "traffic_class_b",     "read_buffers_allowed", "read_buffers_reserved",
    "use_read_buffer_limit", "desc_progress_limit", "batch_progress_limit"};
constexpr std::array kEngineAttributes = {"group_id"};
constexpr std::array kQueueAttributes = {
    "group_id",    "mode",           "size",        "threshold",      "priority",
    "type",        "name",           "driver_name", "max_batch_size", "max_transfer_size",
    "prs_disable", "block_on_fault", "ats_disable", "op_config",      "enqcmds_retries"};

struct Kind {
  std::string_view prefix;
  std::span<const char* const> attributes;
};

constexpr std::array kKinds = {Kind{"dsa", kDeviceAttributes}, Kind{"iax", kDeviceAttributes},
                               Kind{"group", kGroupAttributes}, Kind{"engine", kEngineAttributes},
                               Kind{"wq", kQueueAttributes}};

const Kind* kind_of(std::string_view part) {
  auto kind = std::find_if(kKinds.begin(), kKinds.end(),
                           [&](const Kind& known) { return part.starts_with(known.prefix); });
  return kind == kKinds.end() || dsa_device_number(part).empty() ? nullptr : &*kind;
}

bool is_device(std::string_view part) {
  const Kind* kind = kind_of(part);
  return kind != nullptr && kind->attributes.data() == kDeviceAttributes.data();
}

// Not every device has, and not every kernel knows, all of them; enqcmds_retries is of shared
// queues only.
bool is_not_there(const Error& error) {
  return error.os_error == ENOENT || error.os_error == EOPNOTSUPP || error.os_error == EPERM;
}

class SysfsDsaDevices : public DsaDevices {
 public:
  explicit SysfsDsaDevices(std::string bus) : bus_(std::move(bus)) {}

  Result<DsaConfiguration> configuration(const std::string& device) override {
    auto names = part_names();
    if (!names.ok()) return std::move(names).error();
    if (!is_device(device) || !std::binary_search(names->begin(), names->end(), device)) {
      std::erase_if(*names, [](const std::string& name) { return !is_device(name); });
      return no_dsa_device(device, *names);
    }
    DsaConfiguration found;
    auto read = read_part(device);
    if (!read.ok()) return std::move(read).error();
    found.device = *std::move(read);
    const std::string number = dsa_device_number(device);
    for (const auto& [prefix, parts] :
         {std::pair{"group", &found.groups}, std::pair{"engine", &found.engines},
          std::pair{"wq", &found.queues}})
      for (const std::string& name : *names) {
        if (!name.starts_with(fmt::format("{}{}.", prefix, number))) continue;
        auto part = read_part(name);
        if (!part.ok()) return std::move(part).error();
        parts->push_back(*std::move(part));
      }
    return found;
  }

  Result<void> set(const std::string& part, const std::string& attribute,
                   const std::string& value) override {
    const std::string path = path_of(part) + "/" + attribute;
    auto now = read_file(AT_FDCWD, path);
    if (now.ok() && trimmed(*now) == value) return {};
    return write_file(AT_FDCWD, path, value);
  }

  Result<void> enable(const std::string& part, const std::string& driver) override {
    const std::string bind = fmt::format("{}/drivers/{}/bind", bus_, driver);
    auto written = write_file(AT_FDCWD, bind, part);
    if (written.ok()) return written;
    if (written.error().os_error == ENOENT)
      return std::move(written).error().with_hint(
          fmt::format("the driver \"{}\" is not there: load its module", driver));
    return std::move(written).error().with_hint(
        fmt::format("dmesg may say why; {}", command_status(part)));
  }

  Result<void> disable(const std::string& part) override {
    return write_file(AT_FDCWD, path_of(part) + "/driver/unbind", part);
  }

  Result<void> reset(const std::string& device) override {
    // What the bus lists are links: the kernel's ".." is the PCI function.
    return write_file(AT_FDCWD, path_of(device) + "/../reset", "1");
  }

 private:
  std::string path_of(const std::string& part) const { return bus_ + "/devices/" + part; }

  Result<std::vector<std::string>> part_names() const {
    auto directory = open_directory(AT_FDCWD, bus_ + "/devices");
    if (directory.ok()) return list_directory(*directory);
    if (directory.error().os_error != ENOENT) return std::move(directory).error();
    return Error{.code = ErrorCode::kUnavailable,
                 .object = bus_,
                 .message = "idxd, the driver of DSA, is not loaded",
                 .hint = "load it: modprobe idxd",
                 .os_error = ENOENT};
  }

  Result<DsaPart> read_part(const std::string& name) const {
    DsaPart part{.name = name};
    for (const char* attribute : dsa_attributes(name)) {
      auto value = read_file(AT_FDCWD, path_of(name) + "/" + attribute);
      if (value.ok())
        part.attributes[attribute] = trimmed(*value);
      else if (!is_not_there(value.error()))
        return std::move(value).error();
    }
    std::error_code unbound;
    auto driver = std::filesystem::read_symlink(path_of(name) + "/driver", unbound);
    if (!unbound) part.driver = driver.filename();
    return part;
  }

  std::string command_status(const std::string& part) const {
    const std::string number = dsa_device_number(part);
    for (const char* kind : {"dsa", "iax"})
      if (auto status = read_file(AT_FDCWD, path_of(kind + number) + "/cmd_status"); status.ok())
        return fmt::format("cmd_status of {}{} is {}", kind, number, trimmed(*status));
    return "the device has no cmd_status";
  }

  std::string bus_;
};

}  // namespace

std::span<const char* const> dsa_attributes(std::string_view part) {
  const Kind* kind = kind_of(part);
  return kind == nullptr ? std::span<const char* const>() : kind->attributes;
}

std::string dsa_device_number(std::string_view part) {
  constexpr std::string_view kDigits = "0123456789";
  for (const Kind& kind : kKinds) {
    if (!part.starts_with(kind.prefix)) continue;
    const std::string_view rest = part.substr(kind.prefix.size());
    const size_t end = std::min(rest.find_first_not_of(kDigits), rest.size());
    const bool of_device = kind.attributes.data() == kDeviceAttributes.data();
    const std::string_view below = rest.substr(end);
    if (of_device ? !below.empty() : !below.starts_with('.')) return {};
    if (!of_device && (below.size() < 2 || below.find_first_not_of(kDigits, 1) != below.npos))
      return {};
    return std::string(rest.substr(0, end));
  }
  return {};
}

Error no_dsa_device(const std::string& device, const std::vector<std::string>& known) {
  return {.code = ErrorCode::kNotFound,
          .object = device,
          .message = "idxd has no such device",
          .hint = known.empty() ? "it has none: is DSA enabled in the firmware?"
                                : fmt::format("it has: {}", fmt::join(known, ", "))};
}

std::unique_ptr<DsaDevices> open_dsa_devices(std::string bus) {
  return std::make_unique<SysfsDsaDevices>(std::move(bus));
}

}  // namespace memsluice
