// SPDX-License-Identifier: GPL-2.0
#include "kernel/channel/census.h"

#include <linux/cgroup.h>
#include <linux/hugetlb.h>
#include <linux/memcontrol.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "kernel/compat/symbols.h"
#include "kernel/migrate/destinations.h"
#include "kernel/tenant/tenant.h"

/* In the low bits of a folio's mapping: it is something else. */
#define MAPPING_FLAGS 3UL

struct charge {
	u64 cgroup_id; /* 0: nobody is charged */
	u64 tenant_id;
};

struct census {
	int nid;
	struct xarray rows; /* of this node, by cgroup id */
	struct memsluice_census_row *last; /* frames of one cgroup often lie together */
};

/* What is known of frames that follow each other. */
struct frames {
	unsigned long pages;
	enum memsluice_frame_kind kind;
	bool held;
	struct charge charge;
};

/*
 * The pages of a folio, or a guess: without a reference it may be freed and become another. All are
 * aligned to their size.
 */
static unsigned long pages_of(const struct folio *folio, unsigned long pfn)
{
	unsigned long pages = folio_nr_pages(folio);

	return pages <= (PUD_SIZE >> PAGE_SHIFT) && IS_ALIGNED(pfn, pages) ? pages : 1;
}

static unsigned long free_pages_at(const struct page *page, unsigned long pfn)
{
	unsigned long order = READ_ONCE(page_private(page));

	/* It may have been allocated since. */
	return order <= MAX_PAGE_ORDER && IS_ALIGNED(pfn, 1UL << order) ? 1UL << order : 1;
}

static enum memsluice_frame_kind kind_of(const struct folio *folio)
{
	unsigned long mapping = (unsigned long)READ_ONCE(folio->mapping);

	if (folio_test_hugetlb(folio))
		return MEMSLUICE_FRAMES_HUGETLB;
	if (page_has_type(&folio->page))
		return MEMSLUICE_FRAMES_KERNEL;
	if (memsluice_destination_is_pooled(folio))
		return MEMSLUICE_FRAMES_POOL;
	if (!folio_ref_count(folio))
		return MEMSLUICE_FRAMES_FREE;
	if (folio_test_anon(folio))
		return MEMSLUICE_FRAMES_ANON;
	/* Drivers' movable pages have a mapping that is none. */
	if (!mapping || mapping & MAPPING_FLAGS)
		return MEMSLUICE_FRAMES_KERNEL;
	return folio_test_swapbacked(folio) ? MEMSLUICE_FRAMES_SHMEM : MEMSLUICE_FRAMES_FILE;
}

static bool is_of_processes(enum memsluice_frame_kind kind)
{
	return kind == MEMSLUICE_FRAMES_ANON || kind == MEMSLUICE_FRAMES_SHMEM ||
	       kind == MEMSLUICE_FRAMES_FILE;
}

/* @last: what was found for the frames before. A cgroup that has been removed is known, too. */
static struct charge charge_of(struct folio *folio, const struct charge *last)
{
	const struct memsluice_tenant *tenant;
	struct mem_cgroup *memcg;
	struct charge charge = {};

	rcu_read_lock();
	/* That of slab pages is by object: they are nobody's. */
	memcg = folio_memcg_check(folio);
	if (memcg)
		charge.cgroup_id = cgroup_id(memcg->css.cgroup);
	if (charge.cgroup_id == last->cgroup_id) {
		charge = *last;
	} else if (memcg) {
		tenant = memsluice_tenant_peek(memcg->css.cgroup);
		charge.tenant_id = tenant ? tenant->cgroup_id : 0;
	}
	rcu_read_unlock();
	return charge;
}

/*
 * Whether somebody holds more references than the mappings of a folio do: those pages would not
 * move. Return: false when it is no more what it was.
 */
static bool look_closer(struct folio *folio, struct frames *frames)
{
	bool same;

	if (!folio_try_get(folio))
		return false;
	same = kind_of(folio) == frames->kind && page_folio(&folio->page) == folio;
	if (same) {
		frames->pages = folio_nr_pages(folio);
		frames->held = folio_maybe_dma_pinned(folio) ||
			       folio_ref_count(folio) > folio_expected_ref_count(folio) + 1;
	}
	folio_put(folio);
	return same;
}

static struct frames look_at(struct page *page, unsigned long pfn, const struct charge *last)
{
	struct frames frames = { .pages = 1 };
	struct folio *folio;

	if (PageReserved(page)) {
		frames.kind = MEMSLUICE_FRAMES_RESERVED;
		return frames;
	}
	if (PageHWPoison(page)) {
		frames.kind = MEMSLUICE_FRAMES_POISONED;
		return frames;
	}
	if (PageBuddy(page)) {
		frames.kind = MEMSLUICE_FRAMES_FREE;
		frames.pages = free_pages_at(page, pfn);
		return frames;
	}
	folio = page_folio(page);
	frames.kind = kind_of(folio);
	if (folio_pfn(folio) == pfn) {
		frames.pages = pages_of(folio, pfn);
		if (is_of_processes(frames.kind) && !look_closer(folio, &frames)) {
			frames.pages = 1;
			frames.kind = kind_of(folio);
		}
	}
	if (frames.kind != MEMSLUICE_FRAMES_FREE && frames.kind != MEMSLUICE_FRAMES_POOL)
		frames.charge = charge_of(folio, last);
	return frames;
}

static struct memsluice_census_row *row_of(struct census *census, const struct charge *charge)
{
	struct memsluice_census_entry *entry;
	int err;

	if (census->last && census->last->cgroup_id == charge->cgroup_id)
		return census->last;
	entry = xa_load(&census->rows, charge->cgroup_id);
	if (!entry) {
		entry = kzalloc(sizeof(*entry), GFP_KERNEL_ACCOUNT);
		if (!entry)
			return NULL;
		entry->row.node = census->nid;
		entry->row.cgroup_id = charge->cgroup_id;
		entry->row.tenant_id = charge->tenant_id;
		err = xa_err(xa_store(&census->rows, charge->cgroup_id, entry, GFP_KERNEL_ACCOUNT));
		if (err) {
			kfree(entry);
			return NULL;
		}
	}
	census->last = &entry->row;
	return census->last;
}

/* Return: the frame to go on with, which may lie behind @end; 0 when there is no memory. */
static unsigned long count_frames(struct census *census, unsigned long pfn, unsigned long end)
{
	struct charge last = {};

	while (pfn < end) {
		struct page *page = pfn_to_online_page(pfn);
		struct memsluice_census_row *row;
		struct frames frames;

		/* Memory comes and goes in no smaller pieces. */
		if (!page) {
			pfn = ALIGN(pfn + 1, pageblock_nr_pages);
			continue;
		}
		if (page_to_nid(page) != census->nid) {
			pfn++;
			continue;
		}
		frames = look_at(page, pfn, &last);
		last = frames.charge;
		row = row_of(census, &frames.charge);
		if (!row)
			return 0;
		row->pages[frames.kind] += frames.pages;
		if (frames.held)
			row->held_pages[frames.kind] += frames.pages;
		pfn += frames.pages;
	}
	return pfn;
}

/* Also what an interrupted census has found, so that it is freed. */
static void move_rows(struct census *census, struct memsluice_census_table *table)
{
	struct memsluice_census_entry *entry;
	unsigned long id;

	xa_for_each(&census->rows, id, entry) {
		list_add_tail(&entry->link, &table->entries);
		table->count++;
	}
	xa_destroy(&census->rows);
}

static int count_range(int nid, unsigned long pfn, unsigned long end,
		       struct memsluice_census_table *table)
{
	struct census census = { .nid = nid };
	int err = 0;

	xa_init(&census.rows);
	while (pfn < end && !err) {
		pfn = count_frames(&census, pfn, min(end, ALIGN(pfn + 1, PAGES_PER_SECTION)));
		if (!pfn)
			err = -ENOMEM;
		else if (fatal_signal_pending(current))
			err = -EINTR;
		cond_resched();
	}
	move_rows(&census, table);
	return err;
}

static int count_node(int nid, struct memsluice_census_table *table)
{
	return count_range(nid, node_start_pfn(nid), node_end_pfn(nid), table);
}

int memsluice_census_take_frames(int nid, unsigned long pfn, unsigned long end,
				 struct memsluice_census_table *table)
{
	INIT_LIST_HEAD(&table->entries);
	table->count = 0;
	return count_range(nid, pfn, end, table);
}

int memsluice_census_take(int nid, struct memsluice_census_table *table)
{
	int err = 0;

	INIT_LIST_HEAD(&table->entries);
	table->count = 0;
	/* Each CPU's list of new pages holds references of its own. */
	memsluice_call(lru_add_drain_all)();
	if (nid != NUMA_NO_NODE)
		return count_node(nid, table);
	for_each_node_state(nid, N_MEMORY) {
		err = count_node(nid, table);
		if (err)
			break;
	}
	return err;
}

void memsluice_census_free(struct memsluice_census_table *table)
{
	struct memsluice_census_entry *entry, *next;

	list_for_each_entry_safe(entry, next, &table->entries, link)
		kfree(entry);
}
