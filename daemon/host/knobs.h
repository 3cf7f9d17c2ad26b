// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/result.h"

namespace memsluice {

// The values of /sys/kernel/memsluice, one a file. They belong to the module and are gone with it.
class Knobs {
 public:
  explicit Knobs(std::string directory) : directory_(std::move(directory)) {}

  // Those that can be written to.
  Result<std::vector<std::string>> names() const;
  Result<std::string> read(const std::string& name) const;
  // All of them or, when the module refuses one, none. Says how many were different before.
  Result<size_t> apply(const std::map<std::string, std::string>& values) const;

 private:
  struct Refusal {
    std::string name;
    Error error;
  };
  std::optional<Refusal> write_all(std::map<std::string, std::string> values) const;

  std::string directory_;
};

}  // namespace memsluice
