// SPDX-License-Identifier: GPL-2.0
#include "kernel/compat/hook.h"

int memsluice_hook(struct ftrace_ops *ops, unsigned long address)
{
	int err = ftrace_set_filter_ip(ops, address, 0, 0);

	if (err)
		return err;
	err = register_ftrace_function(ops);
	if (err)
		ftrace_set_filter_ip(ops, address, 1, 0);
	return err;
}

/* Not by ftrace_free_filter(), which on 6.12 leaves pointers behind. */
void memsluice_unhook(struct ftrace_ops *ops, unsigned long address)
{
	unregister_ftrace_function(ops);
	ftrace_set_filter_ip(ops, address, 1, 0);
}
