// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/dsa_configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace memsluice {
namespace {

constexpr size_t kSavedDepthMax = 8;
constexpr size_t kTextBytesMax = 256;

struct OldName {
  std::string_view old;
  std::string_view now;
};

// Read buffers were called tokens, and still are in files that were saved then.
constexpr std::array kOldNames = {OldName{"token_limit", "read_buffer_limit"},
                                  OldName{"tokens_allowed", "read_buffers_allowed"},
                                  OldName{"tokens_reserved", "read_buffers_reserved"},
                                  OldName{"use_token_limit", "use_read_buffer_limit"}};

std::string_view present_name(std::string_view name) {
  for (const OldName& known : kOldNames)
    if (known.old == name) return known.now;
  return name;
}

std::string attribute(const DsaPart& part, const std::string& name) {
  auto found = part.attributes.find(name);
  return found == part.attributes.end() ? std::string() : found->second;
}

const DsaPart* find_part(const std::vector<DsaPart>& parts, const std::string& name) {
  auto found = std::find_if(parts.begin(), parts.end(),
                            [&](const DsaPart& part) { return part.name == name; });
  return found == parts.end() ? nullptr : &*found;
}

const Json* member(const Json& object, const char* key) {
  auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return value.dump();
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  return {};
}

// Of one device in the file. The first thing that is wrong is kept; reading goes on.
class SavedDevice {
 public:
  explicit SavedDevice(std::string device)
      : device_(std::move(device)), number_(dsa_device_number(device_)) {}

  Result<DsaConfiguration> read(const Json& saved) {
    found_.device = read_part(saved, "");
    found_.device.driver = kDsaDeviceDriver;
    read_queues_and_engines(saved, "ungrouped_workqueues", "ungrouped_engines");
    for_each(saved, "groups", [&](const Json& group) {
      found_.groups.push_back(read_part(group, "group"));
      read_queues_and_engines(group, "grouped_workqueues", "grouped_engines");
    });
    if (error_) return *error_;
    return std::move(found_);
  }

 private:
  void fail(std::string object, std::string message) {
    if (error_) return;
    error_ = Error{.code = ErrorCode::kBadRequest,
                   .object = std::move(object),
                   .message = std::move(message),
                   .hint = "write the file with accel-config save-config"};
  }

  template <typename Function>
  void for_each(const Json& object, const char* key, Function function) {
    const Json* list = member(object, key);
    if (list == nullptr) return;
    if (!list->is_array()) return fail(key, "must be a list");
    for (const Json& item : *list)
      item.is_object() ? function(item) : fail(key, "must be a list of objects");
  }

  void read_queues_and_engines(const Json& object, const char* queues, const char* engines) {
    for_each(object, queues, [&](const Json& saved) {
      DsaPart queue = read_part(saved, "wq");
      queue.driver = driver_of(queue);
      found_.queues.push_back(std::move(queue));
    });
    for_each(object, engines,
             [&](const Json& saved) { found_.engines.push_back(read_part(saved, "engine")); });
  }

  DsaPart read_part(const Json& saved, std::string_view kind) {
    const Json* dev = member(saved, "dev");
    DsaPart part{.name = dev == nullptr ? "" : text_of(*dev)};
    const bool right = kind.empty() ? part.name == device_
                                    : part.name.starts_with(fmt::format("{}{}.", kind, number_)) &&
                                          dsa_device_number(part.name) == number_;
    if (!right || part.name.size() > kTextBytesMax)
      fail("dev", fmt::format("\"{}\" is no {} of {}", part.name, kind, device_));
    for (const auto& [key, value] : saved.items()) read_attribute(part, key, value);
    return part;
  }

  void read_attribute(DsaPart& part, const std::string& key, const Json& value) {
    const std::string name(present_name(key));
    const auto known = dsa_attributes(part.name);
    if (std::find(known.begin(), known.end(), name) == known.end()) return;
    const std::string text = text_of(value);
    const bool one_line = std::none_of(text.begin(), text.end(), [](unsigned char letter) {
      return letter < ' ' || letter == '\x7f';
    });
    if (value.is_structured() || value.is_number_float() || value.is_null() || !one_line ||
        text.size() > kTextBytesMax)
      return fail(part.name, fmt::format("{} is neither a whole number nor a short text", name));
    if (name == "driver_name" && text.find('/') != text.npos)
      return fail(part.name, fmt::format("\"{}\" is no name of a driver", text));
    // What was saved as "not known" is not to be set.
    if (text != "-1" || name == "group_id") part.attributes[name] = text;
  }

  static std::string driver_of(const DsaPart& queue) {
    const std::string type = attribute(queue, "type");
    if (type.empty() || type == "none") return {};
    const std::string driver = attribute(queue, "driver_name");
    if (!driver.empty()) return driver;
    return type == "user" ? "user" : "dmaengine";
  }

  std::string device_;
  std::string number_;
  DsaConfiguration found_;
  std::optional<Error> error_;
};

Json saved_part(const DsaPart& part) {
  Json json = {{"dev", part.name}};
  for (const auto& [name, value] : part.attributes) {
    int64_t number = 0;
    const char* end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, number);
    // accel-config takes a number for a name as well, but no text for a number.
    if (!value.empty() && error == std::errc() && stop == end && name != "name")
      json[name] = number;
    else
      json[name] = value;
  }
  return json;
}

bool is_empty(const DsaPart& queue) {
  const std::string type = attribute(queue, "type");
  return type.empty() || type == "none";
}

// What the device has no file for (as IAA has no read buffers), a saved configuration can name.
void add_settings(const DsaPart& part, const DsaPart* now, std::vector<DsaSetting>& settings) {
  const bool dedicated = attribute(part, "mode") == "dedicated";
  for (const char* name : dsa_attributes(part.name)) {
    auto value = part.attributes.find(name);
    if (value == part.attributes.end() || value->second.empty()) continue;
    if (now != nullptr && !now->attributes.contains(name)) continue;
    // Only shared queues have one.
    if (dedicated && std::string_view(name) == "threshold") continue;
    settings.push_back({part.name, name, value->second});
  }
}

}  // namespace

bool is_configured(const DsaConfiguration& configuration) {
  return !std::all_of(configuration.queues.begin(), configuration.queues.end(), is_empty);
}

Result<DsaConfiguration> parse_saved_configuration(std::string_view text,
                                                   const std::string& device) {
  auto parsed = parse_json(text, kSavedDepthMax);
  if (!parsed.ok()) return std::move(parsed).error();
  const Json all = parsed->is_object() ? Json::array({*parsed}) : *std::move(parsed);
  if (!all.is_array())
    return Error{.code = ErrorCode::kBadRequest, .message = "must be a list of devices"};
  for (const Json& saved : all) {
    if (!saved.is_object())
      return Error{.code = ErrorCode::kBadRequest, .message = "must be a list of devices"};
    const Json* dev = member(saved, "dev");
    if (dev != nullptr && text_of(*dev) == device) return SavedDevice(device).read(saved);
  }
  return Error{.code = ErrorCode::kNotFound,
               .object = device,
               .message = "the saved configuration says nothing of it"};
}

Json saved_form(const DsaConfiguration& configuration) {
  Json device = saved_part(configuration.device);
  device["groups"] = Json::array();
  for (const DsaPart& group : configuration.groups) {
    const std::string id = group.name.substr(group.name.find('.') + 1);
    Json saved = saved_part(group);
    saved["grouped_workqueues"] = saved["grouped_engines"] = Json::array();
    for (const DsaPart& queue : configuration.queues)
      if (attribute(queue, "group_id") == id && !is_empty(queue))
        saved["grouped_workqueues"].push_back(saved_part(queue));
    for (const DsaPart& engine : configuration.engines)
      if (attribute(engine, "group_id") == id)
        saved["grouped_engines"].push_back(saved_part(engine));
    device["groups"].push_back(std::move(saved));
  }
  return Json::array({std::move(device)});
}

std::vector<DsaSetting> settings_to_restore(const DsaConfiguration& wanted,
                                            const DsaConfiguration& now) {
  std::vector<DsaSetting> settings;
  for (const DsaPart& queue : now.queues) {
    const DsaPart* same = find_part(wanted.queues, queue.name);
    if (same == nullptr || attribute(*same, "size") != attribute(queue, "size"))
      settings.push_back({queue.name, "size", "0"});
  }
  add_settings(wanted.device, &now.device, settings);
  // Those of a group are bounded by the engines that are in it.
  for (auto parts :
       {&DsaConfiguration::engines, &DsaConfiguration::queues, &DsaConfiguration::groups})
    for (const DsaPart& part : wanted.*parts)
      add_settings(part, find_part(now.*parts, part.name), settings);
  return settings;
}

}  // namespace memsluice
