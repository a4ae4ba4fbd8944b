/* SPDX-License-Identifier: MIT */
#include "core/stream/queued.h"
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include "core/engine.h"
#include "core/lane/send_queue.h"
#include "core/stream/backlog.h"
#include "core/stream/peek.h"
#include "core/stream/repeat.h"
#include "core/stream/proof.h"

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Bytes of the kernel's queue; 0 also where the socket is gone. */
static uint64_t ask_kernel(struct shunt_stream *stream, unsigned long request)
{
	int bytes = 0;

	stream->group->sys->ioctl(stream->fd, request, &bytes);
	return bytes > 0 ? (uint64_t)bytes : 0;
}

/*
 * Given to the queue pair, and not known to have arrived. Completions are of the lane, so this is the most that it can
 * be of one stream. group.lock held.
 */
static uint64_t under_way(struct shunt_lane *lane, struct shunt_seat_out *out, uint64_t consumed,
			  uint64_t posted)
{
	uint64_t arrived = larger(consumed, atomic_load(&out->upgrade_at));
	uint64_t lanes = shunt_window_inflight(&lane->window);

	if (posted <= arrived || shunt_lane_arrived(lane))
		return 0;
	return posted - arrived < lanes ? posted - arrived : lanes;
}

/* group.lock held: it keeps the link. */
static void look_at_link(struct shunt_stream *stream, struct shunt_queued *queued)
{
	struct shunt_seat_out *out = &stream->seat->out;
	struct shunt_lane *lane = stream->seat->lane;
	/* In this order: each is at least the one before it. */
	uint64_t consumed = atomic_load(&out->ring.consumed), posted = atomic_load(&out->posted);
	uint64_t staged = larger(atomic_load(&out->staged), posted),
		 read = larger(consumed, atomic_load(&out->ring.from));

	queued->linked = true;
	queued->staged = staged - posted;
	queued->sendq = queued->staged + under_way(lane, out, consumed, posted);
	queued->ring_bytes = atomic_load(&out->ring.bytes);
	queued->lane = lane->number;
	queued->peer_pid = lane->link->peer_pid;
	if (!shunt_heading_on_link(&out->heading))
		return;
	queued->ring_fill = posted > read ? posted - read : 0;
	queued->credit = shunt_seat_room(out, posted);
	queued->window = shunt_send_queue_limit(stream->seat);
}

/*
 * Bytes that only we have for TCP count, and those of a nonce, which are none of the stream's, do not. Only the service thread and exit() try
 * a tx.lock, so nobody misses it meanwhile.
 */
static uint64_t without_ours(struct shunt_stream *stream, uint64_t unsent)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;
	uint64_t ours = 0;

	if (!tx->backlog.bytes && atomic_load(&out->show) == SHUNT_SHOWN)
		return unsent;
	if (!shunt_lock_try(&tx->lock))
		return SHUNT_NEVER;
	unsent -= (uint64_t)shunt_proof_unsent(tx, unsent > INT32_MAX ? INT32_MAX : (int)unsent);
	ours = shunt_backlog_left(tx);
	shunt_lock_leave(&tx->lock);
	return unsent + ours;
}

void shunt_queued_look(struct shunt_stream *stream, struct shunt_queued *queued)
{
	struct shunt_group *group = stream->group;
	struct shunt_seat_in *in = &stream->seat->in;
	bool plain = atomic_load(&stream->state) == SHUNT_PLAIN;

	*queued = (struct shunt_queued) { 0 };
	shunt_lock_take(&group->lock);
	if (atomic_load(&stream->state) == SHUNT_LINKED && atomic_load(&stream->seat->link))
		look_at_link(stream, queued);
	shunt_lock_leave(&group->lock);
	if (!shunt_heading_on_link(&stream->seat->out.heading) ||
	    shunt_heading_unpassed(&stream->seat->out.heading)) {
		uint64_t tcp = without_ours(stream, ask_kernel(stream, SIOCOUTQ));

		queued->sendq = tcp == SHUNT_NEVER ? SHUNT_NEVER : queued->sendq + tcp;
	}
	if (plain)
		queued->recvq = ask_kernel(stream, SIOCINQ);
	else
		queued->recvq = shunt_peek_unread(
			stream, !shunt_intake_on_link(&in->intake) ||
						atomic_load(&in->boundary) != SHUNT_NEVER ?
					shunt_repeat_without(stream, ask_kernel(stream, SIOCINQ)) :
					0);
}

int shunt_stream_outq(struct shunt_engine *engine, int fd, struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;
	int tcp = 0;

	shunt_lock_take(&tx->lock);
	engine->sys->ioctl(fd, SIOCOUTQ, &tcp);
	tcp -= shunt_proof_unsent(tx, tcp);
	if (atomic_load(&stream->state) == SHUNT_LINKED && shunt_heading_on_link(&out->heading))
		tcp += shunt_narrow_int(tx->offset - atomic_load(&out->posted));
	tcp += shunt_narrow_int(shunt_backlog_left(tx));
	shunt_lock_leave(&tx->lock);
	return tcp;
}
