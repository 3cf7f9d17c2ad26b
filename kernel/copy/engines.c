// SPDX-License-Identifier: GPL-2.0
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "kernel/copy/engines.h"

#include <linux/module.h>
#include <linux/rwsem.h>
#include <linux/seq_file.h>
#include <linux/string.h>

#include "kernel/copy/cpu.h"

static LIST_HEAD(engines); /* by rank, highest first; without `cpu` */
static DECLARE_RWSEM(engines_lock); /* held for reading by whoever copies */

int memsluice_copy_engine_register(struct memsluice_copy_engine *engine)
{
	struct memsluice_copy_engine *at;
	int err = 0;

	if (!engine->name || !engine->owner || !engine->copy || engine->rank < 1)
		return -EINVAL;
	if (!strcmp(engine->name, memsluice_copy_cpu.name))
		return -EEXIST;
	down_write(&engines_lock);
	list_for_each_entry(at, &engines, link) {
		if (!strcmp(at->name, engine->name) || at->rank == engine->rank)
			err = -EEXIST;
	}
	if (!err) {
		list_for_each_entry(at, &engines, link) {
			if (at->rank < engine->rank)
				break;
		}
		list_add_tail(&engine->link, &at->link);
	}
	up_write(&engines_lock);
	if (!err)
		pr_info("copy engine %s: registered, rank %d\n", engine->name, engine->rank);
	return err;
}
EXPORT_SYMBOL_GPL(memsluice_copy_engine_register);

void memsluice_copy_engine_unregister(struct memsluice_copy_engine *engine)
{
	down_write(&engines_lock);
	list_del(&engine->link);
	up_write(&engines_lock);
	pr_info("copy engine %s: gone\n", engine->name);
}
EXPORT_SYMBOL_GPL(memsluice_copy_engine_unregister);

static const struct memsluice_copy_engine *first(void)
{
	return list_first_entry_or_null(&engines, struct memsluice_copy_engine, link) ?:
		       &memsluice_copy_cpu;
}

const struct memsluice_copy_engine *memsluice_copy_begin(void)
{
	down_read(&engines_lock);
	return first();
}

const struct memsluice_copy_engine *memsluice_copy_try_begin(void)
{
	return down_read_trylock(&engines_lock) ? first() : NULL;
}

void memsluice_copy_end(void)
{
	up_read(&engines_lock);
}

struct memsluice_copy_outcome memsluice_copy(const struct memsluice_copy_engine *engine,
					     struct memsluice_copy *copies, unsigned int count)
{
	struct memsluice_copy_outcome outcome = {};
	unsigned int i;

	engine->copy(copies, count);
	for (i = 0; i < count; i++) {
		int err = copies[i].error;

		if (err && engine != &memsluice_copy_cpu && !copies[i].late) {
			memsluice_copy_cpu.copy(&copies[i], 1);
			outcome.declined += err == -EAGAIN;
			outcome.fell_back += err != -EAGAIN && !copies[i].error;
		}
		outcome.failed += !!copies[i].error;
	}
	return outcome;
}

static const struct memsluice_copy_engine *at(u32 index)
{
	const struct memsluice_copy_engine *engine;

	lockdep_assert_held(&engines_lock);
	list_for_each_entry(engine, &engines, link) {
		if (!index--)
			return engine;
	}
	return index ? NULL : &memsluice_copy_cpu;
}

static const struct memsluice_copy_engine *named(const char *name)
{
	const struct memsluice_copy_engine *engine;

	lockdep_assert_held(&engines_lock);
	list_for_each_entry(engine, &engines, link) {
		if (!strcmp(engine->name, name))
			return engine;
	}
	return strcmp(memsluice_copy_cpu.name, name) ? NULL : &memsluice_copy_cpu;
}

static bool is_name(const char *text)
{
	size_t length = strnlen(text, MEMSLUICE_ENGINE_NAME_BYTES);

	return length && length < MEMSLUICE_ENGINE_NAME_BYTES;
}

int memsluice_copy_engine_status(struct memsluice_engine_status *status)
{
	const struct memsluice_copy_engine *engine;

	*status = (struct memsluice_engine_status){ .size = status->size, .index = status->index };
	down_read(&engines_lock);
	engine = at(status->index);
	if (engine) {
		strscpy(status->name, engine->name);
		status->rank = engine->rank;
		if (engine->status)
			engine->status(status);
	}
	up_read(&engines_lock);
	return engine ? 0 : -ENOENT;
}

int memsluice_copy_engine_queue(struct memsluice_engine_queue *queue)
{
	const struct memsluice_copy_engine *engine;
	int err = -ENOENT;

	if (!is_name(queue->engine))
		return -EINVAL;
	down_read(&engines_lock);
	engine = named(queue->engine);
	if (engine && engine->queue && engine->queue(queue))
		err = 0;
	up_read(&engines_lock);
	return err;
}

int memsluice_copy_engine_act(const struct memsluice_engine_act *act)
{
	const struct memsluice_copy_engine *engine;
	int err = -ENOENT;

	if (!is_name(act->engine) || !is_name(act->queue))
		return -EINVAL;
	down_read(&engines_lock);
	engine = named(act->engine);
	if (engine)
		err = engine->act ? engine->act(act->action, act->queue) : -EOPNOTSUPP;
	up_read(&engines_lock);
	return err;
}

static void show(struct seq_file *file, const struct memsluice_copy_engine *engine)
{
	seq_printf(file, "engine %s rank %d\n", engine->name, engine->rank);
	if (engine->show)
		engine->show(file);
}

void memsluice_copy_engines_show(struct seq_file *file)
{
	const struct memsluice_copy_engine *engine;

	down_read(&engines_lock);
	list_for_each_entry(engine, &engines, link)
		show(file, engine);
	up_read(&engines_lock);
	show(file, &memsluice_copy_cpu);
}
