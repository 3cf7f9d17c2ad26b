/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_COMPAT_FRESH_H
#define MEMSLUICE_COMPAT_FRESH_H

#include <linux/types.h>

struct folio;

/**
 * memsluice_fresh_start() - find what memsluice_make_fresh() needs of the kernel
 *
 * Context: once memsluice_symbols_bind() has succeeded. Without it, or when something is missing,
 * huge pages cannot be made fresh.
 */
void memsluice_fresh_start(void);

/**
 * memsluice_make_fresh() - make a folio that was moved away from look like a new one
 * @folio: a base page or a huge one that is mapped nowhere, on no list and charged to nobody; the
 *	   caller holds what should be the only reference
 *
 * What freeing and allocating would do to it, but for clearing its contents: they must be
 * overwritten as a whole before anybody sees them.
 *
 * Return: true; false when it has to be freed: somebody else still has a reference, or the kernel
 * was told to clear memory that is freed.
 */
bool memsluice_make_fresh(struct folio *folio);

#endif
