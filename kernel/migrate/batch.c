// SPDX-License-Identifier: GPL-2.0
#include "kernel/migrate/batch.h"

#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/pagemap.h>
#include <linux/rmap.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/swap.h>

#include "kernel/abi/trace.h"
#include "kernel/compat/symbols.h"
#include "kernel/copy/cpu.h"
#include "kernel/copy/engines.h"
#include "kernel/migrate/destinations.h"
#include "kernel/migrate/pace.h"
#include "kernel/migrate/statistics.h"

/* Folios of one batch, whatever the bound on the stall. */
#define BATCH_FOLIOS 1024UL

/* What has to be known of a folio to map it again. */
struct state {
	struct anon_vma *anon_vma;
	bool was_mapped;
	bool was_mlocked;
	bool may_be_split; /* on the list of huge pages whose unused parts may be freed */
};

struct batch {
	const struct memsluice_batch_order *order;
	struct memsluice_batch_result *result;
	struct memsluice_batch_sample sample;
	bool full; /* the target has not one base page left */
	unsigned int count; /* folios in the arrays */
	unsigned int capacity;
	struct memsluice_copy *copies;
	struct state *states;
};

unsigned int memsluice_batch_stall_us = 5000;

static struct memsluice_pace pace;
static DEFINE_SPINLOCK(pace_lock);

static void refuse(struct batch *batch, struct folio *folio, enum memsluice_refusal why)
{
	list_add_tail(&folio->lru, &batch->result->refused[why]);
}

/* The reference of the isolation remains. */
static void uncount_isolated(struct folio *folio)
{
	mod_node_page_state(folio_pgdat(folio), NR_ISOLATED_ANON + folio_is_file_lru(folio),
			    -folio_nr_pages(folio));
}

/*
 * Takes as many folios as the bound on the stall allows, with a destination each. What may reclaim
 * or wait is done here, before anything is locked.
 */
static void plan(struct batch *batch, struct list_head *folios, const struct memsluice_pace *now)
{
	const struct memsluice_batch_order *order = batch->order;
	/* One batch in a hundred takes a tenth longer than what was learned of those before. */
	u64 bound_ns = (u64)READ_ONCE(memsluice_batch_stall_us) * (NSEC_PER_USEC * 7 / 8);
	struct folio *folio, *destination;
	u64 bytes = 0;

	batch->count = 0;
	while (batch->count < batch->capacity &&
	       (folio = list_first_entry_or_null(folios, struct folio, lru))) {
		if (batch->count &&
		    memsluice_pace_ns(now, batch->count + 1, bytes + folio_size(folio)) > bound_ns)
			break;
		list_del(&folio->lru);
		if (folio_ref_count(folio) == 1) {
			/* Freed by its owner: nobody but the isolation knows it any more. */
			folio_clear_active(folio);
			folio_clear_unevictable(folio);
			batch->result->gone_pages += folio_nr_pages(folio);
			uncount_isolated(folio);
			folio_put(folio);
			continue;
		}
		destination = batch->full ?
				      NULL :
				      memsluice_destination_get(order->target_node,
								folio_order(folio), order->reclaim);
		if (!destination) {
			batch->full |= !folio_order(folio);
			refuse(batch, folio, MEMSLUICE_REFUSED_NO_MEMORY);
			continue;
		}
		batch->copies[batch->count++] = (struct memsluice_copy){
			.source = folio,
			.destination = destination,
		};
		bytes += folio_size(folio);
	}
	if (trace_memsluice_batch_planned_enabled())
		trace_memsluice_batch_planned(order->target_node, batch->count, bytes,
					      memsluice_pace_ns(now, batch->count, bytes),
					      bound_ns);
}

static bool may_be_split(struct folio *folio)
{
	return folio_order(folio) > 1 && !data_race(list_empty(&folio->_deferred_list));
}

/* On its way to being split: moving it whole would undo that. */
static bool is_partially_mapped(struct folio *folio)
{
	return may_be_split(folio) && folio_test_partially_mapped(folio);
}

/* The folio is locked: its mapping stays. */
static bool takes(struct folio *folio)
{
	struct address_space *mapping = folio_mapping(folio);

	if (folio_test_hugetlb(folio) || folio_test_hwpoison(folio) || is_partially_mapped(folio))
		return false;
	if (!mapping)
		return folio_test_anon(folio);
	return !mapping_inaccessible(mapping) && !folio_test_private(folio) &&
	       mapping->a_ops->migrate_folio == migrate_folio;
}

/* Return: true when no page table maps the folio any more. */
static bool unmap(struct batch *batch, struct folio *folio, struct state *state)
{
	*state = (struct state){
		.was_mlocked = folio_test_mlocked(folio),
		/* As of now: unmapping a large folio page by page puts it on that list, too. */
		.may_be_split = may_be_split(folio),
	};
	/* None is found only for a folio that nobody maps any more. */
	if (folio_test_anon(folio) && !folio_test_ksm(folio))
		state->anon_vma = memsluice_call(folio_get_anon_vma)(folio);
	if (!folio_mapped(folio))
		return true;
	state->was_mapped = true;
	/* Each entry that maps a whole huge page costs a flush of its own. */
	batch->sample.flushes += folio_test_large(folio) ? folio_entire_mapcount(folio) : 0;
	memsluice_call(try_to_migrate)(folio, TTU_BATCH_FLUSH);
	return !folio_mapped(folio);
}

static void put_anon_vma_of(struct state *state)
{
	if (state->anon_vma && atomic_dec_and_test(&state->anon_vma->refcount))
		memsluice_call(__put_anon_vma)(state->anon_vma);
}

/* Maps what unmap() has unmapped. */
static void map_again(struct folio *folio, struct state *state)
{
	if (state->was_mapped)
		memsluice_call(remove_migration_ptes)(folio, folio, 0);
	put_anon_vma_of(state);
}

/* Locks and unmaps one folio. Return: false when it has been refused. */
static bool admit(struct batch *batch, const struct memsluice_copy *copy, struct state *state)
{
	struct list_head *refused = batch->result->refused;
	struct list_head *where = &refused[MEMSLUICE_REFUSED_BUSY];
	struct folio *folio = copy->source;

	if (!folio_trylock(folio))
		goto put;
	where = &refused[MEMSLUICE_REFUSED_WRITEBACK];
	if (folio_test_writeback(folio))
		goto unlock;
	where = &batch->result->others;
	if (!takes(folio))
		goto unlock;
	where = &refused[MEMSLUICE_REFUSED_FAILED];
	if (!folio_trylock(copy->destination))
		goto unlock;
	if (unmap(batch, folio, state))
		return true;

	map_again(folio, state);
	folio_unlock(copy->destination);
unlock:
	folio_unlock(folio);
put:
	memsluice_destination_put(copy->destination);
	list_add_tail(&folio->lru, where);
	return false;
}

/* Everything back to where it was, but for the isolation. */
static void undo(struct batch *batch, const struct memsluice_copy *copy, struct state *state,
		 enum memsluice_refusal why)
{
	map_again(copy->source, state);
	folio_unlock(copy->source);
	if (copy->destination) {
		folio_unlock(copy->destination);
		memsluice_destination_put(copy->destination);
	}
	refuse(batch, copy->source, why);
}

static void unmap_all(struct batch *batch)
{
	unsigned int i, kept = 0;

	for (i = 0; i < batch->count; i++) {
		if (admit(batch, &batch->copies[i], &batch->states[kept]))
			batch->copies[kept++] = batch->copies[i];
	}
	batch->count = kept;
	memsluice_call(try_to_unmap_flush)();
	batch->sample.flushes += !!kept;
}

/*
 * Somebody who holds a reference may be writing without a page table: a pinned page, a buffer of
 * I/O. Nobody can gain one now but by the folio's lock, or in passing.
 */
static void drop_held(struct batch *batch)
{
	unsigned int i, kept = 0;

	for (i = 0; i < batch->count; i++) {
		struct memsluice_copy *copy = &batch->copies[i];

		if (folio_ref_count(copy->source) != folio_expected_ref_count(copy->source) + 1) {
			undo(batch, copy, &batch->states[i], MEMSLUICE_REFUSED_PINNED);
			continue;
		}
		batch->sample.bytes += folio_size(copy->source);
		batch->copies[kept] = *copy;
		batch->states[kept++] = batch->states[i];
	}
	batch->count = kept;
	batch->sample.folios = kept;
}

/*
 * The engine keeps a destination that it may still write to; the CPU copies to another one. Where
 * there is none, the error remains, and no destination.
 */
static void copy_elsewhere(struct batch *batch, struct memsluice_copy *copy)
{
	unsigned int order = folio_order(copy->destination);
	struct folio *other;

	folio_unlock(copy->destination);
	folio_put(copy->destination);
	copy->destination = NULL;
	copy->late = false;
	other = memsluice_destination_get(batch->order->target_node, order, 0);
	if (!other)
		return;
	if (!folio_trylock(other)) {
		memsluice_destination_put(other);
		return;
	}
	copy->destination = other;
	if (!memsluice_copy(&memsluice_copy_cpu, copy, 1).failed) {
		batch->sample.copy.fell_back++;
		batch->sample.copy.failed--;
	}
}

static void copy_all(struct batch *batch, const struct memsluice_copy_engine *engine)
{
	unsigned int i;

	batch->sample.copy = memsluice_copy(engine, batch->copies, batch->count);
	for (i = 0; i < batch->count; i++) {
		if (batch->copies[i].late)
			copy_elsewhere(batch, &batch->copies[i]);
	}
}

/* Return: false when somebody has gained a reference since the copy began. */
static bool replace(const struct memsluice_copy *copy, const struct state *state)
{
	struct folio *source = copy->source, *destination = copy->destination;

	if (folio_migrate_mapping(folio_mapping(source), destination, source, 0))
		return false;
	folio_migrate_flags(destination, source);
	if (!folio_test_anon(source))
		source->mapping = NULL;
	if (state->may_be_split)
		memsluice_call(deferred_split_folio)(destination, false);
	return true;
}

static void finish(struct batch *batch, const struct memsluice_copy *copy, struct state *state)
{
	struct folio *source = copy->source, *destination = copy->destination;

	if (copy->error) {
		undo(batch, copy, state, MEMSLUICE_REFUSED_FAILED);
		return;
	}
	if (!replace(copy, state)) {
		undo(batch, copy, state, MEMSLUICE_REFUSED_PINNED);
		return;
	}
	/* On its list before it is mapped: mapping counts the mlocks of what is on a list. */
	folio_add_lru(destination);
	if (state->was_mlocked)
		memsluice_call(lru_add_drain)();
	if (state->was_mapped)
		memsluice_call(remove_migration_ptes)(source, destination, 0);
	put_anon_vma_of(state);
	folio_unlock(destination);
	folio_put(destination);
	folio_unlock(source);
	batch->result->moved_pages += folio_nr_pages(source);
	memsluice_moved_add(&batch->sample.moved, folio_order(source));
	uncount_isolated(source);
	memsluice_destination_reuse(source);
}

static void map_all(struct batch *batch)
{
	unsigned int i;

	for (i = 0; i < batch->count; i++) {
		finish(batch, &batch->copies[i], &batch->states[i]);
		if (!i)
			batch->sample.first_ns = ktime_get_ns();
	}
}

static void learn(const struct memsluice_batch_sample *sample)
{
	struct memsluice_pace_sample took = {
		.folios = sample->folios,
		.bytes = sample->bytes,
		.copy_ns = sample->copied_ns - sample->flushed_ns,
		.total_ns = sample->mapped_ns - sample->began_ns,
	};

	spin_lock(&pace_lock);
	pace = memsluice_pace_learn(&pace, &took);
	spin_unlock(&pace_lock);
}

/* From the first folio that is locked to the last that is unlocked. */
static void run(struct batch *batch, const struct memsluice_copy_engine *engine)
{
	struct memsluice_batch_sample *sample = &batch->sample;
	/* Reclaim would wait for locks that are held here. */
	unsigned int flags = memalloc_noreclaim_save();

	sample->began_ns = ktime_get_ns();
	unmap_all(batch);
	drop_held(batch);
	sample->flushed_ns = ktime_get_ns();
	trace_memsluice_batch_unmapped(batch->order->target_node, sample->folios, sample->bytes,
				       sample->flushes);
	if (batch->count)
		copy_all(batch, engine);
	sample->copied_ns = ktime_get_ns();
	trace_memsluice_batch_copied(engine->name, sample->folios, sample->bytes,
				     sample->copy.fell_back, sample->copy.failed);
	map_all(batch);
	sample->mapped_ns = ktime_get_ns();
	trace_memsluice_batch_mapped(batch->order->target_node, sample->folios, sample->bytes,
				     sample->mapped_ns - sample->began_ns);
	memalloc_noreclaim_restore(flags);
}

static void result_init(struct memsluice_batch_result *result)
{
	int why;

	memset(result, 0, sizeof(*result));
	for (why = 0; why < MEMSLUICE_REFUSALS; why++)
		INIT_LIST_HEAD(&result->refused[why]);
	INIT_LIST_HEAD(&result->others);
}

/* As large as the list asks for: zeroing what it does not use would cost more than a short list. */
static struct batch *new_batch(struct list_head *folios, const struct memsluice_batch_order *order,
			       struct memsluice_batch_result *result)
{
	unsigned int capacity = min(list_count_nodes(folios), BATCH_FOLIOS);
	struct batch *batch;

	batch = kvmalloc(sizeof(*batch) +
				 capacity * (sizeof(*batch->copies) + sizeof(*batch->states)),
			 GFP_KERNEL);
	if (!batch)
		return NULL;
	*batch = (struct batch){
		.order = order,
		.result = result,
		.capacity = capacity,
		.copies = (struct memsluice_copy *)(batch + 1),
	};
	batch->states = (struct state *)(batch->copies + capacity);
	return batch;
}

int memsluice_batch_move(struct list_head *folios, const struct memsluice_batch_order *order,
			 struct memsluice_batch_result *result)
{
	const struct memsluice_copy_engine *engine;
	struct memsluice_pace now;
	struct batch *batch;

	result_init(result);
	batch = new_batch(folios, order, result);
	if (!batch) {
		list_splice_tail_init(folios, &result->others);
		return -ENOMEM;
	}
	while (!list_empty(folios)) {
		spin_lock(&pace_lock);
		now = pace;
		spin_unlock(&pace_lock);
		batch->sample = (struct memsluice_batch_sample){
			.why = order->why,
			.target_node = order->target_node,
		};
		plan(batch, folios, &now);
		engine = memsluice_copy_begin();
		run(batch, engine);
		memsluice_copy_end();
		if (batch->sample.folios) {
			learn(&batch->sample);
			memsluice_statistics_batch(&batch->sample);
		}
		cond_resched();
	}
	kvfree(batch);
	return 0;
}

void memsluice_batch_start(void)
{
	pace = memsluice_pace_initial();
}
