/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_COMPAT_REGISTERS_H
#define MEMSLUICE_COMPAT_REGISTERS_H

#include <linux/ftrace.h>

#ifdef CONFIG_X86_64
#define MEMSLUICE_CAN_SET_ARGUMENTS 1

/* What the traced function finds as its argument @n, 0 to 2, when the handler has returned. */
static inline void memsluice_set_argument(struct ftrace_regs *registers, int n, void *value)
{
	struct pt_regs *regs = &arch_ftrace_regs(registers)->regs;
	unsigned long *arguments[] = { &regs->di, &regs->si, &regs->dx };

	*arguments[n] = (unsigned long)value;
}
#else
#define MEMSLUICE_CAN_SET_ARGUMENTS 0

static inline void memsluice_set_argument(struct ftrace_regs *registers, int n, void *value)
{
}
#endif

#endif
