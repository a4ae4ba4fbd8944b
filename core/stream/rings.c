/* SPDX-License-Identifier: MIT */
#include <linux/socket.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include "core/engine.h"
#include "core/stream/rings.h"

#define GROW_LOG 4	/* a ring that was too small is followed by one 16 times its size */

/* The ring that the sender is to use after the present one. False: there is no room for it. */
static bool prepare_ring(struct shunt_stream *stream, uint32_t bytes, struct shunt_place *place)
{
	struct shunt_link *link = stream->seat->link;
	struct shunt_seat_in *in = &stream->seat->in;
	const struct ibv_mr *mr;
	uint64_t offset = shunt_arena_take(&link->arena, bytes, &mr);

	if (offset == UINT64_MAX)
		return false;
	*place = (struct shunt_place) { .ring_offset = offset,
					.ring_bytes = bytes,
					.stream = stream->seat->id,
					.rkey = mr->rkey };
	in->ring.next = link->arena_base + offset;
	atomic_store(&in->ring.next_bytes, bytes);
	return true;
}

/*
 * A program that has set SO_RCVBUF limits the bytes on their way to it (SOCK_RCVBUF_LOCK, socket(7)). SO_BUF_LOCK,
 * since Linux 5.16, tells. UINT64_MAX: it has not.
 */
static uint64_t allowed_by_program(struct shunt_stream *stream)
{
	const struct shunt_sys *sys = stream->engine->sys;
	int locks = 0, bytes = 0;
	socklen_t length = sizeof(locks);

	if (sys->getsockopt(stream->fd, SOL_SOCKET, SO_BUF_LOCK, &locks, &length) || !(locks & SOCK_RCVBUF_LOCK) ||
	    sys->getsockopt(stream->fd, SOL_SOCKET, SO_RCVBUF, &bytes, &length) || bytes < 0)
		return UINT64_MAX;
	return bytes;
}

static void offer_ring(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_seat_in *in = &stream->seat->in;
	struct shunt_arena *arena = &stream->seat->link->arena;
	uint64_t bytes = (uint64_t)in->ring.bytes << GROW_LOG;
	uint64_t allowed = allowed_by_program(stream);
	struct shunt_place place;

	while (bytes > in->ring.bytes && bytes / 2 >= allowed)
		bytes /= 2;
	if (bytes > engine->config.ring_max)
		bytes = engine->config.ring_max;
	if (bytes > shunt_arena_most(arena))
		bytes = shunt_arena_most(arena);
	if (bytes <= in->ring.bytes || !prepare_ring(stream, shunt_narrow_u32(bytes), &place))
		return;
	atomic_store(&in->ring.offered, shunt_ring_make(place.rkey, place.ring_offset, bytes));
	atomic_fetch_add(&engine->grows, 1);
	shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_RING);
}

void shunt_rings_swap(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_seat_in *in = &stream->seat->in;
	struct shunt_link *link = stream->seat->link;
	uint8_t *old = in->ring.at;
	uint32_t old_bytes = in->ring.bytes;

	shunt_assert_held(&stream->rx.lock);
	in->ring.at = in->ring.next;
	in->ring.bytes = atomic_load(&in->ring.next_bytes);
	in->ring.from = atomic_load(&in->next_from);
	atomic_store(&in->ring.next_bytes, 0);
	atomic_store(&in->next_from, SHUNT_NEVER);
	atomic_store(&in->ring.grown, in->ring.bytes > engine->config.ring_min);
	if (in->ring.grown)
		shunt_request_memory(engine);
	shunt_link_give_ring(link, old, old_bytes);
	if (in->ring.asked_again) {
		in->ring.asked_again = false;
		offer_ring(engine, stream);
	}
}

/* There is no larger ring: whatever has been read of this one is room. */
static void give_all(struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;
	struct shunt_seat_in *in = &stream->seat->in;
	uint64_t head = atomic_load(&rx->head);

	if (!shunt_intake_on_link(&in->intake) || shunt_intake_final(&in->intake) ||
	    in->ring.credited == head)
		return;
	in->ring.credited = head;
	shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_CREDIT);
}

void shunt_rings_grow(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;
	struct shunt_seat_in *in = &stream->seat->in;

	shunt_lock_take(&rx->lock);
	if (atomic_load(&stream->state) == SHUNT_LINKED) {
		if (atomic_load(&in->ring.next_bytes))
			in->ring.asked_again = true;	/* the sender is in the ring that our reader has not come to */
		else
			offer_ring(engine, stream);
		if (!atomic_load(&in->ring.next_bytes))
			give_all(stream);
	}
	shunt_lock_leave(&rx->lock);
}

/*
 * Sent on the channel: an idle sender need not poll, and its program need not call anything. If it cannot be said the
 * offer stands all the same: a peer that guessed it may be using it already.
 */
void shunt_rings_offer_small(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_message message = { .type = SHUNT_MSG_SHRINK,
					 .stream = stream->seat->peer_id };

	shunt_assert_held(&stream->rx.lock);
	if (!prepare_ring(stream, shunt_narrow_u32(engine->config.ring_min), &message.shrink))
		return;
	atomic_fetch_add(&engine->shrinks, 1);
	shunt_link_send(stream->seat->link, &message, NULL, 0);
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

/* As RING, but the sender has not asked for it and may have nothing to send. */
void shunt_rings_shrink(struct shunt_link *link, struct shunt_stream *stream, const struct shunt_place *place)
{
	struct shunt_engine *engine = link->engine;
	struct shunt_seat_out *out = &stream->seat->out;
	const char *wrong = NULL;

	if (!shunt_link_ring_is_sound(link, place->ring_offset, place->ring_bytes) ||
	    place->stream != stream->seat->peer_id ||
	    atomic_load(&stream->state) == SHUNT_CANDIDATE) {
		shunt_link_distrust(link, "a SHRINK to no ring of this stream");
		return;
	}
	shunt_lock_take(&stream->tx.lock);
	shunt_lock_take(&engine->group.lock);
	if (atomic_load(&out->ring.offer))
		wrong = "a second ring before the first was used";
	else
		atomic_store(&out->ring.offer,
			     shunt_ring_make(place->rkey, place->ring_offset, place->ring_bytes));
	if (shunt_seat_unstarve(out))
		shunt_group_notify(engine, stream, EPOLLOUT);
	shunt_lock_leave(&engine->group.lock);
	if (!wrong && !shunt_rings_change(stream))
		shunt_request_memory(engine);
	shunt_lock_leave(&stream->tx.lock);
	if (wrong)
		shunt_link_distrust(link, wrong);
}
