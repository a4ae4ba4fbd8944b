/* SPDX-License-Identifier: MIT */
/*
 * The receiving node of the cost model: it deals with one WR after the other, from all senders. Contexts share it by
 * a file that all map, for experiments with several clients of one node.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/device/soft/device.h"

enum { FILE_BYTES = 4096, BLOCK = 4096 };
#define EXTRA_MOST 1000000000ull
/* A queue at the node is never so long: busy_until is of another clock, before a reboot, say. */
#define QUEUE_MOST 60000000000ull

/* Several clients may make it at once; a file of another user or kind is left alone. */
static int file_prepare(int fd)
{
	struct stat stat;

	if (fstat(fd, &stat))
		return errno;
	if (!S_ISREG(stat.st_mode) || stat.st_uid != geteuid())
		return EPERM;
	if (stat.st_size && stat.st_size != FILE_BYTES)
		return EINVAL;
	return ftruncate(fd, FILE_BYTES) ? errno : 0;
}

static int file_map(struct soft_context *context, int fd)
{
	int err = file_prepare(fd);
	void *file;

	if (err)
		return err;
	file = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED)
		return errno;
	madvise(file, FILE_BYTES, MADV_DONTFORK);
	context->nic.sink = file;
	return 0;
}

int soft_sink_open(struct soft_context *context)
{
	const char *path = context->attr.model.sinkfile;
	int fd, err;

	context->nic.sink = &context->nic.own_sink;
	if (!*path)
		return 0;
	fd = soft_fd_keep(&context->ibv,
			  open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
	if (fd < 0)
		return errno;
	err = file_map(context, fd);
	soft_fd_drop(&context->ibv, fd);
	return err;
}

void soft_sink_close(struct soft_context *context)
{
	if (context->nic.sink != &context->nic.own_sink)
		munmap(context->nic.sink, FILE_BYTES);
}

/* ns that it takes the node for 4 KiB. */
static uint64_t block_cost(const struct soft_context *context)
{
	uint64_t extra = soft_load(&context->nic.sink->extra);

	return context->attr.model.sink + (extra < EXTRA_MOST ? extra : EXTRA_MOST);
}

/* By its time, so bytes of a process that has been killed do not stay in it. */
uint64_t soft_sink_queue(const struct soft_context *context, uint64_t now)
{
	uint64_t until = soft_load(&context->nic.sink->busy_until), cost = block_cost(context);

	return cost && until > now && until - now <= QUEUE_MOST ? (until - now) / cost * BLOCK : 0;
}

/* nic.lock held: the QP's word is guarded by it, the node's is not. */
void soft_sink_take(struct soft_qp *qp, uint64_t now, uint64_t bytes)
{
	struct soft_sink *sink = qp->context->nic.sink;
	uint64_t until, next, cost = block_cost(qp->context) * soft_nic_blocks(bytes);

	if (!cost)
		return;
	until = soft_load(&sink->busy_until);
	do {
		next = (until > now && until - now <= QUEUE_MOST ? until : now) + cost;
		/* Relaxed: the word tells of no other memory. */
	} while (!atomic_compare_exchange_weak_explicit(
		&sink->busy_until, &until, next, memory_order_relaxed, memory_order_relaxed));
	qp->sink_until = next > qp->sink_until ? next : qp->sink_until;
}
