// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/counters/pmu_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "daemon/host/files.h"

namespace memsluice {
namespace {

enum class MemoryPmuKind { kChannel, kFreeRunning, kAmd };

// What counts in lines of the cache has no scale in sysfs.
constexpr double kLineBytes = 64;
// Commands of the kind CAS to DRAM, by the bits of rdwrmask: AMD's Processor Programming Reference,
// PERF_CTL of the UMC.
constexpr std::string_view kAmdReads = "event=0x0a,rdwrmask=0x1";
constexpr std::string_view kAmdWrites = "event=0x0a,rdwrmask=0x2";

Error bad_description(std::string_view text, std::string message) {
  return {.code = ErrorCode::kFailed, .object = std::string(text), .message = std::move(message)};
}

// "PREFIX" or "PREFIX_7".
bool is_numbered(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  return name.empty() || (name.size() > 1 && name[0] == '_' &&
                          name.find_first_not_of("0123456789", 1) == std::string_view::npos);
}

std::optional<MemoryPmuKind> memory_pmu_kind(std::string_view name) {
  if (is_numbered(name, "uncore_imc")) return MemoryPmuKind::kChannel;
  if (is_numbered(name, "uncore_imc_free_running")) return MemoryPmuKind::kFreeRunning;
  if (is_numbered(name, "amd_umc")) return MemoryPmuKind::kAmd;
  return std::nullopt;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::optional<uint64_t> unsigned_number(std::string_view text, int base) {
  uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<uint64_t> term_value(std::string_view text) {
  if (text.starts_with("0x")) return unsigned_number(text.substr(2), 16);
  return unsigned_number(text, 10);
}

uint64_t low_bits(uint64_t count) {
  return count >= 64 ? std::numeric_limits<uint64_t>::max() : (uint64_t{1} << count) - 1;
}

// The lowest bit of the value to the lowest bit of the mask, and so on.
uint64_t deposited(uint64_t value, uint64_t mask) {
  uint64_t word = 0;
  for (; mask != 0; mask &= mask - 1, value >>= 1)
    if (value & 1) word |= mask & -mask;
  return word;
}

Result<PmuFormat> format_of(const PmuFormats& formats, std::string_view term) {
  if (auto format = formats.find(term); format != formats.end()) return format->second;
  for (size_t word = 0; word < PmuConfig().size(); word++)
    if (term == (word == 0 ? "config" : fmt::format("config{}", word)))
      return PmuFormat{.word = word, .bits = std::numeric_limits<uint64_t>::max()};
  return bad_description(term, "the PMU has no such term");
}

// The files of one PMU.
class PmuDirectory {
 public:
  static Result<PmuDirectory> open(const Fd& event_sources, std::string name) {
    auto directory = open_directory(event_sources.get(), name);
    if (!directory.ok()) return std::move(directory).error();
    return PmuDirectory(*std::move(directory), std::move(name));
  }

  std::optional<std::string> text(const std::string& path) const {
    auto content = read_file(directory_.get(), path);
    if (!content.ok()) return std::nullopt;
    return std::string(trimmed(*content));
  }

  std::vector<std::string> names(const std::string& path) const {
    auto directory = open_directory(directory_.get(), path);
    if (!directory.ok()) return {};
    auto list = list_directory(*directory);
    return list.ok() ? *std::move(list) : std::vector<std::string>();
  }

  Result<PmuFormats> formats() const {
    PmuFormats formats;
    for (const std::string& term : names("format")) {
      auto format = parse_pmu_format(text("format/" + term).value_or(""));
      if (!format.ok()) return std::move(format).error().with_context("format/" + term);
      formats[term] = *format;
    }
    return formats;
  }

  // The named events that begin so and are followed by nothing or "_sch0": a controller of two
  // channels counts each on its own.
  Result<std::vector<PmuEvent>> named_events(const PmuFormats& formats,
                                             std::string_view prefix) const {
    std::vector<PmuEvent> events;
    for (const std::string& event : names("events")) {
      const std::string_view name = event;
      if (!name.starts_with(prefix)) continue;
      const std::string_view rest = name.substr(prefix.size());
      if (!rest.empty() && (!rest.starts_with("_sch") || rest.find('.') != rest.npos)) continue;
      auto read = named_event(formats, event);
      if (!read.ok()) return std::move(read).error();
      events.push_back(*read);
    }
    return events;
  }

  const std::string& name() const { return name_; }

 private:
  PmuDirectory(Fd directory, std::string name)
      : directory_(std::move(directory)), name_(std::move(name)) {}

  Result<PmuEvent> named_event(const PmuFormats& formats, const std::string& event) const {
    const std::string path = "events/" + event;
    auto config = encode_pmu_event(formats, text(path).value_or(""));
    if (!config.ok()) return std::move(config).error().with_context(path);
    const auto scale = text(path + ".scale");
    const auto unit = text(path + ".unit");
    if (!scale && !unit) return PmuEvent{*config, kLineBytes};
    auto bytes = bytes_per_count(scale.value_or("1"), unit.value_or(""));
    if (!bytes.ok()) return std::move(bytes).error().with_context(path);
    return PmuEvent{*config, *bytes};
  }

  Fd directory_;
  std::string name_;
};

struct EventNames {
  std::string_view reads;
  std::string_view writes;
};

// In order of preference: servers; clients' free-running counters; those of older clients.
constexpr std::array kEventNames = {
    EventNames{"cas_count_read", "cas_count_write"}, EventNames{"read", "write"},
    EventNames{"data_read", "data_write"}, EventNames{"data_reads", "data_writes"}};

Result<void> find_named_events(const PmuDirectory& directory, const PmuFormats& formats,
                               MemoryPmu& pmu) {
  for (const EventNames& names : kEventNames) {
    auto reads = directory.named_events(formats, names.reads);
    if (!reads.ok()) return std::move(reads).error();
    auto writes = directory.named_events(formats, names.writes);
    if (!writes.ok()) return std::move(writes).error();
    if (reads->empty() || writes->empty()) continue;
    pmu.reads = *std::move(reads);
    pmu.writes = *std::move(writes);
    return {};
  }
  return bad_description(directory.name(),
                         "names no events that count what is read and written; a newer kernel may");
}

Result<void> find_amd_events(const PmuFormats& formats, MemoryPmu& pmu) {
  auto reads = encode_pmu_event(formats, kAmdReads);
  if (!reads.ok()) return std::move(reads).error();
  auto writes = encode_pmu_event(formats, kAmdWrites);
  if (!writes.ok()) return std::move(writes).error();
  pmu.reads = {{*reads, kLineBytes}};
  pmu.writes = {{*writes, kLineBytes}};
  return {};
}

Result<MemoryPmu> read_memory_pmu(const PmuDirectory& directory, MemoryPmuKind kind) {
  MemoryPmu pmu{.name = directory.name()};
  const auto type = unsigned_number(directory.text("type").value_or(""), 10);
  if (!type || *type > std::numeric_limits<uint32_t>::max())
    return bad_description("type", "is no number");
  pmu.type = static_cast<uint32_t>(*type);
  pmu.cpus = parse_id_list(directory.text("cpumask").value_or(""));
  if (pmu.cpus.empty()) return bad_description("cpumask", "names no CPU");
  auto formats = directory.formats();
  if (!formats.ok()) return std::move(formats).error();
  auto found = kind == MemoryPmuKind::kAmd ? find_amd_events(*formats, pmu)
                                           : find_named_events(directory, *formats, pmu);
  if (!found.ok()) return std::move(found).error();
  return pmu;
}

std::vector<std::string> memory_pmu_names(const Fd& event_sources) {
  auto names = list_directory(event_sources);
  if (!names.ok()) return {};
  std::erase_if(*names, [](const std::string& name) { return !memory_pmu_kind(name); });
  return *std::move(names);
}

}  // namespace

Result<PmuFormat> parse_pmu_format(std::string_view text) {
  const size_t colon = text.find(':');
  PmuFormat format;
  const std::string_view word = text.substr(0, colon);
  if (word == "config1")
    format.word = 1;
  else if (word == "config2")
    format.word = 2;
  else if (word != "config")
    return bad_description(text, "goes to a word that is not known");
  if (colon == std::string_view::npos) return bad_description(text, "names no bits");
  for (const std::string_view range : split(text.substr(colon + 1), ',')) {
    const size_t dash = std::min(range.find('-'), range.size());
    const auto low = unsigned_number(range.substr(0, dash), 10);
    const auto high = dash == range.size() ? low : unsigned_number(range.substr(dash + 1), 10);
    if (!low || !high || *low > *high || *high > 63)
      return bad_description(text, "has bits that are none");
    format.bits |= low_bits(*high - *low + 1) << *low;
  }
  return format;
}

Result<PmuConfig> encode_pmu_event(const PmuFormats& formats, std::string_view event) {
  PmuConfig config = {};
  for (const std::string_view term : split(trimmed(event), ',')) {
    const size_t equals = std::min(term.find('='), term.size());
    const auto value =
        equals == term.size() ? std::optional<uint64_t>(1) : term_value(term.substr(equals + 1));
    // "?" stands for what the user has to say.
    if (!value) return bad_description(event, fmt::format("\"{}\" has no number", term));
    auto format = format_of(formats, term.substr(0, equals));
    if (!format.ok()) return std::move(format).error();
    if ((*value & ~low_bits(std::popcount(format->bits))) != 0)
      return bad_description(event, fmt::format("\"{}\" does not fit into its bits", term));
    config[format->word] |= deposited(*value, format->bits);
  }
  return config;
}

Result<double> bytes_per_count(std::string_view scale, std::string_view unit) {
  scale = trimmed(scale);
  unit = trimmed(unit);
  double factor = 0;
  const auto parsed = std::from_chars(scale.data(), scale.data() + scale.size(), factor);
  if (parsed.ec != std::errc() || parsed.ptr != scale.data() + scale.size() ||
      !std::isfinite(factor) || !(factor > 0))
    return bad_description(scale, "is no scale");
  if (unit == "MiB") return factor * (1 << 20);
  if (unit == "KiB") return factor * (1 << 10);
  if (unit == "Bytes" || unit == "bytes") return factor;
  return bad_description(unit, "is no unit of bytes that is known");
}

MemoryPmus read_memory_pmus(const std::string& event_sources) {
  MemoryPmus found;
  auto sources = open_directory(AT_FDCWD, event_sources);
  if (!sources.ok()) return found;
  std::vector<MemoryPmu> free_running;
  for (const std::string& name : memory_pmu_names(*sources)) {
    auto directory = PmuDirectory::open(*sources, name);
    if (!directory.ok()) continue;  // it has gone since
    const MemoryPmuKind kind = *memory_pmu_kind(name);
    auto pmu = read_memory_pmu(*directory, kind);
    if (!pmu.ok())
      found.notices.push_back(fmt::format("{}: {}", name, pmu.error().describe()));
    else
      (kind == MemoryPmuKind::kFreeRunning ? free_running : found.pmus).push_back(*std::move(pmu));
  }
  if (found.pmus.empty()) found.pmus = std::move(free_running);
  return found;
}

std::string memory_pmus_fingerprint(const std::string& event_sources) {
  std::string fingerprint;
  auto sources = open_directory(AT_FDCWD, event_sources);
  if (!sources.ok()) return fingerprint;
  for (const std::string& name : memory_pmu_names(*sources)) {
    fingerprint += name;
    for (const char* file : {"/type", "/cpumask"}) {
      auto text = read_file(sources->get(), name + file);
      fingerprint += ' ' + (text.ok() ? std::string(trimmed(*text)) : std::string("-"));
    }
    fingerprint += '\n';
  }
  return fingerprint;
}

}  // namespace memsluice
