// SPDX-License-Identifier: GPL-2.0
// The glue between QEMU and the models. What it cannot see: instruction fetches, page walks,
// and what devices move (they charge themselves, see traffic_file.h). Non-temporal stores look
// like plain ones.
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/vm/traffic/cache.h"
#include "tests/vm/traffic/channel_model.h"
#include "tests/vm/traffic/plugin_arguments.h"
#include "tests/vm/traffic/qemu_plugin_api.h"
#include "tests/vm/traffic/traffic_map.h"

extern "C" {
// NOLINTNEXTLINE(readability-identifier-naming): QEMU looks for this name
MEMSLUICE_QEMU_EXPORT extern const int qemu_plugin_version;
const int qemu_plugin_version = kQemuPluginVersion;
}

namespace memsluice::traffic {
namespace {

// Whatever the file says: a guest whose every miss took longer would not get far.
constexpr uint32_t kMaxLatencyNs = 50'000;

// Only a vCPU writes its own counters, so no locked instruction is needed; readers may look at
// any time.
void add(std::atomic<uint64_t>& counter, uint64_t amount) {
  counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

uint64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

struct HostClock {
  uint64_t start_ns;

  uint64_t now_ps() const { return (monotonic_ns() - start_ns) * kPicosecondsPerNanosecond; }
  static void relax() { __builtin_ia32_pause(); }
};

struct alignas(64) Vcpu {
  Vcpu(const TrafficFile& file, uint32_t index, HostClock& clock)
      : slot(file.slot(index)), blocks(&file.counters(index, 0)), delay(clock) {}

  SlotCounters& slot;
  BlockCounters* blocks;
  Delay<HostClock> delay;
};

// The settings of a block as last applied: checked, and out of the guest's reach.
struct BlockTiming {
  uint64_t latency_ps = 0;
  uint64_t service_ps = 0;                        // of one line
  std::atomic<uint64_t>* next_free_ps = nullptr;  // of the channel, if its rate is limited
};

class Plugin {
 public:
  Plugin(qemu_plugin_id_t id, Mapping mapping, const TrafficFile& file,
         const CacheGeometry& geometry)
      : id_(id),
        mapping_(std::move(mapping)),
        file_(file),
        line_bytes_(geometry.line_bytes),
        line_shift_(std::countr_zero(geometry.line_bytes)),
        block_shift_(std::countr_zero(file.layout().block_bytes)),
        cache_(geometry),
        clock_{file.layout().start_ns},
        timing_(file.layout().blocks) {
    for (uint32_t i = 0; i < file.layout().vcpus; ++i) vcpus_.emplace_back(file_, i, clock_);
    register_callbacks();
  }

 private:
  void register_callbacks() {
    qemu_plugin_register_vcpu_discon_cb(
        id_, QEMU_PLUGIN_DISCON_ALL,
        [](unsigned, qemu_plugin_discon_type, uint64_t, uint64_t, void* self) {
          static_cast<Plugin*>(self)->look_for_request();
        },
        this);
    if (counting_) {
      qemu_plugin_register_vcpu_tb_trans_cb(id_, instrument, this);
    }
  }

  static void instrument(qemu_plugin_tb* block, void* self) {
    const size_t count = qemu_plugin_tb_n_insns(block);
    for (size_t i = 0; i < count; ++i) {
      qemu_plugin_register_vcpu_mem_cb(
          qemu_plugin_tb_get_insn(block, i),
          [](unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void* plugin) {
            static_cast<Plugin*>(plugin)->on_access(vcpu, info, vaddr);
          },
          QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, self);
    }
  }

  // Called at every interrupt and exception of the guest: often enough for a person or a test,
  // and free of charge for the code between. A reset throws all translated code away, so while
  // nothing is counted the guest runs code without any trace of this plugin.
  void look_for_request() {
    const Control& control = file_.control();
    if (control.requested.load(std::memory_order_relaxed) == applied_) return;
    qemu_plugin_reset(
        id_, [](void* self) { static_cast<Plugin*>(self)->apply_request(); }, this);
  }

  // All vCPUs stand still.
  void apply_request() {
    Control& control = file_.control();
    applied_ = control.requested.load(std::memory_order_acquire);
    set_counting(control.counting_requested.load(std::memory_order_relaxed) != 0);
    const uint64_t resets = control.resets_requested.load(std::memory_order_relaxed);
    if (resets != resets_) zero_counters();
    resets_ = resets;
    for (uint32_t block = 0; block < timing_.size(); ++block) timing_[block] = timing_of(block);
    control.counting.store(counting_ ? 1 : 0, std::memory_order_relaxed);
    control.applied.store(applied_, std::memory_order_release);
    register_callbacks();
  }

  // Counting starts with an empty cache and ends by writing it back, so that every store counts.
  void set_counting(bool wanted) {
    if (counting_ && !wanted) {
      cache_.flush([this](uint64_t line) {
        add(vcpus_[0].blocks[block_of_line(line)].write_bytes, line_bytes_);
      });
    }
    counting_ = wanted;
  }

  void zero_counters() {
    for (uint32_t slot = 0; slot <= file_.other_agents_slot(); ++slot) {
      std::memset(static_cast<void*>(&file_.slot(slot)), 0, file_.layout().slot_bytes());
    }
  }

  BlockTiming timing_of(uint32_t block) const {
    const BlockSettings& settings = file_.settings(block);
    BlockTiming timing;
    timing.latency_ps =
        std::min(settings.latency_ns.load(std::memory_order_relaxed), kMaxLatencyNs) *
        kPicosecondsPerNanosecond;
    const uint32_t channel = settings.channel.load(std::memory_order_relaxed);
    const uint64_t rate = channel < file_.layout().channels ? channel_rate(file_, channel) : 0;
    if (rate != 0) {
      timing.service_ps = service_time_ps(line_bytes_, rate);
      timing.next_free_ps = &file_.next_free_ps(channel);
    }
    return timing;
  }

  uint64_t block_of_line(uint64_t line) const { return line >> (block_shift_ - line_shift_); }

  void on_access(unsigned index, qemu_plugin_meminfo_t info, uint64_t vaddr) {
    if (index >= vcpus_.size()) return;
    Vcpu& vcpu = vcpus_[index];
    const uint64_t last = vaddr + (uint64_t{1} << qemu_plugin_mem_size_shift(info)) - 1;
    touch(vcpu, info, vaddr);
    if (vaddr >> line_shift_ != last >> line_shift_) touch(vcpu, info, last);
  }

  // One line of the access: the two lines of one that crosses may lie in different pages.
  void touch(Vcpu& vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr) {
    const qemu_plugin_hwaddr* address = qemu_plugin_get_hwaddr(info, vaddr);
    if (address == nullptr || qemu_plugin_hwaddr_is_io(address)) {
      return add(vcpu.slot.io_accesses, 1);
    }
    const uint64_t line = qemu_plugin_hwaddr_phys_addr(address) >> line_shift_;
    if (block_of_line(line) >= timing_.size()) return add(vcpu.slot.other_accesses, 1);
    add(vcpu.slot.accesses, 1);
    const auto outcome = cache_.access(line, qemu_plugin_mem_is_store(info));
    if (outcome.miss) on_miss(vcpu, line, outcome);
  }

  void on_miss(Vcpu& vcpu, uint64_t line, const LastLevelCache::Outcome& outcome) {
    uint64_t waited_ps = 0;
    if (outcome.wrote_back) {
      const uint64_t block = block_of_line(outcome.victim);
      add(vcpu.blocks[block].write_bytes, line_bytes_);
      waited_ps += vcpu.delay.write_back(timing_[block].next_free_ps, timing_[block].service_ps);
    }
    const uint64_t block = block_of_line(line);
    const BlockTiming& timing = timing_[block];
    add(vcpu.blocks[block].read_bytes, line_bytes_);
    waited_ps += vcpu.delay.read(timing.next_free_ps, timing.service_ps, timing.latency_ps);
    add(vcpu.slot.misses, 1);
    add(vcpu.slot.delay_ps, waited_ps);
  }

  const qemu_plugin_id_t id_;
  const Mapping mapping_;
  const TrafficFile file_;
  const uint64_t line_bytes_;
  const int line_shift_;
  const int block_shift_;
  LastLevelCache cache_;
  HostClock clock_;
  std::vector<Vcpu> vcpus_;
  std::vector<BlockTiming> timing_;
  uint64_t applied_ = 0;
  uint64_t resets_ = 0;
  bool counting_ = false;
};

// The file is made anew, whatever a run before has left in it.
Result<Mapping> create_file(const std::string& path, const Layout& layout) {
  const Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return errno_error(errno, "open", path);
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return errno_error(errno, "fstat", path);
  // Never shorter than it is: QEMU may have been told that size.
  if (status.st_size < static_cast<off_t>(kFileBytes) && ftruncate(fd.get(), kFileBytes) != 0) {
    return errno_error(errno, "ftruncate", path);
  }
  auto mapping = Mapping::open(path);
  if (!mapping.ok()) return mapping;
  std::memset(mapping->bytes().data(), 0, kFileBytes);
  std::memcpy(mapping->bytes().data(), &layout, sizeof layout);
  return mapping;
}

Layout layout_for(const PluginArguments& arguments, uint32_t vcpus) {
  Layout layout{};
  layout.magic = kMagic;
  layout.version = kVersion;
  layout.vcpus = vcpus;
  layout.blocks = static_cast<uint32_t>(std::min<uint64_t>(arguments.blocks, UINT32_MAX));
  layout.channels = static_cast<uint32_t>(std::min<uint64_t>(arguments.channels, UINT32_MAX));
  layout.block_bytes = arguments.block_bytes;
  layout.line_bytes = arguments.cache.line_bytes;
  layout.cache_bytes = arguments.cache.bytes;
  layout.cache_ways = arguments.cache.ways;
  layout.start_ns = monotonic_ns();
  return layout;
}

Result<void> install(qemu_plugin_id_t id, const qemu_info_t& info, int argc, char** argv) {
  const auto arguments = parse_arguments(argc, argv);
  if (!arguments.ok()) return arguments.error();
  if (!info.system_emulation || info.system.max_vcpus < 1) {
    return bad_argument(info.target_name, "only whole systems are supported");
  }
  const Layout layout = layout_for(*arguments, static_cast<uint32_t>(info.system.max_vcpus));
  if (!layout.valid(kFileBytes)) {
    return bad_argument(arguments->counters, "too small for so many blocks, channels and vCPUs");
  }
  auto mapping = create_file(arguments->counters, layout);
  if (!mapping.ok()) return mapping.error();
  const auto file = TrafficFile::attach(mapping->bytes());
  for (uint32_t block = 0; block < layout.blocks; ++block) {
    file->settings(block).channel = kNoChannel;
  }
  // Lives as long as QEMU, whose vCPU threads may run until the process ends.
  new Plugin(id, std::move(*mapping), *file, arguments->cache);
  return {};
}

}  // namespace
}  // namespace memsluice::traffic

extern "C" MEMSLUICE_QEMU_EXPORT int qemu_plugin_install(qemu_plugin_id_t id,
                                                         const qemu_info_t* info, int argc,
                                                         char** argv) {
  const auto installed = memsluice::traffic::install(id, *info, argc, argv);
  if (installed.ok()) return 0;
  std::fprintf(stderr, "traffic plugin: %s\n", installed.error().describe().c_str());
  return 1;
}
