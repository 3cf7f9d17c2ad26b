// SPDX-License-Identifier: GPL-2.0
// What the traffic plugin uses of QEMU's TCG plugin API, version 7 (QEMU 11), declared from its
// documentation because no package ships the header. QEMU refuses to load a plugin whose version
// it does not serve.
#pragma once

#include <cstddef>
#include <cstdint>

#define MEMSLUICE_QEMU_EXPORT __attribute__((visibility("default")))

// The names are QEMU's.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {

inline constexpr int kQemuPluginVersion = 7;

using qemu_plugin_id_t = uint64_t;
using qemu_plugin_meminfo_t = uint32_t;

struct qemu_info_t {
  const char* target_name;
  struct {
    int min;
    int cur;
  } version;
  bool system_emulation;
  struct {
    int smp_vcpus;
    int max_vcpus;
  } system;
};

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_RW = 3 };
enum qemu_plugin_discon_type {
  QEMU_PLUGIN_DISCON_INTERRUPT = 1,
  QEMU_PLUGIN_DISCON_EXCEPTION = 2,
  QEMU_PLUGIN_DISCON_ALL = -1
};

using qemu_plugin_udata_cb_t = void (*)(void* userdata);
using qemu_plugin_vcpu_tb_trans_cb_t = void (*)(qemu_plugin_tb* tb, void* userdata);
using qemu_plugin_vcpu_discon_cb_t = void (*)(unsigned vcpu_index, qemu_plugin_discon_type type,
                                              uint64_t from_pc, uint64_t to_pc, void* userdata);
using qemu_plugin_vcpu_mem_cb_t = void (*)(unsigned vcpu_index, qemu_plugin_meminfo_t info,
                                           uint64_t vaddr, void* userdata);

void qemu_plugin_reset(qemu_plugin_id_t id, qemu_plugin_udata_cb_t cb, void* userdata);

void qemu_plugin_register_vcpu_discon_cb(qemu_plugin_id_t id, qemu_plugin_discon_type type,
                                         qemu_plugin_vcpu_discon_cb_t cb, void* userdata);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_tb_trans_cb_t cb,
                                           void* userdata);
void qemu_plugin_register_vcpu_mem_cb(qemu_plugin_insn* insn, qemu_plugin_vcpu_mem_cb_t cb,
                                      qemu_plugin_cb_flags flags, qemu_plugin_mem_rw rw,
                                      void* userdata);

size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb* tb);
qemu_plugin_insn* qemu_plugin_tb_get_insn(const qemu_plugin_tb* tb, size_t index);

bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
qemu_plugin_hwaddr* qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const qemu_plugin_hwaddr* address);
uint64_t qemu_plugin_hwaddr_phys_addr(const qemu_plugin_hwaddr* address);
}
// NOLINTEND(readability-identifier-naming)
