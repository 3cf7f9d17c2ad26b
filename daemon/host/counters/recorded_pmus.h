// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "daemon/base/temporary_directory.h"
#include "daemon/host/paths.h"

namespace memsluice {

// A host's sysfs as far as it describes memory controllers, after real ones.
class RecordedPmus {
 public:
  RecordedPmus() {
    paths_.event_sources = tree_.path("/event_source");
    paths_.cpus = tree_.path("/cpu");
    paths_.nodes = tree_.path("/node");
    tree_.make_directory("/event_source");
    tree_.make_directory("/node");
  }

  const Paths& paths() const { return paths_; }

  void cpu(int cpu, int socket, int die = 0) const {
    const std::string topology = fmt::format("/cpu/cpu{}/topology/", cpu);
    tree_.write(topology + "physical_package_id", fmt::format("{}\n", socket));
    tree_.write(topology + "die_id", fmt::format("{}\n", die));
  }

  void nodes(const std::vector<std::string>& cpulists) const {
    tree_.write("/node/has_memory", fmt::format("0-{}\n", cpulists.size() - 1));
    for (size_t node = 0; node < cpulists.size(); node++)
      tree_.write(fmt::format("/node/node{}/cpulist", node), cpulists[node] + "\n");
  }

  // Sapphire Rapids: a PMU a channel; a CPU of each socket in its cpumask.
  void sapphire_rapids_imc(int number, int type, const std::string& cpumask) const {
    const std::string name = fmt::format("uncore_imc_{}", number);
    pmu(name, type, cpumask);
    intel_formats(name);
    event(name, "clockticks", "event=0x01,umask=0x00");
    line_event(name, "cas_count_read", "event=0x05,umask=0xcf");
    line_event(name, "cas_count_write", "event=0x05,umask=0xf0");
  }

  // Granite Rapids: a PMU for two subchannels of a channel.
  void granite_rapids_imc(int number, int type, const std::string& cpumask) const {
    const std::string name = fmt::format("uncore_imc_{}", number);
    pmu(name, type, cpumask);
    intel_formats(name);
    line_event(name, "cas_count_read_sch0", "event=0x05,umask=0xcf");
    line_event(name, "cas_count_read_sch1", "event=0x06,umask=0xcf");
    line_event(name, "cas_count_write_sch0", "event=0x05,umask=0xf0");
    line_event(name, "cas_count_write_sch1", "event=0x06,umask=0xf0");
  }

  // Ice Lake's, beside uncore_imc_*.
  void ice_lake_free_running(int number, int type, const std::string& cpumask) const {
    const std::string name = fmt::format("uncore_imc_free_running_{}", number);
    pmu(name, type, cpumask);
    tree_.write(below(name, "format/event"), "config:0-7\n");
    tree_.write(below(name, "format/umask"), "config:8-15\n");
    event(name, "dclk", "event=0xff,umask=0x10");
    line_event(name, "read", "event=0xff,umask=0x20");
    line_event(name, "write", "event=0xff,umask=0x21");
    line_event(name, "ddrt_read", "event=0xff,umask=0x30");
    line_event(name, "ddrt_write", "event=0xff,umask=0x31");
  }

  // Zen 4 and 5: a PMU a channel, numbered through all sockets, no named events.
  void zen_umc(int number, int type, const std::string& cpumask) const {
    const std::string name = fmt::format("amd_umc_{}", number);
    pmu(name, type, cpumask);
    tree_.write(below(name, "format/event"), "config:0-7\n");
    tree_.write(below(name, "format/rdwrmask"), "config:8-9\n");
  }

  void pmu(const std::string& name, int type, const std::string& cpumask) const {
    tree_.write(below(name, "type"), fmt::format("{}\n", type));
    tree_.write(below(name, "cpumask"), cpumask + "\n");
  }
  void event(const std::string& name, const std::string& event, const std::string& terms) const {
    tree_.write(below(name, "events/" + event), terms + "\n");
  }
  void line_event(const std::string& name, const std::string& event_name,
                  const std::string& terms) const {
    event(name, event_name, terms);
    tree_.write(below(name, "events/" + event_name + ".scale"), "6.103515625e-5\n");
    tree_.write(below(name, "events/" + event_name + ".unit"), "MiB\n");
  }
  void write(const std::string& name, const std::string& file, const std::string& text) const {
    tree_.write(below(name, file), text);
  }
  void remove(const std::string& name, const std::string& file = "") const {
    tree_.remove(below(name, file));
  }

 private:
  static std::string below(const std::string& name, const std::string& file) {
    return fmt::format("/event_source/{}/{}", name, file);
  }
  void intel_formats(const std::string& name) const {
    tree_.write(below(name, "format/event"), "config:0-7\n");
    tree_.write(below(name, "format/umask"), "config:8-15,32-55\n");
    tree_.write(below(name, "format/edge"), "config:18\n");
    tree_.write(below(name, "format/inv"), "config:23\n");
    tree_.write(below(name, "format/threshold"), "config:24-31\n");
  }

  TemporaryDirectory tree_;
  Paths paths_;
};

}  // namespace memsluice
