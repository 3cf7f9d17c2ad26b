// SPDX-License-Identifier: GPL-2.0
#include "kernel/copy/share.h"

static bool is_active(const struct memsluice_share_tenant *tenant, u64 now_ns)
{
	return tenant->under_way ||
	       (tenant->asked_ns && now_ns - tenant->asked_ns < MEMSLUICE_SHARE_RECENT_NS);
}

/* Its own place, else that of who has nothing and has not asked for longest; NULL: all have. */
static struct memsluice_share_tenant *find(struct memsluice_share *share, u64 id)
{
	struct memsluice_share_tenant *tenant, *oldest = NULL;
	int i;

	for (i = 0; i < MEMSLUICE_SHARE_TENANTS; i++) {
		tenant = &share->tenants[i];
		if (tenant->id == id && tenant->asked_ns)
			return tenant;
		if (!tenant->under_way && (!oldest || tenant->asked_ns < oldest->asked_ns))
			oldest = tenant;
	}
	return oldest;
}

static u64 count_active(const struct memsluice_share *share, u64 now_ns)
{
	u64 active = 0;
	int i;

	for (i = 0; i < MEMSLUICE_SHARE_TENANTS; i++)
		active += is_active(&share->tenants[i], now_ns);
	return active;
}

static bool fits(const struct memsluice_share *share, const struct memsluice_share_tenant *tenant,
		 u64 amount, u64 most, u64 now_ns)
{
	if (!share->under_way)
		return true;
	if (share->under_way >= most || amount > most - share->under_way)
		return false;
	return !tenant->under_way ||
	       tenant->under_way + amount <= most / count_active(share, now_ns);
}

bool memsluice_share_take(struct memsluice_share *share, u64 id, u64 amount, u64 most, u64 now_ns)
{
	struct memsluice_share_tenant *tenant = find(share, id);

	if (!tenant)
		return false;
	if (tenant->id != id || !tenant->asked_ns)
		*tenant = (struct memsluice_share_tenant){ .id = id };
	tenant->asked_ns = now_ns ?: 1;
	if (!fits(share, tenant, amount, most, now_ns))
		return false;
	tenant->under_way += amount;
	share->under_way += amount;
	return true;
}

void memsluice_share_give(struct memsluice_share *share, u64 id, u64 amount)
{
	find(share, id)->under_way -= amount;
	share->under_way -= amount;
}
