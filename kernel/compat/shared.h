/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_COMPAT_SHARED_H
#define MEMSLUICE_COMPAT_SHARED_H

#include <linux/mm.h>

/* Whether more than one process maps a folio; for a large one it may be a guess. */
#ifdef MEMSLUICE_HAVE_FOLIO_MAYBE_MAPPED_SHARED
#define memsluice_is_shared folio_maybe_mapped_shared
#else
#define memsluice_is_shared folio_likely_mapped_shared
#endif

#endif
