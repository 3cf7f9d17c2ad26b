// SPDX-License-Identifier: GPL-2.0
#pragma once

// What stands below the options in the output of --help.
namespace memsluice::help {

inline constexpr const char* kMain =
    R"(A tenant is a cgroup with a policy. Pages are moved between nodes of memory; the nodes are
ranked in tiers, and tier 0 is the fastest.

  memsluice doctor                                        is everything there that is needed?
  memsluice tenant set /redis.slice --fast-limit 256M     keep its hot pages in tier 0
  memsluice top                                           watch it
  memsluice migrate --pid 4711 --to 1                     move a process's memory by hand

Sizes are in bytes, or with K, M, G, T (powers of 1024): 4096, 512M, 1.5G.
Exit status: 0 done, 1 failed, 2 wrong arguments, 3 not permitted, 4 no such tenant, process, node
request, queue or channel, 5 conflict, 6 daemon or module not there, 128+N ended by signal N.)";

inline constexpr const char* kStatus = R"(Example:
  memsluice status --json | jq '.nodes[] | {id, tier, free_bytes}')";

inline constexpr const char* kTenant =
    R"(A page belongs to the nearest tenant at or above the cgroup that is charged for it.

  memsluice tenant set /redis.slice --tiering on --fast-limit 256M
  memsluice tenant show /redis.slice)";

inline constexpr const char* kTenantList = R"(Sizes are as the last scan of the tenant saw them.)";

inline constexpr const char* kTenantShow =
    R"(Bin B of the histogram holds the pages that were seen accessed 2^B-1 to 2^(B+1)-2 times, older
times counting less. Pages from the hot bin on belong in tier 0.

  memsluice tenant show /redis.slice
  memsluice tenant show /system.slice/redis-server.service --json)";

inline constexpr const char* kTenantSet =
    R"(What is left out stays as it is; for a new tenant it is the default of the configuration.
It ends with the cgroup or at the next boot: what shall last belongs into the configuration.

  memsluice tenant set /redis.slice --tiering on --fast-limit 256M
  memsluice tenant set /redis.slice --fast-limit none
  memsluice tenant set /batch.slice --promote-mib-per-s 0      only demote

--channels says on which nodes new pages lie, in proportion to the weights (1 if left out). A node
of weight 0 is used when the others are full. +3:2,-1 adds node 3 with two parts and takes node 1
away. --granule is what lies together: less than 2M spreads small ranges too, but does not survive
the collapse into huge pages. A tenant with channels is not tiered meanwhile.

  memsluice tenant set /redis.slice --channels 1:3,2:3,4:2
  memsluice tenant set /redis.slice --channels 1,2,5:0         evenly on 1 and 2, on 5 if full
  memsluice tenant set /redis.slice --channels none            where the kernel chooses)";

inline constexpr const char* kTenantChannels =
    R"(New pages lie on the new channels at once; then those that it has are brought there, and what is
left elsewhere is told, as a census finds it. Without --set, --add and --remove its channels stay as
they are, and only its pages are brought there. Ctrl-C stops it: what has been moved stays moved, and
the daemon brings the rest there in the background.

--lazily marks the pages instead: each moves when a process touches it next, and its process waits
for that. What several processes map is not moved so.

  memsluice tenant channels /redis.slice --add 3 --remove 1
  memsluice tenant channels /redis.slice --set 1:4,2:3 --mib-per-s 500
  memsluice tenant channels /redis.slice --add 4 --lazily
  memsluice tenant channels /redis.slice)";

inline constexpr const char* kTenantClear =
    R"(Takes back what "tenant set" did: the policy of the configuration is in force again, or the
cgroup is no tenant any more. Its pages stay where they are.

  memsluice tenant clear /redis.slice)";

inline constexpr const char* kMigrate =
    R"(Waits for the end, with a progress bar on a terminal. Ctrl-C cancels: what has been moved stays
moved, and is told. What cannot be moved stays where it is, and is counted by reason.

  memsluice migrate --pid 4711 --to 1                          all memory of a process
  memsluice migrate --pid 4711 --address 0x7f2c40000000 --length 512M --to 0
  memsluice migrate --tenant /redis.slice --from 0 --to 1      empty node 0 of a tenant
  memsluice migrate --tenant /redis.slice --from 0 --to 1 --mib-per-s 200 --detach)";

inline constexpr const char* kRequest = R"(  memsluice request list
  memsluice request cancel 7)";

inline constexpr const char* kRequestList =
    R"(The daemon knows those that run, and the last 64 that ended.)";

inline constexpr const char* kRequestShow = R"(  memsluice request show 7)";

inline constexpr const char* kRequestCancel = R"(What has been moved stays moved.

  memsluice request cancel 7)";

inline constexpr const char* kEngine =
    R"(A copy engine copies the pages that are moved. That of DSA has queues, which accel-config
configures; the CPU copies what the others decline.

  memsluice engine list
  memsluice engine test)";

inline constexpr const char* kEngineList =
    R"(The engine that copies first is the first. A queue is up; resting, because it has failed, and will
be tested; stuck, because it holds what is late; or drained. DEPTH, BATCH and TRANSFER are its
limits. QUARANTINED are those late descriptors that have still not ended.

  memsluice engine list --json | jq '.engines[].queues[] | select(.state != "up")')";

inline constexpr const char* kEngineTest =
    R"(Copies a little through each queue, and compares: all queues if none is named. A queue that was
drained copies again when it has passed. Exit status: that of the first that failed.

  memsluice engine test
  memsluice engine test wq0.0 dsa/wq0.1)";

inline constexpr const char* kEngineDrain =
    R"(Waits for up to two seconds for what the queue holds. From then on others copy in its place, until
it passes a test.

  memsluice engine drain wq0.0
  memsluice engine test wq0.0         copies again)";

inline constexpr const char* kEngineReset =
    R"(For a device that is stuck. Its configuration is read, the device disabled, reset, configured as
it was, and enabled with the queues that were enabled, for all who use it: those of other drivers
too. What they copy meanwhile is lost. A device that has lost its configuration gets the one that
the administrator saved: [dsa] configuration in memsluiced.toml.

Asks on a terminal; elsewhere --yes is needed.

  memsluice engine reset dsa0
  memsluice engine reset dsa0 --yes)";

inline constexpr const char* kCensus =
    R"(Counts page frames, by the cgroup that is charged for them; what lies below a cgroup has lines of
its own. SHMEM is shared memory and tmpfs, FILE the rest of the page cache, KERNEL page tables,
stacks and the like. HELD is what would not move now: pinned, or in use by I/O. Takes some
milliseconds a GiB.

  memsluice census
  memsluice census --node 1 --tenants
  memsluice census --json | jq '.census[] | select(.held_pages.anon > 0) | .cgroup')";

inline constexpr const char* kChannel =
    R"(A channel is a node with memory that has a name: one that is there, or one that is made of memory
which was withheld from the kernel at boot.

  memsluice channel add ch1 --node 1
  memsluice channel add ch2 --start 0x140000000 --length 16G --node 2
  memsluice tenant set /redis.slice --channels 1,2)";

inline constexpr const char* kChannelList =
    R"(BLOCKS are memory blocks: those online of all. All of them are movable where memory was added, so
that no kernel memory keeps them. BY says who has brought them online.

  memsluice channel list --json | jq '.channels[] | {name, node}')";

inline constexpr const char* kChannelAdd =
    R"(With --node alone it is a name for a node that is there. --start and --length name memory that the
command line of the kernel withholds (memmap=LENGTH$START); --node is then the node that it
becomes: one without memory, of those in /sys/devices/system/node/possible; if it is left out, as
the firmware's tables say. It comes online as movable memory, and ends with the next boot.

  memsluice channel add ch1 --node 1 --group socket0
  memsluice channel add ch2 --start 0x140000000 --length 16G)";

inline constexpr const char* kChannelRemove =
    R"(Of a node that was there only the name goes. From memory that was added all pages are moved, to
the other channels of their tenants or to where there is room; then it is taken offline, and the
node is gone. What does not go in time is told, with who holds it, and all is as it was: but pages
that have moved stay where they are. A channel of a tenant is not removed: give it others first.
Ctrl-C ends the waiting, not the removal.

  memsluice channel remove ch2 --deadline 300)";

inline constexpr const char* kMetrics =
    R"(The daemon also writes them into a file for node_exporter, if [metrics] textfile in
memsluiced.toml says so.

  memsluice metrics | grep channel_)";

inline constexpr const char* kTop =
    R"(READ/s and WRITE/s are what each memory channel (node) moves, as far as it is counted; the bars are
of what the firmware says that it can. Below a tenant: how its memory lies on the nodes.
PROMOTE/s, DEMOTE/s and REFUSED/s are of the last interval, so --once takes one interval, too.
The bars are pages by how often they are accessed, the coldest at the left, on a logarithmic
scale; what is right of the mark belongs in tier 0. q ends it.

  memsluice top --interval 2
  memsluice top --once
  memsluice top --json | jq '.tenants[] | {cgroup, promoted_pages_per_s}')";

inline constexpr const char* kReload =
    R"(An error in it is reported, and the daemon goes on with what it had.)";

inline constexpr const char* kProvision =
    R"(Shows what memory there is, with what each source says of it (e820, SRAT, HMAT, CEDT, SMBIOS, EDAC,
the kernel), where sources contradict each other, and where channels begin and end as far as they
say. With channels named, it makes what the host has to be booted with: a kernel command line that
withholds their memory, a table (SRAT) for the initrd if nodes lack ids, and the channels for the
daemon. Nothing is written without --write, nothing of the host is changed, and what would leave the
host too little is refused. Sees most as root.

With --for devices the memory becomes DAX devices, which VMs can have.

  memsluice provision
  memsluice provision --channels 4 --host 16G
  memsluice provision --range 0x1040000000+64G --range 0x2040000000+64G --write /root/channels
  memsluice provision --node 2 --node 3 --write /root/channels)";

inline constexpr const char* kDoctor =
    R"(Looks at kernel, module, daemon, nodes, cgroups, other balancers and devices, and says for each
what was found and what to do. Works without the daemon, and sees most as root.
Exit status: 0 if there is no error among the findings, else 1.

  memsluice doctor
  memsluice doctor --json | jq '.findings[] | select(.level != "ok")')";

inline constexpr const char* kVersion = R"(Works without the daemon.)";

}  // namespace memsluice::help
