// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/memsluice/provision/plan.h"

namespace memsluice::provision {

struct OutputFile {
  std::string name;
  std::string content;
};

// What a plan is written to: the command line as the kernel reads it, the same for GRUB, the
// archive for the initrd if the plan has a table, and the channels.
std::vector<OutputFile> output_files(const Plan& plan);

// As a line of a shell's file for grub-mkconfig, which GRUB reads in turn.
std::string grub_line(const Plan& plan);

// Makes the directory if it is not there. Replaces nothing: if one of the files is there, none is
// written. The result is their paths.
Result<std::vector<std::string>> write_output(const std::vector<OutputFile>& files,
                                              const std::string& directory);

}  // namespace memsluice::provision
