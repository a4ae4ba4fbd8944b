/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
/* Protection domains: a domain is a segment, a sealed memfd that the peer may map. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/base/guard.h"
#include "core/device/soft/device.h"

#define ARENA_BYTES_MIN (16ull << 20)

static uint64_t round_up(uint64_t bytes, uint64_t to)
{
	return (bytes + to - 1) / to * to;
}

static uint64_t page_round(uint64_t bytes)
{
	return round_up(bytes, shunt_guard_page());
}

/* Huge pages are the file's, so a block has whole ones where the arena begins with one. Small arenas have none. */
static uint64_t arena_begin(const struct soft_context *context, uint64_t queues)
{
	uint64_t least = page_round(queues) + shunt_guard_page(); /* between queues and arena */
	bool large = context->attr.large && context->attr.arena_bytes >= ARENA_BYTES_MIN;

	return large ? round_up(least, SHUNT_GUARD_LARGE) : least;
}

static int segment_map(struct soft_pd *pd, uint64_t arena_bytes)
{
	int saved;

	pd->bytes = pd->arena_offset + page_round(arena_bytes);
	pd->fd = soft_memfd(pd->ibv.context, pd->bytes);
	if (pd->fd < 0)
		return errno;
	pd->segment = soft_segment_map(pd->ibv.context, pd->bytes, pd->fd);
	if (pd->segment) {
		shunt_guard_inside(pd->segment + pd->arena_offset - shunt_guard_page());
		return 0;
	}
	saved = errno;
	soft_fd_drop(pd->ibv.context, pd->fd);
	return saved;
}

/* Address space may be scarce: take what there is, down to 16 MiB. */
static int segment_map_some(struct soft_pd *pd, uint64_t arena_bytes)
{
	int err = segment_map(pd, arena_bytes);

	while (err && arena_bytes / 2 >= ARENA_BYTES_MIN) {
		arena_bytes /= 2;
		err = segment_map(pd, arena_bytes);
	}
	return err;
}

struct ibv_pd *soft_alloc_pd(struct ibv_context *ibcontext)
{
	struct soft_context *context = container_of(ibcontext, struct soft_context, ibv);
	struct soft_pd *pd = calloc(1, sizeof(*pd));
	struct segment_header *header;

	if (!pd)
		return NULL;
	pd->ibv.context = ibcontext;
	pd->bell.fd = pd->bell.handle = -1;
	for (int i = 0; i < SEGMENT_WAITERS; i++)
		pd->waiters[i].fd = pd->waiters[i].handle = -1;
	pd->queue_bytes = (segment_queue_bytes(context->attr.max_qp_wr) + 4095) & ~4095ull;
	pd->arena_offset = arena_begin(context, SEGMENT_QUEUE_OFFSET +
							context->attr.max_qp * pd->queue_bytes);
	if (context->attr.max_qp < SEGMENT_QUEUES)
		pd->queues_used = UINT64_MAX << context->attr.max_qp;	/* there are none */
	errno = segment_map_some(pd, context->attr.arena_bytes);
	if (errno) {
		free(pd);
		return NULL;
	}
	for (uint32_t i = 0; i < SEGMENT_MR_SLOTS; i++)
		pd->mr_count[i] = 1;
	header = (struct segment_header *)pd->segment;
	header->magic = SEGMENT_MAGIC;
	header->version = SEGMENT_VERSION;
	header->segment_bytes = pd->bytes;
	return &pd->ibv;
}

int soft_dealloc_pd(struct ibv_pd *ibpd)
{
	struct soft_pd *pd = container_of(ibpd, struct soft_pd, ibv);

	if (pd->mr_used || pd->qp_used)
		return EBUSY;
	soft_bell_close(pd);
	soft_waiters_close(pd);
	shunt_guard_unmap(pd->segment, pd->bytes);
	soft_fd_drop(pd->ibv.context, pd->fd);
	free(pd);
	return 0;
}

int soft_queue_take(struct soft_pd *pd, uint32_t *index)
{
	int err = ENOMEM;

	soft_lock(&pd->lock);
	if (~pd->queues_used) {
		*index = (uint32_t)__builtin_ctzll(~pd->queues_used);
		pd->queues_used |= 1ull << *index;
		pd->qp_used++;
		err = 0;
	}
	soft_unlock(&pd->lock);
	return err;
}

void soft_queue_give(struct soft_pd *pd, uint32_t index)
{
	soft_lock(&pd->lock);
	pd->queues_used &= ~(1ull << index);
	pd->qp_used--;
	soft_unlock(&pd->lock);
}

struct segment_queue *soft_queue_at(struct soft_pd *pd, uint32_t index)
{
	return (struct segment_queue *)(pd->segment + SEGMENT_QUEUE_OFFSET + index * pd->queue_bytes);
}

void *soft_arena(struct ibv_pd *ibpd, size_t *bytes)
{
	struct soft_pd *pd = container_of(ibpd, struct soft_pd, ibv);

	*bytes = pd->bytes - pd->arena_offset;
	return pd->segment + pd->arena_offset;
}

void soft_size_arena(struct ibv_context *ibcontext, uint64_t bytes)
{
	struct soft_context *context = container_of(ibcontext, struct soft_context, ibv);

	context->attr.arena_bytes = bytes;
}

uint64_t soft_segment_bytes(struct ibv_pd *ibpd)
{
	return container_of(ibpd, struct soft_pd, ibv)->bytes;
}

void soft_map_most(struct ibv_pd *ibpd, uint64_t bytes)
{
	if (bytes && bytes < SEGMENT_BYTES_MIN)
		bytes = SEGMENT_BYTES_MIN;
	container_of(ibpd, struct soft_pd, ibv)->map_most = bytes;
}

/* A part of a huge page would be split off, one 4 KiB page after the other. */
bool soft_arena_gives_pages(struct ibv_pd *ibpd)
{
	const struct soft_pd *pd = container_of(ibpd, struct soft_pd, ibv);
	const struct soft_context *context = container_of(ibpd->context, struct soft_context, ibv);

	return !pd->apart && !context->attr.large;
}

int soft_arena_discard(struct ibv_pd *ibpd, void *addr, size_t bytes)
{
	struct soft_pd *pd = container_of(ibpd, struct soft_pd, ibv);
	uint64_t offset = (uint64_t)((char *)addr - pd->segment);

	if (offset < pd->arena_offset || offset > pd->bytes || bytes > pd->bytes - offset)
		return -EINVAL;
	/* A stranger keeps the file's lock for as long as it likes, by a write() from memory whose pages do not come. */
	if (!bytes || pd->apart)
		return 0;
	/* libc's fallocate() is a cancellation point, and a reader that gives back its ring comes here (core/poll/cancel.h). */
	if (syscall(SYS_fallocate, pd->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes))
		return -errno;
	return 0;
}
