/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_DSA_REPORT_H
#define MEMSLUICE_DSA_REPORT_H

#include "include/uapi/memsluice.h"

struct seq_file;

/* What a copy engine tells of itself: kernel/copy/engines.h. Context: process, may sleep. */
void memsluice_dsa_show(struct seq_file *file);
void memsluice_dsa_status(struct memsluice_engine_status *status);
bool memsluice_dsa_queue_at(struct memsluice_engine_queue *out);

#endif
