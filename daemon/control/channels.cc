// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/channels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <set>

namespace memsluice {
namespace {

std::string memory_of(const ChannelSpec& spec) {
  return fmt::format("{:#x}-{:#x}", spec.start, spec.start + spec.length_bytes - 1);
}

std::string node_of(const ChannelSpec& spec) {
  return spec.node ? fmt::format("node {}", *spec.node)
                   : std::string("the node that the firmware's tables name");
}

// "3 anon, 1 file"
std::string counted(const __u64 (&pages)[MEMSLUICE_FRAME_KINDS_ROOM]) {
  std::vector<std::string> kinds;
  for (size_t kind = 0; kind < MEMSLUICE_FRAME_KINDS_ROOM; kind++)
    if (pages[kind] != 0 && kind != MEMSLUICE_FRAMES_FREE)
      kinds.push_back(fmt::format("{} {}", pages[kind], frame_kind_name(kind)));
  return kinds.empty() ? "none" : fmt::format("{}", fmt::join(kinds, ", "));
}

bool any(const __u64 (&pages)[MEMSLUICE_FRAME_KINDS_ROOM]) {
  return std::any_of(std::begin(pages), std::end(pages), [](uint64_t count) { return count != 0; });
}

std::string cgroup_named(uint64_t id, const std::vector<Cgroup>& cgroups) {
  const auto found = std::find_if(cgroups.begin(), cgroups.end(),
                                  [&](const Cgroup& cgroup) { return cgroup.id == id; });
  return found == cgroups.end() ? fmt::format("a removed cgroup ({})", id) : found->path;
}

// What was taken away and has come back, or not.
std::string undone(const memsluice_channel_remove& result) {
  if (result.lost_blocks == 0) return "it is a channel as before";
  return fmt::format("{} of its memory blocks do not come online again", result.lost_blocks);
}

Result<memsluice_channel_status> find(
    Module& module, const std::function<bool(const memsluice_channel_status&)>& is,
    const std::string& object) {
  auto channels = module.channels();
  if (!channels.ok()) return std::move(channels).error();
  for (const memsluice_channel_status& channel : *channels)
    if (is(channel)) return channel;
  return Error{.code = ErrorCode::kNotFound,
               .object = object,
               .message = "is no channel",
               .hint = "memsluice channel list shows them"};
}

Result<memsluice_channel_status> add_channel(Module& module, const ChannelSpec& spec) {
  memsluice_channel_add add = {};
  add.node = spec.node.value_or(-1);
  add.start = spec.start;
  add.length = spec.length_bytes;
  if (!put_channel_name(spec.name, add.name) || !put_channel_name(spec.group, add.group))
    return channel_add_error(module_error(EINVAL, "channel add"), spec);
  auto added = module.channel_add(add);
  if (!added.ok()) return channel_add_error(added.error(), spec);
  return find(
      module, [&](const auto& channel) { return channel.node == added->node; }, spec.name);
}

Result<RemovedChannel> remove_channel(Module& module, const Cgroups& cgroups,
                                      const std::string& name, Milliseconds deadline) {
  auto channel = find(
      module, [&](const auto& one) { return channel_name(one.name) == name; }, name);
  if (!channel.ok()) return std::move(channel).error();
  auto removal = module.channel_remove(channel->node, deadline);
  if (!removal.ok()) return std::move(removal).error();
  if (removal->os_error != 0) return channel_remove_error(*removal, name, cgroups.all());
  return RemovedChannel{
      .name = name, .node = channel->node, .moved_pages = removal->result.moved_pages};
}

void do_nothing(int) {}

}  // namespace

Error channel_add_error(const Error& error, const ChannelSpec& spec) {
  Error told{.code = ErrorCode::kConflict,
             .object = spec.name,
             .message = error.message,
             .hint = error.hint,
             .os_error = error.os_error};
  const auto bad = [&](std::string message, std::string hint) {
    told.message = std::move(message);
    told.hint = std::move(hint);
    return told;
  };
  switch (error.os_error) {
    case EINVAL:
      told.code = ErrorCode::kBadRequest;
      return bad(
          "is no name, or its group is none",
          fmt::format("1 to {} of letters, digits, _, - and .", MEMSLUICE_CHANNEL_NAME_BYTES - 1));
    case ENOTUNIQ:
      return bad("is the name of another channel", "memsluice channel list shows them");
    case EEXIST:
      return bad(spec.length_bytes == 0 ? fmt::format("{} is a channel already", node_of(spec))
                                        : fmt::format("{} overlaps with a channel, or {} is one",
                                                      memory_of(spec), node_of(spec)),
                 "memsluice channel list shows them");
    case ENOTEMPTY:
      return bad(fmt::format("{} has memory already", node_of(spec)),
                 "name a node that has none: a channel is a node of its own");
    case ENODEV:
      if (spec.length_bytes == 0)
        return bad(fmt::format("{} has no memory", node_of(spec)),
                   "memsluice status lists those that have");
      return bad(
          fmt::format("{} cannot be made: its id was not possible at boot", node_of(spec)),
          "/sys/devices/system/node/possible lists those that are; an SRAT override adds more");
    case ERANGE:
      return bad(fmt::format("{} does not consist of whole memory blocks, or lies where the kernel "
                             "can use no memory",
                             memory_of(spec)),
                 "the size of a block is in /sys/devices/system/memory/block_size_bytes, in "
                 "hexadecimal");
    case EADDRINUSE:
      return bad(fmt::format("{} is in use, as memory or by a driver", memory_of(spec)),
                 "withhold it from the kernel at boot: memmap=SIZE$START; /proc/iomem says who has "
                 "it");
    case EADDRNOTAVAIL:
      return bad(fmt::format("the firmware does not say that all of {} is memory", memory_of(spec)),
                 "/sys/firmware/memmap has what it says");
    case ENOMEM:
      return bad("there is no memory for the tables of the new", "");
    default:
      told.code = error.code;
      return told;
  }
}

Error channel_remove_error(const ChannelRemoval& removal, const std::string& name,
                           const std::vector<Cgroup>& cgroups) {
  const memsluice_channel_remove& result = removal.result;
  Error told = module_error(removal.os_error, "channel remove");
  told.object = name;
  switch (removal.os_error) {
    case ENOENT:
      told.code = ErrorCode::kNotFound;
      told.message = "is no channel any more";
      break;
    case EBUSY:
      if (result.tenant_id == 0) break;
      told.code = ErrorCode::kConflict;
      told.message =
          fmt::format("is among the channels of {}", cgroup_named(result.tenant_id, cgroups));
      told.hint = "give it others first: memsluice tenant set CGROUP --channels ...";
      break;
    case ENOSPC:
      told.code = ErrorCode::kConflict;
      told.message =
          fmt::format("what is on it finds no room elsewhere: {} pages", counted(result.pages));
      told.hint = "memsluice census says whose they are; give back memory on other nodes first";
      break;
    case ETIMEDOUT:
      told.code = ErrorCode::kConflict;
      told.message =
          fmt::format("{} of {} memory blocks do not go: {} pages stay; {}", result.kept_blocks,
                      result.blocks, counted(result.pages), undone(result));
      if (any(result.held_pages))
        told.message +=
            fmt::format(". Held, most of them by {}: {}", cgroup_named(result.holder_id, cgroups),
                        counted(result.held_pages));
      told.hint = fmt::format(
          "held pages are pinned, or in use by I/O; memsluice census --node {} says whose they "
          "are. Without any: allow more time",
          result.node);
      break;
    case EINTR:
      told.message = "its removal was interrupted; " + undone(result);
      break;
    default:
      break;
  }
  return told;
}

// The threads that remove. Signals are blocked in them but for one, which ends what they wait for.
struct Channels::Interruptible {
  static int signal() { return SIGRTMIN; }

  // In the loop's thread, before run().
  void expect_one() {
    const std::lock_guard guard(lock);
    expected++;
  }
  void expect_one_less() {
    const std::lock_guard guard(lock);
    expected--;
  }

  template <typename Work>
  auto run(const Work& work) {
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, signal());
    {
      const std::lock_guard guard(lock);
      threads.insert(::pthread_self());
    }
    ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
    auto result = work();
    ::pthread_sigmask(SIG_BLOCK, &only, nullptr);
    const std::lock_guard guard(lock);
    threads.erase(::pthread_self());
    expected--;
    return result;
  }

  // Again and again: a signal that comes before the call it shall end is lost.
  void interrupt_all() {
    for (;;) {
      {
        const std::lock_guard guard(lock);
        if (expected == 0) return;
        for (const pthread_t thread : threads) ::pthread_kill(thread, signal());
      }
      ::usleep(20000);
    }
  }

  std::mutex lock;
  int expected = 0;  // removals that have not ended
  std::set<pthread_t> threads;
};

Channels::Channels(Module& module, std::string cgroup_root, const Log& log,
                   std::unique_ptr<Background> background)
    : module_(module),
      cgroups_(std::move(cgroup_root)),
      log_(log),
      removals_(std::make_shared<Interruptible>()),
      background_(std::move(background)) {
  struct sigaction action = {};
  action.sa_handler = do_nothing;
  ::sigaction(Interruptible::signal(), &action, nullptr);
}

Channels::~Channels() {
  removals_->interrupt_all();
}

Result<std::unique_ptr<Channels>> Channels::create(Module& module, std::string cgroup_root,
                                                   EventLoop& loop, const Log& log) {
  auto background = Background::create(loop);
  if (!background.ok()) return std::move(background).error();
  return std::unique_ptr<Channels>(
      new Channels(module, std::move(cgroup_root), log, *std::move(background)));
}

Result<void> Channels::add(const ChannelSpec& spec, Reply<memsluice_channel_status> reply) {
  return background_->run<memsluice_channel_status>(
      [&module = module_, spec] { return add_channel(module, spec); },
      [this, spec, reply = std::move(reply)](const Result<memsluice_channel_status>& added) {
        if (added.ok())
          log_.info("channel {}: node {}", spec.name, added->node);
        else
          log_.error("channel {}", added.error().describe());
        reply(added);
      });
}

Result<void> Channels::remove(const std::string& name, Milliseconds deadline,
                              Reply<RemovedChannel> reply) {
  removals_->expect_one();
  auto begun = background_->run<RemovedChannel>(
      [&module = module_, &cgroups = cgroups_, removals = removals_, name, deadline] {
        return removals->run([&] { return remove_channel(module, cgroups, name, deadline); });
      },
      [this, name, reply = std::move(reply)](const Result<RemovedChannel>& removed) {
        if (removed.ok())
          log_.info("channel {}: removed, {} pages moved", name, removed->moved_pages);
        else
          log_.error("channel {}", removed.error().describe());
        reply(removed);
      });
  if (!begun.ok()) removals_->expect_one_less();
  return begun;
}

}  // namespace memsluice
