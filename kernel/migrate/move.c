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
#include "kernel/migrate/batch.h"
#include "kernel/migrate/destinations.h"
#include "kernel/migrate/statistics.h"

/* What one round isolates at most: enough for the batches of fast engines to be large. */
#define ROUND_PAGES (16UL << (20 - PAGE_SHIFT))

struct target {
	int nid;
	gfp_t reclaim;
	bool no_memory; /* an allocation failed */
};

static bool has_batches;

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

static unsigned long room_on(int nid)
{
	atomic_long_t *pages = NODE_DATA(nid)->vm_stat;
	long inactive = atomic_long_read(&pages[NR_INACTIVE_ANON]) +
			atomic_long_read(&pages[NR_INACTIVE_FILE]);
	long isolated = atomic_long_read(&pages[NR_ISOLATED_ANON]) +
			atomic_long_read(&pages[NR_ISOLATED_FILE]);

	/* Direct reclaim waits when more than an eighth of the inactive pages is isolated. */
	return clamp_t(long, inactive / 16 - isolated, HPAGE_PMD_NR, ROUND_PAGES);
}

unsigned long memsluice_isolation_room(int nid)
{
	unsigned long room = ROUND_PAGES;

	if (nid != NUMA_NO_NODE)
		return room_on(nid);
	for_each_node_state(nid, N_MEMORY)
		room = min(room, room_on(nid));
	return room;
}

static bool insists(enum memsluice_why why)
{
	return why == MEMSLUICE_WHY_REQUEST || why == MEMSLUICE_WHY_PLACEMENT;
}

static struct folio *new_folio(struct folio *source, unsigned long private)
{
	struct target *target = (struct target *)private;
	struct folio *folio =
		memsluice_destination_get(target->nid, folio_order(source), target->reclaim);

	if (!folio)
		target->no_memory = true;
	return folio;
}

static void put_new_folio(struct folio *folio, unsigned long private)
{
	memsluice_destination_put(folio);
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

/*
 * What the kernel's migration may still achieve for a request: it waits for locks and writeback,
 * and splits large folios that find no room.
 */
static bool may_be_forced(const struct folio *folio, enum memsluice_refusal why)
{
	return why != MEMSLUICE_REFUSED_NO_MEMORY || folio_test_large(folio);
}

/* What batches of our own can move is moved; @folios keeps what is left to the kernel. */
static void move_in_batches(struct list_head *folios, const struct memsluice_batch_order *order,
			    struct memsluice_counts *counts, struct xarray *refusals,
			    struct list_head *aside)
{
	struct memsluice_batch_result result;
	struct folio *folio, *next;
	int why;

	memsluice_batch_move(folios, order, &result);
	counts->moved += result.moved_pages;
	counts->refused[MEMSLUICE_REFUSED_ABSENT] += result.gone_pages;
	list_splice_init(&result.others, folios);
	for (why = 0; why < MEMSLUICE_REFUSALS; why++) {
		list_for_each_entry_safe(folio, next, &result.refused[why], lru) {
			if (insists(order->why) && may_be_forced(folio, why)) {
				list_move_tail(&folio->lru, folios);
				continue;
			}
			refuse(folio, why, counts, refusals);
			list_move_tail(&folio->lru, aside);
		}
	}
}

static void move_in_tree(struct list_head *folios, const struct memsluice_batch_order *order,
			 struct memsluice_counts *counts, struct xarray *refusals)
{
	struct target target = { .nid = order->target_node, .reclaim = order->reclaim };
	unsigned int moved = 0;
	struct folio *folio;

	/*
	 * Not MR_DEMOTION for what goes down: migrate_pages() leaves the isolated pages of that
	 * reason to reclaim to uncount.
	 */
	memsluice_call(migrate_pages)(folios, new_folio, put_new_folio, (unsigned long)&target,
				      insists(order->why) ? MIGRATE_SYNC : MIGRATE_ASYNC,
				      insists(order->why) ? MR_SYSCALL : MR_NUMA_MISPLACED, &moved);
	counts->moved += moved;
	memsluice_statistics_kernel_moved(order->why, moved);
	list_for_each_entry(folio, folios, lru)
		refuse(folio, why_not(folio, &target), counts, refusals);
}

void memsluice_move(struct list_head *folios, const struct memsluice_move_order *order,
		    struct memsluice_counts *counts, struct xarray *refusals)
{
	struct memsluice_batch_order batch_order = {
		.target_node = order->target_node,
		.why = order->why,
		/* Nobody is reclaimed so that a page sits better; who asks by name may insist. */
		.reclaim = order->why == MEMSLUICE_WHY_REQUEST ? __GFP_RECLAIM : 0,
	};
	struct memsluice_counts now = {};
	LIST_HEAD(aside);

	set_pinned_aside(folios, &aside, &now, refusals);
	if (has_batches && !order->in_tree)
		move_in_batches(folios, &batch_order, &now, refusals, &aside);
	if (!list_empty(folios))
		move_in_tree(folios, &batch_order, &now, refusals);
	list_splice_tail_init(&aside, folios);
	if (!list_empty(folios))
		memsluice_call(putback_movable_pages)(folios);

	trace_memsluice_move(order->target_node, order->why, now.moved,
			     memsluice_counts_refused(&now));
	memsluice_counts_add(counts, &now);
}

int memsluice_move_start(bool batches)
{
	has_batches = batches;
	memsluice_batch_start();
	return memsluice_destinations_start();
}

void memsluice_move_stop(void)
{
	memsluice_destinations_stop();
}
