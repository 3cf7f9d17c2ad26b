// SPDX-License-Identifier: GPL-2.0
#include <linux/migrate.h>

int migrate_pages(struct list_head *from, new_folio_t get_new_folio, free_folio_t put_new_folio,
		  unsigned long private, enum migrate_mode mode, enum migrate_reason reason,
		  unsigned int *ret_succeeded);
