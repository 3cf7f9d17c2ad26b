/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_COPY_SHARE_H
#define MEMSLUICE_COPY_SHARE_H

#include <linux/types.h>

/*
 * Tenants that use one thing at once, and how much each may have of it. What is scarce is what is
 * under way: who has no more of that than others gets no more bandwidth than they do. Pure: also
 * compiled into the tests on the host.
 */
#define MEMSLUICE_SHARE_TENANTS 32
/* So long after it has last asked a tenant's part is kept for it. */
#define MEMSLUICE_SHARE_RECENT_NS 100000000ULL

struct memsluice_share_tenant {
	u64 id;
	u64 under_way;
	u64 asked_ns;
};

/* All zero: nobody has anything. */
struct memsluice_share {
	u64 under_way;
	struct memsluice_share_tenant tenants[MEMSLUICE_SHARE_TENANTS];
};

/**
 * memsluice_share_take() - may a tenant have this, too?
 * @share: what everybody has
 * @id: the tenant's
 * @amount: bytes, or whatever is shared
 * @most: what all may have together
 * @now_ns: never less than in a call before
 *
 * Where nothing is under way, anything may be had. Else never more than @most altogether; and a
 * tenant that has something gets no more than its equal part of @most, among those that have
 * something or have asked of late.
 *
 * Return: true, and what it has is counted until memsluice_share_give().
 */
bool memsluice_share_take(struct memsluice_share *share, u64 id, u64 amount, u64 most, u64 now_ns);

/* What a tenant has taken has ended. */
void memsluice_share_give(struct memsluice_share *share, u64 id, u64 amount);

#endif
