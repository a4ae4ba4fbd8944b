/* SPDX-License-Identifier: MIT */
#include "tests/inspect.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/lsan.h"
#include "core/engine.h"
#include "core/lane/send_queue.h"
#include "core/stream/overflow.h"
#include "core/stream/track.h"

/* --- the stream as a whole --- */

enum shunt_state stream_state(const struct shunt_stream *stream)
{
	return atomic_load(&stream->state);
}

struct shunt_link *stream_link(const struct shunt_stream *stream)
{
	return stream->seat->link;
}

struct shunt_lane *stream_lane(const struct shunt_stream *stream)
{
	return stream->seat->lane;
}

bool stream_is_agreed(const struct shunt_stream *stream)
{
	return shunt_stream_is_agreed(stream);
}

bool stream_is_released(const struct shunt_stream *stream)
{
	return shunt_stream_is_released(stream);
}

enum shunt_retiring stream_retiring(const struct shunt_stream *stream)
{
	return atomic_load(&stream->seat->leaving.retiring);
}

enum shunt_asked stream_asked(const struct shunt_stream *stream)
{
	return atomic_load(&stream->seat->leaving.asked);
}

struct shunt_lock *stream_sender_lock(struct shunt_stream *stream)
{
	return &stream->tx.lock;
}

struct shunt_lock *stream_reader_lock(struct shunt_stream *stream)
{
	return &stream->rx.lock;
}

void stream_print(FILE *file, const char *prefix, const struct shunt_stream *stream)
{
	const struct shunt_tx *tx = &stream->tx;
	const struct shunt_seat_out *out = &stream->seat->out;
	const struct shunt_rx *rx = &stream->rx;
	const struct shunt_seat_in *in = &stream->seat->in;

	fprintf(file,
		"%sstream %u: fd %d state %d peer_id %u link %p work %x queued %d watches %p\n",
		prefix, stream->seat->id, stream->fd, stream->state, stream->seat->peer_id,
		(void *)stream->seat->link, stream->seat->work, stream->seat->next != NULL,
		(void *)stream->watches);
	fprintf(file,
		"%s  claim %u release %d retiring %d asked %d holds %u waiters %u parting %d\n",
		prefix, stream->claim.state, stream->seat->release, stream->seat->leaving.retiring,
		stream->seat->leaving.asked, stream->holds, stream->waiters, stream->parting);
	fprintf(file,
		"%s  tx: track %d offset %" PRIu64 " posted %" PRIu64 " staged %" PRIu64
		" consumed %" PRIu64 " ring %u from %" PRIu64
		" want %d unpassed %u starved %d offer %" PRIx64 "\n",
		prefix, shunt_heading_on_link(&out->heading), tx->offset, out->posted, out->staged,
		out->ring.consumed, out->ring.bytes, out->ring.from, out->want_link,
		shunt_heading_unpassed(&out->heading), out->starved, out->ring.offer);
	fprintf(file,
		"%s  tx: flip %" PRId64 " upgrade %" PRIu64 " handback %" PRIu64
		" shut %d dead %d end_fd %d"
		" resend %zu of %zu on %d pin %p\n",
		prefix, (int64_t)out->flip_at, out->upgrade_at, out->handback_at,
		shunt_end_has(&stream->end, SHUNT_END_SHUT_WRITE),
		shunt_end_has(&stream->end, SHUNT_END_BROKEN), out->fin_later.fd, tx->backlog.done,
		tx->backlog.size, stream->tx.backlog.fd, (void *)out->pin);
	fprintf(file,
		"%s  rx: intake %x head %" PRIu64 " tail %" PRIu64 " boundary %" PRId64
		" second %" PRId64 " fin %" PRId64 " credited %" PRIu64 "\n",
		prefix, in->intake.word, rx->head, in->tail, (int64_t)in->boundary,
		(int64_t)in->second, (int64_t)stream->end.fin, in->ring.credited);
	fprintf(file,
		"%s  rx: ring %u from %" PRIu64 " next %u from %" PRId64 " end %" PRIx64
		" proof %d proof_fd %d\n",
		prefix, in->ring.bytes, in->ring.from, in->ring.next_bytes, (int64_t)in->next_from,
		stream->end.word, in->proof.state, rx->nonce.fd);
}

/* --- the switch between the two tracks --- */

bool stream_sends_on_link(const struct shunt_stream *stream)
{
	return shunt_heading_on_link(&stream->seat->out.heading);
}

bool stream_receives_on_link(const struct shunt_stream *stream)
{
	return shunt_intake_on_link(&stream->seat->in.intake);
}

bool stream_is_on_link(const struct shunt_stream *stream)
{
	return stream_sends_on_link(stream) && stream_receives_on_link(stream) &&
	       !stream_switches_unpassed(stream);
}

uint64_t stream_switches_announced(const struct shunt_stream *stream)
{
	return atomic_load(&stream->seat->out.announced);
}

unsigned int stream_switches_unpassed(const struct shunt_stream *stream)
{
	return shunt_heading_unpassed(&stream->seat->out.heading);
}

uint64_t stream_switches_heard(const struct shunt_stream *stream)
{
	return atomic_load(&stream->seat->in.announced);
}

bool stream_handback_is_posted(const struct shunt_stream *stream)
{
	return !shunt_heading_is(&stream->seat->out.heading, SHUNT_HEADING_UNPOSTED);
}

uint8_t stream_held(const struct shunt_stream *stream)
{
	return atomic_load(&stream->seat->out.held);
}

void stream_want_link(struct shunt_stream *stream, bool on)
{
	atomic_store(&stream->seat->out.want_link, on);
	stream->seat->out.quick = false;
}

void stream_turn(struct shunt_stream *stream, bool on)
{
	shunt_lock_take(&stream->tx.lock);
	atomic_store(&stream->seat->out.want_link, on);
	shunt_track_choose(shunt_stream_engine(stream), stream);
	shunt_lock_leave(&stream->tx.lock);
}

void stream_announce_upgrade_only(struct shunt_stream *stream)
{
	shunt_lock_take(&stream->tx.lock);
	shunt_track_announce(shunt_stream_engine(stream), stream, SHUNT_LINK);
	shunt_heading_turn(&stream->seat->out.heading, SHUNT_HEADING_LEAVES);
	shunt_lock_leave(&stream->tx.lock);
}

void stream_announce_end(struct shunt_stream *stream)
{
	shunt_lock_take(&stream->tx.lock);
	atomic_store(&stream->seat->out.fin, stream->tx.offset);
	stream_request(stream, SHUNT_WORK_FIN);
	shunt_lock_leave(&stream->tx.lock);
}

void stream_request(struct shunt_stream *stream, uint32_t work)
{
	shunt_lane_request(stream->seat->lane, stream->seat, work);
}

/* --- bytes --- */

uint64_t stream_offset(const struct shunt_stream *stream, enum stream_offset of)
{
	switch (of) {
	case STREAM_READ:
		return atomic_load(&stream->rx.head);
	case STREAM_ARRIVED:
		return atomic_load(&stream->seat->in.tail);
	case STREAM_SENT:
		return stream->tx.offset;
	case STREAM_POSTED:
		return atomic_load(&stream->seat->out.exposed);
	case STREAM_PEER_READ:
		return atomic_load(&stream->seat->out.ring.consumed);
	case STREAM_UPGRADED:
		return atomic_load(&stream->seat->out.upgrade_at);
	case STREAM_HANDED_BACK:
		return atomic_load(&stream->seat->out.handback_at);
	case STREAM_BOUNDARY:
		return atomic_load(&stream->seat->in.boundary);
	case STREAM_RING_END:
		return atomic_load(&stream->seat->in.tail) + stream->seat->in.ring.bytes;
	}
	abort();
}

uint32_t stream_memory(const struct shunt_stream *stream, enum stream_memory of)
{
	switch (of) {
	case STREAM_RING:
		return stream->seat->in.ring.bytes;
	case STREAM_OFFERED_RING:
		return atomic_load(&stream->seat->in.ring.next_bytes);
	case STREAM_PEER_RING:
		return atomic_load(&stream->seat->out.ring.bytes);
	case STREAM_STAGE:
		if (!stream->seat->out.stage.bytes != !atomic_load(&stream->seat->out.stage.size))
			abort();
		return atomic_load(&stream->seat->out.stage.size);
	}
	abort();
}

bool stream_has_offer(const struct shunt_stream *stream)
{
	return atomic_load(&stream->seat->out.ring.offer);
}

uint64_t stream_room(const struct shunt_stream *stream)
{
	return shunt_seat_room(&stream->seat->out, stream->tx.offset);
}

bool stream_waits_for_room(const struct shunt_stream *stream)
{
	return shunt_overflow_is_pending(&stream->seat->out);
}

bool stream_owes_tcp(const struct shunt_stream *stream)
{
	return stream->tx.backlog.bytes;
}

bool stream_stage_is_open(const struct shunt_stream *stream)
{
	return shunt_overflow_is_open(&stream->seat->out);
}

bool stream_is_posted(const struct shunt_stream *stream)
{
	return atomic_load(&stream->seat->out.posted) == atomic_load(&stream->seat->out.staged);
}

bool stream_is_pinned(const struct shunt_stream *stream)
{
	return atomic_load(&stream->seat->out.pin);
}

uint64_t stream_sent_by_link(const struct shunt_stream *stream)
{
	return stream->tx.bytes.link;
}

uint64_t stream_carried_again(const struct shunt_stream *stream)
{
	return stream->claim.line && !shunt_intake_final(&stream->seat->in.intake) ?
		       stream->rx.bytes.link :
		       0;
}

void stream_start_at(struct shunt_stream *stream, uint64_t out, uint64_t in)
{
	stream->tx.offset = out;
	atomic_store(&stream->rx.head, in);
}

bool stream_age(struct shunt_stream *stream, uint64_t bytes)
{
	uint64_t from = atomic_load(&stream->seat->out.upgrade_at);

	if (from < bytes || !stream_sends_on_link(stream) || stream_switches_unpassed(stream) ||
	    atomic_load(&stream->seat->out.ring.from) != from)
		return false;
	atomic_store(&stream->seat->out.upgrade_at, from - bytes);
	atomic_store(&stream->seat->out.ring.from, from - bytes);
	return true;
}

void stream_peer_has_read(struct shunt_stream *stream, uint64_t offset)
{
	atomic_store(&stream->seat->out.ring.consumed, offset);
}

void stream_pin(struct shunt_stream *stream, struct shunt_pin *pin)
{
	atomic_store(&stream->seat->out.pin, pin);
}

void stream_fill_stage(struct shunt_stream *stream)
{
	atomic_store(&atomic_load(&stream->seat->window)->reusable, SHUNT_NEVER);
}

void stream_spoil_key(struct shunt_stream *stream)
{
	stream->seat->out.ring.rkey ^= 1u << 20;
}

void seats_free(struct shunt_engine *engine)
{
	struct shunt_seat_pool *pool = &engine->seats;

	for (uint32_t i = 0; i < pool->slab_count; i++) {
		for (int j = 0; j < SHUNT_SLAB_SEATS; j++)
			free(atomic_load(&pool->slabs[i][j].window));
		shunt_lsan_unmap(pool->slabs[i], SHUNT_SLAB_SEATS * sizeof(struct shunt_seat));
	}
	free(pool->slabs);
}

/* --- a stream without a peer --- */

void stream_make(struct shunt_stream *stream, struct shunt_seat *seat, struct shunt_lane *lane,
		 bool receives_on_link)
{
	*seat = (struct shunt_seat) { .stream = stream };
	memset(stream, 0, sizeof(*stream));
	stream->seat = seat;
	stream->file.kind = SHUNT_FILE_STREAM;
	stream->state = SHUNT_LINKED;
	stream->options.low_water = 1;
	stream->seat->lane = lane;
	stream->group = lane->group;
	stream->fd = 3;
	shunt_lock_rank(&stream->rx.lock, SHUNT_RANK_RX);
	shunt_lock_rank(&stream->tx.lock, SHUNT_RANK_TX);
	shunt_heading_turn(&stream->seat->out.heading, SHUNT_HEADING_UPGRADES);
	shunt_heading_turn(&stream->seat->out.heading, SHUNT_HEADING_IS_PASSED);
	stream->seat->in.intake.word = receives_on_link ? SHUNT_INTAKE_LINK : 0;
	stream->end.fin = stream->seat->in.boundary = stream->seat->in.next_from =
		stream->seat->in.proof.at = SHUNT_NEVER;
}

void stream_arrive(struct shunt_stream *stream)
{
	atomic_fetch_add(&stream->seat->in.tail, 1);
}

uint64_t stream_take_all(struct shunt_stream *stream)
{
	uint64_t tail = atomic_load(&stream->seat->in.tail);

	return tail - atomic_exchange(&stream->rx.head, tail);
}

/* --- the end --- */

bool stream_came_to_link(const struct shunt_stream *stream)
{
	return stream->doubt.settled && stream->tx.bytes.link + stream->rx.bytes.link;
}

bool stream_resends(const struct shunt_stream *stream)
{
	return atomic_load(&stream->tx.backlog.bytes);
}

bool stream_keeps_end(const struct shunt_stream *stream)
{
	return atomic_load(&stream->seat->out.fin_later.fd) >= 0;
}

bool stream_is_broken(const struct shunt_stream *stream)
{
	return shunt_end_has(&stream->end, SHUNT_END_BROKEN);
}

int stream_error(const struct shunt_stream *stream)
{
	return shunt_end_error(&stream->end);
}

bool stream_has_refused(const struct shunt_stream *stream)
{
	return shunt_end_has(&stream->end, SHUNT_END_REFUSED);
}

void stream_set_state(struct shunt_stream *stream, enum shunt_state state)
{
	atomic_store(&stream->state, state);
}

/* --- the proof: nonces in TCP --- */

enum shunt_show stream_show(const struct shunt_stream *stream)
{
	return atomic_load(&stream->seat->out.show);
}

enum shunt_proof stream_proof(const struct shunt_stream *stream)
{
	return atomic_load(&stream->seat->in.proof.state);
}

const uint8_t *stream_nonce(const struct shunt_stream *stream, enum stream_nonce whose)
{
	return whose == STREAM_SHOWS ? stream->tx.nonce : stream->seat->in.proof.nonce;
}

uint64_t stream_nonce_moved(const struct shunt_stream *stream, enum stream_nonce whose)
{
	return whose == STREAM_SHOWS ? stream->tx.backlog.written : stream->rx.nonce.aside;
}

int stream_proof_fd(const struct shunt_stream *stream)
{
	return atomic_load(&stream->rx.nonce.fd);
}

void stream_set_proof(struct shunt_stream *stream, enum shunt_proof proof)
{
	atomic_store(&stream->seat->in.proof.state, proof);
}

void stream_set_idle(struct shunt_stream *stream)
{
	atomic_store(&stream->seat->out.staged, 0);
	atomic_store(&stream->seat->out.fin_later.fd, SHUNT_FIN_NOT_DUE);
	atomic_store(&stream->seat->out.show, SHUNT_SHOWN);
	atomic_store(&stream->seat->in.proof.state, SHUNT_PROVEN);
	atomic_store(&stream->end.fin, SHUNT_NEVER);
}

void stream_set_staged(struct shunt_stream *stream, uint64_t bytes)
{
	atomic_store(&stream->seat->out.staged, bytes);
}
