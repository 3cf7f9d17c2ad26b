/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_DSA_QUEUE_H
#define MEMSLUICE_DSA_QUEUE_H

#include <linux/list.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>

#include "include/uapi/memsluice.h"
#include "kernel/copy/share.h"
#include "kernel/dsa/idxd.h"

struct completion;
struct folio;
struct seq_file;

/* Descriptors of one batch. More are not faster, and each costs memory in every list. */
#define MEMSLUICE_DSA_BATCH_MAX 128U

/* What one MEMMOVE copies. */
struct memsluice_dsa_piece {
	struct folio *destination;
	dma_addr_t source_dma; /* where the device finds it */
	dma_addr_t destination_dma;
	u32 folio; /* its number in the call */
	u32 offset_bytes;
	u32 bytes;
};

/* The list of a batch, and one completion record for each entry. */
struct memsluice_dsa_list {
	struct list_head link; /* in the queue's lists while nobody uses it */
	struct dsa_hw_desc *entries;
	struct dsa_completion_record *records; /* behind the entries */
	dma_addr_t entries_dma;
	dma_addr_t records_dma;
	u32 count;
	struct memsluice_dsa_piece pieces[MEMSLUICE_DSA_BATCH_MAX];
};

/* What is known of a descriptor of idxd's, by its id. */
struct memsluice_dsa_slot {
	struct list_head link; /* of those that a call waits for, or of the queue's late ones */
	struct memsluice_dsa_queue *queue;
	struct idxd_desc *desc;
	struct memsluice_dsa_list *list; /* of a BATCH; else NULL, and it copies at most @piece */
	struct memsluice_dsa_piece piece;
	bool interrupts; /* a DRAIN whose interrupt is to come; this and the next: queue's lock */
	struct completion *waiter; /* whom it wakes */
};

struct memsluice_dsa_counts {
	u64 descriptors;
	u64 batches;
	u64 bytes;
	u64 errors;
	u64 late;
	u64 released; /* late ones that have ended since, or whose device was reset */
	u64 by_status[DSA_COMP_STATUS_MASK + 1];
};

struct memsluice_dsa_queue {
	struct list_head link;
	struct idxd_wq *wq;
	int node;
	bool maps; /* the device's addresses are not physical ones */
	u32 max_transfer_bytes;
	u32 max_batch;
	unsigned int slot_count;
	struct memsluice_dsa_slot *slots;
	unsigned int list_count;
	struct memsluice_dsa_list *all_lists;

	spinlock_t lock; /* all below */
	struct list_head lists;
	struct list_head late;
	enum memsluice_queue_state state; /* never MEMSLUICE_QUEUE_DRAINED, but: */
	bool drained; /* by somebody's wish it copies nothing, whatever its state */
	struct memsluice_share share; /* of the bytes that it is copying */
	unsigned int interrupts; /* that are to come */
	unsigned int failures; /* in a row */
	unsigned int rest_ms; /* the last one */
	unsigned long test_at; /* jiffies */
	struct memsluice_dsa_counts counts;
};

/* All queues. Held for reading by whoever copies, for as long as he does: they stay in place. */
extern struct rw_semaphore memsluice_dsa_queues_lock;
extern struct list_head memsluice_dsa_queues;

/* May calls copy through it? */
static inline bool memsluice_dsa_is_up(const struct memsluice_dsa_queue *queue)
{
	return READ_ONCE(queue->state) == MEMSLUICE_QUEUE_UP && !READ_ONCE(queue->drained);
}

static inline struct device *memsluice_dsa_device(struct memsluice_dsa_queue *queue)
{
	return &queue->wq->idxd->pdev->dev;
}

static inline const char *memsluice_dsa_name(struct memsluice_dsa_queue *queue)
{
	return dev_name(&queue->wq->idxd_dev.conf_dev);
}

/**
 * memsluice_dsa_queue_new() - what is needed to copy through a queue that idxd has enabled
 * @wq: stays idxd's
 *
 * Return: the queue, not in the list yet; an ERR_PTR: -EINVAL when it transfers less than a page.
 */
struct memsluice_dsa_queue *memsluice_dsa_queue_new(struct idxd_wq *wq);

/* Nobody copies through it any more, and nothing is late. */
void memsluice_dsa_queue_free(struct memsluice_dsa_queue *queue);

/**
 * memsluice_dsa_map() - find out which addresses the device has to use
 * @queue: of the device
 * @source: what @piece copies from
 * @piece: without its addresses, which are set
 *
 * Context: any that DMA mappings allow; allocates no memory with reclaim.
 * Return: 0; -ENOMEM when it cannot be mapped.
 */
int memsluice_dsa_map(struct memsluice_dsa_queue *queue, struct folio *source,
		      struct memsluice_dsa_piece *piece);

/* The device neither reads nor writes it any more; the CPU may look at the destination only now. */
void memsluice_dsa_unmap(struct memsluice_dsa_queue *queue,
			 const struct memsluice_dsa_piece *piece);

/* NULL: all are in use. */
struct memsluice_dsa_list *memsluice_dsa_list_get(struct memsluice_dsa_queue *queue);
void memsluice_dsa_list_put(struct memsluice_dsa_queue *queue, struct memsluice_dsa_list *list);

/*
 * A descriptor that asks for its record, with nothing else set. Return: -EAGAIN when all are in use,
 * -EIO when the device has been halted.
 */
struct memsluice_dsa_slot *memsluice_dsa_slot_get(struct memsluice_dsa_queue *queue);

/* What it copies. Return: the first piece. */
static inline const struct memsluice_dsa_piece *
memsluice_dsa_slot_pieces(const struct memsluice_dsa_slot *slot, u32 *count)
{
	*count = slot->list ? slot->list->count : !!slot->piece.bytes;
	return slot->list ? slot->list->pieces : &slot->piece;
}

/* The descriptor has ended: it and its list may be used again. */
void memsluice_dsa_slot_free(struct memsluice_dsa_slot *slot);

/* It has ended, well or not. */
static inline bool memsluice_dsa_slot_ended(const struct memsluice_dsa_slot *slot)
{
	return READ_ONCE(slot->desc->completion->status);
}

/* As the specification names it. */
const char *memsluice_dsa_status_name(u8 status);

#endif
