// SPDX-License-Identifier: GPL-2.0
#include <linux/rmap.h>

void remove_migration_ptes(struct folio *src, struct folio *dst, enum ttu_flags flags);
