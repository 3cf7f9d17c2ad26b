/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_CHANNEL_BLOCKS_H
#define MEMSLUICE_CHANNEL_BLOCKS_H

#include <linux/types.h>

/* Memory blocks, in which memory comes and goes. Those of a range are asked for by where they begin. */

struct memsluice_blocks {
	u32 online;
	u32 movable; /* of these, in a zone that has no kernel memory */
};

/* Counts the blocks of a node in a range. Context: any; they may change meanwhile. */
struct memsluice_blocks memsluice_blocks_count(int nid, u64 start, u64 end);

bool memsluice_block_is_online(u64 start);

/**
 * memsluice_blocks_check() - can a range of physical memory be given to the kernel?
 * @start: in bytes
 * @length: in bytes
 *
 * Return: 0; -ERANGE, -EADDRINUSE, -EADDRNOTAVAIL as in struct memsluice_channel_add.
 */
int memsluice_blocks_check(u64 start, u64 length);

/*
 * What follows is for nobody who may be killed meanwhile: his node would come online without a kswapd.
 * The caller keeps the blocks from coming online in any zone but the movable one, whoever tries to.
 */

/**
 * memsluice_blocks_add() - make a range the memory of a node
 * @nid: possible, without memory
 * @start: checked
 * @length: checked
 *
 * The kernel brings blocks online at once, if it is to.
 *
 * Return: 0; -EADDRINUSE; another negative errno: then nothing may be done with the range.
 */
int memsluice_blocks_add(int nid, u64 start, u64 length);

/* Those that are not yet. @onlined_by: out. Return: 0, or a negative errno when one stays offline. */
int memsluice_blocks_online(u64 start, u64 length, u32 *onlined_by);

/*
 * Takes a range away. Blocks that are online are taken offline first. Return: 0; -EINTR when a signal
 * came; another negative errno. Then they are online again.
 */
int memsluice_blocks_remove(u64 start, u64 length);

/*
 * Moves what is on a block elsewhere, and takes it offline. Return: 0; -EINTR when a signal came;
 * another negative errno. Then it is online.
 */
int memsluice_block_offline(u64 start);

/* Return: 0, or a negative errno. */
int memsluice_block_online(u64 start);

#endif
