/* SPDX-License-Identifier: MIT */
/*
 * A page that the peers of several domains share, beside the segments, each of which is one peer's alone. Its region is
 * marked in the table of each domain's segment (SEGMENT_PAGE_OFFSET), and a peer maps the page by its own descriptor.
 */
#define _GNU_SOURCE
#include <errno.h>
#include "core/base/guard.h"
#include "core/device/soft/device.h"

static int page_map(int fd, void **page)
{
	void *at = shunt_guard_map(SEGMENT_PAGE_BYTES, fd);

	if (!at)
		return -errno;
	*page = at;
	return 0;
}

int soft_page_make(struct ibv_context *context, int *fd, void **page)
{
	int result, made = soft_memfd(context, SEGMENT_PAGE_BYTES);

	if (made < 0)
		return -errno;
	result = page_map(made, page);
	if (result)
		soft_fd_drop(context, made);
	else
		*fd = made;
	return result;
}

void soft_page_free(struct ibv_context *context, int fd, void *page)
{
	shunt_guard_unmap(page, SEGMENT_PAGE_BYTES);
	soft_fd_drop(context, fd);
}

struct ibv_mr *soft_page_lend(struct ibv_pd *pd, void *page)
{
	return soft_register_page(pd, page, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
}

/* The QP keeps the peer, and nobody drops it meanwhile: joining and leaving are one thread's. */
int soft_page_reach(struct ibv_qp *ibqp, int fd)
{
	struct soft_peer *peer = container_of(ibqp, struct soft_qp, ibv)->peer;
	char *none = NULL;
	struct stat stat;
	void *page;
	int result;

	if (!peer)
		return -ENOTCONN;
	if (soft_load(&peer->page))
		return -EBUSY;
	if (!shunt_guard_is_safe(fd, SEGMENT_PAGE_BYTES, &stat))
		return -EPROTO;
	result = page_map(fd, &page);
	if (result)
		return result;
	if (atomic_compare_exchange_strong(&peer->page, &none, page))
		return 0;
	shunt_guard_unmap(page, SEGMENT_PAGE_BYTES);
	return -EBUSY;
}
