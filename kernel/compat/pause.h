/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_COMPAT_PAUSE_H
#define MEMSLUICE_COMPAT_PAUSE_H

#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/sched.h>

/* Lets a kernel thread sleep, not counted as load; kthread_stop() ends the sleep at once. */
static inline void memsluice_pause_ns(u64 ns)
{
	set_current_state(TASK_IDLE);
	if (!kthread_should_stop())
		schedule_timeout(nsecs_to_jiffies(ns) + 1);
	__set_current_state(TASK_RUNNING);
}

#endif
