/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_CHANNEL_JOB_H
#define MEMSLUICE_CHANNEL_JOB_H

#include <linux/completion.h>
#include <linux/timer.h>
#include <linux/types.h>

/*
 * Something that takes memory away or brings it, in a thread of its own. Who asked for it may be
 * killed meanwhile, and a node that comes online on behalf of who is being killed gets no kswapd.
 * And what tries to take memory offline tries for ever: nothing but a signal ends it, which a
 * thread of ours can be sent at any time.
 */
struct memsluice_job {
	int (*run)(struct memsluice_job *job);
	int result;
	/* private: */
	struct completion done;
	struct task_struct *thread;
	struct timer_list timer;
	bool has_deadline;
	bool cancelled;
	unsigned long ends_at; /* jiffies */
};

/**
 * memsluice_job_run() - run a job, and wait until it has ended
 * @job: zeros but for @run; not on a stack
 * @deadline_ms: 0: it is neither ended by time nor by a signal to the caller
 *
 * Context: process.
 * Return: what @run returned; -EINTR or -ENOMEM when there could be no thread.
 */
int memsluice_job_run(struct memsluice_job *job, unsigned int deadline_ms);

/* For the job. Return: 0; -EINTR when the caller wants it to end; -ETIMEDOUT. */
int memsluice_job_stopped(const struct memsluice_job *job);

/*
 * For the job: what it does from now on gets a signal after so much time, at the deadline, or when the
 * caller wants it to end, whichever comes first.
 */
void memsluice_job_interrupt_after(struct memsluice_job *job, unsigned int ms);
/* For the job: no signal is pending, and none comes any more but from the caller. */
void memsluice_job_calm(struct memsluice_job *job);

#endif
