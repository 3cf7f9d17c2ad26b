// SPDX-License-Identifier: GPL-2.0
#include "kernel/channel/job.h"

#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

static void time_is_over(struct timer_list *timer)
{
	struct memsluice_job *job = container_of(timer, struct memsluice_job, timer);

	send_sig(SIGINT, job->thread, 1);
}

static int job_thread(void *private)
{
	struct memsluice_job *job = private;

	allow_signal(SIGINT);
	job->result = job->run(job);
	timer_delete_sync(&job->timer);
	complete_all(&job->done);
	return 0;
}

static void wait_for_end(struct memsluice_job *job)
{
	if (!job->has_deadline || !wait_for_completion_interruptible(&job->done))
		return;
	WRITE_ONCE(job->cancelled, true);
	send_sig(SIGINT, job->thread, 1);
}

int memsluice_job_run(struct memsluice_job *job, unsigned int deadline_ms)
{
	struct task_struct *thread;

	init_completion(&job->done);
	timer_setup(&job->timer, time_is_over, 0);
	job->has_deadline = deadline_ms;
	job->ends_at = jiffies + msecs_to_jiffies(deadline_ms);
	thread = kthread_create(job_thread, job, "memsluice_plug");
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	/* It may have ended before it is sent a signal, or is waited for. */
	job->thread = get_task_struct(thread);
	wake_up_process(thread);
	wait_for_end(job);
	wait_for_completion(&job->done);
	/* Until it has left the module's text. */
	kthread_stop_put(thread);
	return job->result;
}

int memsluice_job_stopped(const struct memsluice_job *job)
{
	if (READ_ONCE(job->cancelled))
		return -EINTR;
	if (job->has_deadline && time_after_eq(jiffies, job->ends_at))
		return -ETIMEDOUT;
	return 0;
}

void memsluice_job_interrupt_after(struct memsluice_job *job, unsigned int ms)
{
	unsigned long then = jiffies + msecs_to_jiffies(ms);

	if (job->has_deadline && time_after(then, job->ends_at))
		then = job->ends_at;
	mod_timer(&job->timer, then);
}

void memsluice_job_calm(struct memsluice_job *job)
{
	timer_delete_sync(&job->timer);
	flush_signals(current);
}
