/* SPDX-License-Identifier: MIT */
/* The other end of a QP: telling it where we are, mapping what it told us, waking it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/base/guard.h"
#include "core/device/soft/device.h"

int soft_qp_export(struct ibv_qp *ibqp, struct soft_address *address, int fds[2])
{
	struct soft_qp *qp = container_of(ibqp, struct soft_qp, ibv);

	*address = (struct soft_address){
		.magic = SEGMENT_ADDRESS_MAGIC,
		.qp_num = ibqp->qp_num,
		.queue_offset = (uint64_t)((char *)qp->queue - qp->pd->segment),
		.segment_bytes = qp->pd->bytes,
		.rq_depth = qp->rq_mask + 1,
	};
	fds[0] = qp->pd->fd;
	fds[1] = -1;
	if (qp->pd->apart)
		fds[1] = qp->pd->bell.handle;
	else if (qp->recv_cq->ibv.channel)
		fds[1] = soft_channel_event_fd(qp->recv_cq->ibv.channel);
	return 0;
}

static bool address_is_sane(const struct soft_address *address)
{
	uint64_t bytes = address->segment_bytes, offset = address->queue_offset;

	if (address->magic != SEGMENT_ADDRESS_MAGIC || bytes < SEGMENT_BYTES_MIN || bytes > SEGMENT_BYTES_MAX)
		return false;
	if (!address->rq_depth || address->rq_depth & (address->rq_depth - 1) ||
	    address->rq_depth > SEGMENT_DEPTH_MAX)
		return false;
	return offset >= SEGMENT_QUEUE_OFFSET && !(offset % 128) && offset <= bytes &&
	       segment_queue_bytes(address->rq_depth) <= bytes - offset;
}

/*
 * Anything else might block the poster, or be a file of value. O_NONBLOCK may be taken back, by a process that is trusted:
 * one that is not is no eventfd's peer (core/link/screen.c).
 */
static bool is_eventfd(int fd)
{
	char path[32], target[32];
	ssize_t bytes;
	int flags = fcntl(fd, F_GETFL);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	bytes = readlink(path, target, sizeof(target) - 1);
	if (bytes < 0)
		return flags >= 0 && errno != EBADF; /* no /proc: cannot tell */
	target[bytes] = 0;
	return flags & O_NONBLOCK && !strcmp(target, "anon_inode:[eventfd]");
}

/* pd->lock held around the list; mapping itself is done by the caller's thread alone. */
static struct soft_peer *peer_find(struct soft_pd *pd, const struct stat *stat)
{
	struct soft_peer *peer = NULL;

	for (peer = pd->peers; peer; peer = peer->next)
		if (peer->device == stat->st_dev && peer->inode == stat->st_ino)
			return peer;
	return NULL;
}

static int peer_map(const struct soft_pd *pd, struct soft_peer *peer, int fd,
		    const struct stat *stat)
{
	uint64_t most = pd->map_most;
	uint64_t segment_bytes = (uint64_t)stat->st_size;
	const struct segment_header *header;

	peer->device = stat->st_dev;
	peer->inode = stat->st_ino;
	peer->bytes = most && most < segment_bytes ? most : segment_bytes;
	peer->base = soft_segment_map(pd->ibv.context, peer->bytes, fd);
	if (!peer->base)
		return -errno;
	header = (const struct segment_header *)peer->base;
	if (header->magic == SEGMENT_MAGIC && header->version == SEGMENT_VERSION &&
	    header->segment_bytes == segment_bytes)
		return 0;
	shunt_guard_unmap(peer->base, peer->bytes);
	return -EPROTO;
}

static void peer_put(struct soft_pd *pd, struct soft_peer *peer)
{
	char *page;
	struct soft_peer **at;

	soft_lock(&pd->lock);
	if (--peer->users) {
		soft_unlock(&pd->lock);
		return;
	}
	for (at = &pd->peers; *at != peer; at = &(*at)->next)
		;
	*at = peer->next;
	soft_unlock(&pd->lock);
	page = soft_load(&peer->page);
	if (page)
		shunt_guard_unmap(page, SEGMENT_PAGE_BYTES);
	soft_waiters_forget(pd, peer);
	shunt_guard_unmap(peer->base, peer->bytes);
	free(peer);
}

static struct soft_peer *peer_share(struct soft_pd *pd, const struct stat *stat)
{
	struct soft_peer *known;

	soft_lock(&pd->lock);
	known = peer_find(pd, stat);
	if (known)
		known->users++;
	soft_unlock(&pd->lock);
	return known;
}

static int peer_get(struct soft_pd *pd, int fd, const struct stat *stat, struct soft_peer **result)
{
	struct soft_peer *fresh, *known = peer_share(pd, stat);	/* a second mapping may find no address space */
	int err;

	*result = known;
	if (known)
		return 0;
	fresh = calloc(1, sizeof(*fresh));
	err = fresh ? peer_map(pd, fresh, fd, stat) : -ENOMEM;
	if (err) {
		free(fresh);
		return err;
	}
	fresh->users = 1;
	soft_lock(&pd->lock);
	known = peer_find(pd, stat);
	if (known) {
		known->users++;
	} else {
		fresh->next = pd->peers;
		pd->peers = fresh;
	}
	soft_unlock(&pd->lock);
	*result = known ? known : fresh;
	if (known) {
		shunt_guard_unmap(fresh->base, fresh->bytes);
		free(fresh);
	}
	return 0;
}

/* sq_lock held, or nobody else knows the QP. */
void soft_peer_drop(struct soft_qp *qp)
{
	struct soft_peer *peer = qp->peer;

	if (!peer)
		return;
	qp->peer = NULL;
	qp->peer_queue = NULL;
	memset(qp->remote, 0, sizeof(qp->remote));
	if (qp->wake_fd >= 0)
		soft_fd_drop(qp->ibv.context, qp->wake_fd);
	qp->wake_fd = -1;
	peer_put(qp->pd, peer);
}

static void peer_adopt(struct soft_qp *qp, const struct soft_address *address,
		       struct soft_peer *peer, int wake_fd, bool by_packet)
{
	soft_lock(&qp->sq_lock);
	soft_peer_drop(qp);
	qp->peer = peer;
	qp->peer_queue = (struct segment_queue *)(peer->base + address->queue_offset);
	qp->peer_mask = address->rq_depth - 1;
	/* The rendezvous has ordered all that the peer stored before it told us of the queue. */
	qp->peer_generation = soft_load(&qp->peer_queue->generation);
	qp->peer_base = segment_base(qp->peer_generation);
	qp->peer_posted = 0;
	qp->written = 0;
	qp->wake_fd = wake_fd;
	qp->wake_by_packet = by_packet;
	qp->attr.dest_qp_num = address->qp_num;
	atomic_fetch_and(&qp->slow, ~(uint32_t)SOFT_SLOW_GONE);
	soft_unlock(&qp->sq_lock);
}

/* The table of regions always is: SEGMENT_BYTES_MIN bytes hold it. */
static bool queue_is_mapped(const struct soft_peer *peer, const struct soft_address *address)
{
	return address->queue_offset <= peer->bytes &&
	       segment_queue_bytes(address->rq_depth) <= peer->bytes - address->queue_offset;
}

int soft_qp_import(struct ibv_qp *ibqp, const struct soft_address *address, const int fds[2])
{
	struct soft_qp *qp = container_of(ibqp, struct soft_qp, ibv);
	uint32_t state = soft_load(&qp->state);
	struct soft_peer *peer = NULL;
	struct stat stat;
	bool by_packet = fds[1] >= 0 && soft_bell_is_one(ibqp->context, fds[1]);
	int err, wake_fd = -1;

	if (state != IBV_QPS_RESET && state != IBV_QPS_INIT)
		return -EINVAL;
	if (!address_is_sane(address) ||
	    !shunt_guard_is_safe(fds[0], address->segment_bytes, &stat) ||
	    (fds[1] >= 0 && !by_packet && (qp->pd->apart || !is_eventfd(fds[1]))))
		return -EPROTO;
	if (fds[1] >= 0) {
		wake_fd = soft_fd_keep(qp->ibv.context, fcntl(fds[1], F_DUPFD_CLOEXEC, 0));
		if (wake_fd < 0)
			return -errno;
	}
	err = peer_get(qp->pd, fds[0], &stat, &peer);
	if (!err && !queue_is_mapped(peer, address)) {
		peer_put(qp->pd, peer);
		err = -ENOSPC;
	}
	if (err) {
		if (wake_fd >= 0)
			soft_fd_drop(qp->ibv.context, wake_fd);
		return err;
	}
	peer_adopt(qp, address, peer, wake_fd, by_packet);
	return 0;
}

uint64_t soft_qp_mapped(struct ibv_qp *ibqp)
{
	const struct soft_peer *peer = container_of(ibqp, struct soft_qp, ibv)->peer;

	return peer ? peer->bytes : 0;
}

void soft_qp_peer_gone(struct ibv_qp *ibqp)
{
	struct soft_qp *qp = container_of(ibqp, struct soft_qp, ibv);

	atomic_fetch_or(&qp->slow, SOFT_SLOW_GONE);
}

void soft_peer_wake(struct soft_qp *qp, uint32_t whom)
{
	soft_waiters_wake(qp, whom & ~1u);
	if (!(whom & 1))
		return;
	if (qp->wake_by_packet)
		soft_bell_ring(qp->ibv.context, qp->wake_fd);
	else
		soft_eventfd_add(qp->wake_fd);
}

const uint32_t *soft_qp_rings(struct ibv_qp *ibqp)
{
	struct soft_qp *qp = container_of(ibqp, struct soft_qp, ibv);

	qp->rings_later = true;
	return (const uint32_t *)&qp->rings;
}

void soft_qp_ring(struct ibv_qp *ibqp)
{
	struct soft_qp *qp = container_of(ibqp, struct soft_qp, ibv);
	uint32_t whom = atomic_exchange(&qp->rings, 0);

	if (whom)
		soft_peer_wake(qp, whom);
}
