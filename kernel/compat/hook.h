/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_COMPAT_HOOK_H
#define MEMSLUICE_COMPAT_HOOK_H

#include <linux/ftrace.h>

/**
 * memsluice_hook() - have the handler of @ops called when a function is
 * @ops: hooks nothing yet
 * @address: of the function
 *
 * Context: process.
 * Return: 0; what ftrace says: -EBUSY, when it is switched off or something else has replaced the
 * function, and others.
 */
int memsluice_hook(struct ftrace_ops *ops, unsigned long address);

/* When it returns, nobody is in the handler any more. */
void memsluice_unhook(struct ftrace_ops *ops, unsigned long address);

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
