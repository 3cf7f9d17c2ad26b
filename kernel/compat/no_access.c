// SPDX-License-Identifier: GPL-2.0
/*
 * pte_modify() is inline, but where memory may be encrypted it looks at a variable that is not
 * exported: here it looks at a copy.
 */
#define cc_mask memsluice_cc_mask

#include "kernel/compat/no_access.h"

#include "kernel/compat/symbols.h"

#ifdef CONFIG_ARCH_HAS_CC_PLATFORM
u64 cc_mask;

bool memsluice_no_access_start(void)
{
	unsigned long address = memsluice_data_address("cc_mask");

	/* It never changes after boot. */
	if (address)
		cc_mask = *(u64 *)address;
	return address;
}
#else
bool memsluice_no_access_start(void)
{
	return true;
}
#endif

pte_t memsluice_pte_no_access(pte_t entry)
{
	return pte_modify(entry, PAGE_NONE);
}

pmd_t memsluice_pmd_no_access(pmd_t entry)
{
	return pmd_modify(entry, PAGE_NONE);
}
