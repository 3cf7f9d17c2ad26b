/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
#ifndef _UAPI_MEMSLUICE_H
#define _UAPI_MEMSLUICE_H

/*
 * The ioctls of /dev/memsluice.
 *
 * Every argument is a structure whose first member, size, is set by the caller to the size of the
 * structure it was built with. The structures only ever grow at the end, and new members mean
 * nothing when they are zero: an older caller works with a newer module, and a newer caller works
 * with an older module as long as what that module does not know is zero (else E2BIG).
 * Reserved members and unknown flags must be zero (else EINVAL). Pointers are __u64.
 * Sizes are in bytes, pages are base pages.
 */

#include <linux/ioctl.h>
#include <linux/types.h>

#define MEMSLUICE_DEVICE "memsluice"
#define MEMSLUICE_ABI_VERSION 1
#define MEMSLUICE_IOC_TYPE 0xB6

/* What this module can do on this kernel. */
#define MEMSLUICE_FEATURE_MIGRATE (1ULL << 0) /* migration requests of ranges and addresses */
#define MEMSLUICE_FEATURE_MIGRATE_TENANT (1ULL << 1) /* ... of everything charged to a tenant */
#define MEMSLUICE_FEATURE_HOTNESS_SCAN (1ULL << 2) /* accessed bits of processes */
#define MEMSLUICE_FEATURE_HOTNESS_SECONDARY (1ULL << 3) /* ... and of VMs, through mmu notifiers */
#define MEMSLUICE_FEATURE_TIERING (1ULL << 4) /* promotion and demotion */
#define MEMSLUICE_FEATURE_TENANT_EVENTS (1ULL << 5) /* a tenant goes as soon as its cgroup does */
#define MEMSLUICE_FEATURE_MIGRATE_BATCH (1ULL << 6) /* pages move in batches of our own */
#define MEMSLUICE_FEATURE_ENGINES (1ULL << 7) /* copy engines are told of, tested and drained */
#define MEMSLUICE_FEATURE_CENSUS (1ULL << 8) /* page frames are counted by who is charged */
#define MEMSLUICE_FEATURE_PLACEMENT (1ULL << 9) /* new pages of a tenant lie on its channels */
#define MEMSLUICE_FEATURE_HOTPLUG                                                                  \
	(1ULL << 10) /* channels are made of withheld memory, and go again */
#define MEMSLUICE_FEATURE_REDISTRIBUTE                                                             \
	(1ULL << 11) /* ... and those that it has are brought there */

struct memsluice_version {
	__u32 size;
	__u32 abi_version; /* out: MEMSLUICE_ABI_VERSION of the module */
	__u64 features; /* out: MEMSLUICE_FEATURE_* */
	char release[32]; /* out: release of the module, NUL-terminated */
};

/*
 * A tenant is a cgroup (v2) with a policy. Processes and pages belong to the nearest tenant at or
 * above their cgroup.
 */
/* Move this tenant's pages between tiers; not while it has a placement, which decides alone. */
#define MEMSLUICE_POLICY_TIERING (1U << 0)
#define MEMSLUICE_NO_LIMIT (~0ULL)
#define MEMSLUICE_MIB_PER_S_MAX 1048576U

struct memsluice_policy {
	__u32 flags; /* MEMSLUICE_POLICY_* */
	__u32 promote_mib_per_s; /* 0 to MEMSLUICE_MIB_PER_S_MAX; 0: nothing is promoted */
	__u32 demote_mib_per_s; /* likewise */
	__u32 reserved;
	__u64 fast_limit_bytes; /* the most it may hold in tier 0, or MEMSLUICE_NO_LIMIT */
};

/* Needs CAP_SYS_ADMIN in the initial user namespace. */
struct memsluice_tenant_set {
	__u32 size;
	__s32 cgroup_fd; /* a cgroup v2 directory */
	struct memsluice_policy policy;
	__u64 cgroup_id; /* out */
};

/* Needs CAP_SYS_ADMIN. ENOENT: there is no such tenant. */
struct memsluice_tenant_clear {
	__u32 size;
	__u32 reserved;
	__u64 cgroup_id; /* the inode number of the cgroup directory */
};

/* Ids of all tenants, in ascending order. */
struct memsluice_tenant_list {
	__u32 size;
	__u32 capacity; /* room at ids, in ids */
	__u64 ids; /* pointer to __u64[capacity] */
	__u32 count; /* out: tenants there are; more than capacity: the rest was left out */
	__u32 reserved;
};

/* Why a page was not moved. */
enum memsluice_refusal {
	MEMSLUICE_REFUSED_ABSENT = 0, /* nothing is mapped there, or it is swapped out */
	MEMSLUICE_REFUSED_PINNED = 1, /* pinned for DMA, or somebody holds a long-lived reference */
	MEMSLUICE_REFUSED_BUSY = 2, /* locked or isolated by somebody else, or in use right now */
	MEMSLUICE_REFUSED_WRITEBACK = 3, /* on its way to storage */
	MEMSLUICE_REFUSED_UNMOVABLE = 4, /* its mapping cannot be migrated */
	MEMSLUICE_REFUSED_HUGETLB = 5, /* hugetlb pages are not moved */
	MEMSLUICE_REFUSED_NO_MEMORY = 6, /* no free memory on the target node */
	MEMSLUICE_REFUSED_SHARED = 7, /* other processes map it too, and ALL_MAPPINGS not asked */
	MEMSLUICE_REFUSED_FAILED = 8, /* the kernel's migration gave up for another reason */
	MEMSLUICE_REFUSED_NOT_ALLOWED = 9, /* the process's cpuset has no node to move it to */
	MEMSLUICE_REFUSED_POLICY = 10, /* a process has set a policy for where it lies */
};
#define MEMSLUICE_REFUSALS 11
#define MEMSLUICE_REFUSALS_ROOM 16

#define MEMSLUICE_BINS 16

/*
 * What is known of a tenant. Bytes are of mapped pages, as the last complete scan saw them.
 * Bin b of the histogram holds the pages whose access count c has floor(log2(c + 1)) == b.
 */
struct memsluice_tenant_status {
	__u32 size;
	__u32 reserved;
	__u64 cgroup_id; /* in */
	struct memsluice_policy policy; /* everything from here on is out */
	__u64 fast_bytes; /* in tier 0 */
	__u64 slow_bytes; /* in all others */
	__u64 promoted_pages;
	__u64 demoted_pages;
	__u64 refused_pages[MEMSLUICE_REFUSALS_ROOM]; /* by enum memsluice_refusal */
	__u64 fast_histogram_pages[MEMSLUICE_BINS];
	__u64 slow_histogram_pages[MEMSLUICE_BINS];
	__u32 hot_bin; /* pages in this bin and above belong in tier 0 */
	__u32 cold_bin; /* pages in this bin and below may be demoted; MEMSLUICE_BINS: none */
	__u64 scans; /* complete ones */
	__u64 scanned_pages;
	__u64 scan_cpu_us;
	__u32 processes; /* address spaces in the last scan */
	__u32 reserved2;
};

/*
 * A migration request.
 *
 * RANGE and ADDRESSES: pages of one process. The caller needs ptrace read access to it, as for
 * move_pages(2), and the target node must be allowed by its cpuset (else EACCES).
 * TENANT_NODE: every page charged to a tenant's cgroup or below it on source_node. CAP_SYS_ADMIN.
 * TENANT_PLACED: every page of a tenant, without those of tenants below it, to where its placement
 * has it, as that is when the page's turn comes. What has a place on another channel that is full
 * stays on a channel of the tenant; what lies on none comes to any that has room. Nobody's memory is
 * reclaimed for it. CAP_SYS_ADMIN; ENODATA: the tenant has no placement. Counts are of processes'
 * own and of shared memory.
 *
 * Without ASYNC the call returns when the request has ended, or with EINTR when a signal stopped
 * it; what has been moved stays moved, and the counts say so. With ASYNC it returns a file
 * descriptor (close-on-exec) on which MEMSLUICE_IOC_REQUEST_STATUS and _CANCEL work and which
 * polls readable when the request has ended. Closing the last descriptor cancels the request.
 */
enum memsluice_migrate_kind {
	MEMSLUICE_MIGRATE_RANGE = 0,
	MEMSLUICE_MIGRATE_ADDRESSES = 1,
	MEMSLUICE_MIGRATE_TENANT_NODE = 2,
	MEMSLUICE_MIGRATE_TENANT_PLACED = 3,
};

#define MEMSLUICE_MIGRATE_ASYNC (1U << 0)
/* Move pages that other processes map as well. Needs CAP_SYS_NICE, as MPOL_MF_MOVE_ALL does. */
#define MEMSLUICE_MIGRATE_ALL_MAPPINGS (1U << 1)
/* By the kernel's own migration, not in batches of this module's: to compare, or to get around. */
#define MEMSLUICE_MIGRATE_IN_TREE (1U << 2)
/*
 * TENANT_PLACED, not with mib_per_s: pages are marked now, and each moves when a process touches it
 * next; moved_pages are those that are marked. Only what one process alone has mapped, and had at the
 * last scan; what others map as well is refused.
 */
#define MEMSLUICE_MIGRATE_ON_TOUCH (1U << 3)

#define MEMSLUICE_ADDRESSES_MAX (1U << 20)

struct memsluice_request_status {
	__u32 size;
	__u32 state; /* enum memsluice_request_state */
	__u64 id;
	__s32 error; /* negative errno with which it ended, 0 if none */
	__u32 reserved;
	__u64 total_pages; /* pages that will be looked at: an estimate until it has ended */
	__u64 seen_pages; /* looked at so far */
	__u64 moved_pages;
	__u64 already_there_pages;
	__u64 refused_pages[MEMSLUICE_REFUSALS_ROOM]; /* by enum memsluice_refusal */
};

enum memsluice_request_state {
	MEMSLUICE_REQUEST_RUNNING = 0,
	MEMSLUICE_REQUEST_DONE = 1,
	MEMSLUICE_REQUEST_CANCELLED = 2,
	MEMSLUICE_REQUEST_FAILED = 3,
};

struct memsluice_migrate {
	__u32 size;
	__u32 kind; /* enum memsluice_migrate_kind */
	__u32 flags; /* MEMSLUICE_MIGRATE_* */
	__s32 pidfd; /* RANGE, ADDRESSES; otherwise -1 */
	__u64 cgroup_id; /* TENANT_NODE, TENANT_PLACED; otherwise 0 */
	__s32 source_node; /* TENANT_NODE; TENANT_PLACED: or -1, any node; otherwise -1 */
	__s32 target_node; /* TENANT_PLACED: -1 */
	__u64 address; /* RANGE: page-aligned start. ADDRESSES: pointer to __u64[count] */
	__u64 length; /* RANGE: bytes, a multiple of the page size. ADDRESSES: count */
	/*
	 * ADDRESSES: 0, or pointer to __s32[count]: the node the page is on afterwards, or
	 * -1 - refusal. Only without ASYNC.
	 */
	__u64 results;
	__u64 status; /* 0, or pointer to a struct memsluice_request_status with its size set */
	__u32 mib_per_s; /* moved, at most, to MEMSLUICE_MIB_PER_S_MAX; 0: no limit */
	__u32 reserved;
};

/*
 * Copy engines, that which copies first at index 0. ENOENT: there are no more. Counts are since the
 * engine came.
 */
#define MEMSLUICE_ENGINE_NAME_BYTES 16

struct memsluice_engine_status {
	__u32 size;
	__u32 index; /* in; everything from here on is out */
	char name[MEMSLUICE_ENGINE_NAME_BYTES]; /* NUL-terminated */
	__s32 rank;
	__u32 queues; /* none: its copies are the CPU's own */
	__u64 calls; /* batches that it copied from; all these are 0 for an engine without queues */
	__u64 bytes; /* of folios that it copied whole */
	__u64 declined; /* batches that it left to the CPU */
	__u64 failed_folios; /* that the CPU copied after the engine had failed */
	__u64 late_folios; /* of these, that the engine may have written to later */
	__u64 differing_folios; /* of these, found by comparing */
};

enum memsluice_queue_state {
	MEMSLUICE_QUEUE_UP = 0,
	MEMSLUICE_QUEUE_RESTING = 1, /* has failed; it is tested before it copies again */
	MEMSLUICE_QUEUE_STUCK = 2, /* holds descriptors that are late */
	MEMSLUICE_QUEUE_DRAINED = 3, /* by MEMSLUICE_ENGINE_DRAIN, until it passes a test */
};

/* ENOENT: no such engine, or it has no more queues. */
struct memsluice_engine_queue {
	__u32 size;
	__u32 index; /* in */
	char engine[MEMSLUICE_ENGINE_NAME_BYTES]; /* in; everything from here on is out */
	char name[MEMSLUICE_ENGINE_NAME_BYTES]; /* as its driver has it: wq0.0 */
	__s32 node; /* -1: none is known */
	__u32 state; /* enum memsluice_queue_state */
	__u32 depth; /* descriptors that it holds */
	__u32 max_batch;
	__u32 max_transfer_bytes;
	__u32 reserved;
	__u64 descriptors; /* that it was given, those of tests included */
	__u64 batches; /* of these, with a list of more */
	__u64 bytes; /* copied */
	__u64 errors; /* descriptors that failed */
	__u64 late; /* that had not ended at their deadline */
	__u64 quarantined; /* of these, that still have not: what they may write to is kept unused */
};

enum memsluice_engine_action {
	/*
	 * Copies through the queue, and compares. It copies again if it did not before.
	 * EIO: a copy failed; EBADMSG: what it copied differs; ETIMEDOUT: it did not end in time;
	 * EBUSY: the queue holds descriptors that are late; ENOMEM: no memory to copy.
	 */
	MEMSLUICE_ENGINE_TEST = 0,
	/*
	 * The queue copies no more until it passes a test. EBUSY: it does not, but something has not
	 * ended within two seconds.
	 */
	MEMSLUICE_ENGINE_DRAIN = 1,
};

/* Needs CAP_SYS_ADMIN. ENOENT: no such engine or queue. EOPNOTSUPP: the engine has no queues. */
struct memsluice_engine_act {
	__u32 size;
	__u32 action; /* enum memsluice_engine_action */
	char engine[MEMSLUICE_ENGINE_NAME_BYTES];
	char queue[MEMSLUICE_ENGINE_NAME_BYTES];
};

/* What a page frame is used for. */
enum memsluice_frame_kind {
	MEMSLUICE_FRAMES_ANON = 0, /* processes' own memory, also in the swap cache */
	MEMSLUICE_FRAMES_SHMEM = 1, /* shared memory, tmpfs */
	MEMSLUICE_FRAMES_FILE = 2, /* the rest of the page cache */
	MEMSLUICE_FRAMES_HUGETLB = 3, /* in use, or in its pool */
	MEMSLUICE_FRAMES_KERNEL = 4, /* page tables, stacks, slab, drivers, what else is in use */
	MEMSLUICE_FRAMES_POOL = 5, /* this module's, for what is to move to the node */
	MEMSLUICE_FRAMES_FREE = 6,
	MEMSLUICE_FRAMES_POISONED = 7, /* failed, and taken out of use */
	MEMSLUICE_FRAMES_RESERVED =
		8, /* since boot: the kernel's image, page frames' own data, holes */
};
#define MEMSLUICE_FRAME_KINDS 9
#define MEMSLUICE_FRAME_KINDS_ROOM 16

/*
 * What is charged to a cgroup itself, without those below it, on a node; in pages. Kernel memory is
 * charged by the object, not by the page, where it is slab: such pages are nobody's. Only what is of
 * ANON, SHMEM or FILE can be moved, and of these not what is held: pinned, or in use by I/O, which
 * shows as more references than there are mappings.
 */
struct memsluice_census_row {
	__u64 cgroup_id; /* 0: nobody is charged. It may have been removed, and leave pages */
	__u64 tenant_id; /* the nearest tenant at or above it; 0: none */
	__s32 node;
	__u32 reserved;
	__u64 pages[MEMSLUICE_FRAME_KINDS_ROOM]; /* by enum memsluice_frame_kind */
	__u64 held_pages[MEMSLUICE_FRAME_KINDS_ROOM]; /* of these */
};

/*
 * Counts the page frames of a node, or of all. Every frame is in exactly one row, as it was when it
 * was looked at, some milliseconds a GiB long. Needs CAP_SYS_ADMIN. ENODEV: no such node has memory.
 */
struct memsluice_census {
	__u32 size;
	__s32 node; /* -1: all */
	__u64 rows; /* pointer to capacity rows, in ascending order of node, then of cgroup_id */
	__u32 capacity; /* in rows */
	__u32 row_size; /* sizeof(struct memsluice_census_row) that the caller was built with */
	__u32 count; /* out: rows there are; more than capacity: the rest was left out */
	__u32 reserved;
};

/*
 * Where new pages of a tenant lie: processes' own memory, shared memory and tmpfs, by who is charged.
 * Page cache of files stays the kernel's. Policies that processes set (set_mempolicy(2), mbind(2)) go
 * before it. What is there already is not moved: MEMSLUICE_MIGRATE_TENANT_PLACED does that.
 */
#define MEMSLUICE_CHANNELS_MAX 64
#define MEMSLUICE_SPREAD_SLOTS 64
#define MEMSLUICE_GRANULE_ORDER_MAX 18
#define MEMSLUICE_GRANULE_ORDER_DEFAULT 9

struct memsluice_channel {
	__u32 node; /* with memory */
	/*
	 * Divided by what divides them all, the weights add up to MEMSLUICE_SPREAD_SLOTS at most. With
	 * 0 a channel is used, in the order given, when all those with a weight are full.
	 */
	__u32 weight;
};

/*
 * PLACEMENT_SET needs CAP_SYS_ADMIN. ENOENT: there is no such tenant; ENODEV: a node has no memory;
 * EINVAL: a node twice, or no weight; ERANGE: the weights add up to more; EBUSY: ftrace is switched off
 * (kernel.ftrace_enabled), which it cannot be while a tenant is placed. A placement ends with its
 * tenant. PLACEMENT_GET: ENODATA: the tenant has none.
 */
struct memsluice_placement {
	__u32 size;
	__u32 count; /* channels; 0: the kernel places again */
	__u64 cgroup_id;
	__u32 granule_order; /* log2 of the base pages that lie together, to GRANULE_ORDER_MAX */
	__u32 reserved;
	struct memsluice_channel channels[MEMSLUICE_CHANNELS_MAX];
	__u64 fallback_folios; /* out: that came to a channel of weight 0 */
	__u64 spilled_folios; /* out: that found all channels full, and went where the kernel chose */
};

/*
 * A channel is a node with memory that has a name. Either the node was there, and is only named; or it
 * is made of a range of physical memory that was withheld from the kernel at boot (memmap=), and can be
 * taken away again. While there is one of the latter, the module cannot be unloaded.
 */
#define MEMSLUICE_CHANNEL_NAME_BYTES 32

/* Who has brought memory blocks online. */
#define MEMSLUICE_ONLINED_BY_KERNEL (1U << 0) /* as auto_online_blocks says */
#define MEMSLUICE_ONLINED_BY_MODULE (1U << 1)
#define MEMSLUICE_ONLINED_BY_OTHERS (1U << 2) /* user space: udev */

/*
 * Needs CAP_SYS_ADMIN, as does CHANNEL_REMOVE. One of them at a time: the others wait.
 *
 * EINVAL: a name that is empty, does not end, or holds anything but letters, digits, "_", "-", ".";
 * ENOTUNIQ: another channel has the name; EEXIST: the node is a channel, or the range overlaps one;
 * ENODEV: a node to be named has no memory, or one to be made was not possible at boot, or the
 * firmware's tables name none; ENOTEMPTY: the node to be made has memory; ERANGE: the range does not
 * consist of whole memory blocks, or lies where the kernel can use none; EADDRINUSE: it is in use, as
 * memory or by a driver; EADDRNOTAVAIL: the firmware does not say that all of it is memory;
 * EOPNOTSUPP: no HOTPLUG.
 *
 * All blocks of a range come online as movable memory, whoever brings them online, or it is refused.
 * Adding goes to its end, whatever becomes of the caller.
 */
struct memsluice_channel_add {
	__u32 size;
	__s32 node; /* also out; -1, with a range: as the firmware's tables say */
	__u64 start; /* physical, in bytes */
	__u64 length; /* in bytes; 0, and start 0: the node is there */
	char name[MEMSLUICE_CHANNEL_NAME_BYTES];
	char group[MEMSLUICE_CHANNEL_NAME_BYTES]; /* whatever belongs together; may be empty */
	__u32 onlined_by; /* out: MEMSLUICE_ONLINED_BY_* */
	__u32 reserved;
};

#define MEMSLUICE_REMOVE_DEADLINE_MS_MAX 3600000U

/*
 * Forgets the name of a node; takes away what was added. Pages on it move to the other channels of
 * their tenants, else to the nearest nodes; then its blocks are taken offline, one by one. When it
 * cannot be done within the deadline, or a signal comes, those that were are brought online again:
 * then it is a channel as before, with fewer pages.
 *
 * ENOENT: no such channel; EBUSY: a tenant is placed on it; ENOSPC: its pages find no room elsewhere;
 * ETIMEDOUT: some pages stay, as pages and held_pages say; EINTR: a signal came.
 */
struct memsluice_channel_remove {
	__u32 size;
	__s32 node;
	__u32 deadline_ms; /* 1 to MEMSLUICE_REMOVE_DEADLINE_MS_MAX */
	__u32 blocks; /* everything from here on is out: that the channel has */
	__u32 kept_blocks; /* that could not be taken offline */
	__u32 lost_blocks; /* that could not be brought online again */
	__u64 moved_pages; /* by this module; the kernel moves what it left */
	__u64 tenant_id; /* EBUSY: a tenant that is placed on it */
	__u64 holder_id; /* the cgroup that is charged for most held pages; 0: none is */
	/* What is on the blocks that were kept, as in struct memsluice_census_row. */
	__u64 pages[MEMSLUICE_FRAME_KINDS_ROOM];
	__u64 held_pages[MEMSLUICE_FRAME_KINDS_ROOM];
};

enum memsluice_channel_state {
	MEMSLUICE_CHANNEL_ONLINE = 0,
	MEMSLUICE_CHANNEL_ADDING = 1,
	MEMSLUICE_CHANNEL_REMOVING = 2,
};

/* ENOENT: there are no more. */
struct memsluice_channel_status {
	__u32 size;
	__u32 index; /* in, in ascending order of nodes; everything from here on is out */
	__s32 node;
	__u32 state; /* enum memsluice_channel_state */
	char name[MEMSLUICE_CHANNEL_NAME_BYTES];
	char group[MEMSLUICE_CHANNEL_NAME_BYTES];
	__u64 start; /* of what was added */
	__u64 length; /* 0: the node was there */
	__u64 block_bytes; /* of a memory block: of what ranges have to consist */
	__u32 blocks; /* memory blocks: of the range, or online on a node that was there */
	__u32 online_blocks;
	__u32 movable_blocks; /* of these, that no kernel memory can keep */
	__u32 onlined_by; /* MEMSLUICE_ONLINED_BY_* */
	__u64 moved_pages; /* REMOVING: so far */
};

#define MEMSLUICE_IOC_VERSION _IO(MEMSLUICE_IOC_TYPE, 0x00) /* memsluice_version */
#define MEMSLUICE_IOC_TENANT_SET _IO(MEMSLUICE_IOC_TYPE, 0x10) /* memsluice_tenant_set */
#define MEMSLUICE_IOC_TENANT_CLEAR _IO(MEMSLUICE_IOC_TYPE, 0x11) /* memsluice_tenant_clear */
#define MEMSLUICE_IOC_TENANT_LIST _IO(MEMSLUICE_IOC_TYPE, 0x12) /* memsluice_tenant_list */
#define MEMSLUICE_IOC_TENANT_STATUS _IO(MEMSLUICE_IOC_TYPE, 0x13) /* memsluice_tenant_status */
#define MEMSLUICE_IOC_PLACEMENT_SET _IO(MEMSLUICE_IOC_TYPE, 0x14) /* memsluice_placement */
#define MEMSLUICE_IOC_PLACEMENT_GET _IO(MEMSLUICE_IOC_TYPE, 0x15) /* memsluice_placement */
#define MEMSLUICE_IOC_MIGRATE _IO(MEMSLUICE_IOC_TYPE, 0x20) /* memsluice_migrate */
#define MEMSLUICE_IOC_REQUEST_STATUS _IO(MEMSLUICE_IOC_TYPE, 0x21) /* memsluice_request_status */
#define MEMSLUICE_IOC_REQUEST_CANCEL _IO(MEMSLUICE_IOC_TYPE, 0x22) /* no argument */
#define MEMSLUICE_IOC_ENGINE_STATUS _IO(MEMSLUICE_IOC_TYPE, 0x30) /* memsluice_engine_status */
#define MEMSLUICE_IOC_ENGINE_QUEUE _IO(MEMSLUICE_IOC_TYPE, 0x31) /* memsluice_engine_queue */
#define MEMSLUICE_IOC_ENGINE_ACT _IO(MEMSLUICE_IOC_TYPE, 0x32) /* memsluice_engine_act */
#define MEMSLUICE_IOC_CENSUS _IO(MEMSLUICE_IOC_TYPE, 0x40) /* memsluice_census */
#define MEMSLUICE_IOC_CHANNEL_ADD _IO(MEMSLUICE_IOC_TYPE, 0x50) /* memsluice_channel_add */
#define MEMSLUICE_IOC_CHANNEL_REMOVE _IO(MEMSLUICE_IOC_TYPE, 0x51) /* memsluice_channel_remove */
#define MEMSLUICE_IOC_CHANNEL_STATUS _IO(MEMSLUICE_IOC_TYPE, 0x52) /* memsluice_channel_status */

#endif
