// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/doctor/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace memsluice::doctor {
namespace {

constexpr std::pair kOldestKernel = {6U, 12U};
constexpr std::array kTestedKernels = {std::pair{6U, 12U}, std::pair{7U, 3U}};
constexpr const char* kDevice = "/dev/" MEMSLUICE_DEVICE;
constexpr const char* kLogAdvice = "dmesg | grep memsluice says what it missed";

Finding judge_kernel(const KernelFacts& kernel) {
  std::pair<unsigned, unsigned> version;
  const int parsed =
      std::sscanf(kernel.release.c_str(), "%9u.%9u", &version.first, &version.second);
  if (parsed != 2) {
    return {"kernel", Level::kWarning, "/proc/sys/kernel/osrelease",
            fmt::format("\"{}\" is no kernel release", kernel.release), "mount /proc"};
  }
  if (version < kOldestKernel) {
    return {"kernel", Level::kError, kernel.release, "older than 6.12",
            "install a newer kernel, for instance linux-image-amd64 of Debian's backports"};
  }
  const bool tested =
      std::find(kTestedKernels.begin(), kTestedKernels.end(), version) != kTestedKernels.end();
  if (!tested) {
    return {"kernel", Level::kNote, kernel.release, "not one of the tested kernels, 6.12 and 7.3",
            "look at the finding \"features\": the module turns off what this kernel lacks"};
  }
  return {"kernel", Level::kOk, kernel.release, "supported", ""};
}

Finding judge_btf(const KernelFacts& kernel) {
  const char* object = "/sys/kernel/btf/vmlinux";
  if (kernel.btf) return {"btf", Level::kOk, object, "present", ""};
  return {"btf", Level::kError, object, "missing: signatures of kernel functions cannot be checked",
          "use a kernel with CONFIG_DEBUG_INFO_BTF=y, as all of Debian's are; "
          "modprobe memsluice allow_unchecked=1 does without, at your risk"};
}

Finding judge_symbols(const KernelFacts& kernel) {
  const char* object = "/proc/kallsyms";
  if (kernel.kprobes_on == false) {
    return {"symbols", Level::kError, "/sys/kernel/debug/kprobes/enabled",
            "kprobes are switched off", "echo 1 > /sys/kernel/debug/kprobes/enabled"};
  }
  if (kernel.kprobes && kernel.kallsyms_lookup) {
    return {"symbols", Level::kOk, object, "kprobes and kallsyms_lookup_name are there", ""};
  }
  return {"symbols", Level::kError, object,
          fmt::format("{} missing: the module cannot find unexported functions",
                      kernel.kprobes ? "kallsyms_lookup_name" : "kprobes"),
          "use a kernel with CONFIG_KPROBES=y and CONFIG_KALLSYMS_ALL=y"};
}

Finding judge_lockdown(const KernelFacts& kernel) {
  const char* object = "/sys/kernel/security/lockdown";
  const std::string mode = chosen(kernel.lockdown.value_or("none"));
  const bool signed_only = kernel.module_signatures_enforced == "Y" || mode != "none";
  if (!signed_only) return {"lockdown", Level::kOk, object, mode, ""};
  return {"lockdown", Level::kWarning, object,
          fmt::format("{}: the kernel loads signed modules only", mode),
          "sign the module with an enrolled key: DKMS does once mokutil --import "
          "/var/lib/dkms/mok.pub is confirmed at boot"};
}

Finding judge_installed(const Facts& facts) {
  const std::string& release = facts.kernel.release;
  const std::string object = "memsluice.ko for " + release;
  if (facts.module.installed_path) {
    return {"module-installed", Level::kOk, object, *facts.module.installed_path, ""};
  }
  if (facts.module.loaded) {
    return {"module-installed", Level::kNote, object, "loaded, but not known to modprobe",
            "dkms install it, or it is gone after the next boot"};
  }
  return {"module-installed", Level::kError, object, "not built for this kernel",
          fmt::format("apt install linux-headers-{0} dkms && dkms autoinstall -k {0}", release)};
}

Finding judge_loaded(const ModuleFacts& module) {
  if (!module.loaded) {
    return {"module", Level::kError, "memsluice.ko", "not loaded",
            fmt::format("modprobe memsluice; if that fails, {}", kLogAdvice)};
  }
  if (!module.device_node) {
    return {"module", Level::kError, kDevice, "loaded, but the device node is missing",
            "mount devtmpfs on /dev, or udevadm trigger"};
  }
  if (module.info) {
    return {
        "module", Level::kOk, kDevice,
        fmt::format("loaded, version {}, ABI {}", module.info->release, module.info->abi_version),
        ""};
  }
  if (module.info_error.code == ErrorCode::kDenied) {
    return {"module", Level::kNote, kDevice, "loaded; this user may not ask it for its version",
            "run doctor as root to see more"};
  }
  return {"module", Level::kError, kDevice, module.info_error.message, module.info_error.hint};
}

void judge_features(const ModuleFacts& module, Findings* findings) {
  if (!module.info) return;
  const auto on = module.info->feature_names();
  const ModuleInfo off{.release = {}, .features = ~module.info->features};
  if (off.feature_names().empty()) {
    findings->push_back({"features", Level::kOk, kDevice, joined(on), ""});
  } else {
    const bool known = !module.lacking_symbols.empty();
    findings->push_back({"features", Level::kWarning, kDevice,
                         fmt::format("off: {}; on: {}", joined(off.feature_names()), joined(on)),
                         known ? "what this kernel lacks: " + joined(module.lacking_symbols)
                               : "dmesg | grep memsluice names what the kernel lacks"});
  }
}

void judge_device_node(const ModuleFacts& module, Findings* findings) {
  if (!module.device_node) return;
  const DeviceNodeFacts& node = *module.device_node;
  const std::string found = fmt::format("{:04o} {}:{}", node.mode, node.owner, node.group);
  const bool open_to_all = (node.mode & 0002) != 0;
  findings->push_back({"device-node", open_to_all ? Level::kNote : Level::kOk, kDevice, found,
                       open_to_all ? "every user may ask for migrations of his own processes; "
                                     "chmod 0660 keeps it to the group"
                                   : ""});
}

Finding judge_daemon(const DaemonFacts& daemon, std::string_view version) {
  if (daemon.version.empty()) {
    return {"daemon", Level::kError, daemon.socket, daemon.problem, daemon.advice};
  }
  if (daemon.version != version) {
    return {"daemon", Level::kWarning, daemon.socket,
            fmt::format("memsluiced {}, but this command is {}", daemon.version, version),
            "install the same version of both, and systemctl restart memsluiced"};
  }
  return {"daemon", Level::kOk, daemon.socket, "memsluiced " + daemon.version, ""};
}

Finding judge_caller(const CallerFacts& caller, const DaemonFacts& daemon) {
  const std::string object = fmt::format("user {}", caller.user);
  if (daemon.may_change) return {"permissions", Level::kOk, object, "may change everything", ""};
  if (caller.sys_admin) return {"permissions", Level::kOk, object, "has CAP_SYS_ADMIN", ""};
  std::string advice = "run memsluice as root";
  if (daemon.socket_node && daemon.socket_node->group != "root") {
    advice += fmt::format(", or join the group: adduser USER {}", daemon.socket_node->group);
  }
  return {"permissions", Level::kNote, object, "may look, but not change anything", advice};
}

}  // namespace

void judge_software(const Facts& facts, std::string_view version, Findings* findings) {
  findings->push_back(judge_kernel(facts.kernel));
  findings->push_back(judge_btf(facts.kernel));
  findings->push_back(judge_symbols(facts.kernel));
  findings->push_back(judge_lockdown(facts.kernel));
  findings->push_back(judge_installed(facts));
  findings->push_back(judge_loaded(facts.module));
  judge_features(facts.module, findings);
  judge_device_node(facts.module, findings);
  findings->push_back(judge_daemon(facts.daemon, version));
  findings->push_back(judge_caller(facts.caller, facts.daemon));
}

}  // namespace memsluice::doctor
