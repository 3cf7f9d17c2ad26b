/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_HOTNESS_SCAN_H
#define MEMSLUICE_HOTNESS_SCAN_H

#include <linux/types.h>

/*
 * A thread that reads and clears the accessed bits of all processes of all tenants, round after
 * round, and publishes a histogram for each tenant after each round.
 */

extern unsigned int memsluice_scan_period_ms; /* from the start of one round to the next */
extern unsigned int memsluice_scan_cpu_percent; /* of one CPU, at most; rounds then take longer */
extern unsigned int memsluice_cooling_scans; /* counts are halved every so many rounds */

/* @secondary: clear the accessed bits of secondary page tables (VMs), too. */
int memsluice_scan_start(bool secondary);
void memsluice_scan_stop(void);

#endif
