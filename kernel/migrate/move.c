// SPDX-License-Identifier: GPL-2.0
#include "kernel/migrate/move.h"

#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/pagemap.h>
#include <linux/swap.h>
#include <linux/xarray.h>

#include "kernel/abi/trace.h"
#include "kernel/compat/symbols.h"

struct target {
	int nid;
	gfp_t reclaim;
	bool no_memory; /* an allocation failed */
};

void memsluice_counts_add(struct memsluice_counts *to, const struct memsluice_counts *more)
{
	int i;

	to->seen += more->seen;
	to->moved += more->moved;
	to->already_there += more->already_there;
	for (i = 0; i < MEMSLUICE_REFUSALS; i++)
		to->refused[i] += more->refused[i];
}

u64 memsluice_counts_refused(const struct memsluice_counts *counts)
{
	u64 refused = 0;
	int i;

	for (i = 0; i < MEMSLUICE_REFUSALS; i++)
		refused += counts->refused[i];
	return refused;
}

bool memsluice_isolate(struct folio *folio, struct list_head *folios)
{
	if (!memsluice_call(folio_isolate_lru)(folio))
		return false;
	list_add_tail(&folio->lru, folios);
	/* What migrate_pages() and putback_movable_pages() take back. */
	mod_node_page_state(folio_pgdat(folio), NR_ISOLATED_ANON + folio_is_file_lru(folio),
			    folio_nr_pages(folio));
	return true;
}

void memsluice_isolate_prepare(void)
{
	memsluice_call(lru_add_drain_all)();
}

static struct folio *new_folio(struct folio *source, unsigned long private)
{
	struct target *target = (struct target *)private;
	gfp_t gfp = GFP_HIGHUSER_MOVABLE | __GFP_THISNODE | __GFP_NOWARN;
	struct folio *folio;

	gfp &= ~__GFP_RECLAIM | target->reclaim;
	if (folio_test_large(source)) {
		gfp &= ~__GFP_RECLAIM;
		gfp |= __GFP_COMP | __GFP_NOMEMALLOC | __GFP_NORETRY;
	}
	folio = __folio_alloc(gfp, folio_order(source), target->nid, NULL);
	if (!folio)
		target->no_memory = true;
	return folio;
}

/* References that nothing known to the folio explains, besides the one of the isolation. */
static bool is_held(struct folio *folio)
{
	return folio_maybe_dma_pinned(folio) ||
	       folio_ref_count(folio) > folio_expected_ref_count(folio) + 1;
}

static enum memsluice_refusal why_not(struct folio *folio, const struct target *target)
{
	struct address_space *mapping = folio_mapping(folio);

	if (folio_test_writeback(folio))
		return MEMSLUICE_REFUSED_WRITEBACK;
	if (mapping && mapping_inaccessible(mapping))
		return MEMSLUICE_REFUSED_UNMOVABLE;
	if (target->no_memory)
		return MEMSLUICE_REFUSED_NO_MEMORY;
	if (folio_test_locked(folio))
		return MEMSLUICE_REFUSED_BUSY;
	return is_held(folio) ? MEMSLUICE_REFUSED_PINNED : MEMSLUICE_REFUSED_FAILED;
}

static void refuse(struct folio *folio, enum memsluice_refusal why, struct memsluice_counts *counts,
		   struct xarray *refusals)
{
	counts->refused[why] += folio_nr_pages(folio);
	if (refusals)
		xa_store(refusals, folio_pfn(folio), xa_mk_value(why), GFP_KERNEL);
}

/* migrate_pages() would try a pinned folio ten times, and unmap it each time. */
static void set_pinned_aside(struct list_head *folios, struct list_head *aside,
			     struct memsluice_counts *counts, struct xarray *refusals)
{
	struct folio *folio, *next;

	list_for_each_entry_safe(folio, next, folios, lru) {
		if (!folio_maybe_dma_pinned(folio))
			continue;
		refuse(folio, MEMSLUICE_REFUSED_PINNED, counts, refusals);
		list_move_tail(&folio->lru, aside);
	}
}

void memsluice_move(struct list_head *folios, int target_node, enum memsluice_why why,
		    struct memsluice_counts *counts, struct xarray *refusals)
{
	bool request = why == MEMSLUICE_WHY_REQUEST;
	/*
	 * Not MR_DEMOTION for what goes down: migrate_pages() leaves the isolated pages of that
	 * reason to reclaim to uncount.
	 */
	int reason = request ? MR_SYSCALL : MR_NUMA_MISPLACED;
	/* Nobody shall be reclaimed so that a page may sit better; who asks by name may insist. */
	struct target target = { .nid = target_node, .reclaim = request ? __GFP_RECLAIM : 0 };
	struct memsluice_counts now = {};
	unsigned int moved = 0;
	struct folio *folio;
	LIST_HEAD(aside);

	set_pinned_aside(folios, &aside, &now, refusals);
	if (!list_empty(folios))
		memsluice_call(migrate_pages)(folios, new_folio, NULL, (unsigned long)&target,
					      request ? MIGRATE_SYNC : MIGRATE_ASYNC, reason, &moved);
	now.moved = moved;
	list_for_each_entry(folio, folios, lru)
		refuse(folio, why_not(folio, &target), &now, refusals);
	list_splice_tail_init(&aside, folios);
	if (!list_empty(folios))
		memsluice_call(putback_movable_pages)(folios);

	trace_memsluice_move(target_node, why, now.moved, memsluice_counts_refused(&now));
	memsluice_counts_add(counts, &now);
}
