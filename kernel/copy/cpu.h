/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_COPY_CPU_H
#define MEMSLUICE_COPY_CPU_H

#include "kernel/copy/engines.h"

extern struct memsluice_copy_engine memsluice_copy_cpu;

#endif
