/* SPDX-License-Identifier: MIT */
/* Opening and closing the device, its table of calls, and its asynchronous events. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "core/base/kernel_clock.h"
#include "core/base/sys.h"
#include "core/device/soft/device.h"

static uint32_t power_of_two(uint32_t n)
{
	return n <= 1 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

static int libc_recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	return recvmmsg(fd, messages, count, flags, NULL);
}

static const struct shunt_sys libc_calls = {
	.sendmsg = sendmsg, .recvmmsg = libc_recvmmsg, .getsockopt = getsockopt, .setsockopt = setsockopt,
	.shutdown = shutdown, .epoll_create1 = epoll_create1, .epoll_ctl = epoll_ctl, .epoll_pwait = epoll_pwait,
};

static int attr_fill(struct soft_attr *attr, const struct soft_attr *asked)
{
	if (asked)
		*attr = *asked;
	if (!attr->max_qp_wr)
		attr->max_qp_wr = 4096;
	if (!attr->max_qp)
		attr->max_qp = SEGMENT_QUEUES;
	if (!attr->max_cqe)
		attr->max_cqe = 65536;
	if (!attr->max_inline)
		attr->max_inline = (1u << 30) - 1;
	if (!attr->arena_bytes)
		attr->arena_bytes = 1ull << 30;
	if (!attr->drop || !attr->keep)
		attr->keep = NULL;
	if (!attr->sys)
		attr->sys = &libc_calls;
	if (!attr->now)
		attr->now = shunt_kernel_clock_now;
	if (attr->max_qp_wr > SEGMENT_DEPTH_MAX || attr->max_qp > SEGMENT_QUEUES ||
	    attr->max_cqe > 1u << 24 || attr->arena_bytes > SEGMENT_BYTES_MAX / 2)
		return EINVAL;
	attr->max_qp_wr = power_of_two(attr->max_qp_wr);
	return 0;
}

static int query_device(struct ibv_context *ibcontext, struct ibv_device_attr *attr)
{
	struct soft_context *context = container_of(ibcontext, struct soft_context, ibv);

	memset(attr, 0, sizeof(*attr));
	strcpy(attr->fw_ver, "soft");
	attr->max_mr_size = UINT64_MAX;
	attr->page_size_cap = 4096;
	attr->max_qp = (int)context->attr.max_qp;
	attr->max_qp_wr = (int)context->attr.max_qp_wr;
	attr->max_sge = SOFT_MAX_SGE;
	attr->max_sge_rd = SOFT_MAX_SGE;
	attr->max_cq = 1 << 16;
	attr->max_cqe = (int)context->attr.max_cqe;
	attr->max_mr = SEGMENT_MR_SLOTS;
	attr->max_pd = 1 << 16;
	attr->max_qp_rd_atom = 128;
	attr->max_qp_init_rd_atom = 128;
	attr->atomic_cap = IBV_ATOMIC_GLOB;
	attr->phys_port_cnt = 1;
	return 0;
}

void soft_async_push(struct soft_context *context, enum ibv_event_type type, void *element)
{
	struct soft_event **at, *event = calloc(1, sizeof(*event));

	if (!event)
		return;
	event->event.event_type = type;
	event->event.element.qp = element;
	soft_lock(&context->async_lock);
	for (at = &context->events; *at; at = &(*at)->next)
		;
	*at = event;
	soft_unlock(&context->async_lock);
	soft_eventfd_add(context->ibv.async_fd);
}

/* A destroyed element must not come back in an event. */
void soft_async_forget(struct soft_context *context, const void *element)
{
	struct soft_event **at, *event;

	soft_lock(&context->async_lock);
	for (at = &context->events; (event = *at);) {
		if (event->event.element.qp != element) {
			at = &event->next;
			continue;
		}
		*at = event->next;
		free(event);
	}
	soft_unlock(&context->async_lock);
}

static int get_async_event(struct ibv_context *ibcontext, struct ibv_async_event *result)
{
	struct soft_context *context = container_of(ibcontext, struct soft_context, ibv);
	struct soft_event *event;
	uint64_t count;

	if (read(ibcontext->async_fd, &count, sizeof(count)) < 0)
		return -1;
	soft_lock(&context->async_lock);
	event = context->events;
	if (event)
		context->events = event->next;
	soft_unlock(&context->async_lock);
	if (!event) {
		errno = EAGAIN;
		return -1;
	}
	*result = event->event;
	free(event);
	return 0;
}

static void ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

const struct shunt_verbs soft_verbs = {
	.alloc_pd = soft_alloc_pd,
	.dealloc_pd = soft_dealloc_pd,
	.register_mr = soft_register_mr,
	.deregister_mr = soft_deregister_mr,
	.create_comp_channel = soft_create_comp_channel,
	.destroy_comp_channel = soft_destroy_comp_channel,
	.create_cq = soft_create_cq,
	.destroy_cq = soft_destroy_cq,
	.get_cq_event = soft_get_cq_event,
	.ack_cq_events = soft_ack_cq_events,
	.create_qp = soft_create_qp,
	.modify_qp = soft_modify_qp,
	.query_qp = soft_query_qp,
	.destroy_qp = soft_destroy_qp,
	.query_device = query_device,
	.get_async_event = get_async_event,
	.ack_async_event = ack_async_event,
};

static void context_init(struct soft_context *context)
{
	struct ibv_context *ibv = &context->ibv;

	strcpy(context->device.name, "soft");
	strcpy(context->device.dev_name, "soft");
	context->device.node_type = IBV_NODE_CA;
	context->device.transport_type = IBV_TRANSPORT_IB;
	ibv->device = &context->device;
	ibv->ops.poll_cq = soft_poll_cq;
	ibv->ops.req_notify_cq = soft_req_notify_cq;
	ibv->ops.post_send = soft_post_send;
	ibv->ops.post_recv = soft_post_recv;
	ibv->cmd_fd = -1;
	ibv->num_comp_vectors = 1;
	pthread_mutex_init(&ibv->mutex, NULL);
	context->next_qp_num = 1;
	soft_waiters_init(context);
}

struct ibv_context *soft_open(const struct soft_attr *attr, const struct shunt_verbs **verbs)
{
	struct soft_context *context = calloc(1, sizeof(*context));

	if (!context)
		return NULL;
	errno = attr_fill(&context->attr, attr);
	if (errno)
		goto free_context;
	context_init(context);
	context->ibv.async_fd = soft_fd_keep(&context->ibv, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK |
								    EFD_SEMAPHORE));
	if (context->ibv.async_fd < 0)
		goto free_context;
	errno = soft_sink_open(context);
	if (errno)
		goto close_async;
	if (context->attr.engine_thread) {
		errno = soft_thread_start(context);
		if (errno)
			goto close_sink;
	}
	*verbs = &soft_verbs;
	return &context->ibv;

close_sink:
	soft_sink_close(context);
close_async:
	soft_fd_drop(&context->ibv, context->ibv.async_fd);
free_context:
	free(context);
	return NULL;
}

void soft_close(struct ibv_context *ibcontext)
{
	struct soft_context *context = container_of(ibcontext, struct soft_context, ibv);
	struct soft_event *event;

	soft_thread_stop(context);
	soft_sink_close(context);
	soft_waiters_fini(context);
	while ((event = context->events)) {
		context->events = event->next;
		free(event);
	}
	soft_fd_drop(ibcontext, ibcontext->async_fd);
	pthread_mutex_destroy(&ibcontext->mutex);
	free(context);
}
