/* SPDX-License-Identifier: MIT */
#include "core/stream/kept.h"
#include "core/stream/credit.h"
#include "core/stream/release.h"
#include "core/stream/retire.h"
#include <errno.h>
#include <sched.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "core/fd/thread.h"
#include "core/stream/handover.h"
#include "core/stream/rest.h"
#include "core/fork/fork_rest.h"
#include "core/fork/fork_slots.h"
#include "core/leave.h"
#include "core/poll/cancel.h"
#include "core/stream/hand_back.h"
#include "core/stream/decision.h"
#include "core/stream/deferred_fin.h"
#include "core/stream/eof.h"
#include "core/stream/proof.h"
#include "core/stream/repeat.h"
#include "core/stream/ready.h"
#include "core/stream/sleep.h"
#include "core/stream/spare_option.h"
#include "core/stream/slow_stream.h"
#include "core/stream/takeover.h"
#include "core/stream/tapped.h"
#include "core/stream/backlog.h"
#include "core/stream/track.h"
#include "core/stream/wait.h"

#define PROVING 1000000000ull	/* ns that a nonce that has been asked for may take */
#define READING 200000000ull	/* ns that readers with bytes of the link may take from the first ring on, all together */
#define ARRIVING 10000000ull	/* ns without progress that bytes on their way over TCP may take */
#define ALL_ARRIVING 200000000ull	/* ns that they may take with it: a peer could send them one by one */

/* --- the end that wants it --- */

/* Both locks held. Where we stand, or are known to get to over TCP: the peer knows what it has announced behind that. */
static uint64_t resume_from(struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;
	struct shunt_seat_in *in = &stream->seat->in;

	shunt_assert_held(&stream->rx.lock);
	shunt_track_settle(stream);
	if (!shunt_intake_on_link(&in->intake) && atomic_load(&in->boundary) != SHUNT_NEVER)
		return atomic_load(&in->boundary);
	return atomic_load(&rx->head);
}

/* Both locks held: the rest comes over TCP. Later bytes of the link are copies. */
static void stop_reading(struct shunt_engine *engine, struct shunt_seat_in *in)
{
	shunt_lock_take(&engine->group.lock);
	shunt_intake_turn(&in->intake, SHUNT_INTAKE_RETIRES);
	atomic_store(&in->boundary, SHUNT_NEVER);
	atomic_store(&in->second, SHUNT_NEVER);
	atomic_store(&in->next_from, SHUNT_NEVER);
	shunt_lock_leave(&engine->group.lock);
}

/*
 * The reader may make a ring, too. It needs what it has not read from TCP then, ahead of all that comes later. So TCP
 * carries that again now: once it has gone on, it is too late. Both locks held.
 */
static bool repeat_unread(struct shunt_stream *stream) SHUNT_REQUIRES(stream->tx.lock)
{
	return shunt_hand_back_fits(stream, stream->fd) &&
	       shunt_hand_back_unread(stream, stream->fd, true);
}

static void stop_sending(struct shunt_engine *engine, struct shunt_stream *stream,
			 enum shunt_cause cause)
{
	struct shunt_seat_out *out = &stream->seat->out;

	shunt_assert_held(&stream->tx.lock);
	atomic_store(&out->want_link, false);
	out->quick = false;
	out->flip_at = SHUNT_NEVER;
	shunt_proof_withdraw(stream);
	if (!shunt_heading_on_link(&out->heading))
		return;
	shunt_left_note(stream, SHUNT_LEFT_RETIRED);
	if (cause == SHUNT_CAUSE_URING && repeat_unread(stream))
		return;
	if (!shunt_hand_back_must_be_heard(stream))
		shunt_track_announce(engine, stream, SHUNT_TCP);
}

/*
 * A ring that reads needs the peer's direction alone. Ours stays on the link until more is wanted, or the peer wants it.
 * Bytes that are not read can be sent again as long as TCP has not gone on behind them. Both locks held. False: it is TCP's.
 */
static bool keep_sending(struct shunt_stream *stream)
{
	struct shunt_seat_out *out = &stream->seat->out;

	shunt_assert_held(&stream->tx.lock);
	if (!shunt_heading_on_link(&out->heading) || shunt_heading_halted(&out->heading))
		return false;
	atomic_store(&out->want_link, false);
	out->flip_at = SHUNT_NEVER;
	return true;
}

/* More is wanted, after all. Both locks held. */
static void stop_keeping(struct shunt_engine *engine, struct shunt_stream *stream,
			 enum shunt_cause cause)
{
	if (atomic_load(&stream->state) == SHUNT_LINKED &&
	    atomic_exchange(&stream->seat->leaving.reads, false))
		stop_sending(engine, stream, cause);
}

/*
 * The peer has answered, so it has heard of the UPGRADE: bytes without room in its ring may go to
 * TCP now. Both locks held.
 */
static void stop_sending_heard(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_seat_out *out = &stream->seat->out;

	shunt_assert_held(&stream->tx.lock);
	if (atomic_load(&stream->state) == SHUNT_LINKED && shunt_heading_on_link(&out->heading) &&
	    !shunt_heading_halted(&out->heading))
		shunt_track_announce(engine, stream, SHUNT_TCP);
}

void shunt_retire_ask_again(struct shunt_stream *stream)
{
	struct shunt_message message = { .type = SHUNT_MSG_TAKE };

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	if (atomic_load(&stream->state) == SHUNT_LINKED &&
	    atomic_load(&stream->seat->leaving.retiring) == SHUNT_TAKEN) {
		message.stream = stream->seat->peer_id;
		message.take = shunt_takeover_stand(stream);
		shunt_link_send(stream->seat->link, &message, NULL, 0);
	}
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
}

static void begin(struct shunt_engine *engine, struct shunt_stream *stream,
		  enum shunt_cause cause, bool reads)
{
	struct shunt_message message = { .type = SHUNT_MSG_LEAVE };

	shunt_group_poll_fully(&engine->group);
	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	if (shunt_kept_unshut(stream)) /* the kernel is to know of an end that was put off */
		shunt_deferred_fin_resume(stream);
	if (atomic_load(&stream->state) == SHUNT_LINKED &&
	    atomic_load(&stream->seat->in.proof.state) != SHUNT_EXPECTED &&
	    !shunt_rest_holds(stream) &&
	    atomic_load(&stream->seat->leaving.retiring) == SHUNT_STAYING &&
	    !shunt_intake_final(&stream->seat->in.intake)) {
		atomic_store(&stream->seat->leaving.retiring, SHUNT_RETIRING);
		shunt_patience_begin(stream->seat->link);
		shunt_streams_because(engine, stream, cause);
		message.stream = stream->seat->peer_id;
		atomic_store(&stream->seat->leaving.reads, reads && keep_sending(stream));
		if (!atomic_load(&stream->seat->leaving.reads))
			stop_sending(engine, stream, cause);
		message.leave.offset = resume_from(stream);
		message.leave.announced = stream->seat->out.announced;
		shunt_link_send(stream->seat->link, &message, NULL, 0);
	} else if (!reads) {
		stop_keeping(engine, stream, cause);
	}
	shunt_lock_leave(&stream->tx.lock);
	shunt_sleep_tell(stream, EPOLLIN | EPOLLOUT | SHUNT_READY_TRACK);
	shunt_lock_leave(&stream->rx.lock);
}

void shunt_retire_begin(struct shunt_engine *engine, struct shunt_stream *stream,
			enum shunt_cause cause)
{
	begin(engine, stream, cause, false);
}

/* Behind an UPGRADE that has not been passed `tail` may be its offset, and the ring has nothing. */
static bool is_unread_here(const struct shunt_stream *stream)
{
	uint64_t from = shunt_intake_on_link(&stream->seat->in.intake) ?
				atomic_load(&stream->rx.head) :
				atomic_load(&stream->seat->in.boundary);

	return !shunt_intake_copied(&stream->seat->in.intake) && from != SHUNT_NEVER &&
	       atomic_load(&stream->seat->in.tail) > from;
}

/*
 * The link has died: the rest is the kernel's, except unread bytes in the ring, and bytes still to be sent again. Nobody
 * else may find the peer's nonce.
 */
static bool is_kept_back(struct shunt_stream *stream)
{
	return atomic_load(&stream->state) == SHUNT_LINKED &&
	       (is_unread_here(stream) || stream->tx.backlog.bytes ||
		atomic_load(&stream->seat->in.proof.state) == SHUNT_EXPECTED);
}

/* Both locks held. */
static void become_plain(struct shunt_stream *stream)
{
	shunt_tapped_event(stream, SHUNT_TAP_LEFT);
	atomic_store(&stream->state, SHUNT_PLAIN);
	shunt_heading_turn(&stream->seat->out.heading, SHUNT_HEADING_RETIRES);
	shunt_fork_slots_settle(&shunt_stream_engine(stream)->forks, &stream->sharing);
}

bool shunt_retire_complete(struct shunt_engine *engine, struct shunt_stream *stream)
{
	bool done = false;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	if (atomic_load(&stream->state) != SHUNT_LINKED) {
		done = true;
	} else if (shunt_intake_final(&stream->seat->in.intake)) {
		done = true;
		if (!is_kept_back(stream) && !shunt_heading_halted(&stream->seat->out.heading)) {
			become_plain(stream);
			shunt_streams_leave_dead(stream);
		}
	} else if (atomic_load(&stream->seat->leaving.retiring) == SHUNT_RETIRED &&
		   shunt_stream_knows_more(stream)) {
		atomic_store(&stream->seat->leaving.retiring, SHUNT_CANNOT_RETIRE);
	} else if (atomic_load(&stream->seat->leaving.retiring) == SHUNT_RETIRED &&
		   !atomic_load(&stream->seat->leaving.reads) && shunt_ready_flushed(stream)) {
		become_plain(stream);
		shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_RELEASE);
		shunt_engine_paces(engine);
		done = true;
	} else if (atomic_load(&stream->seat->leaving.retiring) == SHUNT_RETIRED) {
		shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_DONE); /* tells when all is posted */
	}
	shunt_lock_leave(&stream->tx.lock);
	if (done)
		shunt_sleep_tell(stream, EPOLLIN | EPOLLOUT | SHUNT_READY_TRACK);
	shunt_lock_leave(&stream->rx.lock);
	return done;
}

void shunt_retire_failed(struct shunt_engine *engine, struct shunt_stream *stream)
{
	shunt_lock_take(&stream->rx.lock);
	if (atomic_load(&stream->state) == SHUNT_LINKED && stream->fd >= 0 &&
	    shunt_intake_final(&stream->seat->in.intake) && is_unread_here(stream))
		shunt_streams_reset_tcp(engine->sys, stream->fd);
	shunt_lock_leave(&stream->rx.lock);
}

/* The program has read the peer's direction to its end. */
static bool is_read_to_end(struct shunt_stream *stream)
{
	uint64_t end = shunt_end_at(&stream->end);

	return end != SHUNT_NEVER && atomic_load(&stream->rx.head) >= end;
}

bool shunt_retire_alone(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_leaving *leaving = &stream->seat->leaving;
	bool final, declined, covered;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	final = shunt_intake_final(&stream->seat->in.intake);
	declined = atomic_load(&leaving->retiring) == SHUNT_CANNOT_RETIRE;
	if (atomic_load(&stream->state) == SHUNT_LINKED && stream->fd >= 0 && (final || declined)) {
		covered = shunt_repeat_covers(stream, stream->fd, declined);
		if (covered)
			stop_reading(engine, &stream->seat->in);
		/* A peer that goes on may have sent more by the link. */
		if ((final || covered || is_read_to_end(stream)) && !is_kept_back(stream))
			atomic_store(&leaving->retiring, SHUNT_RETIRED);
	}
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
	return atomic_load(&leaving->retiring) == SHUNT_RETIRED &&
	       shunt_retire_complete(engine, stream);
}

void shunt_retire_tell_relative(struct shunt_engine *engine, struct shunt_stream *stream)
{
	if (atomic_load(&stream->handing.fd) >= 0 &&
	    atomic_load(&stream->seat->leaving.retiring) != SHUNT_RETIRED &&
	    !shunt_retire_alone(engine, stream))
		shunt_retire_failed(engine, stream);
	shunt_handover_answer(engine, stream);
}

/* The peer takes the bytes behind the last one on the link from TCP. Both locks held. */
static void stop_sending_taken(struct shunt_stream *stream)
{
	stream->seat->out.quick = false;
	atomic_store(&stream->seat->out.want_link, false);
	shunt_heading_turn(&stream->seat->out.heading, SHUNT_HEADING_LEAVES);
}

/* A relative has taken the stream, as far as we know. Any lock. */
static bool is_taken(const struct shunt_stream *stream)
{
	uint8_t retiring = atomic_load(&stream->seat->leaving.retiring);

	return retiring == SHUNT_TAKEN ||
	       (retiring == SHUNT_RESTING && shunt_fork_rest_is_taken(stream->sharing.slot));
}

void shunt_retire_answered(struct shunt_engine *engine, struct shunt_stream *stream, bool done)
{
	bool taken = is_taken(stream);

	if (!taken && atomic_load(&stream->seat->leaving.retiring) != SHUNT_RETIRING) {
		shunt_link_distrust(stream->seat->link, "a LEFT without a LEAVE");
		return;
	}
	if (!taken)
		shunt_patience_end(stream->seat->link);
	shunt_group_poll_fully(&engine->group);
	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	if (done && !taken && shunt_intake_repeats(&stream->seat->in.intake))
		done = shunt_repeat_drop(stream, stream->fd, true);
	if (done)
		stop_reading(engine, &stream->seat->in);
	if (taken && done)
		stop_sending_taken(stream);
	else if (taken)
		shunt_rest_revoke(stream);
	atomic_store(&stream->seat->leaving.retiring, done ? SHUNT_RETIRED : SHUNT_CANNOT_RETIRE);
	if (!taken && !atomic_load(&stream->seat->leaving.reads))
		stop_sending_heard(engine, stream);
	shunt_lock_leave(&stream->tx.lock);
	shunt_sleep_tell(stream, EPOLLIN | SHUNT_READY_TRACK);	/* from here on the kernel tells of it, whatever becomes of the rest */
	shunt_lock_leave(&stream->rx.lock);
	shunt_retire_complete(engine, stream);
	/* The kernel's edges may have been spent on calls that were refused meanwhile. */
	shunt_sleep_tell(stream,
			 EPOLLIN | EPOLLOUT | SHUNT_READY_ANSWERED | SHUNT_READY_ARRIVED |
				 SHUNT_READY_SETTLED);
	if (!done && !shunt_leave_is_due(engine))	/* there it is not the last resort */
		shunt_decision_say(SHUNT_LOG_WARN, stream,
				   "it cannot leave the link: unread bytes are here that its peer "
				   "cannot send again");
	shunt_retire_tell_relative(engine, stream);
}

/* Another reader must not find the peer's nonce: it is waited for. False: not before the program has read more. */
static bool begin_behind_proof(struct shunt_engine *engine, struct shunt_stream *stream,
			       enum shunt_cause cause, bool reads, uint64_t deadline)
{
	struct shunt_seat_in *in = &stream->seat->in;

	for (;;) {
		begin(engine, stream, cause, reads);
		if (atomic_load(&in->proof.state) != SHUNT_EXPECTED)
			return true;
		if (!shunt_proof_is_next(stream) || shunt_now(engine) >= deadline)
			return false;
		shunt_thread_endure();
		shunt_wait_stream(stream, SHUNT_READY_ARRIVED, deadline);
		shunt_proof_heard(engine, stream);
	}
}

/*
 * Bytes that the program could have read before are readable at once after, without waiting. Only while there is
 * progress: the kernel's buffer may be smaller than the ring was.
 */
void shunt_retire_await_bytes(struct shunt_engine *engine, int fd, int wanted)
{
	uint64_t now = shunt_now(engine), until = now + ARRIVING, end = now + ALL_ARRIVING;
	int before = 0, there = 0;

	while (!engine->sys->ioctl(fd, FIONREAD, &there) && there < wanted &&
	       shunt_now(engine) < (until < end ? until : end)) {
		if (there > before)
			until = shunt_now(engine) + ARRIVING;
		before = there;
		sched_yield();
	}
}

static bool is_unread(struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;
	bool unread = false;

	shunt_lock_take(&tx->lock);
	if (atomic_load(&stream->state) == SHUNT_LINKED && shunt_heading_on_link(&out->heading) &&
	    atomic_load(&stream->seat->leaving.asked) == SHUNT_NOT_ASKED &&
	    !shunt_stream_is_released(stream)) {
		shunt_credit_look(stream);
		unread = atomic_load(&out->ring.consumed) < atomic_load(&out->posted);
	}
	shunt_lock_leave(&tx->lock);
	return unread;
}

/*
 * The peer's program is likely to make a ring, too. Then it needs back our bytes that it has not read. Once the
 * kernel has our end, nobody can send them again in its place. So all peers get a moment to read, or to make their
 * ring first.
 */
static void await_reader(struct shunt_engine *engine, struct shunt_stream *stream)
{
	uint64_t until = 0;

	if (atomic_compare_exchange_strong(&engine->readers_until, &until,
					   shunt_now(engine) + READING))
		until = atomic_load(&engine->readers_until);
	while (shunt_now(engine) < until && is_unread(stream))
		sched_yield();
}

/* Under group.lock the stream keeps its link. A stranger that does not answer loses it before (core/peer/silent.h). */
static uint64_t answer_until(struct shunt_engine *engine, struct shunt_stream *stream)
{
	uint64_t until = shunt_now(engine);

	shunt_lock_take(&engine->group.lock);
	if (stream->seat->link)
		until = shunt_patience_until(stream->seat->link);
	shunt_lock_leave(&engine->group.lock);
	return until;
}

/*
 * The peer is asked, and answers. 0, or -errno. `reads`: it is enough that the kernel has, or gets, what is to be read. Then
 * what is to be sent may still wait for a peer that reads as little.
 */
static int ask(struct shunt_engine *engine, struct shunt_stream *stream, enum shunt_cause cause,
	       bool reads)
{
	uint64_t deadline = answer_until(engine, stream);

	if (!begin_behind_proof(engine, stream, cause, reads, shunt_now(engine) + PROVING))
		return -EBUSY;
	while (!shunt_retire_complete(engine, stream)) {
		if (atomic_load(&stream->seat->leaving.retiring) >= SHUNT_CANNOT_RETIRE)
			return -EBUSY;
		if (reads && atomic_load(&stream->seat->leaving.retiring) == SHUNT_RETIRED)
			return 0;
		if (shunt_now(engine) >= deadline)
			return -ETIMEDOUT;
		shunt_thread_endure();
		shunt_wait_stream(stream, reads ? SHUNT_READY_GIVEN : SHUNT_READY_ANSWERED,
				  deadline);
	}
	return is_kept_back(stream) ? -EBUSY : 0;
}

static int retire(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
		  enum shunt_cause cause, bool reads)
{
	int readable = 0, result;

	if (atomic_load(&stream->state) == SHUNT_CANDIDATE)
		shunt_streams_plain(engine, stream, cause);
	if (atomic_load(&stream->state) == SHUNT_FOREIGN)
		return shunt_handover_ask(engine, fd, stream);
	if (shunt_stream_is_plain(stream))
		return 0;
	if (cause == SHUNT_CAUSE_URING && !engine->loop.manual)
		await_reader(engine, stream);
	if (atomic_load(&stream->state) == SHUNT_LINKED)
		readable = shunt_stream_inq(engine, fd, stream);
	result = ask(engine, stream, cause, reads);
	if (result && reads)
		begin(engine, stream, cause, false);
	if (result && !shunt_retire_alone(engine, stream))
		return result;
	if (atomic_load(&stream->state) == SHUNT_CANDIDATE)	/* the peer has refused the link meanwhile; take no other */
		shunt_streams_plain(engine, stream, cause);
	shunt_retire_await_bytes(engine, fd, readable);
	return 0;
}

static int retire_timed(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			enum shunt_cause cause, bool reads)
{
	bool linked = atomic_load(&stream->state) == SHUNT_LINKED;
	uint64_t begun = linked ? shunt_slow_begin(&engine->steps) : 0;
	int result;

	shunt_spare_option_freshen(stream, SHUNT_SPARE_OPTION_ALL);
	result = retire(engine, fd, stream, cause, reads);
	shunt_slow_stream(&shunt_stream_engine(stream)->steps, stream, SHUNT_STEP_RETIRE, begun, 0);
	return result;
}

/* A cancellation waits until it is over: most calls that want it are no cancellation points. */
int shunt_stream_retire(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			enum shunt_cause cause)
{
	int state = shunt_cancel_off();
	int result = retire_timed(engine, fd, stream, cause, false);

	if (result == -EBUSY && cause == SHUNT_CAUSE_PASSED && is_unread_here(stream))
		shunt_streams_reset_tcp(engine->sys, fd);	/* its new owner must not take the kernel's end for the stream's */
	else if (result == -EBUSY && cause == SHUNT_CAUSE_INHERITED)
		shunt_retire_failed(engine, stream);
	shunt_cancel_restore(state);
	return result;
}

/*
 * The kernel would give the ring later bytes before earlier ones, or the peer. A request that is not answered yet may still
 * come right, as long as nothing of it is here.
 */
static bool is_lost(struct shunt_stream *stream, int result)
{
	return atomic_load(&stream->state) == SHUNT_LINKED &&
	       (result != -ETIMEDOUT || is_unread_here(stream) || !shunt_ready_flushed(stream));
}

int shunt_stream_bar(struct shunt_engine *engine, int fd, struct shunt_stream *stream, bool reads)
{
	int state = shunt_cancel_off();
	int result = retire_timed(engine, fd, stream, SHUNT_CAUSE_URING, reads);

	if (result && is_lost(stream, result)) {
		shunt_decision_say(
			SHUNT_LOG_WARN, stream,
			"a ring of io_uring uses it, and its bytes cannot leave the link in "
			"order: it is reset");
		shunt_streams_reset_tcp(engine->sys, fd);
	}
	shunt_cancel_restore(state);
	return result;
}

int shunt_stream_retire_vforked(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
				enum shunt_cause cause)
{
	int result, readable;

	if (atomic_load(&stream->state) == SHUNT_CANDIDATE)
		shunt_streams_plain(engine, stream, cause);
	if (atomic_load(&stream->state) != SHUNT_LINKED)
		return shunt_stream_retire(engine, fd, stream, cause);
	readable = shunt_stream_inq(engine, fd, stream);
	result = shunt_handover_ask_parent(engine, stream);
	if (!result)
		shunt_retire_await_bytes(engine, fd, readable);
	return result;
}

/* --- the other end --- */

static bool is_unanswered(int result)
{
	return result == -EAGAIN || result == -EPIPE;
}

/* Our direction is the kernel's from here on, and the peer is told that. As shunt_hand_back_asked(). Both locks held. */
static int give_back(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t offset,
		     const struct shunt_message *answer)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;
	int result;

	shunt_assert_held(&stream->tx.lock);
	atomic_store(&out->want_link, false);
	out->quick = false;
	out->flip_at = SHUNT_NEVER;
	shunt_proof_withdraw(stream);
	result = shunt_hand_back_asked(engine, stream, offset, answer);
	if (!is_unanswered(result))
		shunt_heading_turn(&out->heading, SHUNT_HEADING_IS_POSTED);	/* the peer asked, so it knows */
	if (!result)
		atomic_store(&stream->seat->leaving.reads, false);
	if (!result && shunt_seat_fin_is_due(out))
		shunt_deferred_fin_resume(stream);
	else if (tx->backlog.bytes && stream->fd >= 0 &&
		 shunt_backlog_write(engine, stream->fd, stream) == -EAGAIN)
		shunt_backlog_await(stream);
	return result;
}

/* The queue pair has died meanwhile, or the link: another LEAVE says which end has what, or the peer is gone. */
static bool is_moot(const struct shunt_stream *stream)
{
	struct shunt_link *link = stream->seat->link;

	return !link || atomic_load(&link->state) != SHUNT_LINK_UP;
}

/*
 * The answer lets the peer use TCP behind its announcements on the link. TCP may be faster, so they must have been
 * seen here before. After a QP failure do not wait: the missing announcements never arrive, and its LEAVE covers them.
 */
static bool may_answer(struct shunt_stream *stream)
{
	return atomic_load(&stream->seat->in.announced) >= stream->seat->leaving.announced ||
	       shunt_intake_copied(&stream->seat->in.intake) || is_moot(stream);
}

/* It may come to a link again: core/peer/given.h. */
static void look_for_given(struct shunt_engine *engine)
{
	engine->work.given_wait = 0;
	shunt_loop_post(&engine->loop, &engine->work.tasks.given);
}

/* False: the channel is full for now. */
static bool answer(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_message message = { .type = SHUNT_MSG_LEFT,
					 .stream = stream->seat->peer_id };
	int result = -EPIPE;

	if (is_moot(stream)) {
		if (shunt_stream_is_seated(stream)) /* else both ends have left, and released, the seat meanwhile */
			atomic_store(&stream->seat->leaving.asked, SHUNT_DECLINED);
		return true;
	}
	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	/* The peer had not heard of a relative of ours before it asked, and does not listen to one any more. */
	if (atomic_load(&stream->seat->leaving.retiring) == SHUNT_RESTING ||
	    atomic_load(&stream->seat->leaving.retiring) == SHUNT_TAKEN)
		shunt_rest_revoke(stream);
	result = give_back(engine, stream, stream->seat->leaving.offset, &message);
	message.reason = result != 0;
	if (result != -EAGAIN)
		atomic_store(&stream->seat->leaving.asked, result ? SHUNT_DECLINED : SHUNT_GIVEN);
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
	if (result == -EPROTO)
		shunt_link_distrust(stream->seat->link, shunt_hand_back_wrong);
	else if (!result)
		look_for_given(engine);
	else if (!is_unanswered(result))
		shunt_link_send(stream->seat->link, &message, NULL, 0);
	shunt_sleep_tell(stream, EPOLLIN | EPOLLOUT | SHUNT_READY_TRACK);
	return result != -EAGAIN;
}

/* False: the peer has asked before. */
static bool note_asked(struct shunt_stream *stream, const struct shunt_leave *leave)
{
	struct shunt_leaving *leaving = &stream->seat->leaving;
	uint8_t asked;

	shunt_lock_take(&stream->tx.lock);
	asked = atomic_load(&leaving->asked);
	if (asked == SHUNT_NOT_ASKED || asked == SHUNT_REPEATED) {
		leaving->offset = asked == SHUNT_REPEATED ? SHUNT_NEVER : leave->offset;
		leaving->announced = leave->announced;
		atomic_store(&leaving->asked, SHUNT_ASKED);
	}
	shunt_lock_leave(&stream->tx.lock);
	return asked == SHUNT_NOT_ASKED || asked == SHUNT_REPEATED;
}

void shunt_retire_asked(struct shunt_engine *engine, struct shunt_stream *stream, const struct shunt_leave *leave)
{
	if (!note_asked(stream, leave)) {
		shunt_link_distrust(stream->seat->link, "a second request to hand back");
		return;
	}
	shunt_group_poll_fully(&engine->group);
	if (may_answer(stream) && answer(engine, stream))
		return;
	shunt_streams_hold(stream);
	stream->handing.next = engine->work.asked;
	engine->work.asked = stream;
}

/*
 * All that the peer has sent is here, it has announced no more, and neither end is retiring: what the relative says of its
 * end is what this end knows. Both locks held.
 */
static bool stands(struct shunt_engine *engine, struct shunt_stream *stream,
		   const struct shunt_stand *stand)
{
	struct shunt_seat_in *in = &stream->seat->in;
	bool on_link = stand->sent != SHUNT_NEVER, as_told;

	if (atomic_load(&stream->state) != SHUNT_LINKED || is_moot(stream) ||
	    shunt_rest_holds(stream) ||
	    atomic_load(&stream->seat->leaving.retiring) != SHUNT_STAYING ||
	    atomic_load(&stream->seat->leaving.asked) != SHUNT_NOT_ASKED ||
	    atomic_load(&in->proof.state) != SHUNT_PROVEN)
		return false;
	shunt_lock_take(&engine->group.lock);
	as_told = atomic_load(&in->announced) == stand->announced &&
		  shunt_intake_open(&in->intake) == on_link &&
		  (!on_link || (atomic_load(&in->tail) == stand->sent &&
				atomic_load(&in->second) == SHUNT_NEVER));
	shunt_lock_leave(&engine->group.lock);
	return as_told;
}

/* As if HANDBACK had come. Both locks held. */
static void close_direction(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t at)
{
	shunt_assert_held(&stream->rx.lock);
	shunt_lock_take(&engine->group.lock);
	shunt_intake_turn(&stream->seat->in.intake, SHUNT_INTAKE_CLOSES);
	if (atomic_load(&stream->seat->in.boundary) == SHUNT_NEVER)
		atomic_store(&stream->seat->in.boundary, at);
	else
		atomic_store(&stream->seat->in.second, at);	/* behind an upgrade that has not been passed */
	shunt_lock_leave(&engine->group.lock);
	shunt_track_settle(stream);
}

/* A relative that has no answer waits for the owner, which has what cannot be sent again. Both locks held. */
static enum shunt_told yield(struct shunt_engine *engine, struct shunt_stream *stream,
			     const struct shunt_stand *stand, bool to_owner)
{
	struct shunt_message message = { .type = SHUNT_MSG_LEFT,
					 .stream = stream->seat->peer_id };
	int result;

	if (!stands(engine, stream, stand))
		return SHUNT_TOLD_NOTHING;
	result = give_back(engine, stream, stand->offset, &message);
	message.reason = result != 0;
	if (is_unanswered(result) || (result && !to_owner))
		return SHUNT_TOLD_NOTHING;
	atomic_store(&stream->seat->leaving.asked, result ? SHUNT_DECLINED : SHUNT_GIVEN_AWAY);
	if (!result && stand->sent != SHUNT_NEVER)
		close_direction(engine, stream, stand->sent);
	if (result)
		shunt_link_send(stream->seat->link, &message, NULL, 0);
	return message.reason ? SHUNT_TOLD_NO : SHUNT_TOLD_YES;
}

enum shunt_told shunt_retire_yield(struct shunt_engine *engine, struct shunt_stream *stream,
				   const struct shunt_stand *stand, bool to_owner)
{
	enum shunt_told told;

	switch (atomic_load(&stream->seat->leaving.asked)) {
	case SHUNT_GIVEN_AWAY:
		return SHUNT_TOLD_YES;
	case SHUNT_NOT_ASKED:
		break;
	default:
		return SHUNT_TOLD_NOTHING;
	}
	shunt_group_poll_fully(&engine->group);
	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	told = yield(engine, stream, stand, to_owner);
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
	if (told != SHUNT_TOLD_NOTHING)
		shunt_sleep_tell(stream, EPOLLIN | EPOLLOUT | SHUNT_READY_TRACK);
	return told;
}

bool shunt_retire_waits(struct shunt_engine *engine)
{
	for (struct shunt_stream *stream = engine->work.asked; stream;
	     stream = stream->handing.next)
		if (!may_answer(stream))
			return true;
	return false;
}

void shunt_retire_run(struct shunt_task *task)
{
	struct shunt_engine *engine = shunt_engine_of(task, work.tasks.retire);
	struct shunt_stream *stream;

	for (struct shunt_stream **p = &engine->work.asked; (stream = *p) != NULL;) {
		if (!may_answer(stream) || !answer(engine, stream)) {
			p = &stream->handing.next;
			continue;
		}
		*p = stream->handing.next;
		shunt_streams_unhold(stream);
	}
}
