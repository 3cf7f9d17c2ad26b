/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_MIGRATE_DESTINATIONS_H
#define MEMSLUICE_MIGRATE_DESTINATIONS_H

#include <linux/gfp_types.h>
#include <linux/types.h>

struct folio;

/*
 * Free folios of each node, base pages and huge ones. A pool grows with what is asked of it, up to
 * a bound, and shrinks to nothing when nobody asks. A background thread keeps it half full of new
 * folios (zeroed, where the kernel does that); the other half is for those that were moved away
 * from. Its folios are charged to no cgroup.
 */

/* Bound of each node's pool; never more than 1/64 of the node. 0: no pools. */
extern unsigned int memsluice_pool_mib;

/**
 * memsluice_destination_get() - a folio to copy to
 * @nid: the node, and no other
 * @order: log2 of its base pages
 * @reclaim: __GFP_RECLAIM bits that an allocation may use when the pool has none; huge and other
 *	     large folios are never reclaimed for
 *
 * Return: the folio, with one reference; NULL.
 */
struct folio *memsluice_destination_get(int nid, unsigned int order, gfp_t reclaim);

/* Takes back a folio that was not needed. */
void memsluice_destination_put(struct folio *folio);

/*
 * Takes the reference of a folio that was moved away from: its node's pool may keep it for what
 * moves there, which spares an allocation, and clearing what the copy will overwrite.
 */
void memsluice_destination_reuse(struct folio *folio);

/* Of any folio: what is kept in a pool can be told from what else is in use. Context: any. */
bool memsluice_destination_is_pooled(const struct folio *folio);

/*
 * Memory of a node is about to be taken away: its pool is emptied, and stays empty until it has been
 * opened as often as it was closed.
 */
void memsluice_destinations_close(int nid);
void memsluice_destinations_open(int nid);

struct memsluice_pool_status {
	unsigned long pages; /* in the pool now */
	u64 hits; /* folios that came from it */
	u64 misses; /* that had to be allocated while somebody waited */
	u64 reused; /* that it kept after they had been moved away from */
};

struct memsluice_pool_status memsluice_pool_status(int nid);

int memsluice_destinations_start(void);
void memsluice_destinations_stop(void);

#endif
