// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/toml_text.h"

#include <algorithm>

namespace memsluice {
namespace {

// Where the string that begins at the front of text ends: behind its closing quotes or, if it has
// none, at the end of the line (one-line strings) or of the text.
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
    if (text[at] == '\n' && !multi_line) return at;
    if (text[at] == '\\' && quote == '"') at++;
  }
  return text.size();
}

}  // namespace

std::optional<uint32_t> line_of_stray_letter(std::string_view toml) {
  for (size_t at = 0; at < toml.size();) {
    const char c = toml[at];
    if (static_cast<unsigned char>(c) >= 0x80)
      return 1 + static_cast<uint32_t>(std::count(toml.begin(), toml.begin() + at, '\n'));
    if (c == '#')
      at = std::min(toml.find('\n', at), toml.size());
    else if (c == '"' || c == '\'')
      at += string_length(toml.substr(at));
    else
      at++;
  }
  return std::nullopt;
}

}  // namespace memsluice
