/* SPDX-License-Identifier: MIT */
/*
 * Completion channels. The fd is an eventfd that peers write too, so it is only a hint. An event is
 * delivered for a CQ that was armed and whose arming is gone.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>
#include "core/device/soft/device.h"

int soft_eventfd_add(int fd)
{
	uint64_t one = 1;
	int saved = errno;
	ssize_t written;

	if (fd < 0)
		return 0;
	/* EAGAIN: the counter is full, which is as readable as it gets. */
	written = write(fd, &one, sizeof(one));
	errno = saved;
	return written == sizeof(one);
}

void soft_channel_kick(struct ibv_comp_channel *channel)
{
	if (channel)
		soft_eventfd_add(channel->fd);
}

struct ibv_comp_channel *soft_create_comp_channel(struct ibv_context *context)
{
	struct soft_channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	channel->ibv.context = context;
	channel->ibv.fd = soft_fd_keep(context, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (channel->ibv.fd < 0) {
		free(channel);
		return NULL;
	}
	return &channel->ibv;
}

int soft_destroy_comp_channel(struct ibv_comp_channel *ibchannel)
{
	struct soft_channel *channel = container_of(ibchannel, struct soft_channel, ibv);

	if (channel->cqs)
		return EBUSY;
	soft_fd_drop(ibchannel->context, ibchannel->fd);
	free(channel);
	return 0;
}

/*
 * Empties the eventfd. The peer shares its open file description and could clear O_NONBLOCK there,
 * so the call itself says that it must not wait.
 */
static bool channel_drain(struct soft_channel *channel)
{
	uint64_t count;
	struct iovec to = { &count, sizeof(count) };
	ssize_t got = preadv2(channel->ibv.fd, &to, 1, -1, RWF_NOWAIT);

	if (got < 0 && (errno == EOPNOTSUPP || errno == ENOSYS))
		got = read(channel->ibv.fd, &count, sizeof(count));
	return got == sizeof(count);
}

/*
 * Has a peer taken this QP's arming? Acquires its exchange in soft_send_ring(), so that the poll behind the event finds
 * the arrival that it tells of.
 */
static bool receiver_fired(const struct soft_qp *qp)
{
	return qp->armed && soft_load_acquire(&qp->queue->armed) == SEGMENT_DISARMED;
}

static void receiver_disarm(struct soft_qp *qp)
{
	/* The line stays the poster's where it has taken the arming already. */
	if (qp->armed && soft_load(&qp->queue->armed) != SEGMENT_DISARMED)
		atomic_exchange(&qp->queue->armed, SEGMENT_DISARMED);
	qp->armed = SEGMENT_DISARMED;
}

/* An event disarms the whole CQ: one arming, one event. */
static bool cq_take_event(struct soft_cq *cq)
{
	bool fired;

	soft_lock(&cq->lock);
	fired = atomic_exchange(&cq->fired, 0);
	for (uint32_t i = 0; i < cq->receivers.count; i++)
		fired |= receiver_fired(cq->receivers.at[i]);
	if (fired) {
		soft_store(&cq->armed, SEGMENT_DISARMED);
		for (uint32_t i = 0; i < cq->receivers.count; i++)
			receiver_disarm(cq->receivers.at[i]);
	}
	soft_unlock(&cq->lock);
	return fired;
}

static bool cq_has_event(struct soft_cq *cq)
{
	bool fired;

	soft_lock(&cq->lock);
	fired = soft_load(&cq->fired);
	for (uint32_t i = 0; i < cq->receivers.count && !fired; i++)
		fired = receiver_fired(cq->receivers.at[i]);
	soft_unlock(&cq->lock);
	return fired;
}

/* One event a call; while more CQs have one, the fd stays readable. */
static struct soft_cq *channel_next(struct soft_channel *channel)
{
	struct soft_cq *cq, *taken = NULL;

	for (cq = channel->cqs; cq; cq = cq->next) {
		if (!taken) {
			if (cq_take_event(cq))
				taken = cq;
		} else if (cq_has_event(cq)) {
			soft_channel_kick(&channel->ibv);
			break;
		}
	}
	return taken;
}

int soft_get_cq_event(struct ibv_comp_channel *ibchannel, struct ibv_cq **result, void **cq_context)
{
	struct soft_channel *channel = container_of(ibchannel, struct soft_channel, ibv);
	struct soft_cq *cq;

	if (!channel_drain(channel))
		return -1;
	soft_lock(&channel->lock);
	cq = channel_next(channel);
	soft_unlock(&channel->lock);
	if (!cq) {
		errno = EAGAIN;
		return -1;
	}
	*result = &cq->ibv;
	*cq_context = cq->ibv.cq_context;
	return 0;
}

/* Events are not counted: destroy_cq has nothing to wait for. */
void soft_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	__atomic_fetch_add(&cq->comp_events_completed, nevents, __ATOMIC_RELAXED);
}
