/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM memsluice

#if !defined(MEMSLUICE_DSA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define MEMSLUICE_DSA_TRACE_H

#include <linux/tracepoint.h>

#include "kernel/dsa/call.h"

TRACE_EVENT(memsluice_dsa_call,
	TP_PROTO(const struct memsluice_dsa_call *call, u64 ns),
	TP_ARGS(call, ns),
	TP_STRUCT__entry(
		__field(unsigned int, queues)
		__field(unsigned int, folios)
		__field(unsigned int, failed)
		__field(unsigned int, late)
		__field(u64, bytes)
		__field(bool, slept)
		__field(u64, expected_ns)
		__field(u64, ns)
	),
	TP_fast_assign(
		__entry->queues = call->queue_count;
		__entry->folios = call->count;
		__entry->failed = call->result.failed;
		__entry->late = call->result.late;
		__entry->bytes = call->result.bytes;
		__entry->slept = call->result.slept;
		__entry->expected_ns = call->expected_ns;
		__entry->ns = ns;
	),
	TP_printk("queues=%u folios=%u bytes=%llu failed=%u late=%u slept=%d expected_ns=%llu ns=%llu",
		  __entry->queues, __entry->folios, __entry->bytes, __entry->failed, __entry->late,
		  __entry->slept, __entry->expected_ns, __entry->ns)
);

TRACE_EVENT(memsluice_dsa_failure,
	TP_PROTO(const char *queue, u8 status),
	TP_ARGS(queue, status),
	TP_STRUCT__entry(
		__string(queue, queue)
		__field(u8, status)
	),
	TP_fast_assign(
		__assign_str(queue);
		__entry->status = status;
	),
	TP_printk("queue=%s status=0x%02x", __get_str(queue), __entry->status)
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
