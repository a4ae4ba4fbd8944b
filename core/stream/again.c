/* SPDX-License-Identifier: MIT */
#include "core/stream/again.h"
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "core/engine.h"
#include "core/lane/remote_read.h"
#include "core/lane/send_buffer.h"
#include "core/lane/zero_copy.h"

#define SETTLING 1000000000ull	/* ns that the modelled device may take for a full queue */

const char shunt_again_wrong[] = "bytes asked for again that cannot be missing";

/* --- what is to be written to TCP again --- */

void shunt_again_free(struct shunt_stream *stream)
{
	if (stream->tx.backlog.bytes != stream->seat->out.nonce)	/* between hosts, before there is a link to be sent again from */
		free(stream->tx.backlog.bytes);
	stream->tx.backlog.bytes = NULL;
}

uint8_t *shunt_again_add(struct shunt_tx *tx, size_t bytes)
{
	size_t before = tx->backlog.bytes ? tx->backlog.size : 0;
	uint8_t *grown = realloc(tx->backlog.bytes, before + bytes);

	if (!grown)
		return NULL;
	if (!before)
		tx->backlog.done = 0;
	tx->backlog.size = before + bytes;
	tx->backlog.bytes = grown;
	return grown + before;
}

/* --- from where --- */

/* The stream's bytes [from, to) from our own memory. False: it has not kept all of them. */
static bool copy_kept(struct shunt_stream *stream, uint8_t *out, uint64_t from, uint64_t to)
{
	const struct shunt_zero_copy *pin = stream->seat->out.pin;

	shunt_assert_held(&stream->tx.lock);
	while (from < to) {
		size_t part = shunt_zero_copy_copy(stream->seat, out, from, to);

		if (!part) {
			part = (pin && from < pin->from && pin->from < to ? pin->from : to) - from;
			if (!shunt_send_buffer_copy(stream->seat, out, from, from + part))
				return false;
		}
		out += part;
		from += part;
	}
	return true;
}

/* The posted bytes [from, to): from our own memory, or as they lie in the peer's ring. */
static bool copy_posted(struct shunt_stream *stream, uint8_t *out, uint64_t from, uint64_t to)
{
	struct shunt_lane *lane = stream->seat->lane;

	if (from == to)
		return true;
	if (lane->retains && copy_kept(stream, out, from, to))
		return true;
	return !atomic_load(&lane->failed) && shunt_remote_read_ring(stream->seat, out, from, to);
}

/*
 * lane.lock held: nothing is posted meanwhile, so a slow device completes what it has. Its thread
 * needs no lock of ours.
 */
static bool settle(struct shunt_engine *engine, struct shunt_lane *lane)
{
	uint64_t until = shunt_now(engine) + SETTLING;

	while (!lane->retains && !shunt_lane_arrived(lane)) {
		if (!engine->config.soft_model[0] || atomic_load(&lane->failed) ||
		    shunt_now(engine) >= until)
			return false;
		sched_yield();
	}
	return true;
}

/* --- how much --- */

/*
 * *bytes: how many bytes from `from` on may be sent again, where the peer has said `from`. The peer
 * has what it has given credit for, and lacks at most what its present ring and the ring before hold.
 * The staged bytes behind those fit into a stage. So *bytes is bounded, whatever the peer says.
 * A direction that overflow.c has handed over is not taken back: its callers refuse that, because
 * TCP has the bytes behind the ring's. There `posted` is beyond the ring, so it is -EPROTO here.
 */
static int measure(const struct shunt_stream *stream, uint64_t from, size_t *bytes)
{
	const struct shunt_seat_out *out = &stream->seat->out;
	uint64_t posted = atomic_load(&out->posted), ring_from = atomic_load(&out->ring.from);
	uint64_t present = from > ring_from ? from : ring_from;	/* first in the present ring */

	if (from < atomic_load(&out->upgrade_at))	/* TCP has carried it */
		return -ENODATA;
	if (from > posted || from < atomic_load(&out->ring.consumed))
		return -EPROTO;
	/* Of a direction that either end has reset, `posted` counts what was dropped and had no room. */
	if (present - from > atomic_load(&out->ring.old_bytes) ||
	    (posted > present && posted - present > atomic_load(&out->ring.bytes)))
		return shunt_end_has(&stream->end, SHUNT_END_BROKEN) ? -ENODATA : -EPROTO;
	*bytes = atomic_load(&out->staged) - from;
	return 0;
}

/* Copies them to `room`. */
static bool copy(struct shunt_stream *stream, uint8_t *room, uint64_t from)
{
	uint64_t posted = atomic_load(&stream->seat->out.posted);

	return copy_posted(stream, room, from, posted) &&
	       copy_kept(stream, room + (posted - from), posted,
			 atomic_load(&stream->seat->out.staged));
}

int shunt_again_take_back(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t from,
			  const struct shunt_message *answer)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;
	uint8_t *room = NULL;
	size_t bytes;
	int result = measure(stream, from, &bytes);

	if (result)
		return result;
	if (shunt_end_has(&stream->end, SHUNT_END_SHUT_WRITE) && !shunt_seat_fin_is_due(out) &&
	    bytes)
		return -ENODATA;
	if (from < atomic_load(&out->posted) && !settle(engine, stream->seat->lane))
		return -ENODATA;
	if (bytes) {
		room = shunt_again_add(tx, bytes);
		if (!room)
			return -ENOMEM;
		if (!copy(stream, room, from))
			result = -ENODATA;
	}
	if (!result && answer)
		result = shunt_link_send_now(stream->seat->link, answer);
	if (result) {
		tx->backlog.size -= room ? bytes : 0;
		return result;
	}
	atomic_store(&out->posted, atomic_load(&out->staged));
	/* A HANDBACK without the bytes before it, heard before our answer, would be out of turn. */
	atomic_fetch_and(&stream->seat->work,
			 ~(uint32_t)(SHUNT_WORK_DATA | SHUNT_WORK_UPGRADE | SHUNT_WORK_HANDBACK));
	shunt_heading_turn(&out->heading, SHUNT_HEADING_LEAVES);
	return 0;
}
