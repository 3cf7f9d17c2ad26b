/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_CHANNEL_EVACUATE_H
#define MEMSLUICE_CHANNEL_EVACUATE_H

#include <linux/types.h>

/**
 * memsluice_evacuate() - move what is charged to cgroups off a node
 * @nid: the node, among no tenant's channels
 * @moved_pages: pages that move are added while they do
 *
 * Pages of a placed tenant go to where its placement has them; what finds no room there, and what
 * belongs to others, to the nearest nodes that have room. What cannot be moved stays.
 *
 * Context: process; ends when a signal comes.
 */
void memsluice_evacuate(int nid, u64 *moved_pages);

/* Free pages of all other nodes, for pages of processes. */
unsigned long memsluice_room_elsewhere(int nid);

#endif
