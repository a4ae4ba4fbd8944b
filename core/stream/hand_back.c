/* SPDX-License-Identifier: MIT */
#include "core/stream/hand_back.h"
#include <errno.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include "core/engine.h"
#include "core/fork/fork_slots.h"
#include "core/lane/chain.h"
#include "core/lane/remote_read.h"
#include "core/lane/send_queue.h"
#include "core/stream/backlog.h"
#include "core/stream/credit.h"
#include "core/stream/overflow.h"
#include "core/stream/sleep.h"
#include "core/stream/wait.h"

#define SETTLING 1000000000ull	/* ns that the modelled device may take for a full queue */

const char shunt_hand_back_wrong[] = "bytes asked for again that cannot be missing";

/* --- the bytes --- */

/* The posted bytes [from, to): from our own memory, or as they lie in the peer's ring. */
static bool copy_posted(struct shunt_stream *stream, uint8_t *out, uint64_t from, uint64_t to)
{
	struct shunt_lane *lane = stream->seat->lane;

	if (from == to)
		return true;
	if (lane->retains && shunt_send_queue_copy(stream->seat, out, from, to))
		return true;
	return !atomic_load(&lane->failed) && shunt_remote_read_ring(stream->seat, out, from, to);
}

/* TCP is to get the queue's bytes from `from` on behind all others. 0, -ENOMEM, or -ENODATA: they cannot be had. */
static int add_from(struct shunt_stream *stream, uint64_t from) SHUNT_REQUIRES(stream->tx.lock)
{
	const struct shunt_seat_out *out = &stream->seat->out;
	uint64_t posted = atomic_load(&out->posted), staged = atomic_load(&out->staged);
	uint8_t *room;

	if (from == staged)
		return 0;
	room = shunt_backlog_add(stream, staged - from);
	if (!room)
		return -ENOMEM;
	if (copy_posted(stream, room, from, posted) &&
	    shunt_send_queue_copy(stream->seat, room + (posted - from), posted, staged))
		return 0;
	shunt_backlog_drop(stream, staged - from);
	return -ENODATA;
}

/* The queue is empty, and the direction TCP's: that part of `work` is over. */
static void leave_link(struct shunt_seat *seat, uint32_t work)
{
	struct shunt_seat_out *out = &seat->out;

	atomic_store(&out->posted, atomic_load(&out->staged));
	atomic_fetch_and(&seat->work, ~work);
	shunt_heading_turn(&out->heading, SHUNT_HEADING_LEAVES);
}

/* --- the peer asks --- */

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

/*
 * *bytes: how many bytes from `from` on may be sent again, where the peer has said `from`. The peer
 * has what it has given credit for, and lacks at most what its present ring and the ring before hold.
 * The staged bytes behind those fit into a stage. So *bytes is bounded, whatever the peer says.
 * A direction that was handed back already is not taken back: its callers refuse that, because
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

/* Everything from stream offset `from` on becomes TCP's. As shunt_hand_back_asked(). lane.lock held. */
static int take_back(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t from,
		     const struct shunt_message *answer) SHUNT_REQUIRES(stream->tx.lock)
{
	struct shunt_seat_out *out = &stream->seat->out;
	size_t bytes;
	int result = measure(stream, from, &bytes);

	if (result)
		return result;
	if (shunt_end_has(&stream->end, SHUNT_END_SHUT_WRITE) && !shunt_seat_fin_is_due(out) &&
	    bytes)
		return -ENODATA;
	if (from < atomic_load(&out->posted) && !settle(engine, stream->seat->lane))
		return -ENODATA;
	result = add_from(stream, from);
	if (result)
		return result;
	if (answer)
		result = shunt_link_send_now(stream->seat->link, answer);
	if (result) {
		shunt_backlog_drop(stream, bytes);
		return result;
	}
	/* A HANDBACK without the bytes before it, heard before our answer, would be out of turn. */
	leave_link(stream->seat, SHUNT_WORK_DATA | SHUNT_WORK_UPGRADE | SHUNT_WORK_HANDBACK);
	return 0;
}

int shunt_hand_back_asked(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t from,
			  const struct shunt_message *answer)
{
	struct shunt_seat_out *out = &stream->seat->out;
	struct shunt_lane *lane = stream->seat->lane;
	uint64_t handback = atomic_load(&out->handback_at);
	bool on_link = shunt_heading_on_link(&out->heading);
	int result;

	shunt_assert_held(&stream->tx.lock);
	if (from < atomic_load(&out->upgrade_at))
		from = atomic_load(&out->upgrade_at);
	if (shunt_stream_is_given(stream) ||
	    (!on_link && (!shunt_heading_unpassed(&out->heading) || from >= handback)))
		return answer ? shunt_link_send_now(stream->seat->link, answer) : 0;
	if (!on_link && (stream->tx.offset > handback || shunt_heading_is(&out->heading, SHUNT_HEADING_KERNELS)))
		return -ENODATA;	/* TCP has gone on behind bytes of the link that the peer lacks */
	shunt_lock_take(&lane->lock);
	result = take_back(engine, stream, from, answer);
	shunt_lock_leave(&lane->lock);
	shunt_lane_kick(lane);
	return result;
}

/* --- this end does it itself --- */

/*
 * It takes a HANDBACK that arrives at once, and no byte that only a completion makes superfluous.
 * After the direction's end the kernel's socket has been shut, and takes no byte. tx.lock held.
 */
static bool can_hand_back(struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;

	if (!shunt_heading_on_link(&out->heading) || tx->backlog.bytes)
		return false;
	if (atomic_load(&stream->state) != SHUNT_LINKED &&
	    !(atomic_load(&stream->seat->release) & SHUNT_RELEASE_KEPT))
		return false;
	if (shunt_end_has(&stream->end, SHUNT_END_SHUT_WRITE) && !shunt_seat_fin_is_due(out))
		return false;
	if (shunt_lane_keeps(stream->seat->lane) || stream->group->config->soft_model[0])
		return false;
	return !shunt_stream_is_released(stream) &&
	       !shunt_end_has(&stream->end, SHUNT_END_BROKEN) &&
	       !shunt_heading_halted(&out->heading);
}

static bool can_leave(struct shunt_stream *stream)
{
	return can_hand_back(stream) && shunt_overflow_is_pending(&stream->seat->out) &&
	       atomic_load(&stream->seat->leaving.asked) == SHUNT_NOT_ASKED;
}

/*
 * A reader that has not passed the UPGRADE may not have heard of it. It would take TCP's bytes behind the HANDBACK
 * for those before the UPGRADE. An answer to LEAVE says that it has.
 */
static bool is_heard(const struct shunt_stream *stream)
{
	return !shunt_heading_unpassed(&stream->seat->out.heading) ||
	       atomic_load(&stream->seat->leaving.retiring) == SHUNT_RETIRED;
}

bool shunt_hand_back_must_be_heard(struct shunt_stream *stream)
{
	return !is_heard(stream) && can_leave(stream);
}

/*
 * Up to where the reader has read, as far as that is known. Behind an UPGRADE of which the reader has not heard TCP
 * goes on at the same byte.
 */
static uint64_t unread_from(const struct shunt_seat_out *out)
{
	uint64_t read = atomic_load(&out->ring.consumed), from = atomic_load(&out->upgrade_at);

	return read > from ? read : from;
}

/*
 * TCP takes what is not posted, and where the direction `ends` what is unread, too. lane.lock and tx.lock held. False:
 * there is none, the ring has room for it, or the HANDBACK could not be posted.
 */
static bool hand_back(struct shunt_stream *stream, bool ends)
{
	struct shunt_lane *lane = stream->seat->lane;
	struct shunt_seat_out *out = &stream->seat->out;
	uint64_t before = atomic_load(&out->handback_at), staged = atomic_load(&out->staged);
	uint64_t at, from;
	bool posted;

	shunt_assert_held(&lane->lock);
	shunt_assert_held(&stream->tx.lock);
	shunt_lane_serve(lane);
	at = atomic_load(&out->posted);
	from = ends && unread_from(out) < at ? unread_from(out) : at;
	if (from == at && (at == staged || shunt_seat_room(out, at)))
		return false;
	if (atomic_load(&lane->failed) || !shunt_lane_arrived(lane) || add_from(stream, from))
		return false;
	shunt_heading_turn(&out->heading, SHUNT_HEADING_ANNOUNCES);	/* before the reader can answer */
	atomic_store(&out->handback_at, at);
	out->announced++;
	/*
	 * One message: the queue pair takes all of it or nothing. One that dies of it has taken nothing: a reader that
	 * never hears of the repeat would take those bytes for what follows. One that stalls is to take nothing later.
	 */
	posted = shunt_chain_control(lane->chain, stream->seat,
				     from < at ? SHUNT_IMM_REPEAT : SHUNT_IMM_HANDBACK, 0, from) &&
		 shunt_chain_flush(lane->chain);
	if (!posted || !shunt_lane_arrived(lane)) {
		if (posted && !atomic_load(&lane->failed))
			shunt_lane_break(lane);
		atomic_store(&out->handback_at, before);
		shunt_heading_try(&out->heading, SHUNT_HEADING_WITHDRAWS);	/* but for a liar's answer */
		out->announced--;
		shunt_backlog_drop(stream, staged - from);
		return false;
	}
	/* The rest is TCP's: should the link die, its bytes end here. */
	__atomic_store_n(&stream->seat->control->word[SHUNT_CONTROL_ACCEPTED], at, __ATOMIC_RELEASE);
	leave_link(stream->seat, SHUNT_WORK_DATA);
	out->quick = false;
	return true;
}

/*
 * Writes what TCP has to carry. The rest waits for room, unless the reader takes all of it from its ring (`spare`). A
 * reader that closes would answer what comes late with a reset. False: that rest has been dropped.
 */
static bool has_left(struct shunt_stream *stream, int fd, bool spare)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	bool all;

	shunt_assert_held(&stream->tx.lock);
	atomic_fetch_add_explicit(&engine->handbacks, 1, memory_order_relaxed);
	shunt_sleep_tell(stream, SHUNT_READY_TRACK);
	all = shunt_backlog_write(engine, fd, stream) != -EAGAIN;
	if (!all && spare)
		shunt_backlog_free(stream);
	else if (!all)
		shunt_backlog_await(stream);
	return all || !spare;
}

bool shunt_hand_back_overflow(struct shunt_stream *stream, int fd)
{
	struct shunt_lane *lane = stream->seat->lane;
	bool back;

	shunt_assert_held(&stream->tx.lock);
	if (!can_leave(stream) || !is_heard(stream))
		return false;
	shunt_lock_take(&lane->lock);
	back = hand_back(stream, false);
	shunt_lock_leave(&lane->lock);
	shunt_lane_kick(lane);
	if (back)
		has_left(stream, fd, false);
	return back;
}

/* A LEAVE that is to be answered, or comes later, wants nothing more. */
static void note_repeated(struct shunt_stream *stream)
{
	struct shunt_leaving *leaving = &stream->seat->leaving;

	if (atomic_load(&leaving->asked) == SHUNT_ASKED)
		leaving->offset = SHUNT_NEVER;
	else
		atomic_store(&leaving->asked, SHUNT_REPEATED);
}

uint64_t shunt_hand_back_unread_bytes(struct shunt_stream *stream)
{
	struct shunt_seat_out *out = &stream->seat->out;
	uint64_t from, staged = atomic_load(&out->staged);

	if (unread_from(out) < atomic_load(&out->posted))
		shunt_credit_look(stream);
	from = unread_from(out);
	return from < staged ? staged - from : 0;
}

bool shunt_hand_back_fits(struct shunt_stream *stream, int fd)
{
	const struct shunt_sys *sys = stream->group->sys;
	int room = 0, queued = 0;
	socklen_t length = sizeof(room);

	return fd >= 0 && !sys->getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &length) &&
	       !sys->ioctl(fd, SIOCOUTQ, &queued) && /* half of it is the kernel's own */
	       shunt_hand_back_unread_bytes(stream) + (uint64_t)queued < (uint64_t)room / 2;
}

bool shunt_hand_back_is_all_read(struct shunt_stream *stream)
{
	return !shunt_hand_back_unread_bytes(stream);
}

bool shunt_hand_back_unread(struct shunt_stream *stream, int fd, bool exits)
{
	struct shunt_seat_out *out = &stream->seat->out;
	struct shunt_lane *lane = stream->seat->lane;
	bool back, spare = !exits && is_heard(stream);

	shunt_assert_held(&stream->tx.lock);
	if (!can_hand_back(stream) || shunt_hand_back_is_all_read(stream))
		return false;
	/* A reader that has not heard of the UPGRADE may go on with TCP, and then it needs all: so it gets all, or nothing. */
	if (!exits && !spare && atomic_load(&out->posted) == atomic_load(&out->staged) &&
	    !shunt_hand_back_fits(stream, fd))
		return false;
	shunt_lock_take(&lane->lock);
	back = hand_back(stream, true);
	shunt_lock_leave(&lane->lock);
	shunt_lane_kick(lane);
	if (back && has_left(stream, fd,
			     spare && atomic_load(&out->handback_at) == atomic_load(&out->staged)))
		note_repeated(stream);
	return back;
}

static bool is_on_link(struct shunt_stream *stream, void *unused)
{
	(void)unused;
	return atomic_load(&stream->state) == SHUNT_LINKED &&
	       shunt_heading_on_link(&stream->seat->out.heading) &&
	       !shunt_fork_slots_held(&stream->sharing);
}

/* exit() closes every connection. Where that resets, nothing is repeated. */
static void leave(struct shunt_stream *stream)
{
	shunt_assert_held(&stream->tx.lock);
	if (shunt_streams_resets(stream, stream->fd) ||
	    !shunt_hand_back_unread(stream, stream->fd, true))
		shunt_hand_back_overflow(stream, stream->fd);
}

void shunt_hand_back_all(struct shunt_engine *engine, uint64_t until)
{
	struct shunt_sweep sweep = { .wants = is_on_link };
	struct shunt_stream *stream;

	while ((stream = shunt_streams_next(engine, &sweep)) != NULL) {
		if (!shunt_streams_take_last(stream, until))
			continue;
		leave(stream);
		shunt_lock_leave(&stream->tx.lock);
	}
}
