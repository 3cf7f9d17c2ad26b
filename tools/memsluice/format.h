// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memsluice {

// At most four digits and a unit: "0", "512 KiB", "1.5 GiB"; "-" for what is not known.
std::string human_bytes(std::optional<double> bytes);
std::string human_count(std::optional<uint64_t> count);
// The two largest units: "3 d 4 h", "12 s".
std::string human_duration(uint64_t seconds);

// Names come from whoever may make a cgroup: without control characters they cannot drive the
// terminal.
std::string printable(std::string_view text);

// Terminal columns of UTF-8 text, one for each code point.
size_t display_width(std::string_view text);
// At most `columns` wide; what is cut off is marked by a trailing '~'.
std::string shortened(std::string_view text, size_t columns);
std::string padded_left(std::string_view text, size_t columns);
std::string padded_right(std::string_view text, size_t columns);

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
};

// Lines of cells under titles, each column as wide as its widest cell.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add_row(std::vector<std::string> cells);
  [[nodiscard]] std::string render() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace memsluice
