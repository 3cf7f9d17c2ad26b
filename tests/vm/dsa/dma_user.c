// SPDX-License-Identifier: GPL-2.0
/*
 * Copies memory through the kernel's dmaengine, as storage and network drivers do, and looks at what
 * has arrived. Only for tests: the number of pages is written to the parameter "copy".
 */
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/random.h>

#define PAGES_MAX 512

static unsigned int timeout_ms = 60000;
static struct dma_chan *channel;
static DEFINE_MUTEX(copy_lock);

struct copy {
	struct page *source;
	struct page *destination;
	dma_addr_t from, to;
	size_t bytes;
	struct completion done;
	int error;
};

static void copied(void *data, const struct dmaengine_result *result)
{
	struct copy *copy = data;

	copy->error = result->result == DMA_TRANS_NOERROR ? 0 : -EIO;
	complete(&copy->done);
}

static int map(struct copy *copy)
{
	struct device *device = channel->device->dev;

	copy->from = dma_map_page(device, copy->source, 0, copy->bytes, DMA_TO_DEVICE);
	if (dma_mapping_error(device, copy->from))
		return -ENOMEM;
	copy->to = dma_map_page(device, copy->destination, 0, copy->bytes, DMA_FROM_DEVICE);
	if (!dma_mapping_error(device, copy->to))
		return 0;
	dma_unmap_page(device, copy->from, copy->bytes, DMA_TO_DEVICE);
	return -ENOMEM;
}

static void unmap(struct copy *copy)
{
	struct device *device = channel->device->dev;

	dma_unmap_page(device, copy->to, copy->bytes, DMA_FROM_DEVICE);
	dma_unmap_page(device, copy->from, copy->bytes, DMA_TO_DEVICE);
}

static int submit_and_wait(struct copy *copy)
{
	struct dma_async_tx_descriptor *descriptor;

	descriptor = dmaengine_prep_dma_memcpy(channel, copy->to, copy->from, copy->bytes,
					       DMA_PREP_INTERRUPT | DMA_CTRL_ACK);
	if (!descriptor)
		return -EBUSY;
	init_completion(&copy->done);
	descriptor->callback_result = copied;
	descriptor->callback_param = copy;
	dmaengine_submit(descriptor);
	dma_async_issue_pending(channel);
	if (!wait_for_completion_timeout(&copy->done, msecs_to_jiffies(timeout_ms)))
		return -ETIMEDOUT;
	return copy->error;
}

static int run(unsigned int order)
{
	struct copy *copy = kzalloc(sizeof(*copy), GFP_KERNEL);
	int err = -ENOMEM;

	if (!copy)
		return err;
	copy->bytes = PAGE_SIZE << order;
	copy->source = alloc_pages(GFP_KERNEL, order);
	copy->destination = alloc_pages(GFP_KERNEL, order);
	if (!copy->source || !copy->destination)
		goto free;
	get_random_bytes(page_address(copy->source), copy->bytes);
	memset(page_address(copy->destination), 0, copy->bytes);
	err = map(copy);
	if (err)
		goto free;
	err = submit_and_wait(copy);
	if (err == -ETIMEDOUT)
		return err; /* the device may still write there: it is never given back */
	unmap(copy);
	if (!err &&
	    memcmp(page_address(copy->source), page_address(copy->destination), copy->bytes))
		err = -EBADMSG;
free:
	if (copy->source)
		__free_pages(copy->source, order);
	if (copy->destination)
		__free_pages(copy->destination, order);
	kfree(copy);
	return err;
}

static int copy_set(const char *text, const struct kernel_param *unused)
{
	unsigned int pages;
	int err = kstrtouint(text, 0, &pages);

	if (err)
		return err;
	if (!pages || pages > PAGES_MAX || !is_power_of_2(pages))
		return -EINVAL;
	mutex_lock(&copy_lock);
	err = channel ? run(ilog2(pages)) : -ENODEV;
	mutex_unlock(&copy_lock);
	return err;
}

static const struct kernel_param_ops copy_operations = { .set = copy_set };

module_param_cb(copy, &copy_operations, NULL, 0200);
MODULE_PARM_DESC(copy, "pages to copy as one, a power of two up to 512; fails as the copy does");

module_param(timeout_ms, uint, 0644);
MODULE_PARM_DESC(timeout_ms, "how long to wait for a copy");

static int __init dma_user_init(void)
{
	dma_cap_mask_t mask;
	struct dma_chan *found;

	dma_cap_zero(mask);
	dma_cap_set(DMA_MEMCPY, mask);
	found = dma_request_chan_by_mask(&mask);
	if (IS_ERR(found))
		return PTR_ERR(found);
	channel = found;
	return 0;
}

static void __exit dma_user_exit(void)
{
	dma_release_channel(channel);
}

module_init(dma_user_init);
module_exit(dma_user_exit);
MODULE_DESCRIPTION("memsluice: copies through dmaengine");
MODULE_LICENSE("GPL");
