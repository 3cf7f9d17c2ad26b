// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/doctor/findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "tools/memsluice/doctor/judge.h"
#include "tools/memsluice/format.h"

namespace memsluice::doctor {

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string chosen(const std::string& choices) {
  const size_t open = choices.find('[');
  const size_t close = choices.find(']', open);
  if (open == choices.npos || close == choices.npos) return choices;
  return choices.substr(open + 1, close - open - 1);
}

std::string_view level_name(Level level) {
  static constexpr std::array<std::string_view, 4> kNames = {"ok", "note", "warning", "error"};
  return kNames[static_cast<size_t>(level)];
}

std::vector<Finding> judge(const Facts& facts, std::string_view version) {
  Findings findings;
  judge_software(facts, version, &findings);
  judge_memory(facts, &findings);
  judge_devices(facts, &findings);
  return findings;
}

bool any_error(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.level == Level::kError; });
}

Json to_json(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"id", finding.id},
                    {"level", level_name(finding.level)},
                    {"object", finding.object},
                    {"found", finding.found},
                    {"advice", finding.advice}});
  }
  return {{"findings", std::move(list)}};
}

std::string to_text(const std::vector<Finding>& findings) {
  std::string result;
  size_t counts[4] = {};
  for (const Finding& finding : findings) {
    ++counts[static_cast<size_t>(finding.level)];
    result += fmt::format("{:<8} {:<17} {}: {}\n", level_name(finding.level), finding.id,
                          printable(finding.object), printable(finding.found));
    if (!finding.advice.empty()) {
      result += fmt::format("{:<26} -> {}\n", "", printable(finding.advice));
    }
  }
  result += fmt::format("{} errors, {} warnings, {} notes\n", counts[3], counts[2], counts[1]);
  return result;
}

}  // namespace memsluice::doctor
