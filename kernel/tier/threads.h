/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_TIER_THREADS_H
#define MEMSLUICE_TIER_THREADS_H

/* Two threads, one that promotes and one that demotes the pages of all tenants. */

extern unsigned int memsluice_tier_period_ms; /* how often each of them looks */
/* Of the memory of tier 0. Below low, cold pages leave until high is free; promotion keeps high. */
extern unsigned int memsluice_fast_free_low_percent;
extern unsigned int memsluice_fast_free_high_percent;

int memsluice_tier_start(void);
void memsluice_tier_stop(void);

#endif
