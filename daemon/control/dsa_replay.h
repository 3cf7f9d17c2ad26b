// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/control/engines.h"

namespace memsluice {

// Brings back DSA devices whose queues the engine has lost, by a reset that nobody announced or
// since all of them are stuck: what `memsluice engine reset` does, by itself. A device is looked
// after from when it had a queue that was up.
class DsaReplay {
 public:
  DsaReplay(Engines& engines, const Clock& clock, const Log& log)
      : engines_(engines), clock_(clock), log_(log) {}

  // Now and then. What has been lost at two looks in a row is reset, with the file at `saved_path`
  // for a device without a configuration; what a reset does not bring back is tried less and less
  // often.
  void look(const std::string& saved_path);

 private:
  struct Device {
    bool up = false;
    int looks_lost = 0;
    Milliseconds next{0};
    Milliseconds pause{0};
  };

  void judge(const std::vector<EngineInfo>& engines, const std::string& saved_path);
  void bring_back(const std::string& name, Device& device, const std::string& saved_path);

  Engines& engines_;
  const Clock& clock_;
  const Log& log_;
  std::map<std::string, Device> devices_;  // by name
  // What is under way holds a weak reference: it may end after this.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace memsluice
