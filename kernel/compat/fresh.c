// SPDX-License-Identifier: GPL-2.0
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "kernel/compat/fresh.h"

#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/page-flags.h>

#include "kernel/compat/symbols.h"

#ifdef MEMSLUICE_HAVE_FOLIO_FLAGS_STRUCT
#define flags_of(page) (&(page)->flags.f)
#else
#define flags_of(page) (&(page)->flags)
#endif

/* The kernel's statistics of large folios by size. */
static struct mthp_stat __percpu *large_statistics;

void memsluice_fresh_start(void)
{
	large_statistics =
		(struct mthp_stat __percpu __force *)memsluice_data_address("mthp_stats");
	if (!large_statistics)
		pr_warn("mthp_stats: this kernel does not have it; huge pages are not used again\n");
}

static void clear_flags(struct page *page, unsigned long which)
{
	unsigned long *flags = flags_of(page);

	/* Most pages of a huge one have none: their cache lines stay clean. */
	if (*flags & which)
		*flags &= ~which;
}

static void clear_tail_flags(struct folio *folio)
{
	unsigned long i;

	/* The other flags of the second page say what the whole folio is. */
	clear_flags(folio_page(folio, 1), BIT(PG_anon_exclusive));
	for (i = 2; i < folio_nr_pages(folio); i++)
		clear_flags(folio_page(folio, i), PAGE_FLAGS_CHECK_AT_PREP);
}

static bool may_be_used_again(struct folio *folio)
{
#ifdef CONFIG_MEMCG
	if (folio->memcg_data)
		return false;
#endif
	if (folio_test_large(folio) &&
	    (!large_statistics || folio_test_has_hwpoisoned(folio) ||
	     folio_test_partially_mapped(folio) || !list_empty(&folio->_deferred_list)))
		return false;
	return !folio_test_hwpoison(folio) && !folio_test_mlocked(folio) &&
	       !folio_test_hugetlb(folio) && !folio_is_zone_device(folio) && !want_init_on_free();
}

bool memsluice_make_fresh(struct folio *folio)
{
	bool large = folio_test_large(folio);

	if (!may_be_used_again(folio) || !folio_ref_freeze(folio, 1))
		return false;
	if (large) {
		if (folio_test_anon(folio))
			this_cpu_dec(
				large_statistics->stats[folio_order(folio)][MTHP_STAT_NR_ANON]);
		clear_tail_flags(folio);
	}
	folio->mapping = NULL;
	folio->private = NULL;
	clear_flags(&folio->page, PAGE_FLAGS_CHECK_AT_PREP & ~(large ? BIT(PG_head) : 0));
	folio_ref_unfreeze(folio, 1);
	return true;
}
