/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_CHANNEL_NODES_H
#define MEMSLUICE_CHANNEL_NODES_H

#include "include/uapi/memsluice.h"

/* Channels: nodes that have a name, and those that were made of withheld memory. */

/* Context: process. Return: 0, or a negative errno as in struct memsluice_channel_add. */
int memsluice_channel_add(struct memsluice_channel_add *add);

/* Context: process. Return: 0, or a negative errno as in struct memsluice_channel_remove. */
int memsluice_channel_remove(struct memsluice_channel_remove *remove);

/* Return: 0; -ENOENT: there is no channel @status->index. */
int memsluice_channel_status(struct memsluice_channel_status *status);

int memsluice_channels_start(void);
/* When no call of the above is under way. */
void memsluice_channels_stop(void);

#endif
