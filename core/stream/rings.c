/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <linux/socket.h>
#include <sys/socket.h>
#include "core/engine.h"
#include "core/stream/rings.h"
#include "core/stream/sleep.h"

#define GROW_LOG 4	/* a ring that was too small is followed by one 16 times its size */

/* The ring that the sender is to use after the present one. False: there is no room for it. */
static bool prepare_ring(struct shunt_stream *stream, uint32_t bytes)
{
	struct shunt_link *link = stream->seat->link;
	struct shunt_seat_in *in = &stream->seat->in;
	const struct ibv_mr *mr;
	uint64_t offset = shunt_arena_take(&link->arena, bytes, &mr);

	if (offset == UINT64_MAX)
		return false;
	in->ring.next = link->arena_base + offset;
	atomic_store(&in->ring.next_bytes, bytes);
	atomic_store(&in->ring.offered, shunt_ring_make(mr->rkey, offset, bytes));
	return true;
}

/*
 * A program that has set SO_RCVBUF limits the bytes on their way to it (SOCK_RCVBUF_LOCK, socket(7)). SO_BUF_LOCK,
 * since Linux 5.16, tells. UINT64_MAX: it has not.
 */
static uint64_t allowed_by_program(struct shunt_stream *stream)
{
	const struct shunt_sys *sys = stream->group->sys;
	int locks = 0, bytes = 0;
	socklen_t length = sizeof(locks);

	if (sys->getsockopt(stream->fd, SOL_SOCKET, SO_BUF_LOCK, &locks, &length) || !(locks & SOCK_RCVBUF_LOCK) ||
	    sys->getsockopt(stream->fd, SOL_SOCKET, SO_RCVBUF, &bytes, &length) || bytes < 0)
		return UINT64_MAX;
	return bytes;
}

/* How large the next ring may be. */
static uint64_t next_bytes(struct shunt_stream *stream)
{
	uint64_t now = stream->seat->in.ring.bytes, bytes = now << GROW_LOG;
	uint64_t most = shunt_arena_most(&stream->seat->link->arena);
	uint64_t allowed;
	int saved = errno;

	if (most > stream->group->config->ring_max)
		most = stream->group->config->ring_max;
	if (bytes > most)
		bytes = most;
	if (bytes <= now)
		return now;
	allowed = allowed_by_program(stream);
	errno = saved;
	while (bytes > now && bytes / 2 >= allowed)
		bytes /= 2;
	return bytes;
}

uint32_t shunt_rings_offer_large(struct shunt_stream *stream)
{
	struct shunt_seat_in *in = &stream->seat->in;
	uint64_t bytes;

	shunt_assert_held(&stream->rx.lock);
	if (in->ring.largest || atomic_load(&in->ring.next_bytes))
		return 0;
	bytes = next_bytes(stream);
	in->ring.largest = bytes <= in->ring.bytes || !prepare_ring(stream, shunt_narrow_u32(bytes));
	if (in->ring.largest)
		return 0;	/* the next full ring does not ask the kernel again */
	atomic_fetch_add(&shunt_stream_engine(stream)->grows, 1);
	return SHUNT_WORK_RING;
}

void shunt_rings_swap(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_seat_in *in = &stream->seat->in;
	struct shunt_link *link = stream->seat->link;
	uint8_t *old = in->ring.at;
	uint32_t old_bytes = in->ring.bytes;

	shunt_assert_held(&stream->rx.lock);
	in->ring.at = in->ring.next;
	__atomic_store_n(&in->ring.bytes, atomic_load(&in->ring.next_bytes), __ATOMIC_RELAXED);
	__atomic_store_n(&in->ring.from, atomic_load(&in->next_from), __ATOMIC_RELAXED);
	in->ring.largest = false;
	atomic_store(&in->ring.next_bytes, 0);
	atomic_store(&in->next_from, SHUNT_NEVER);
	if (in->ring.bytes > engine->config.ring_min)
		shunt_request_memory(&engine->loop);
	if (old_bytes <= engine->config.ring_min)	/* those of closed streams are kept for new ones; this stream stays */
		shunt_link_drop_pages(link, old, old_bytes);
	shunt_link_give_ring(link, old, old_bytes);
}

bool shunt_rings_may_shrink(const struct shunt_stream *stream)
{
	const struct shunt_seat *seat = stream->seat;
	const struct shunt_own_ring *ring = &seat->in.ring;

	return __atomic_load_n(&ring->bytes, __ATOMIC_RELAXED) > stream->group->config->ring_min ||
	       (atomic_load(&seat->in.tail) > __atomic_load_n(&ring->from, __ATOMIC_RELAXED) &&
		shunt_link_gives_pages(seat->link));
}

/* A sender that is idle uses it as soon as a thread of its process polls. A stream that was closed may have left pages there. */
bool shunt_rings_offer_small(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_own_ring *ring = &stream->seat->in.ring;

	shunt_assert_held(&stream->rx.lock);
	if (!prepare_ring(stream, shunt_narrow_u32(engine->config.ring_min)))
		return false;
	shunt_link_drop_pages(stream->seat->link, ring->next, atomic_load(&ring->next_bytes));
	atomic_fetch_add(&engine->shrinks, 1);
	shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_RING);
	return true;
}

bool shunt_rings_change(struct shunt_stream *stream)
{
	struct shunt_seat_out *out = &stream->seat->out;

	shunt_assert_held(&stream->tx.lock);
	return atomic_load(&stream->state) != SHUNT_LINKED ||
	       !shunt_heading_on_link(&out->heading) ||
	       shunt_end_has(&stream->end, SHUNT_END_SHUT_WRITE) ||
	       shunt_lane_change_ring(stream->seat->lane, stream->seat);
}
