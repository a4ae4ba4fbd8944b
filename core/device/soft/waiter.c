/* SPDX-License-Identifier: MIT */
/*
 * Waking one waiter of a process, not whoever sleeps on its channel.
 *
 * The owner of a segment names a waiter in the entry of each immediate, and says in the segment which waiters sleep. Each
 * has a bell (bell.c) with the peer of each domain. All bells of one are in an epoll set, edge-triggered, on which the
 * waiter sleeps. A waiter that is about to sleep arms, polls once more, and sleeps. A poster looks at the entry and at the
 * waiter behind a fence, when the arrival can be seen. So either the poll finds it, or the poster finds the waiter asleep.
 * An owner that changes an entry polls after that, too.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include "core/base/sys.h"
#include "core/device/soft/device.h"

#define AT_ONCE 16	/* events of a set */

_Static_assert(SOFT_WAITERS == SEGMENT_WAITERS, "each has a word in the segment");
_Static_assert(sizeof(struct segment_header) <= SEGMENT_MR_OFFSET, "the table of regions follows");

static struct soft_context *context_of(struct ibv_context *context)
{
	return container_of(context, struct soft_context, ibv);
}

static struct segment_header *header_of(const struct soft_pd *pd)
{
	return (struct segment_header *)pd->segment;
}

void soft_waiters_init(struct soft_context *context)
{
	for (int i = 0; i < SEGMENT_WAITERS; i++)
		context->waiter_set[i] = -1;
}

void soft_waiters_fini(struct soft_context *context)
{
	for (int i = 0; i < SEGMENT_WAITERS; i++)
		if (context->waiter_set[i] >= 0)
			soft_fd_drop(&context->ibv, context->waiter_set[i]);
}

static int make_sets(struct soft_context *context)
{
	for (int i = 0; i < SEGMENT_WAITERS; i++) {
		if (context->waiter_set[i] >= 0)
			continue;
		context->waiter_set[i] = soft_fd_keep(
			&context->ibv, context->attr.sys->epoll_create1(EPOLL_CLOEXEC));
		if (context->waiter_set[i] < 0)
			return -EMFILE;
	}
	return 0;
}

static int make_bell(struct soft_pd *pd, int i)
{
	struct soft_context *context = context_of(pd->ibv.context);
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int result = soft_bell_make(pd->ibv.context, &pd->waiters[i]);

	if (!result && context->attr.sys->epoll_ctl(context->waiter_set[i], EPOLL_CTL_ADD,
						    pd->waiters[i].fd, &event))
		result = -errno;
	return result;
}

static void drop_bells(struct soft_pd *pd)
{
	for (int i = 0; i < SEGMENT_WAITERS; i++)
		soft_bell_drop(pd->ibv.context, &pd->waiters[i],
			       context_of(pd->ibv.context)->waiter_set[i]);
}

int soft_waiters_make(struct ibv_pd *ibpd, const void *entries, uint32_t stride, uint32_t count,
		      int fds[SOFT_WAITERS])
{
	struct soft_pd *pd = container_of(ibpd, struct soft_pd, ibv);
	struct soft_context *context = context_of(ibpd->context);
	int result;

	if (context->waited_count == SOFT_WAITED)
		return -ENOBUFS;
	result = make_sets(context);
	for (int i = 0; i < SEGMENT_WAITERS && !result; i++) {
		result = make_bell(pd, i);
		fds[i] = pd->waiters[i].handle;
	}
	if (result) {
		drop_bells(pd);
		return result;
	}
	header_of(pd)->waiting = (struct segment_waiting) {
		.offset = (uint64_t)((const char *)entries - pd->segment), .stride = stride, .count = count
	};
	soft_lock(&context->waiters_lock);
	pd->next_waited = context->waited;
	context->waited = pd;
	context->waited_count++;
	soft_unlock(&context->waiters_lock);
	return 0;
}

void soft_waiters_close(struct soft_pd *pd)
{
	struct soft_context *context = context_of(pd->ibv.context);

	soft_lock(&context->waiters_lock);
	for (struct soft_pd **at = &context->waited; *at; at = &(*at)->next_waited) {
		if (*at != pd)
			continue;
		*at = pd->next_waited;
		context->waited_count--;
		break;
	}
	soft_unlock(&context->waiters_lock);
	drop_bells(pd);
}

/* --- asleep --- */

int soft_waiter_fd(struct ibv_context *context, uint32_t waiter)
{
	return context_of(context)->waiter_set[waiter - 1];
}

void soft_waiter_hear(struct ibv_context *context, uint32_t waiter)
{
	struct epoll_event events[AT_ONCE];

	context_of(context)->attr.sys->epoll_pwait(soft_waiter_fd(context, waiter), events, AT_ONCE,
						   0, NULL);
}

/* A peer that took the arming has rung, or is about to. */
static void arm(struct soft_pd *pd, uint32_t i, bool asleep)
{
	struct segment_waiter *waiter = &header_of(pd)->waiters[i];
	bool was = pd->waiters_armed >> i & 1, taken = was && !soft_load(&waiter->armed);

	if (asleep || !taken)
		taken = !atomic_exchange(&waiter->armed, asleep) && was;
	if (taken)
		soft_bell_count(pd->ibv.context, &pd->waiters[i]);
	pd->waiters_armed &= ~(1u << i);
	pd->waiters_armed |= (uint32_t)asleep << i;
}

void soft_waiter_arm(struct ibv_context *ibcontext, uint32_t waiter, bool asleep)
{
	struct soft_context *context = context_of(ibcontext);

	soft_lock(&context->waiters_lock);
	for (struct soft_pd *pd = context->waited; pd; pd = pd->next_waited)
		arm(pd, waiter - 1, asleep);
	/* Pairs with the fence of soft_send_ring(), as that of soft_req_notify_cq() does. */
	soft_fence_after_exchange();
	soft_unlock(&context->waiters_lock);
}

/* --- ringing --- */

int soft_waiters_reach(struct ibv_qp *ibqp, const int fds[SOFT_WAITERS])
{
	struct soft_qp *qp = container_of(ibqp, struct soft_qp, ibv);
	struct soft_peer *peer = qp->peer;
	const struct segment_waiting *told;
	struct segment_waiting waiting;
	int made[SEGMENT_WAITERS], count, result = 0;

	if (!peer)
		return -ENOTCONN;
	if (peer->waiting.count)
		return 0;
	told = &((struct segment_header *)peer->base)->waiting;
	waiting.offset = __atomic_load_n(&told->offset, __ATOMIC_RELAXED);
	waiting.stride = __atomic_load_n(&told->stride, __ATOMIC_RELAXED);
	waiting.count = __atomic_load_n(&told->count, __ATOMIC_RELAXED);
	if (!waiting.count || waiting.stride < sizeof(uint32_t) ||
	    waiting.stride % sizeof(uint32_t) || waiting.offset % sizeof(uint32_t) ||
	    waiting.offset > peer->bytes ||
	    waiting.count > (peer->bytes - waiting.offset) / waiting.stride)
		return -EPROTO;
	for (count = 0; count < SEGMENT_WAITERS; count++) {
		result = -EPROTO;
		if (!soft_bell_is_one(ibqp->context, fds[count]))
			break;
		result = -ENOMEM;
		made[count] = soft_fd_keep(ibqp->context, fcntl(fds[count], F_DUPFD_CLOEXEC, 0));
		if (made[count] < 0)
			break;
	}
	if (count < SEGMENT_WAITERS) {
		while (count--)
			soft_fd_drop(ibqp->context, made[count]);
		return result;
	}
	for (int i = 0; i < SEGMENT_WAITERS; i++)
		peer->waiter_fd[i] = made[i];
	soft_lock(&qp->sq_lock);
	peer->waiting = waiting;
	soft_unlock(&qp->sq_lock);
	return 0;
}

void soft_waiters_forget(const struct soft_pd *pd, struct soft_peer *peer)
{
	if (!peer->waiting.count)
		return;
	for (int i = 0; i < SEGMENT_WAITERS; i++)
		soft_fd_drop(pd->ibv.context, peer->waiter_fd[i]);
}

/* The waiter of an arrival; 0: none. The peer's word is hostile. */
static uint32_t waiter_of(const struct soft_peer *peer, uint32_t immediate)
{
	const struct segment_waiting *waiting = &peer->waiting;
	uint64_t entry = ntohl(immediate) & SEGMENT_WAITER_MASK;
	uint32_t waiter;

	if (!entry || entry >= waiting->count)
		return 0;
	waiter = __atomic_load_n((const uint32_t *)(const void *)(peer->base + waiting->offset +
								  entry * waiting->stride),
				 __ATOMIC_RELAXED);
	return waiter <= SEGMENT_WAITERS ? waiter : 0;
}

uint32_t soft_waiters_due(struct soft_qp *qp, bool *others)
{
	uint32_t count = qp->rang_count, named = 0, due = 0;
	struct segment_waiter *waiters = ((struct segment_header *)qp->peer->base)->waiters;

	qp->rang_count = 0;
	*others = count > SOFT_RANG;
	if (*others)
		named = ~1u;
	if (!qp->peer->waiting.count) {
		*others = true;
		return 0;
	}
	for (uint32_t i = 0; i < count && count <= SOFT_RANG; i++) {
		uint32_t waiter = waiter_of(qp->peer, qp->rang_for[i]);

		named |= 1u << waiter;
		*others |= !waiter;
	}
	for (uint32_t i = 1; i <= SEGMENT_WAITERS; i++) {
		if (!(named >> i & 1) || likely(!atomic_load(&waiters[i - 1].armed)))
			continue;
		if (atomic_exchange(&waiters[i - 1].armed, 0))
			due |= 1u << i;
	}
	if (due)
		soft_qp_count(&qp->counters.wakes, (uint32_t)__builtin_popcount(due));
	return due;
}

void soft_waiters_wake(const struct soft_qp *qp, uint32_t waiters)
{
	for (uint32_t i = 1; waiters && i <= SEGMENT_WAITERS; i++)
		if (waiters >> i & 1)
			soft_bell_ring(qp->ibv.context, qp->peer->waiter_fd[i - 1]);
}
