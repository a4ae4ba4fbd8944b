/* SPDX-License-Identifier: MIT */
#include "core/stream/track.h"
#include "core/stream/sleep.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include "core/base/random.h"
#include "core/engine.h"
#include "core/lane/send_queue.h"
#include "core/loop/request.h"
#include "core/stream/bypass.h"
#include "core/stream/hand_back.h"
#include "core/stream/kept.h"
#include "core/stream/overflow.h"
#include "core/stream/proof.h"
#include "core/stream/repeat.h"
#include "core/stream/rings.h"
#include "core/stream/wait.h"
#include "core/trace/probe.h"

/* --- the sender's side; tx.lock held --- */

/*
 * TCP delays an acknowledgement by 40 ms, for a segment of the program that takes it along. From here on no segment
 * leaves that way, and the peer may still be on TCP: Nagle's rule would hold its next bytes that long.
 */
static void acknowledge_at_once(const struct shunt_engine *engine, int fd)
{
	int on = 1, saved = errno;

	engine->sys->setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
	errno = saved;
}

static void next_flip(struct shunt_engine *engine, struct shunt_stream *stream)
{
	uint32_t most = shunt_narrow_u32(engine->config.flip_bytes);

	if (most)
		stream->seat->out.flip_at = stream->tx.offset + 1 + shunt_random(&engine->random, most);
}

void shunt_track_announce(struct shunt_engine *engine, struct shunt_stream *stream,
			  enum shunt_track track)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;

	shunt_assert_held(&stream->tx.lock);
	if (track == SHUNT_TCP && shunt_hand_back_overflow(stream, stream->fd))
		return;
	shunt_heading_turn(&out->heading,
			   track == SHUNT_LINK ? SHUNT_HEADING_UPGRADES : SHUNT_HEADING_HANDS_BACK);
	out->announced++;
	if (track == SHUNT_LINK) {
		shunt_overflow_begin(out);
		atomic_store(&out->upgrade_at, tx->offset);
		out->ring.from = tx->offset;
		/* The peer may have answered what another thread of ours has just posted and is still to note. */
		shunt_lock_take(&stream->seat->lane->lock);
		shunt_send_queue_begin(stream->seat, stream->tx.offset);
		shunt_lock_leave(&stream->seat->lane->lock);
		atomic_fetch_add_explicit(&engine->upgrades, 1, memory_order_relaxed);
		SHUNT_PROBE3(upgrade, atomic_load(&stream->fd), tx->offset,
			     stream->seat->lane->link->peer_pid);
		shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_UPGRADE);
		acknowledge_at_once(engine, stream->fd);
	} else {
		atomic_store(&out->handback_at, tx->offset);
		atomic_fetch_add_explicit(&engine->handbacks, 1, memory_order_relaxed);
		SHUNT_PROBE3(handback, atomic_load(&stream->fd), tx->offset,
			     shunt_left_text(stream->why.left));
		shunt_lane_request(stream->seat->lane, stream->seat,
				   SHUNT_WORK_HANDBACK | shunt_seat_rest(out));
	}
	shunt_sleep_tell(stream, SHUNT_READY_TRACK);
	shunt_engine_paces(engine);
}

/*
 * Bytes without room in the ring go to TCP along with the direction. Where they cannot, it stays
 * on the link: HANDBACK would have to wait behind them.
 */
static void turn(struct shunt_engine *engine, struct shunt_stream *stream, enum shunt_track wanted)
{
	shunt_assert_held(&stream->tx.lock);
	if (wanted == SHUNT_TCP && shunt_overflow_is_pending(&stream->seat->out))
		shunt_hand_back_overflow(stream, stream->fd);
	else
		shunt_track_announce(engine, stream, wanted);
}

void shunt_track_choose(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;
	enum shunt_track wanted;

	shunt_assert_held(&stream->tx.lock);
	if (atomic_load(&stream->state) != SHUNT_LINKED ||
	    shunt_end_has(&stream->end, SHUNT_END_SHUT_WRITE | SHUNT_END_BROKEN))
		return;
	if (out->flip_at == SHUNT_NEVER && atomic_load(&out->want_link))
		next_flip(engine, stream);
	if (tx->offset >= out->flip_at && !shunt_heading_unpassed(&out->heading)) {
		atomic_store(&out->want_link, !shunt_heading_on_link(&out->heading));
		next_flip(engine, stream);
	}
	/* The peer's wish for TCP stands, also when it proves itself afterwards. */
	wanted = atomic_load(&out->want_link) && !atomic_load(&out->held) &&
				 atomic_load(&stream->seat->leaving.asked) == SHUNT_NOT_ASKED &&
				 shunt_proof_is_complete(stream) ?
			 SHUNT_LINK :
			 SHUNT_TCP;
	if ((wanted == SHUNT_LINK) != shunt_heading_on_link(&out->heading) &&
	    !shunt_heading_unpassed(&out->heading) && !shunt_stream_is_released(stream) &&
	    !tx->backlog.bytes) {
		if (wanted == SHUNT_TCP)
			shunt_left_choose(stream);
		turn(engine, stream, wanted);
	}
	out->quick = shunt_heading_on_link(&out->heading) && out->flip_at == SHUNT_NEVER &&
		     wanted == SHUNT_LINK;
}

void shunt_track_reconsider(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_seat_out *out = &stream->seat->out;
	bool before = shunt_heading_on_link(&out->heading);

	shunt_assert_held(&stream->tx.lock);
	shunt_seat_unquicken(out);
	if (atomic_load(&stream->seat->leaving.retiring) == SHUNT_STAYING &&
	    !shunt_heading_halted(&out->heading))
		shunt_track_choose(engine, stream);
	if (shunt_heading_on_link(&out->heading) != before)
		shunt_sleep_tell(stream, EPOLLOUT | SHUNT_READY_TRACK);	/* a waiter for room waits on the other track */
	shunt_engine_paces(engine);	/* another track may be wanted, even if this one is the same */
}

bool shunt_track_hold(struct shunt_stream *stream, uint8_t bit, bool on)
{
	struct shunt_seat_out *out = &stream->seat->out;

	shunt_assert_held(&stream->tx.lock);
	if (atomic_load(&stream->state) != SHUNT_LINKED || !(atomic_load(&out->held) & bit) != on)
		return false;
	atomic_fetch_xor(&out->held, bit);
	if (!shunt_kept_rests(stream)) /* nobody sends: it changes tracks when it is taken */
		shunt_track_reconsider(shunt_stream_engine(stream), stream);
	return true;
}

/* --- the receiver's side; rx.lock held --- */

/* The reader stands at the announced end of the present track. */
static void pass_boundary(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t head)
{
	struct shunt_seat_in *in = &stream->seat->in;
	uint64_t next;

	shunt_lock_take(&engine->group.lock);
	shunt_intake_turn(&in->intake, SHUNT_INTAKE_PASSES);
	if (in->ring.credited < head)
		in->ring.credited = head;
	atomic_store(&in->switched, head);
	next = atomic_exchange(&in->second, SHUNT_NEVER);
	/* On a dead link the last track is TCP, behind all that was delivered. */
	if (shunt_intake_final(&in->intake) && shunt_intake_on_link(&in->intake))
		next = atomic_load(&in->tail);
	atomic_store(&in->boundary, next);
	shunt_lock_leave(&engine->group.lock);
	shunt_bypass_watch(engine, stream);
	if (shunt_intake_repeats(&in->intake) && !shunt_intake_on_link(&in->intake))
		shunt_repeat_catch_up(stream, stream->fd);	/* unread bytes make the kernel's close() a reset */
	/* Of the place where a relative has taken the peer's end the peer has announced nothing. */
	if (!shunt_intake_final(&in->intake) &&
	    atomic_load(&stream->seat->leaving.asked) != SHUNT_GIVEN_AWAY)
		shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_SWITCHED);
	/* Of the end the program has been told when FIN came. */
	shunt_sleep_tell(stream,
			 shunt_end_at(&stream->end) == head ? SHUNT_READY_TRACK :
							      EPOLLIN | SHUNT_READY_TRACK);
}

void shunt_track_settle(struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	struct shunt_rx *rx = &stream->rx;
	uint64_t head = atomic_load_explicit(&rx->head, memory_order_relaxed);
	struct shunt_seat_in *in;

	shunt_assert_held(&stream->rx.lock);
	if (atomic_load(&stream->state) != SHUNT_LINKED)
		return;
	in = &stream->seat->in; /* one that has left its link has none, or is another stream by now */
	if (shunt_proof_is_next(stream))
		shunt_proof_read(engine, stream);
	/* Either may have been announced at the same byte, behind the other. */
	for (;;) {
		if (atomic_load(&in->next_from) == head && shunt_intake_on_link(&in->intake))
			shunt_rings_swap(engine, stream);
		else if (atomic_load(&in->boundary) == head)
			pass_boundary(engine, stream, head);
		else
			break;
	}
}
