// SPDX-License-Identifier: GPL-2.0
#include <linux/mm_types.h>

unsigned long *probe(struct folio *folio);
unsigned long *probe(struct folio *folio)
{
	return &folio->flags.f;
}
