// SPDX-License-Identifier: GPL-2.0
#include <linux/rmap.h>

struct anon_vma *folio_get_anon_vma(const struct folio *folio);
