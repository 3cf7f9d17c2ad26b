// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/provision/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "daemon/base/fd.h"
#include "tools/memsluice/provision/cpio.h"

namespace memsluice::provision {
namespace {

constexpr const char* kSratArchive = "memsluice-srat.cpio";
// Where Linux looks for tables in an initrd; the name is of no account.
constexpr const char* kSratPath = "kernel/firmware/acpi/srat.aml";
constexpr const char* kChannelsHeading =
    "Written by memsluice provision, for /etc/memsluice/channels.toml. Memory with a start and a "
    "length is withheld by the kernel command line; speeds are what the firmware says.";

std::string arguments(const Plan& plan) {
  return fmt::format("{}", fmt::join(plan.kernel_arguments, " "));
}

std::string grub_file(const Plan& plan) {
  std::string text = "# For /etc/default/grub.d/memsluice.cfg; then update-grub.\n";
  if (!plan.kernel_arguments.empty()) text += grub_line(plan) + '\n';
  if (plan.srat)
    text += fmt::format(
        "# In /boot, in front of the initrd.\n"
        "GRUB_EARLY_INITRD_LINUX_CUSTOM=\"$GRUB_EARLY_INITRD_LINUX_CUSTOM {}\"\n",
        kSratArchive);
  return text;
}

Result<void> write_new(int directory, const OutputFile& file, const std::string& path) {
  const Fd opened(
      ::openat(directory, file.name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!opened.valid()) return errno_error(errno, "open", path);
  std::string_view left = file.content;
  while (!left.empty()) {
    const ssize_t count = ::write(opened.get(), left.data(), left.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(errno, "write", path);
    left.remove_prefix(count);
  }
  if (::fsync(opened.get()) != 0 && errno != EINVAL) return errno_error(errno, "fsync", path);
  return {};
}

}  // namespace

std::string grub_line(const Plan& plan) {
  std::string quoted;
  // The shell takes two of the backslashes, and GRUB the third.
  for (const char c : arguments(plan))
    quoted += c == '$' ? std::string("\\\\\\$") : std::string(1, c);
  return fmt::format("GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX {}\"", quoted);
}

std::vector<OutputFile> output_files(const Plan& plan) {
  std::vector<OutputFile> files;
  if (!plan.kernel_arguments.empty()) files.push_back({"kernel-arguments", arguments(plan) + '\n'});
  if (plan.srat) files.push_back({kSratArchive, cpio_archive(kSratPath, plan.srat->table.bytes)});
  if (!files.empty()) files.push_back({"memsluice-grub.cfg", grub_file(plan)});
  files.push_back({"channels.toml", format_channels_file(plan.channels_file(), kChannelsHeading)});
  return files;
}

Result<std::vector<std::string>> write_output(const std::vector<OutputFile>& files,
                                              const std::string& directory) {
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST)
    return errno_error(errno, "mkdir", directory);
  const Fd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid()) return errno_error(errno, "open", directory);
  std::vector<std::string> paths;
  for (const OutputFile& file : files) {
    paths.push_back(directory + "/" + file.name);
    if (::faccessat(opened.get(), file.name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0)
      return Error{.code = ErrorCode::kConflict,
                   .object = paths.back(),
                   .message = "is there already, and is not replaced",
                   .hint = "name another directory"};
  }
  for (size_t i = 0; i < files.size(); i++)
    if (auto written = write_new(opened.get(), files[i], paths[i]); !written.ok())
      return written.error();
  return paths;
}

}  // namespace memsluice::provision
