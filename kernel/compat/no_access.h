/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_COMPAT_NO_ACCESS_H
#define MEMSLUICE_COMPAT_NO_ACCESS_H

#include <linux/mm.h>

/* Finds what the other two need of the kernel. Return: false when it is not there. */
bool memsluice_no_access_start(void);

/* A page table entry of the same page that allows no access: pte_modify(entry, PAGE_NONE). */
pte_t memsluice_pte_no_access(pte_t entry);
pmd_t memsluice_pmd_no_access(pmd_t entry);

#endif
