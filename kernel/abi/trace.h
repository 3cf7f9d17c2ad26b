/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM memsluice

#if !defined(MEMSLUICE_ABI_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define MEMSLUICE_ABI_TRACE_H

#include <linux/tracepoint.h>

TRACE_EVENT(memsluice_move,
	TP_PROTO(int target_node, int why, u64 moved_pages, u64 refused_pages),
	TP_ARGS(target_node, why, moved_pages, refused_pages),
	TP_STRUCT__entry(
		__field(int, target_node)
		__field(int, why)
		__field(u64, moved_pages)
		__field(u64, refused_pages)
	),
	TP_fast_assign(
		__entry->target_node = target_node;
		__entry->why = why;
		__entry->moved_pages = moved_pages;
		__entry->refused_pages = refused_pages;
	),
	TP_printk("target_node=%d why=%s moved_pages=%llu refused_pages=%llu",
		  __entry->target_node,
		  __print_symbolic(__entry->why, { 0, "request" }, { 1, "promotion" },
				   { 2, "demotion" }),
		  __entry->moved_pages, __entry->refused_pages)
);

/* The phases of a batch; each event comes when its phase has ended. */
TRACE_EVENT(memsluice_batch_planned,
	TP_PROTO(int target_node, unsigned int folios, u64 bytes, u64 expected_ns, u64 bound_ns),
	TP_ARGS(target_node, folios, bytes, expected_ns, bound_ns),
	TP_STRUCT__entry(
		__field(int, target_node)
		__field(unsigned int, folios)
		__field(u64, bytes)
		__field(u64, expected_ns)
		__field(u64, bound_ns)
	),
	TP_fast_assign(
		__entry->target_node = target_node;
		__entry->folios = folios;
		__entry->bytes = bytes;
		__entry->expected_ns = expected_ns;
		__entry->bound_ns = bound_ns;
	),
	TP_printk("target_node=%d folios=%u bytes=%llu expected_ns=%llu bound_ns=%llu",
		  __entry->target_node, __entry->folios, __entry->bytes, __entry->expected_ns,
		  __entry->bound_ns)
);

TRACE_EVENT(memsluice_batch_unmapped,
	TP_PROTO(int target_node, unsigned int folios, u64 bytes, unsigned int flushes),
	TP_ARGS(target_node, folios, bytes, flushes),
	TP_STRUCT__entry(
		__field(int, target_node)
		__field(unsigned int, folios)
		__field(u64, bytes)
		__field(unsigned int, flushes)
	),
	TP_fast_assign(
		__entry->target_node = target_node;
		__entry->folios = folios;
		__entry->bytes = bytes;
		__entry->flushes = flushes;
	),
	TP_printk("target_node=%d folios=%u bytes=%llu flushes=%u", __entry->target_node,
		  __entry->folios, __entry->bytes, __entry->flushes)
);

TRACE_EVENT(memsluice_batch_copied,
	TP_PROTO(const char *engine, unsigned int folios, u64 bytes, unsigned int fell_back,
		 unsigned int failed),
	TP_ARGS(engine, folios, bytes, fell_back, failed),
	TP_STRUCT__entry(
		__array(char, engine, 16)
		__field(unsigned int, folios)
		__field(u64, bytes)
		__field(unsigned int, fell_back)
		__field(unsigned int, failed)
	),
	TP_fast_assign(
		strscpy(__entry->engine, engine, sizeof(__entry->engine));
		__entry->folios = folios;
		__entry->bytes = bytes;
		__entry->fell_back = fell_back;
		__entry->failed = failed;
	),
	TP_printk("engine=%s folios=%u bytes=%llu fell_back=%u failed=%u", __entry->engine,
		  __entry->folios, __entry->bytes, __entry->fell_back, __entry->failed)
);

TRACE_EVENT(memsluice_batch_mapped,
	TP_PROTO(int target_node, unsigned int folios, u64 bytes, u64 stall_ns),
	TP_ARGS(target_node, folios, bytes, stall_ns),
	TP_STRUCT__entry(
		__field(int, target_node)
		__field(unsigned int, folios)
		__field(u64, bytes)
		__field(u64, stall_ns)
	),
	TP_fast_assign(
		__entry->target_node = target_node;
		__entry->folios = folios;
		__entry->bytes = bytes;
		__entry->stall_ns = stall_ns;
	),
	TP_printk("target_node=%d folios=%u bytes=%llu stall_ns=%llu", __entry->target_node,
		  __entry->folios, __entry->bytes, __entry->stall_ns)
);

TRACE_EVENT(memsluice_request_begin,
	TP_PROTO(u64 id, int kind, int target_node),
	TP_ARGS(id, kind, target_node),
	TP_STRUCT__entry(
		__field(u64, id)
		__field(int, kind)
		__field(int, target_node)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->kind = kind;
		__entry->target_node = target_node;
	),
	TP_printk("id=%llu kind=%s target_node=%d", __entry->id,
		  __print_symbolic(__entry->kind, { 0, "range" }, { 1, "addresses" },
				   { 2, "tenant_node" }),
		  __entry->target_node)
);

TRACE_EVENT(memsluice_request_end,
	TP_PROTO(u64 id, int error),
	TP_ARGS(id, error),
	TP_STRUCT__entry(
		__field(u64, id)
		__field(int, error)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->error = error;
	),
	TP_printk("id=%llu error=%d", __entry->id, __entry->error)
);

TRACE_EVENT(memsluice_scan,
	TP_PROTO(u64 cgroup_id, u64 fast_pages, u64 slow_pages, u64 cpu_us),
	TP_ARGS(cgroup_id, fast_pages, slow_pages, cpu_us),
	TP_STRUCT__entry(
		__field(u64, cgroup_id)
		__field(u64, fast_pages)
		__field(u64, slow_pages)
		__field(u64, cpu_us)
	),
	TP_fast_assign(
		__entry->cgroup_id = cgroup_id;
		__entry->fast_pages = fast_pages;
		__entry->slow_pages = slow_pages;
		__entry->cpu_us = cpu_us;
	),
	TP_printk("cgroup_id=%llu fast_pages=%llu slow_pages=%llu cpu_us=%llu",
		  __entry->cgroup_id, __entry->fast_pages, __entry->slow_pages, __entry->cpu_us)
);

TRACE_EVENT(memsluice_tier,
	TP_PROTO(u64 cgroup_id, bool promotion, u32 bin, u64 planned_pages, u64 moved_pages),
	TP_ARGS(cgroup_id, promotion, bin, planned_pages, moved_pages),
	TP_STRUCT__entry(
		__field(u64, cgroup_id)
		__field(bool, promotion)
		__field(u32, bin)
		__field(u64, planned_pages)
		__field(u64, moved_pages)
	),
	TP_fast_assign(
		__entry->cgroup_id = cgroup_id;
		__entry->promotion = promotion;
		__entry->bin = bin;
		__entry->planned_pages = planned_pages;
		__entry->moved_pages = moved_pages;
	),
	TP_printk("cgroup_id=%llu direction=%s bin=%u planned_pages=%llu moved_pages=%llu",
		  __entry->cgroup_id, __entry->promotion ? "up" : "down", __entry->bin,
		  __entry->planned_pages, __entry->moved_pages)
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
