// SPDX-License-Identifier: GPL-2.0
#include <linux/mm.h>
#include <linux/mmu_notifier.h>

bool ptep_test_and_clear_young(struct vm_area_struct *vma, unsigned long addr, pte_t *ptep);
bool pmdp_test_and_clear_young(struct vm_area_struct *vma, unsigned long addr, pmd_t *pmdp);
bool __mmu_notifier_clear_young(struct mm_struct *mm, unsigned long start, unsigned long end);
