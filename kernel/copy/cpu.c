// SPDX-License-Identifier: GPL-2.0
#include "kernel/copy/cpu.h"

#include <linux/mm.h>
#include <linux/module.h>

static void copy(struct memsluice_copy *copies, unsigned int count)
{
	unsigned int i;

	/* A source with an uncorrectable error costs its page, not the machine. */
	for (i = 0; i < count; i++)
		copies[i].error = folio_mc_copy(copies[i].destination, copies[i].source);
}

struct memsluice_copy_engine memsluice_copy_cpu = {
	.name = "cpu",
	.owner = THIS_MODULE,
	.copy = copy,
};
