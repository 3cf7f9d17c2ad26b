// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/provision.h"

#include <ostream>

#include "tools/memsluice/doctor/host_files.h"
#include "tools/memsluice/provision/gather.h"
#include "tools/memsluice/provision/output.h"
#include "tools/memsluice/provision/render.h"

namespace memsluice {

Result<int> run_provision(const ProvisionCommand& command, bool json,
                          const Environment& environment) {
  const doctor::HostFiles host(command.root);
  const provision::Evidence evidence = provision::gather_evidence(host);
  provision::Report report{.survey = provision::survey(evidence),
                           .proposals = provision::propose_channels(evidence)};
  if (command.wish) {
    auto plan = provision::make_plan(evidence, report.proposals, *command.wish);
    if (!plan.ok()) return plan.error();
    report.plan = *std::move(plan);
    if (!command.directory.empty()) {
      auto written =
          provision::write_output(provision::output_files(*report.plan), command.directory);
      if (!written.ok()) return written.error();
      report.written = *std::move(written);
    }
  }
  environment.out << (json ? to_line(to_json(report)) : to_text(report));
  return 0;
}

}  // namespace memsluice
