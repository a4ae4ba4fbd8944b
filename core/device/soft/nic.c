/* SPDX-License-Identifier: MIT */
/*
 * The device of the cost model: one pipeline, shared by the QPs of a context, that deals with WRs one after the
 * other. Each QP has a unit that does so too. The peer's node may be a third, which several contexts share (sink.c).
 * A WR is due, on the wire and at the peer, when all have dealt with it and the link's delay has passed. The dues of
 * a QP never decrease, so it does not see its WRs out of order.
 *
 * A WR that is posted at now is dealt with at busy_until = max(busy_until, now) + cost, and carried out and completed
 * delay later. With qp set, the unit of its QP must be through with it as well: unit_until = max(unit_until, now) +
 * qp + miss · …. The later of the two counts. The cost is
 *
 *	doorbell (the first of a post_send) + wqe + 8 · bytes / gbit
 *	+ miss · (n − cache) / n   while n WRs are outstanding, n > cache
 *	+ pause                    while more than queue bytes are outstanding
 *
 * A registration takes mr + page · pages of the caller's time.
 *
 * The share of miss is the mean of n WQEs that compete for cache places. Charging the mean keeps the model free of
 * chance. So throughput does not step down where the cache is full. It falls while more is outstanding, and more is
 * outstanding because throughput falls, as in RDMAbox's Figure 1. The queue is a buffer on the way to the receivers.
 * It is counted where the bytes leave, so the senders to one receiver are QPs of one process. With `sink` it is what
 * the node has not dealt with, of all processes that name the node.
 *
 * Bytes on their way are lost when a process is killed, as with an RNIC; exit and _exit wait for them. The statistics
 * have model_*: outstanding requests and bytes, misses, pauses and the time that the device was busy.
 *
 * Times come from soft_attr.now. Under a virtual clock there is no thread: each post to a QP and each poll of its CQs
 * carries out what is due. So a test knows each completion to the nanosecond. tests/soft/conform_model.sh runs the
 * device's whole conformance with a model. The numbers of a preset are good for orderings and shapes. The preset
 * connectx3 is set so that a peak lies where a paper has it; it measures nothing.
 */
#include "core/device/soft/device.h"


/* The caller holds the lock; `wr` and `bytes` count what is being posted, too. */
static uint64_t cache_cost(struct soft_gauges *gauges, const struct soft_model *model)
{
	if (!model->cache || gauges->wr <= model->cache)
		return 0;
	gauges->misses++;
	return model->miss * (gauges->wr - model->cache) / gauges->wr;
}

/* With a node at the other end the buffer is before the node, and has what all of its senders have there. */
static uint64_t queue_cost(struct soft_context *context, uint64_t now, uint64_t bytes)
{
	const struct soft_model *model = &context->attr.model;
	struct soft_gauges *gauges = &context->nic.gauges;
	uint64_t queued = model->sink ? soft_sink_queue(context, now) + bytes : gauges->bytes;

	if (!model->queue || queued <= model->queue)
		return 0;
	gauges->pauses++;
	return model->pause;
}

/* A bit takes a nanosecond at 1 Gbit/s. */
static uint64_t wire_cost(const struct soft_model *model, uint64_t bytes)
{
	return model->gbit ? (bytes * 8 + model->gbit / 2) / model->gbit : 0;
}

static void gauges_enter(struct soft_gauges *gauges, uint64_t bytes)
{
	gauges->wr++;
	gauges->bytes += bytes;
	if (gauges->wr > gauges->wr_max)
		gauges->wr_max = gauges->wr;
	if (gauges->bytes > gauges->bytes_max)
		gauges->bytes_max = gauges->bytes;
}

static void work(uint64_t *until, uint64_t now, uint64_t cost)
{
	*until = (*until < now ? now : *until) + cost;
}

static uint64_t latest(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t later = a > b ? a : b;

	return later > c ? later : c;
}

/* A WR is posted, the first of its call where `doorbell`. When it is due. */
uint64_t soft_nic_enter(struct soft_qp *qp, uint64_t bytes, bool doorbell)
{
	struct soft_context *context = qp->context;
	const struct soft_model *model = &context->attr.model;
	struct soft_gauges *gauges = &context->nic.gauges;
	uint64_t missed, cost, due, now = context->attr.now();

	soft_lock(&context->nic.lock);
	gauges_enter(gauges, bytes);
	missed = cache_cost(gauges, model);
	cost = (doorbell ? model->doorbell : 0) + model->wqe + wire_cost(model, bytes) + missed +
	       queue_cost(context, now, bytes) + model->block * soft_nic_blocks(bytes);
	work(&gauges->busy_until, now, cost);
	work(&qp->unit_until, now, model->qp ? model->qp + missed : 0);
	gauges->busy_ns += cost;
	soft_sink_take(qp, now, bytes);
	due = latest(qp->unit_until, gauges->busy_until, qp->sink_until) + model->delay;
	gauges->due = due;
	soft_unlock(&context->nic.lock);
	return due;
}

/* A WR was carried out, or will never be. */
void soft_nic_leave(struct soft_context *context, uint64_t bytes)
{
	soft_lock(&context->nic.lock);
	context->nic.gauges.wr--;
	context->nic.gauges.bytes -= bytes;
	soft_unlock(&context->nic.lock);
}

/*
 * The caller registers memory, which takes it some time: the pages are looked up and pinned. Without a thread
 * the clock may be virtual and stand still: then it is only counted.
 */
void soft_nic_register(struct soft_context *context, const void *addr, size_t length)
{
	const struct soft_model *model = &context->attr.model;
	uint64_t first = (uintptr_t)addr / 4096, last = ((uintptr_t)addr + length + 4095) / 4096;
	uint64_t cost = model->mr + model->page * (last - first), until;

	soft_lock(&context->nic.lock);
	context->nic.gauges.mr_ns += cost;
	soft_unlock(&context->nic.lock);
	for (until = context->attr.now() + cost; context->thread && context->attr.now() < until;)
		soft_relax();
}

void soft_read_gauges(struct ibv_context *ibcontext, struct soft_gauges *gauges)
{
	struct soft_context *context = container_of(ibcontext, struct soft_context, ibv);

	soft_lock(&context->nic.lock);
	*gauges = context->nic.gauges;
	soft_unlock(&context->nic.lock);
}
