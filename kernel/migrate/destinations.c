// SPDX-License-Identifier: GPL-2.0
#include "kernel/migrate/destinations.h"

#include <linux/kthread.h>
#include <linux/memory.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/shrinker.h>
#include <linux/slab.h>

#include "kernel/compat/fresh.h"

#define FADE_MS 1000 /* how often a pool forgets half of what was taken from it */
#define NODE_FRACTION 64

/* The sizes that are kept; others are allocated when they are needed. */
enum size_class {
	BASE,
	HUGE,
	CLASSES
};

static const unsigned int orders[CLASSES] = { [BASE] = 0, [HUGE] = HPAGE_PMD_ORDER };

struct pool {
	spinlock_t lock; /* what follows */
	struct list_head folios[CLASSES];
	unsigned long count[CLASSES]; /* folios on the list */
	unsigned long wanted[CLASSES]; /* folios that it shall hold at most */
	unsigned long taken[CLASSES]; /* folios that were asked for and have not come back */
	unsigned long most_taken[CLASSES]; /* of late */
	unsigned long fades_at; /* jiffies */
	unsigned int closed; /* by how many: memory of the node is being taken away */
	u64 hits, misses, reused;
};

unsigned int memsluice_pool_mib = 128;

static struct pool *pools; /* by node */
static struct shrinker *shrinker;
static struct task_struct *refiller;
static DECLARE_WAIT_QUEUE_HEAD(refill_wait);
static bool refill_asked;

static int class_of(unsigned int order)
{
	int size;

	for (size = 0; size < CLASSES; size++) {
		if (orders[size] == order)
			return size;
	}
	return -1;
}

static unsigned long bound_pages(const struct pool *pool)
{
	unsigned long pages = (unsigned long)READ_ONCE(memsluice_pool_mib) << (20 - PAGE_SHIFT);

	return min(pages, node_present_pages(pool - pools) / NODE_FRACTION);
}

static unsigned long pages_of(const unsigned long count[CLASSES])
{
	return (count[BASE] << orders[BASE]) + (count[HUGE] << orders[HUGE]);
}

static struct folio *take(struct pool *pool, int size)
{
	struct folio *folio;

	lockdep_assert_held(&pool->lock);
	folio = list_first_entry_or_null(&pool->folios[size], struct folio, lru);
	if (folio) {
		list_del(&folio->lru);
		folio->private = NULL;
		pool->count[size]--;
	}
	return folio;
}

static bool has_room(const struct pool *pool, int size)
{
	lockdep_assert_held(&pool->lock);
	/* What one size has too many of until it is trimmed, the other has to do without. */
	return pool->count[size] < pool->wanted[size] && !pool->closed &&
	       pages_of(pool->count) + (1UL << orders[size]) <= bound_pages(pool);
}

/* New folios fill half of a pool: what comes back from moves costs less. */
static bool wants_new(const struct pool *pool, int size)
{
	lockdep_assert_held(&pool->lock);
	return pool->count[size] < DIV_ROUND_UP(pool->wanted[size], 2) && !pool->closed;
}

/* Return: false when the pool has enough of these, and the folio is still the caller's. */
static bool keep(struct pool *pool, int size, struct folio *folio, bool reused)
{
	bool kept;

	spin_lock(&pool->lock);
	kept = has_room(pool, size);
	if (kept) {
		list_add(&folio->lru, &pool->folios[size]);
		folio->private = &pools;
		pool->count[size]++;
		pool->reused += reused;
	}
	spin_unlock(&pool->lock);
	return kept;
}

bool memsluice_destination_is_pooled(const struct folio *folio)
{
	/* Nobody else knows this address. */
	return READ_ONCE(folio->private) == &pools;
}

static bool is_poisoned(struct folio *folio)
{
	return folio_test_hwpoison(folio) ||
	       (folio_test_large(folio) && folio_test_has_hwpoisoned(folio));
}

/*
 * The pool shall hold one more folio; at its bound, at the cost of the other size if one was missed.
 * Return: false when it may not.
 */
static bool want_more(struct pool *pool, int size, bool missed)
{
	unsigned long pages = 1UL << orders[size], bound = bound_pages(pool);

	lockdep_assert_held(&pool->lock);
	if (missed && pages_of(pool->wanted) + pages > bound)
		pool->wanted[size == BASE ? HUGE : BASE] /= 2;
	if (pool->closed || pages_of(pool->wanted) + pages > bound)
		return false;
	pool->wanted[size]++;
	return true;
}

/* The pool comes to hold twice what is taken from it before as much comes back. */
static struct folio *ask(int nid, int size)
{
	struct pool *pool = &pools[nid];
	struct folio *folio;
	bool wake;

	spin_lock(&pool->lock);
	folio = take(pool, size);
	if (folio)
		pool->hits++;
	else
		pool->misses++;
	pool->taken[size] = min(pool->taken[size] + 1, bound_pages(pool) >> orders[size]);
	pool->most_taken[size] = max(pool->most_taken[size], pool->taken[size]);
	while (pool->wanted[size] < 2 * pool->taken[size] && want_more(pool, size, !folio))
		;
	wake = wants_new(pool, size);
	spin_unlock(&pool->lock);
	if (wake) {
		WRITE_ONCE(refill_asked, true);
		wake_up(&refill_wait);
	}
	return folio;
}

/* A folio comes back to where one was taken. Return: true when the pool has room for it. */
static bool comes_back(struct pool *pool, int size)
{
	bool room;

	spin_lock(&pool->lock);
	pool->taken[size] -= !!pool->taken[size];
	room = has_room(pool, size);
	spin_unlock(&pool->lock);
	return room;
}

static struct folio *allocate(int nid, unsigned int order, gfp_t reclaim)
{
	/* Without reclaim an allocation may dip into reserves, which are not for this. */
	gfp_t gfp = (GFP_HIGHUSER_MOVABLE & ~__GFP_RECLAIM) | __GFP_THISNODE | __GFP_NOWARN |
		    __GFP_NOMEMALLOC;

	if (order)
		gfp |= __GFP_COMP | __GFP_NORETRY;
	else
		gfp |= reclaim;
	return __folio_alloc(gfp, order, nid, NULL);
}

struct folio *memsluice_destination_get(int nid, unsigned int order, gfp_t reclaim)
{
	int size = class_of(order);
	struct folio *folio = NULL;

	while (size >= 0 && (folio = ask(nid, size)) && is_poisoned(folio))
		folio_put(folio);
	return folio ?: allocate(nid, order, reclaim);
}

static void take_back(struct folio *folio, bool was_used)
{
	int size = class_of(folio_order(folio));
	struct pool *pool = &pools[folio_nid(folio)];

	if (size < 0 || !comes_back(pool, size) ||
	    !(was_used ? memsluice_make_fresh(folio) : folio_ref_count(folio) == 1) ||
	    !keep(pool, size, folio, was_used))
		folio_put(folio);
}

void memsluice_destination_put(struct folio *folio)
{
	take_back(folio, false);
}

void memsluice_destination_reuse(struct folio *folio)
{
	take_back(folio, true);
}

/* Frees what the pool holds above what it shall hold. Return: the pages that were freed. */
static unsigned long trim(struct pool *pool)
{
	unsigned long freed = 0;
	struct folio *folio;
	int size;

	for (size = 0; size < CLASSES; size++) {
		do {
			spin_lock(&pool->lock);
			folio = pool->count[size] > pool->wanted[size] ? take(pool, size) : NULL;
			spin_unlock(&pool->lock);
			if (folio) {
				freed += folio_nr_pages(folio);
				folio_put(folio);
			}
		} while (folio);
	}
	return freed;
}

/* Return: false when there is nothing to do, or no memory to do it with. */
static bool refill_one(int nid, int size)
{
	struct pool *pool = &pools[nid];
	struct folio *folio;
	bool wanted;

	spin_lock(&pool->lock);
	wanted = wants_new(pool, size);
	spin_unlock(&pool->lock);
	if (!wanted)
		return false;
	/* What nobody waits for is worth no reclaim, and nothing below the watermarks. */
	folio = allocate(nid, orders[size], 0);
	if (!folio)
		return false;
	if (keep(pool, size, folio, false))
		return true;
	folio_put(folio);
	return false;
}

/* What has been taken long ago does not come back; what a pool wants follows, by half at a time. */
static void fade(struct pool *pool)
{
	int size;

	lockdep_assert_held(&pool->lock);
	for (size = 0; size < CLASSES; size++) {
		unsigned long enough = 2 * pool->most_taken[size];

		if (pages_of(pool->wanted) > bound_pages(pool))
			enough = 0;
		if (pool->wanted[size] > enough)
			pool->wanted[size] = max(enough, pool->wanted[size] / 2);
		pool->taken[size] /= 2;
		pool->most_taken[size] = pool->taken[size];
	}
}

static void shrink_idle(struct pool *pool)
{
	spin_lock(&pool->lock);
	if (time_after_eq(jiffies, pool->fades_at)) {
		pool->fades_at = jiffies + msecs_to_jiffies(FADE_MS);
		fade(pool);
	}
	spin_unlock(&pool->lock);
	trim(pool);
}

static bool wants_something(struct pool *pool)
{
	bool wants;

	spin_lock(&pool->lock);
	wants = pages_of(pool->wanted) || pages_of(pool->count);
	spin_unlock(&pool->lock);
	return wants;
}

static int refill_thread(void *unused)
{
	bool active = false;
	int nid, size;

	/* Who waits for a destination goes first. */
	set_user_nice(current, MAX_NICE);
	while (!kthread_should_stop()) {
		wait_event_idle_timeout(refill_wait,
					READ_ONCE(refill_asked) || kthread_should_stop(),
					active ? msecs_to_jiffies(FADE_MS) : MAX_SCHEDULE_TIMEOUT);
		WRITE_ONCE(refill_asked, false);
		active = false;
		for_each_online_node(nid) {
			for (size = 0; size < CLASSES; size++) {
				while (!kthread_should_stop() && refill_one(nid, size))
					cond_resched();
			}
			shrink_idle(&pools[nid]);
			active |= wants_something(&pools[nid]);
		}
	}
	return 0;
}

static unsigned long shrink_count(struct shrinker *unused, struct shrink_control *control)
{
	return memsluice_pool_status(control->nid).pages ?: SHRINK_EMPTY;
}

static unsigned long shrink_scan(struct shrinker *unused, struct shrink_control *control)
{
	struct pool *pool = &pools[control->nid];
	unsigned long left = control->nr_to_scan;
	unsigned long pages, folios;
	int size;

	spin_lock(&pool->lock);
	for (size = 0; size < CLASSES && left; size++) {
		pages = 1UL << orders[size];
		folios = min(pool->count[size], DIV_ROUND_UP(left, pages));
		/* What is taken away shall not come back at once. */
		pool->wanted[size] = min(pool->wanted[size], pool->count[size] - folios);
		left -= min(left, folios * pages);
	}
	spin_unlock(&pool->lock);
	return trim(pool) ?: SHRINK_STOP;
}

void memsluice_destinations_close(int nid)
{
	struct pool *pool = &pools[nid];

	spin_lock(&pool->lock);
	pool->closed++;
	memset(pool->wanted, 0, sizeof(pool->wanted));
	spin_unlock(&pool->lock);
	trim(pool);
}

void memsluice_destinations_open(int nid)
{
	struct pool *pool = &pools[nid];

	spin_lock(&pool->lock);
	pool->closed--;
	spin_unlock(&pool->lock);
}

/*
 * A folio of a pool is on no list that offlining knows: it would wait for it for ever. One block is
 * taken away at a time, under the lock of memory hot-plug.
 */
static int memory_changes(struct notifier_block *unused, unsigned long action, void *data)
{
	const struct memory_notify *memory = data;
	static int closed_nid = NUMA_NO_NODE;

	if (action == MEM_GOING_OFFLINE) {
		closed_nid = pfn_to_nid(memory->start_pfn);
		memsluice_destinations_close(closed_nid);
	} else if ((action == MEM_CANCEL_OFFLINE || action == MEM_OFFLINE) &&
		   closed_nid != NUMA_NO_NODE) {
		/* Pages that are gone no longer say whose they were. */
		memsluice_destinations_open(closed_nid);
		closed_nid = NUMA_NO_NODE;
	}
	return NOTIFY_OK;
}

static struct notifier_block memory_notifier = { .notifier_call = memory_changes };

struct memsluice_pool_status memsluice_pool_status(int nid)
{
	struct memsluice_pool_status status;
	struct pool *pool = &pools[nid];

	spin_lock(&pool->lock);
	status.pages = pages_of(pool->count);
	status.hits = pool->hits;
	status.misses = pool->misses;
	status.reused = pool->reused;
	spin_unlock(&pool->lock);
	return status;
}

static void empty_all(void)
{
	int nid;

	for (nid = 0; nid < nr_node_ids; nid++) {
		memset(pools[nid].wanted, 0, sizeof(pools[nid].wanted));
		trim(&pools[nid]);
	}
	kfree(pools);
}

static int start_shrinker(void)
{
	shrinker = shrinker_alloc(SHRINKER_NUMA_AWARE, "memsluice-pool");
	if (!shrinker)
		return -ENOMEM;
	shrinker->count_objects = shrink_count;
	shrinker->scan_objects = shrink_scan;
	shrinker_register(shrinker);
	return 0;
}

int memsluice_destinations_start(void)
{
	int nid, size, err;

	memsluice_fresh_start();
	pools = kcalloc(nr_node_ids, sizeof(*pools), GFP_KERNEL);
	if (!pools)
		return -ENOMEM;
	for (nid = 0; nid < nr_node_ids; nid++) {
		spin_lock_init(&pools[nid].lock);
		for (size = 0; size < CLASSES; size++)
			INIT_LIST_HEAD(&pools[nid].folios[size]);
	}
	err = start_shrinker();
	if (err)
		goto free;
	err = register_memory_notifier(&memory_notifier);
	if (err)
		goto free_shrinker;
	refiller = kthread_run(refill_thread, NULL, "memsluice_pool");
	if (!IS_ERR(refiller))
		return 0;

	err = PTR_ERR(refiller);
	unregister_memory_notifier(&memory_notifier);
free_shrinker:
	shrinker_free(shrinker);
free:
	empty_all();
	return err;
}

void memsluice_destinations_stop(void)
{
	kthread_stop(refiller);
	unregister_memory_notifier(&memory_notifier);
	shrinker_free(shrinker);
	empty_all();
}
