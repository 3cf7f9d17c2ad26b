// SPDX-License-Identifier: GPL-2.0
#include "daemon/base/toml_text.h"

#include <algorithm>

namespace memsluice {
namespace {

bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}

// Behind a space or a comma, and brackets behind these, the parser has ended the word it was in: a
// quote elsewhere may be a part of a broken number to it.
bool begins_string(std::string_view toml, size_t at) {
  if (toml[at] != '"' && toml[at] != '\'') return false;
  const size_t before = toml.substr(0, at).find_last_not_of("[{");
  return before == std::string_view::npos ||
         std::string_view(" \t\r\n,").find(toml[before]) != std::string_view::npos;
}

// How long the string at the front of text is: to behind its closing quotes or, if it has none, to
// the end of the line (one-line strings), of the text, or of its ASCII part (multi-line strings).
size_t string_length(std::string_view text) {
  const char quote = text.front();
  const bool multi_line = text.size() >= 3 && text[1] == quote && text[2] == quote;
  const std::string_view closing = text.substr(0, multi_line ? 3 : 1);
  for (size_t at = closing.size(); at < text.size(); at++) {
    if (text.substr(at).starts_with(closing)) {
      at += closing.size();
      // One or two quotes right before the closing ones belong to the string.
      for (int more = 0; more < 2 && multi_line && at < text.size() && text[at] == quote; more++)
        at++;
      return at;
    }
    if (multi_line ? !is_ascii(text[at]) : text[at] == '\n') return at;
    if (text[at] == '\\' && quote == '"' && at + 1 < text.size() && is_ascii(text[at + 1])) at++;
  }
  return text.size();
}

}  // namespace

std::optional<uint32_t> line_of_stray_letter(std::string_view toml) {
  for (size_t at = 0; at < toml.size();) {
    if (!is_ascii(toml[at]))
      return 1 + static_cast<uint32_t>(std::count(toml.begin(), toml.begin() + at, '\n'));
    if (toml[at] == '#')
      at = std::min(toml.find('\n', at), toml.size());
    else if (begins_string(toml, at))
      at += string_length(toml.substr(at));
    else
      at++;
  }
  return std::nullopt;
}

}  // namespace memsluice
