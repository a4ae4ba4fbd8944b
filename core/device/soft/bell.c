/* SPDX-License-Identifier: MIT */
/*
 * Wake-ups between processes that do not trust each other. An eventfd will not do: it has one open file description.
 * Its O_NONBLOCK belongs to each process that holds it, and a full counter then keeps the writer waiting.
 *
 * Here the sleeper makes a pair of sockets for one domain. One end stays with it, and nobody else ever has that. The
 * other end goes to the peer. To wake is to send a packet of a byte, by a call that says itself that it does not wait.
 * A full queue needs no further packet. The only lock that the peer can hold for long is taken by receiving from its
 * end, and nothing is received from that here.
 *
 * The sleeper's end is in the channel's epoll set, edge-triggered. Each packet makes the set ready, also when older ones
 * have not been taken from the queue. So a wake-up costs the sleeper one call, as an eventfd does. The packets are taken
 * when many armings have been used, with two calls for all. The first only looks: packets that have descriptors stay.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/base/sys.h"
#include "core/device/soft/device.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

#define TRUESIZE 1280	/* at least what the kernel takes for a packet of a byte */
#define TRIES 64	/* while the kernel has no memory for one */
#define AT_ONCE 64	/* packets taken with one call */

/*
 * So many armings are used before the queue is emptied. It has room for twice as many packets, and one call takes those:
 * each lane may have used one more that has not been counted. The peer can make its end's buffer smaller, for itself.
 */
static uint32_t most_rings(struct soft_context *context, int fd)
{
	socklen_t length = sizeof(int);
	int bytes = 0;

	if (context->attr.sys->getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &length) ||
	    bytes < 4 * TRUESIZE)
		return 1;
	return bytes / TRUESIZE < AT_ONCE ? (uint32_t)bytes / TRUESIZE / 2 : AT_ONCE / 2;
}

static int make_pair(struct ibv_context *context, int ends[2])
{
	int made[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, made))
		return -errno;
	for (int i = 0; i < 2; i++)
		ends[i] = soft_fd_keep(context, made[i]);
	if (ends[0] >= 0 && ends[1] >= 0)
		return 0;
	for (int i = 0; i < 2; i++)
		if (ends[i] >= 0)
			soft_fd_drop(context, ends[i]);
	return -EMFILE;
}

int soft_bell_make(struct ibv_context *ibcontext, struct soft_bell *bell)
{
	struct soft_context *context = container_of(ibcontext, struct soft_context, ibv);
	const struct shunt_sys *sys = context->attr.sys;
	const int off = 0;
	int ends[2] = { -1, -1 }, result = make_pair(ibcontext, ends);

	if (result)
		return result;
	sys->setsockopt(ends[0], SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));	/* since Linux 6.16 */
	/* Each look goes on behind the last. */
	if (sys->setsockopt(ends[0], SOL_SOCKET, SO_PEEK_OFF, &off, sizeof(off))) {
		result = -errno;
		soft_fd_drop(ibcontext, ends[0]);
		soft_fd_drop(ibcontext, ends[1]);
		return result;
	}
	*bell = (struct soft_bell) { .fd = ends[0], .handle = ends[1], .most = most_rings(context, ends[1]) };
	return 0;
}

static void forget_handle(struct ibv_context *context, struct soft_bell *bell)
{
	if (bell->handle >= 0)
		soft_fd_drop(context, bell->handle);
	bell->handle = -1;
}

int soft_pd_set_apart(struct ibv_pd *ibpd, struct ibv_comp_channel *channel)
{
	struct soft_pd *pd = container_of(ibpd, struct soft_pd, ibv);
	int result;

	if (pd->apart)
		return 0;
	result = soft_bell_make(ibpd->context, &pd->bell);
	if (result)
		return result;
	result = soft_channel_gather(channel, pd->bell.fd);
	if (result) {
		soft_bell_drop(ibpd->context, &pd->bell, -1);
		return result;
	}
	pd->channel = channel;
	pd->apart = true;
	return 0;
}

void soft_pd_told(struct ibv_pd *ibpd)
{
	struct soft_pd *pd = container_of(ibpd, struct soft_pd, ibv);

	forget_handle(ibpd->context, &pd->bell);
	for (int i = 0; i < SEGMENT_WAITERS; i++)
		forget_handle(ibpd->context, &pd->waiters[i]);
}

/* Packets that may be taken: those in front of the first that has descriptors, or is not of one byte as ours are. */
static int bell_look(const struct shunt_sys *sys, int fd, struct mmsghdr packets[AT_ONCE])
{
	int seen = sys->recvmmsg(fd, packets, AT_ONCE, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const int off = 0;

	for (int i = 0; i < seen; i++) {
		if (packets[i].msg_len == 1 &&
		    !(packets[i].msg_hdr.msg_flags & (MSG_CTRUNC | MSG_TRUNC)))
			continue;	/* of none: or the end of all */
		sys->setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &off, sizeof(off));
		return i;
	}
	return seen;
}

/* Takes what has come. True: there may be more. */
static bool bell_empty(const struct soft_context *context, const struct soft_bell *bell)
{
	const struct shunt_sys *sys = context->attr.sys;
	struct mmsghdr packets[AT_ONCE];
	char bytes[AT_ONCE], none;
	struct iovec iov[AT_ONCE];
	int seen;

	for (int i = 0; i < AT_ONCE; i++) {
		iov[i] = (struct iovec) { &bytes[i], 1 };
		packets[i] = (struct mmsghdr) {
			.msg_hdr = { .msg_iov = &iov[i], .msg_iovlen = 1, .msg_control = &none }
		};
	}
	seen = bell_look(sys, bell->fd, packets);
	if (seen > 0)
		sys->recvmmsg(bell->fd, packets, (unsigned int)seen,
			      MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	return seen == AT_ONCE;
}

void soft_bell_count(struct ibv_context *context, struct soft_bell *bell)
{
	if (atomic_fetch_add_explicit(&bell->rings, 1, memory_order_relaxed) + 1 < bell->most)
		return;
	atomic_store_explicit(&bell->rings, 0, memory_order_relaxed);
	bell_empty(container_of(context, struct soft_context, ibv), bell);
}

void soft_bell_rang(struct soft_pd *pd)
{
	if (pd->apart)
		soft_bell_count(pd->ibv.context, &pd->bell);
}

/* Descriptors of the peer's may be left in the queue, and take long to close: see let_go. */
void soft_bell_drop(struct ibv_context *ibcontext, struct soft_bell *bell, int set)
{
	struct soft_context *context = container_of(ibcontext, struct soft_context, ibv);

	if (bell->fd < 0)
		return;
	forget_handle(ibcontext, bell);
	if (set >= 0)
		context->attr.sys->epoll_ctl(set, EPOLL_CTL_DEL, bell->fd, NULL);
	context->attr.sys->shutdown(bell->fd, SHUT_RDWR);
	while (bell_empty(context, bell))
		;
	if (context->attr.let_go)
		context->attr.let_go(context->attr.keep_arg, bell->fd);
	else
		soft_fd_drop(ibcontext, bell->fd);
	bell->fd = -1;
}

void soft_bell_close(struct soft_pd *pd)
{
	if (!pd->apart)
		return;
	soft_channel_leave(pd->channel, pd->bell.fd);
	soft_bell_drop(pd->ibv.context, &pd->bell, -1);
}

bool soft_bell_is_one(struct ibv_context *ibcontext, int fd)
{
	const struct shunt_sys *sys = container_of(ibcontext, struct soft_context, ibv)->attr.sys;
	int family = 0, type = 0, listens = 0;
	socklen_t length = sizeof(int);

	return !sys->getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length) && family == AF_UNIX &&
	       !sys->getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) &&
	       type == SOCK_SEQPACKET &&
	       !sys->getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) && !listens;
}

/* EAGAIN: the queue is full, so the peer has been woken. Without memory for a packet it would sleep on. */
void soft_bell_ring(struct ibv_context *ibcontext, int fd)
{
	const struct shunt_sys *sys = container_of(ibcontext, struct soft_context, ibv)->attr.sys;
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	int saved = errno, tries = 0;

	while (sys->sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
	       (errno == ENOBUFS || errno == ENOMEM || errno == EINTR) && ++tries < TRIES)
		sched_yield();
	errno = saved;
}
