// SPDX-License-Identifier: GPL-2.0
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "kernel/channel/placement.h"

#include <linux/cgroup.h>
#include <linux/hash.h>
#include <linux/kallsyms.h>
#include <linux/kmemleak.h>
#include <linux/magic.h>
#include <linux/memcontrol.h>
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/sched.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "kernel/compat/hook.h"
#include "kernel/compat/memory_tiers.h"
#include "kernel/compat/symbols.h"
#include "kernel/tenant/tenant.h"

/*
 * The kernel's allocators are given arguments that mean what the tenant's placement says: a policy of
 * ours where they would have used the default. Nothing is replaced, and none of our code sleeps
 * below an allocation.
 *
 *	get_vma_policy()		processes' own memory: another mapping, with our policy
 *	shmem_alloc_and_add_folio()	shared memory: only noted, who is charged and the index
 *	folio_alloc_mpol_noprof()	... and here another policy
 */

/* Free pages that a node keeps above its low watermark, so that nobody is woken to reclaim. */
#define ROOM_PAGES 64
#define NOTES_BITS 10

/*
 * Prefers one node. Who allocates may sleep with the policy at hand, and look at it afterwards, for
 * as long as he likes: these are never freed, not when the module goes either.
 */
struct stand_in {
	struct mempolicy policy;
	struct vm_area_struct vma; /* only its policy and its operations are looked at */
};

/*
 * What a task is about to allocate for shared memory. Two tasks that meet at one place may take each
 * other's note: then a page lies elsewhere, and nothing worse.
 */
struct note {
	struct task_struct *task;
	unsigned long at; /* in jiffies: what is older was for an allocation that has ended */
	u64 tenant_id; /* of who is charged; 0: no tenant is */
	u64 index;
};

static DEFINE_MUTEX(lock); /* what is hooked, and withdrawn */
static bool hooked;
static nodemask_t withdrawn;
static struct stand_in *stand_ins; /* by node */

/* The policies that mean: none has been set. */
static const struct mempolicy *preferred_node_policy; /* by node */
static const struct mempolicy *default_policy;
/* Where the policy has been asked for already. */
static unsigned long vma_alloc_begin, vma_alloc_end;

static struct note notes[1 << NOTES_BITS];

static struct note *note_of_current(void)
{
	return &notes[hash_ptr(current, NOTES_BITS)];
}

static bool is_default(const struct mempolicy *policy)
{
	return policy == default_policy ||
	       (policy >= preferred_node_policy && policy < preferred_node_policy + MAX_NUMNODES);
}

static bool has_room(int nid, unsigned int order)
{
	pg_data_t *node = NODE_DATA(nid);
	int i;

	for (i = MAX_NR_ZONES - 1; node && i >= 0; i--) {
		struct zone *zone = &node->node_zones[i];

		if (populated_zone(zone) &&
		    zone_page_state(zone, NR_FREE_PAGES) >
			    low_wmark_pages(zone) + (1UL << order) + ROOM_PAGES)
			return true;
	}
	return false;
}

/* Return: the node for a page; NUMA_NO_NODE: all channels are full. */
static int choose(struct memsluice_placed *placed, u64 index, unsigned int order)
{
	const struct memsluice_spread *spread = &placed->spread;
	int nid = memsluice_spread_node(spread, index >> max(placed->granule_order, order));
	u32 i;

	if (likely(has_room(nid, order)))
		return nid;
	for (i = 0; i < spread->nodes + spread->fallbacks; i++) {
		nid = spread->node[i];
		if (!has_room(nid, order))
			continue;
		if (i >= spread->nodes)
			atomic64_inc(&placed->fallback_folios);
		return nid;
	}
	atomic64_inc(&placed->spilled_folios);
	return NUMA_NO_NODE;
}

static bool is_channel(const struct memsluice_spread *spread, int nid)
{
	u32 i;

	for (i = 0; i < spread->nodes; i++) {
		if (spread->node[i] == nid)
			return true;
	}
	return false;
}

int memsluice_placement_target(const struct memsluice_placed *placed, u64 index, unsigned int order,
			       int nid)
{
	const struct memsluice_spread *spread = &placed->spread;
	int wanted = memsluice_spread_node(spread, index >> max(placed->granule_order, order));
	u32 i;

	if (wanted == nid || has_room(wanted, order))
		return wanted;
	if (is_channel(spread, nid))
		return -1 - MEMSLUICE_REFUSED_NO_MEMORY;
	for (i = 0; i < spread->nodes + spread->fallbacks; i++) {
		if (spread->node[i] == nid || has_room(spread->node[i], order))
			return spread->node[i];
	}
	return -1 - MEMSLUICE_REFUSED_NO_MEMORY;
}

int memsluice_placement_may_move(const struct vm_area_struct *vma, int target)
{
	struct task_struct *owner;
	nodemask_t allowed;
	int refusal = 0;

	if (vma->vm_policy)
		return -1 - MEMSLUICE_REFUSED_POLICY;
	rcu_read_lock();
	owner = rcu_dereference(vma->vm_mm->owner);
	if (owner) {
		memsluice_allowed_nodes(owner, &allowed);
		if (READ_ONCE(owner->mempolicy))
			refusal = -1 - MEMSLUICE_REFUSED_POLICY;
		else if (!node_isset(target, allowed))
			refusal = -1 - MEMSLUICE_REFUSED_NOT_ALLOWED;
	}
	rcu_read_unlock();
	return refusal;
}

/* The tenant that is charged for what @mm gets, or NULL. */
static struct memsluice_tenant *tenant_of(struct mm_struct *mm)
{
	struct task_struct *owner = mm ? rcu_dereference(mm->owner) : NULL;

	if (!owner)
		return NULL;
	return memsluice_tenant_peek(task_css_check(owner, memory_cgrp_id, true)->cgroup);
}

/* Return: the node for a page of a tenant; NUMA_NO_NODE: it is not for us to say. */
static int place(const struct memsluice_tenant *tenant, u64 index, unsigned int order)
{
	struct memsluice_placed *placed = tenant ? rcu_dereference(tenant->placed) : NULL;

	return placed ? choose(placed, index, order) : NUMA_NO_NODE;
}

/* Inodes begin at different places, or their first pages would all lie on one channel. */
static u64 index_in(const struct inode *inode, u64 index)
{
	return index + ((u64)inode->i_ino << MEMSLUICE_GRANULE_ORDER_DEFAULT);
}

/* Return: false when a process has set a policy for some of it, or it is not ours to place. */
static bool is_placed_file(const struct inode *inode)
{
	return inode->i_sb->s_magic == TMPFS_MAGIC &&
	       RB_EMPTY_ROOT(&SHMEM_I((struct inode *)inode)->policy.root);
}

int memsluice_placement_index(struct folio *folio, u64 *index)
{
	const struct address_space *mapping = folio->mapping;

	if (folio_test_ksm(folio))
		return -1 - MEMSLUICE_REFUSED_UNMOVABLE;
	*index = folio->index;
	if (folio_test_anon(folio))
		return 0;
	/* Shared memory that is being written to swap has none. */
	if (!mapping)
		return -1 - MEMSLUICE_REFUSED_BUSY;
	if (!is_placed_file(mapping->host))
		return -1 - MEMSLUICE_REFUSED_POLICY;
	*index = index_in(mapping->host, folio->index);
	return 0;
}

/* Return: false when somebody has set a policy for these pages, or they are not ours to place. */
static bool index_of(const struct vm_area_struct *vma, unsigned long address, u64 *index)
{
	const struct inode *inode;

	if (vma->vm_policy || (current->mempolicy && current->mm == vma->vm_mm))
		return false;
	*index = vma->vm_pgoff + ((address - vma->vm_start) >> PAGE_SHIFT);
	if (!vma->vm_ops || !vma->vm_ops->get_policy)
		return true;
	inode = vma->vm_file ? file_inode(vma->vm_file) : NULL;
	if (!inode || !is_placed_file(inode))
		return false;
	/* What a private mapping allocates is anonymous, and knows no inode. */
	if (vma->vm_flags & VM_SHARED)
		*index = index_in(inode, *index);
	return true;
}

static void notrace on_get_vma_policy(unsigned long address, unsigned long caller,
				      struct ftrace_ops *ops, struct ftrace_regs *registers)
{
	const struct vm_area_struct *vma = (void *)ftrace_regs_get_argument(registers, 0);
	int nid;
	u64 index;

	if (!index_of(vma, ftrace_regs_get_argument(registers, 1), &index))
		return;
	rcu_read_lock();
	nid = place(tenant_of(vma->vm_mm), index, ftrace_regs_get_argument(registers, 2));
	rcu_read_unlock();
	if (nid != NUMA_NO_NODE)
		memsluice_set_argument(registers, 0, &stand_ins[nid].vma);
}

static void notrace on_shmem_alloc(unsigned long address, unsigned long caller,
				   struct ftrace_ops *ops, struct ftrace_regs *registers)
{
	const struct inode *inode = (void *)ftrace_regs_get_argument(registers, 2);
	struct mm_struct *mm = (void *)ftrace_regs_get_argument(registers, 4);
	struct note *note = note_of_current();
	const struct memsluice_tenant *tenant;

	rcu_read_lock();
	tenant = tenant_of(mm ?: current->mm);
	note->tenant_id = tenant ? tenant->cgroup_id : 0;
	rcu_read_unlock();
	note->at = jiffies;
	note->index = index_in(inode, ftrace_regs_get_argument(registers, 3));
	WRITE_ONCE(note->task, current);
}

static void notrace on_folio_alloc(unsigned long address, unsigned long caller,
				   struct ftrace_ops *ops, struct ftrace_regs *registers)
{
	unsigned int order = ftrace_regs_get_argument(registers, 1);
	const struct memsluice_tenant *tenant;
	struct note *note = note_of_current();
	u64 index;
	int nid;

	if (caller >= vma_alloc_begin && caller < vma_alloc_end)
		return;
	if (!is_default((void *)ftrace_regs_get_argument(registers, 2)))
		return;
	rcu_read_lock();
	if (READ_ONCE(note->task) == current && jiffies - note->at < 2) {
		/* What is too large to be found may be tried smaller, with the same note. */
		tenant = memsluice_tenant_peek_id(note->tenant_id);
		index = note->index;
		if (!order)
			WRITE_ONCE(note->task, NULL);
	} else {
		/* It is read from swap, or put there by userfaultfd. */
		tenant = tenant_of(current->mm);
		index = ftrace_regs_get_argument(registers, 3);
	}
	nid = place(tenant, index, order);
	rcu_read_unlock();
	if (nid != NUMA_NO_NODE)
		memsluice_set_argument(registers, 2, &stand_ins[nid].policy);
}

/* Permanent: kernel.ftrace_enabled=0 is refused, rather than that placement ends unseen. */
#define HOOK(handler)                                                                              \
	{                                                                                          \
		.func = handler, .flags = FTRACE_OPS_FL_PERMANENT                                  \
	}

static struct {
	const char *name;
	struct ftrace_ops ops;
} hooks[] = {
	{ "get_vma_policy", HOOK(on_get_vma_policy) },
	{ "folio_alloc_mpol_noprof", HOOK(on_folio_alloc) },
	{ "shmem_alloc_and_add_folio", HOOK(on_shmem_alloc) },
};

static unsigned long address_of(int hook)
{
	return (unsigned long)memsluice_symbol_address(hooks[hook].name);
}

static void unhook(int count)
{
	while (count--)
		memsluice_unhook(&hooks[count].ops, address_of(count));
}

static int hook(void)
{
	int i, err = 0;

	for (i = 0; i < ARRAY_SIZE(hooks) && !err; i++)
		err = memsluice_hook(&hooks[i].ops, address_of(i));
	if (!err)
		return 0;
	i--;
	pr_err("%s() cannot be hooked (%d)%s: nothing is placed\n", hooks[i].name, err,
	       err == -EBUSY ? ", kernel.ftrace_enabled may be 0" : "");
	unhook(i);
	return err;
}

static int make_stand_ins(void)
{
	int nid;

	if (stand_ins)
		return 0;
	stand_ins = kvcalloc(nr_node_ids, sizeof(*stand_ins), GFP_KERNEL);
	if (!stand_ins)
		return -ENOMEM;
	kmemleak_not_leak(stand_ins);
	for (nid = 0; nid < nr_node_ids; nid++) {
		struct mempolicy *policy = &stand_ins[nid].policy;

		atomic_set(&policy->refcnt, 1);
		policy->mode = MPOL_PREFERRED;
		policy->flags =
			MPOL_F_MOF; /* NUMA balancing moves to this node what lies elsewhere */
		policy->nodes = nodemask_of_node(nid);
		policy->home_node = NUMA_NO_NODE;
		stand_ins[nid].vma.vm_policy = policy;
	}
	return 0;
}

/* Where vma_alloc_folio() begins and ends: "vma_alloc_folio_noprof+0x0/0x1a0". */
static int find_vma_alloc(void)
{
	char name[KSYM_SYMBOL_LEN];
	unsigned long size;
	const char *slash;

	vma_alloc_begin = (unsigned long)vma_alloc_folio_noprof;
	sprint_symbol(name, vma_alloc_begin);
	slash = strchr(name, '/');
	if (!slash)
		return -EOPNOTSUPP;
	/* The name of a module may follow. */
	if (sscanf(slash, "/%lx", &size) != 1)
		return -EOPNOTSUPP;
	vma_alloc_end = vma_alloc_begin + size;
	return 0;
}

static int start(void)
{
	int err;

	lockdep_assert_held(&lock);
	if (hooked)
		return 0;
	if (!MEMSLUICE_CAN_SET_ARGUMENTS)
		return -EOPNOTSUPP;
	default_policy = (void *)memsluice_data_address("default_policy");
	preferred_node_policy = (void *)memsluice_data_address("preferred_node_policy");
	if (!default_policy || !preferred_node_policy)
		return -EOPNOTSUPP;
	err = find_vma_alloc() ?: make_stand_ins() ?: hook();
	hooked = !err;
	return err;
}

static void stop(void)
{
	lockdep_assert_held(&lock);
	if (hooked)
		unhook(ARRAY_SIZE(hooks));
	hooked = false;
}

static bool any_is_placed(void)
{
	struct memsluice_tenant *tenant;
	bool placed = false;
	u64 id = 0;

	while (!placed && (tenant = memsluice_tenant_next(id))) {
		id = tenant->cgroup_id;
		placed = rcu_access_pointer(tenant->placed);
		memsluice_tenant_put(tenant);
	}
	return placed;
}

static bool names(const struct memsluice_placement *placement, const nodemask_t *nodes)
{
	bool found = false;
	u32 i;

	for (i = 0; i < placement->count; i++)
		found |= node_isset(placement->channels[i].node, *nodes);
	return found;
}

static bool is_placed_on(struct memsluice_tenant *tenant, int nid)
{
	const struct memsluice_placed *placed;
	bool found = false;
	u32 i;

	rcu_read_lock();
	placed = rcu_dereference(tenant->placed);
	for (i = 0; placed && i < placed->count; i++)
		found |= placed->channels[i].node == nid;
	rcu_read_unlock();
	return found;
}

int memsluice_placement_withdraw(int nid, u64 *tenant_id)
{
	struct memsluice_tenant *tenant;
	bool placed = false;
	u64 id = 0;

	mutex_lock(&lock);
	while (!placed && (tenant = memsluice_tenant_next(id))) {
		id = tenant->cgroup_id;
		placed = is_placed_on(tenant, nid);
		memsluice_tenant_put(tenant);
	}
	if (placed)
		*tenant_id = id;
	else
		node_set(nid, withdrawn);
	mutex_unlock(&lock);
	return placed ? -EBUSY : 0;
}

void memsluice_placement_offer(int nid)
{
	mutex_lock(&lock);
	node_clear(nid, withdrawn);
	mutex_unlock(&lock);
}

static struct memsluice_placed *make(const struct memsluice_placement *placement)
{
	struct memsluice_placed *placed;
	int err;

	placed = kzalloc(sizeof(*placed), GFP_KERNEL);
	if (!placed)
		return ERR_PTR(-ENOMEM);
	placed->granule_order = placement->granule_order;
	placed->count = placement->count;
	memcpy(placed->channels, placement->channels, sizeof(placed->channels));
	err = memsluice_spread_make(&placed->spread, placed->channels, placed->count);
	if (err) {
		kfree(placed);
		return ERR_PTR(err);
	}
	return placed;
}

int memsluice_placement_set(const struct memsluice_placement *placement)
{
	struct memsluice_placed *placed = NULL;
	struct memsluice_tenant *tenant;
	int err = 0;

	if (placement->count) {
		placed = make(placement);
		if (IS_ERR(placed))
			return PTR_ERR(placed);
	}
	mutex_lock(&lock);
	tenant = memsluice_tenant_get(placement->cgroup_id);
	if (!tenant)
		err = -ENOENT;
	else if (names(placement, &withdrawn))
		err = -ENODEV;
	else if (placed)
		err = start();
	if (!err)
		placed = memsluice_tenant_place(tenant, placed);
	if (tenant)
		memsluice_tenant_put(tenant);
	if (!any_is_placed())
		stop();
	mutex_unlock(&lock);
	/* The one before, or the one that could not be set. */
	if (placed)
		kfree_rcu(placed, rcu);
	return err;
}

int memsluice_placement_get(struct memsluice_placement *placement)
{
	struct memsluice_tenant *tenant = memsluice_tenant_get(placement->cgroup_id);
	struct memsluice_placed *placed;

	if (!tenant)
		return -ENOENT;
	rcu_read_lock();
	placed = rcu_dereference(tenant->placed);
	if (placed) {
		placement->count = placed->count;
		placement->granule_order = placed->granule_order;
		memcpy(placement->channels, placed->channels, sizeof(placement->channels));
		placement->fallback_folios = atomic64_read(&placed->fallback_folios);
		placement->spilled_folios = atomic64_read(&placed->spilled_folios);
	}
	rcu_read_unlock();
	memsluice_tenant_put(tenant);
	return placed ? 0 : -ENODATA;
}

static void unhook_if_needless(struct work_struct *unused)
{
	mutex_lock(&lock);
	if (!any_is_placed())
		stop();
	mutex_unlock(&lock);
}

static DECLARE_WORK(needless_work, unhook_if_needless);

void memsluice_placement_tenant_ended(void)
{
	schedule_work(&needless_work);
}

void memsluice_placement_stop(void)
{
	cancel_work_sync(&needless_work);
	mutex_lock(&lock);
	stop();
	mutex_unlock(&lock);
}
