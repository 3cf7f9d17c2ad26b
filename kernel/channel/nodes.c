// SPDX-License-Identifier: GPL-2.0
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "kernel/channel/nodes.h"

#include <linux/ctype.h>
#include <linux/list.h>
#include <linux/memory.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/numa.h>
#include <linux/slab.h>

#include "kernel/channel/blocks.h"
#include "kernel/channel/census.h"
#include "kernel/channel/evacuate.h"
#include "kernel/channel/job.h"
#include "kernel/channel/placement.h"
#include "kernel/compat/memory_tiers.h"
#include "kernel/compat/symbols.h"
#include "kernel/migrate/destinations.h"

#define ATTEMPT_MS 3000 /* for a block; then others are tried */
#define PAUSE_MS 100 /* before what stayed is tried again */
#define GIVE_UP_MS 10000 /* to take away what could not be brought online */

struct channel {
	struct list_head link;
	int nid;
	u64 start;
	u64 length; /* 0: the node was there */
	u32 onlined_by;
	enum memsluice_channel_state state;
	char name[MEMSLUICE_CHANNEL_NAME_BYTES];
	char group[MEMSLUICE_CHANNEL_NAME_BYTES];
	u64 moved_pages;
};

/* Serializes what changes channels. Held while memory comes and goes. */
static DEFINE_MUTEX(change);
/* The list. Changed with @change held, too; nothing sleeps under it: memory notifiers take it. */
static DEFINE_SPINLOCK(channels_lock);
static LIST_HEAD(channels); /* in ascending order of nodes */

static bool is_word(const char *text, bool may_be_empty)
{
	size_t length = strnlen(text, MEMSLUICE_CHANNEL_NAME_BYTES);
	size_t i;

	if (length == MEMSLUICE_CHANNEL_NAME_BYTES || (!length && !may_be_empty))
		return false;
	for (i = 0; i < length; i++) {
		if (!isascii(text[i]) || !(isalnum(text[i]) || strchr("_-.", text[i])))
			return false;
	}
	return true;
}

static struct channel *find(int nid)
{
	struct channel *channel;

	lockdep_assert_held(&change);
	list_for_each_entry(channel, &channels, link) {
		if (channel->nid == nid)
			return channel;
	}
	return NULL;
}

/* Return: 0; -EEXIST or -ENOTUNIQ when it is like a channel that is there. */
static int check_others(const struct memsluice_channel_add *add)
{
	struct channel *channel;

	lockdep_assert_held(&change);
	list_for_each_entry(channel, &channels, link) {
		if (channel->nid == add->node || (add->start < channel->start + channel->length &&
						  channel->start < add->start + add->length))
			return -EEXIST;
		if (!strcmp(channel->name, add->name))
			return -ENOTUNIQ;
	}
	return 0;
}

static int check_range(struct memsluice_channel_add *add)
{
	int err = check_others(add) ?: memsluice_blocks_check(add->start, add->length);
	if (err)
		return err;
	if (add->node == NUMA_NO_NODE)
		add->node = phys_to_target_node(add->start);
	if (add->node < 0 || add->node >= MAX_NUMNODES || !node_possible(add->node))
		return -ENODEV;
	/* Now that it is known. */
	err = check_others(add);
	if (err)
		return err;
	return node_state(add->node, N_MEMORY) ? -ENOTEMPTY : 0;
}

static int check_node(const struct memsluice_channel_add *add)
{
	if (add->node < 0 || add->node >= MAX_NUMNODES || !node_state(add->node, N_MEMORY))
		return -ENODEV;
	return check_others(add);
}

static void insert(struct channel *channel)
{
	struct channel *next;

	spin_lock(&channels_lock);
	list_for_each_entry(next, &channels, link) {
		if (next->nid > channel->nid)
			break;
	}
	list_add_tail(&channel->link, &next->link);
	spin_unlock(&channels_lock);
}

static void forget(struct channel *channel)
{
	spin_lock(&channels_lock);
	list_del(&channel->link);
	spin_unlock(&channels_lock);
	kfree(channel);
}

struct adding {
	struct memsluice_job job;
	struct channel *channel;
	bool stays; /* what has failed could not be undone */
};

static int add_memory_of(struct memsluice_job *job)
{
	struct adding *adding = container_of(job, struct adding, job);
	struct channel *channel = adding->channel;
	int err;

	err = memsluice_blocks_add(channel->nid, channel->start, channel->length);
	if (err)
		return err;
	err = memsluice_blocks_online(channel->start, channel->length, &channel->onlined_by);
	if (!err)
		return 0;
	memsluice_job_interrupt_after(job, GIVE_UP_MS);
	adding->stays = memsluice_blocks_remove(channel->start, channel->length);
	return err;
}

static int run_adding(struct channel *channel)
{
	struct adding *adding = kzalloc(sizeof(*adding), GFP_KERNEL);
	int err;

	if (!adding)
		return -ENOMEM;
	adding->job.run = add_memory_of;
	adding->channel = channel;
	err = memsluice_job_run(&adding->job, 0);
	if (adding->stays)
		pr_err("%s [%#llx-%#llx] comes online only in part (%d), and does not go\n",
		       channel->name, channel->start, channel->start + channel->length - 1, err);
	if (!err || adding->stays) {
		channel->state = MEMSLUICE_CHANNEL_ONLINE;
		/* The kernel would go on to use what we know, and have named. */
		__module_get(THIS_MODULE);
	} else {
		forget(channel);
	}
	kfree(adding);
	return err;
}

static int add_checked(struct memsluice_channel_add *add)
{
	struct channel *channel = kzalloc(sizeof(*channel), GFP_KERNEL_ACCOUNT);
	int err = 0;

	if (!channel)
		return -ENOMEM;
	channel->nid = add->node;
	channel->start = add->start;
	channel->length = add->length;
	memcpy(channel->name, add->name, sizeof(channel->name));
	memcpy(channel->group, add->group, sizeof(channel->group));
	if (add->length)
		channel->state = MEMSLUICE_CHANNEL_ADDING;
	/* Before there is any memory: from here on its blocks come online where they shall. */
	insert(channel);
	if (add->length) {
		err = run_adding(channel);
		add->onlined_by = err ? 0 : channel->onlined_by;
	}
	return err;
}

int memsluice_channel_add(struct memsluice_channel_add *add)
{
	int err;

	if (add->reserved || !is_word(add->name, false) || !is_word(add->group, true))
		return -EINVAL;
	err = mutex_lock_interruptible(&change);
	if (err)
		return err;
	err = add->start || add->length ? check_range(add) : check_node(add);
	if (!err)
		err = add_checked(add);
	mutex_unlock(&change);
	return err;
}

struct removal {
	struct memsluice_job job;
	struct channel *channel;
	struct memsluice_channel_remove *remove;
};

/* Adds what is in a census to @remove. Return: whether something is held that should move. */
static bool sum_up(const struct memsluice_census_table *table,
		   struct memsluice_channel_remove *remove)
{
	struct memsluice_census_entry *entry;
	u64 held, most = 0, all = 0;
	int kind;

	list_for_each_entry(entry, &table->entries, link) {
		held = 0;
		for (kind = 0; kind < MEMSLUICE_FRAME_KINDS; kind++) {
			remove->pages[kind] += entry->row.pages[kind];
			remove->held_pages[kind] += entry->row.held_pages[kind];
			held += entry->row.held_pages[kind];
		}
		all += held;
		if (held > most) {
			most = held;
			remove->holder_id = entry->row.cgroup_id;
		}
	}
	return all;
}

static unsigned long in_use(const struct memsluice_channel_remove *remove)
{
	unsigned long pages = 0;
	int kind;

	for (kind = 0; kind < MEMSLUICE_FRAME_KINDS; kind++) {
		if (kind != MEMSLUICE_FRAMES_FREE)
			pages += remove->pages[kind];
	}
	return pages;
}

/*
 * Whether it makes sense to try to take a block offline: the kernel would try for ever what cannot be
 * moved, or finds no room.
 */
static bool may_go(const struct channel *channel, u64 start)
{
	struct memsluice_census_table table;
	struct memsluice_channel_remove *on_block;
	bool may = false;

	on_block = kzalloc(sizeof(*on_block), GFP_KERNEL);
	if (!on_block)
		return false;
	if (!memsluice_census_take_frames(channel->nid, PHYS_PFN(start),
					  PHYS_PFN(start + memory_block_size_bytes()), &table) &&
	    !sum_up(&table, on_block))
		may = in_use(on_block) < memsluice_room_elsewhere(channel->nid);
	memsluice_census_free(&table);
	kfree(on_block);
	return may;
}

/* Return: how many blocks are still online. */
static u32 offline_what_goes(struct removal *removal)
{
	struct channel *channel = removal->channel;
	struct memsluice_job *job = &removal->job;
	u64 at, end = channel->start + channel->length;

	for (at = channel->start; at < end && !memsluice_job_stopped(job);
	     at += memory_block_size_bytes()) {
		if (!memsluice_block_is_online(at) || !may_go(channel, at))
			continue;
		memsluice_job_interrupt_after(job, ATTEMPT_MS);
		(void)memsluice_block_offline(at);
		memsluice_job_calm(job);
	}
	return memsluice_blocks_count(NUMA_NO_NODE, channel->start, end).online;
}

static int offline_all(struct removal *removal)
{
	struct channel *channel = removal->channel;
	struct memsluice_job *job = &removal->job;
	int err;

	while (!(err = memsluice_job_stopped(job))) {
		memsluice_job_interrupt_after(job, removal->remove->deadline_ms);
		memsluice_evacuate(channel->nid, &channel->moved_pages);
		memsluice_job_calm(job);
		if (!offline_what_goes(removal))
			return 0;
		schedule_timeout_interruptible(msecs_to_jiffies(PAUSE_MS));
	}
	return err;
}

/* What stays, before those that went come back. */
static void report(struct removal *removal)
{
	struct memsluice_channel_remove *remove = removal->remove;
	struct channel *channel = removal->channel;
	struct memsluice_census_table table;

	remove->kept_blocks = memsluice_blocks_count(NUMA_NO_NODE, channel->start,
						     channel->start + channel->length)
				      .online;
	if (!memsluice_census_take(channel->nid, &table))
		sum_up(&table, remove);
	memsluice_census_free(&table);
}

static void bring_back(struct removal *removal)
{
	struct channel *channel = removal->channel;
	u64 at;

	for (at = channel->start; at < channel->start + channel->length;
	     at += memory_block_size_bytes()) {
		if (!memsluice_block_is_online(at) && memsluice_block_online(at))
			removal->remove->lost_blocks++;
	}
}

/* Return: 0; -ENOSPC when what is on the channel would find no room elsewhere. */
static int check_room(struct removal *removal)
{
	struct memsluice_channel_remove *remove = removal->remove;
	int nid = removal->channel->nid;

	report(removal);
	if (in_use(remove) >= memsluice_room_elsewhere(nid))
		return -ENOSPC;
	/* It is counted again if something stays. */
	memset(remove->pages, 0, sizeof(remove->pages));
	memset(remove->held_pages, 0, sizeof(remove->held_pages));
	remove->kept_blocks = 0;
	remove->holder_id = 0;
	return 0;
}

static int remove_memory_of(struct memsluice_job *job)
{
	struct removal *removal = container_of(job, struct removal, job);
	struct channel *channel = removal->channel;
	int err;

	err = check_room(removal);
	if (err)
		return err;
	memsluice_destinations_close(channel->nid);
	err = offline_all(removal);
	if (!err) {
		/* Somebody may have brought blocks online again. */
		memsluice_job_interrupt_after(job, ATTEMPT_MS);
		err = memsluice_blocks_remove(channel->start, channel->length);
	}
	memsluice_job_calm(job);
	if (err) {
		report(removal);
		bring_back(removal);
	}
	memsluice_destinations_open(channel->nid);
	return err;
}

static int run_removal(struct channel *channel, struct memsluice_channel_remove *remove)
{
	struct removal *removal = kzalloc(sizeof(*removal), GFP_KERNEL);
	int err;

	if (!removal)
		return -ENOMEM;
	removal->job.run = remove_memory_of;
	removal->channel = channel;
	removal->remove = remove;
	channel->moved_pages = 0;
	WRITE_ONCE(channel->state, MEMSLUICE_CHANNEL_REMOVING);
	err = memsluice_job_run(&removal->job, remove->deadline_ms);
	WRITE_ONCE(channel->state, MEMSLUICE_CHANNEL_ONLINE);
	remove->moved_pages = channel->moved_pages;
	kfree(removal);
	return err;
}

static int remove_added(struct channel *channel, struct memsluice_channel_remove *remove)
{
	int err;

	remove->blocks = channel->length / memory_block_size_bytes();
	err = memsluice_placement_withdraw(channel->nid, &remove->tenant_id);
	if (err)
		return err;
	err = run_removal(channel, remove);
	memsluice_placement_offer(channel->nid);
	if (err)
		return err;
	forget(channel);
	module_put(THIS_MODULE);
	return 0;
}

int memsluice_channel_remove(struct memsluice_channel_remove *remove)
{
	struct channel *channel;
	int err;

	if (!remove->deadline_ms || remove->deadline_ms > MEMSLUICE_REMOVE_DEADLINE_MS_MAX)
		return -EINVAL;
	err = mutex_lock_interruptible(&change);
	if (err)
		return err;
	channel = find(remove->node);
	if (!channel)
		err = -ENOENT;
	else if (channel->length)
		err = remove_added(channel, remove);
	else
		forget(channel);
	mutex_unlock(&change);
	return err;
}

static void show(const struct channel *channel, struct memsluice_channel_status *status)
{
	lockdep_assert_held(&channels_lock);
	status->node = channel->nid;
	status->state = READ_ONCE(channel->state);
	memcpy(status->name, channel->name, sizeof(status->name));
	memcpy(status->group, channel->group, sizeof(status->group));
	status->start = channel->start;
	status->length = channel->length;
	status->onlined_by = channel->onlined_by;
	status->moved_pages = READ_ONCE(channel->moved_pages);
}

static bool show_nth(struct memsluice_channel_status *status)
{
	struct channel *channel;
	bool found = false;
	u32 i = 0;

	spin_lock(&channels_lock);
	list_for_each_entry(channel, &channels, link) {
		found = i++ == status->index;
		if (found) {
			show(channel, status);
			break;
		}
	}
	spin_unlock(&channels_lock);
	return found;
}

int memsluice_channel_status(struct memsluice_channel_status *status)
{
	struct memsluice_blocks blocks;
	u64 start, end;

	if (!show_nth(status))
		return -ENOENT;
	status->block_bytes = memory_block_size_bytes();
	start = status->start;
	end = status->start + status->length;
	if (!status->length) {
		start = ALIGN_DOWN(PFN_PHYS(node_start_pfn(status->node)), status->block_bytes);
		end = PFN_PHYS(node_end_pfn(status->node));
	}
	blocks = memsluice_blocks_count(status->node, start, end);
	status->online_blocks = blocks.online;
	status->movable_blocks = blocks.movable;
	status->blocks = status->length ? status->length / status->block_bytes : blocks.online;
	return 0;
}

static bool is_added(u64 start)
{
	struct channel *channel;
	bool added = false;

	spin_lock(&channels_lock);
	list_for_each_entry(channel, &channels, link)
		added |= start >= channel->start && start < channel->start + channel->length;
	spin_unlock(&channels_lock);
	return added;
}

/* Kernel memory would keep a block for ever: nobody brings one online for it. */
static int memory_changes(struct notifier_block *unused, unsigned long action, void *data)
{
	const struct memory_notify *memory = data;

	if (action != MEM_GOING_ONLINE || !is_added(PFN_PHYS(memory->start_pfn)) ||
	    page_zonenum(pfn_to_page(memory->start_pfn)) == ZONE_MOVABLE)
		return NOTIFY_OK;
	return notifier_from_errno(-EPERM);
}

static struct notifier_block memory_notifier = { .notifier_call = memory_changes };

int memsluice_channels_start(void)
{
	return register_memory_notifier(&memory_notifier);
}

void memsluice_channels_stop(void)
{
	struct channel *channel, *next;

	unregister_memory_notifier(&memory_notifier);
	list_for_each_entry_safe(channel, next, &channels, link)
		forget(channel);
}
