// SPDX-License-Identifier: GPL-2.0
#include <linux/mm.h>

bool probe(struct folio *folio);
bool probe(struct folio *folio)
{
	return folio_maybe_mapped_shared(folio);
}
