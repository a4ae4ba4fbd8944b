/* SPDX-License-Identifier: MIT */
/*
 * Completion channels. The descriptor is only a hint. It is an eventfd that trusted peers write, too. Once there has been
 * a peer that is not trusted, it is an epoll set of that eventfd and of the domains' bells (bell.c). An event is delivered
 * for a CQ that was armed and whose arming is gone.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>
#include "core/base/sys.h"
#include "core/device/soft/device.h"

#define AT_ONCE 16	/* of a set that has more it is told the next time */

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
		soft_eventfd_add(soft_channel_event_fd(channel));
}

int soft_channel_event_fd(struct ibv_comp_channel *channel)
{
	return container_of(channel, struct soft_channel, ibv)->event_fd;
}

struct ibv_comp_channel *soft_create_comp_channel(struct ibv_context *context)
{
	struct soft_channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	channel->ibv.context = context;
	atomic_init(&channel->set, -1);
	channel->ibv.fd = channel->event_fd = soft_fd_keep(context, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (channel->ibv.fd < 0) {
		free(channel);
		return NULL;
	}
	return &channel->ibv;
}

static const struct shunt_sys *calls_of(const struct ibv_comp_channel *channel)
{
	return container_of(channel->context, struct soft_context, ibv)->attr.sys;
}

/* Edge-triggered: whoever sleeps on the set takes all that made it ready with one call, and reads nothing. */
static int set_add(const struct ibv_comp_channel *channel, int set, int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };

	return calls_of(channel)->epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int soft_channel_gather(struct ibv_comp_channel *ibchannel, int bell)
{
	struct soft_channel *channel = container_of(ibchannel, struct soft_channel, ibv);
	int set = atomic_load(&channel->set), result;

	if (set >= 0)
		return set_add(ibchannel, set, bell);
	set = soft_fd_keep(ibchannel->context, calls_of(ibchannel)->epoll_create1(EPOLL_CLOEXEC));
	if (set < 0)
		return -EMFILE;
	result = set_add(ibchannel, set, channel->event_fd);
	if (!result)
		result = set_add(ibchannel, set, bell);
	if (result) {
		soft_fd_drop(ibchannel->context, set);
		return result;
	}
	atomic_store(&channel->set, set);
	ibchannel->fd = set;
	return 0;
}

void soft_channel_leave(struct ibv_comp_channel *ibchannel, int bell)
{
	struct soft_channel *channel = container_of(ibchannel, struct soft_channel, ibv);

	calls_of(ibchannel)->epoll_ctl(atomic_load(&channel->set), EPOLL_CTL_DEL, bell, NULL);
}

int soft_destroy_comp_channel(struct ibv_comp_channel *ibchannel)
{
	struct soft_channel *channel = container_of(ibchannel, struct soft_channel, ibv);

	if (channel->cqs)
		return EBUSY;
	if (atomic_load(&channel->set) >= 0)
		soft_fd_drop(ibchannel->context, atomic_load(&channel->set));
	soft_fd_drop(ibchannel->context, channel->event_fd);
	free(channel);
	return 0;
}

/* The call says itself that it must not wait: O_NONBLOCK belongs to trusted peers, too. */
static bool eventfd_empty(int fd)
{
	uint64_t count;
	struct iovec to = { &count, sizeof(count) };
	ssize_t got = preadv2(fd, &to, 1, -1, RWF_NOWAIT);

	if (got < 0 && (errno == EOPNOTSUPP || errno == ENOSYS))
		got = read(fd, &count, sizeof(count));
	return got == sizeof(count);
}

/*
 * One call. In a set, the eventfd's counter and the queues of the bells stay as they are: what comes next is another
 * edge.
 */
static bool channel_drain(struct soft_channel *channel)
{
	struct epoll_event events[AT_ONCE];
	int set = atomic_load(&channel->set);

	if (set < 0)
		return eventfd_empty(channel->event_fd);
	if (calls_of(&channel->ibv)->epoll_pwait(set, events, AT_ONCE, 0, NULL) > 0)
		return true;
	errno = EAGAIN;
	return false;
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
	if (qp->armed && (soft_load(&qp->queue->armed) == SEGMENT_DISARMED ||
			  atomic_exchange(&qp->queue->armed, SEGMENT_DISARMED) == SEGMENT_DISARMED))
		soft_bell_rang(qp->pd);
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
