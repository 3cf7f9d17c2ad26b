// SPDX-License-Identifier: GPL-2.0
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "kernel/dsa/queue.h"

#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/slab.h>

#define LISTS_MAX 16U
/* A folio's part is a u32, and planned as one. */
#define TRANSFER_MAX (1U << 30)
#define LIST_BYTES                                                                                 \
	(MEMSLUICE_DSA_BATCH_MAX *                                                                 \
	 (sizeof(struct dsa_hw_desc) + sizeof(struct dsa_completion_record)))

DECLARE_RWSEM(memsluice_dsa_queues_lock);
LIST_HEAD(memsluice_dsa_queues);

static const struct {
	u8 status;
	const char *name;
} status_names[] = {
	{ DSA_COMP_SUCCESS, "success" },
	{ DSA_COMP_SUCCESS_PRED, "success, with a false predicate" },
	{ DSA_COMP_PAGE_FAULT_NOBOF, "page fault" },
	{ DSA_COMP_PAGE_FAULT_IR, "page fault that could not be resolved" },
	{ DSA_COMP_BATCH_FAIL, "descriptors of the batch failed" },
	{ DSA_COMP_BATCH_PAGE_FAULT, "page fault at the list of the batch" },
	{ DSA_COMP_BAD_OPCODE, "unsupported operation" },
	{ DSA_COMP_INVALID_FLAGS, "invalid flags" },
	{ DSA_COMP_NOZERO_RESERVE, "a reserved field is not zero" },
	{ DSA_COMP_XFER_ERANGE, "invalid transfer size" },
	{ DSA_COMP_DESC_CNT_ERANGE, "invalid number of descriptors" },
	{ DSA_COMP_OVERLAP_BUFFERS, "overlapping buffers" },
	{ DSA_COMP_DESCLIST_ALIGN, "the list of the batch is not aligned" },
	{ DSA_COMP_INT_HANDLE_INVAL, "invalid interrupt handle" },
	{ DSA_COMP_CRA_XLAT, "the record's address cannot be translated" },
	{ DSA_COMP_CRA_ALIGN, "the record is not aligned" },
	{ DSA_COMP_ADDR_ALIGN, "an address is not aligned" },
	{ DSA_COMP_PRIV_BAD, "privilege" },
	{ DSA_COMP_TRAFFIC_CLASS_CONF, "traffic class" },
	{ DSA_COMP_PFAULT_RDBA, "page fault at the read-back" },
	{ DSA_COMP_HW_ERR1, "hardware error" },
	{ DSA_COMP_HW_ERR_DRB, "hardware error at the read-back" },
	{ DSA_COMP_TRANSLATION_FAIL, "an address cannot be translated" },
};

const char *memsluice_dsa_status_name(u8 status)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(status_names); i++) {
		if (status_names[i].status == (status & DSA_COMP_STATUS_MASK))
			return status_names[i].name;
	}
	return "unknown";
}

/*
 * Descriptors hold physical addresses where the device needs no others: no IOMMU translates, memory
 * is not encrypted, nothing is bounced. One mapping shows that.
 */
static bool takes_physical_addresses(struct device *device, int node)
{
	struct page *page = alloc_pages_node(node, GFP_KERNEL, 0);
	bool same = false;
	dma_addr_t dma;

	if (!page)
		return false;
	dma = dma_map_page(device, page, 0, PAGE_SIZE, DMA_BIDIRECTIONAL);
	if (!dma_mapping_error(device, dma)) {
		same = dma == page_to_phys(page);
		dma_unmap_page(device, dma, PAGE_SIZE, DMA_BIDIRECTIONAL);
	}
	__free_page(page);
	return same;
}

static int new_lists(struct memsluice_dsa_queue *queue)
{
	unsigned int i;

	queue->all_lists = kvcalloc(queue->list_count, sizeof(*queue->all_lists), GFP_KERNEL);
	if (!queue->all_lists)
		return -ENOMEM;
	for (i = 0; i < queue->list_count; i++) {
		struct memsluice_dsa_list *list = &queue->all_lists[i];

		list->entries = dma_alloc_coherent(memsluice_dsa_device(queue), LIST_BYTES,
						   &list->entries_dma, GFP_KERNEL);
		if (!list->entries)
			return -ENOMEM;
		list->records = (void *)(list->entries + MEMSLUICE_DSA_BATCH_MAX);
		list->records_dma =
			list->entries_dma + MEMSLUICE_DSA_BATCH_MAX * sizeof(*list->entries);
		list_add_tail(&list->link, &queue->lists);
	}
	return 0;
}

void memsluice_dsa_queue_free(struct memsluice_dsa_queue *queue)
{
	unsigned int i;

	for (i = 0; queue->all_lists && i < queue->list_count; i++) {
		struct memsluice_dsa_list *list = &queue->all_lists[i];

		if (list->entries)
			dma_free_coherent(memsluice_dsa_device(queue), LIST_BYTES, list->entries,
					  list->entries_dma);
	}
	kvfree(queue->all_lists);
	kvfree(queue->slots);
	kfree(queue);
}

struct memsluice_dsa_queue *memsluice_dsa_queue_new(struct idxd_wq *wq)
{
	struct memsluice_dsa_queue *queue = kzalloc(sizeof(*queue), GFP_KERNEL);
	int err = -ENOMEM;

	if (!queue)
		return ERR_PTR(err);
	queue->wq = wq;
	queue->node = dev_to_node(memsluice_dsa_device(queue));
	queue->max_transfer_bytes =
		round_down(min_t(u64, wq->max_xfer_bytes, TRANSFER_MAX), PAGE_SIZE);
	queue->max_batch = min(wq->max_batch_size, MEMSLUICE_DSA_BATCH_MAX);
	queue->slot_count = wq->num_descs;
	queue->list_count = min(queue->slot_count, LISTS_MAX);
	spin_lock_init(&queue->lock);
	INIT_LIST_HEAD(&queue->lists);
	INIT_LIST_HEAD(&queue->late);
	queue->slots = kvcalloc(queue->slot_count, sizeof(*queue->slots), GFP_KERNEL);
	if (!queue->slots)
		goto free;
	err = new_lists(queue);
	if (err)
		goto free;
	queue->maps = !takes_physical_addresses(memsluice_dsa_device(queue), queue->node);
	if (queue->maps)
		pr_info("%s: addresses are translated between this device and memory, so every copy is mapped; without that (iommu.passthrough=1) it is faster\n",
			memsluice_dsa_name(queue));
	err = -EINVAL;
	if (!queue->max_transfer_bytes) {
		pr_err("%s: transfers of less than a page; set its max_transfer_size\n",
		       memsluice_dsa_name(queue));
		goto free;
	}
	return queue;

free:
	memsluice_dsa_queue_free(queue);
	return ERR_PTR(err);
}

int memsluice_dsa_map(struct memsluice_dsa_queue *queue, struct folio *source,
		      struct memsluice_dsa_piece *piece)
{
	struct device *device = memsluice_dsa_device(queue);

	if (!queue->maps) {
		piece->source_dma = PFN_PHYS(folio_pfn(source)) + piece->offset_bytes;
		piece->destination_dma =
			PFN_PHYS(folio_pfn(piece->destination)) + piece->offset_bytes;
		return 0;
	}
	piece->source_dma = dma_map_page(device, folio_page(source, 0), piece->offset_bytes,
					 piece->bytes, DMA_TO_DEVICE);
	if (dma_mapping_error(device, piece->source_dma))
		return -ENOMEM;
	piece->destination_dma = dma_map_page(device, folio_page(piece->destination, 0),
					      piece->offset_bytes, piece->bytes, DMA_FROM_DEVICE);
	if (!dma_mapping_error(device, piece->destination_dma))
		return 0;
	dma_unmap_page(device, piece->source_dma, piece->bytes, DMA_TO_DEVICE);
	return -ENOMEM;
}

void memsluice_dsa_unmap(struct memsluice_dsa_queue *queue, const struct memsluice_dsa_piece *piece)
{
	struct device *device = memsluice_dsa_device(queue);

	if (!queue->maps)
		return;
	dma_unmap_page(device, piece->source_dma, piece->bytes, DMA_TO_DEVICE);
	dma_unmap_page(device, piece->destination_dma, piece->bytes, DMA_FROM_DEVICE);
}

struct memsluice_dsa_list *memsluice_dsa_list_get(struct memsluice_dsa_queue *queue)
{
	struct memsluice_dsa_list *list;

	spin_lock(&queue->lock);
	list = list_first_entry_or_null(&queue->lists, struct memsluice_dsa_list, link);
	if (list)
		list_del(&list->link);
	spin_unlock(&queue->lock);
	if (list)
		list->count = 0;
	return list;
}

void memsluice_dsa_list_put(struct memsluice_dsa_queue *queue, struct memsluice_dsa_list *list)
{
	spin_lock(&queue->lock);
	list_add(&list->link, &queue->lists);
	spin_unlock(&queue->lock);
}

struct memsluice_dsa_slot *memsluice_dsa_slot_get(struct memsluice_dsa_queue *queue)
{
	struct idxd_desc *desc = idxd_alloc_desc(queue->wq, IDXD_OP_NONBLOCK);
	struct memsluice_dsa_slot *slot;

	if (IS_ERR(desc))
		return ERR_CAST(desc);
	slot = &queue->slots[desc->id];
	slot->queue = queue;
	slot->desc = desc;
	slot->list = NULL;
	slot->piece.bytes = 0;
	desc->hw->flags = IDXD_OP_FLAG_CRAV | IDXD_OP_FLAG_RCR;
	desc->hw->completion_addr = desc->compl_dma;
	return slot;
}

void memsluice_dsa_slot_free(struct memsluice_dsa_slot *slot)
{
	if (slot->list)
		memsluice_dsa_list_put(slot->queue, slot->list);
	slot->list = NULL;
	idxd_free_desc(slot->queue->wq, slot->desc);
}
