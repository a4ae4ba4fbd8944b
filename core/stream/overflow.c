/* SPDX-License-Identifier: MIT */
#include "core/stream/overflow.h"
#include "core/service.h"
#include "core/stream/credit.h"
#include "core/stream/kernel_tcp.h"
#include "core/fd/own_fds.h"
#include "core/stream/wait.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "core/fork/fork_slots.h"
#include "core/lane/chain.h"
#include "core/lane/remote_read.h"
#include "core/lane/send_buffer.h"
#include "core/poll/cancel.h"
#include "core/stream/again.h"
#include "core/stream/proof.h"
#include "core/stream/tcp_backlog.h"
#include "core/stream/user_timeout.h"

#define MS 1000000ull
#define PATIENCE (5 * MS)	/* without credit: some turns of a busy processor */
#define USUAL 4194304		/* of tcp_wmem */
#define SMALL 2048		/* taken whole or not at all, as in tx.c */

/* --- how much --- */

uint64_t shunt_overflow_bound(struct shunt_engine *engine)
{
	unsigned long least, first, most = USUAL;
	char text[96] = "";
	int fd, state = shunt_cancel_off();
	ssize_t got;

	shunt_own_fds_begin(engine);
	fd = open("/proc/sys/net/ipv4/tcp_wmem", O_RDONLY | O_CLOEXEC);
	got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		close(fd);
	shunt_own_fds_end(engine);
	shunt_cancel_restore(state);
	if (got <= 0 || sscanf(text, "%lu %lu %lu", &least, &first, &most) != 3)
		return USUAL;
	return most;
}

static uint64_t option(struct shunt_stream *stream, int level, int name)
{
	socklen_t length = sizeof(int);
	int value = 0;

	if (stream->engine->sys->getsockopt(stream->fd, level, name, &value, &length) || value < 0)
		return 0;
	return (uint64_t)value;
}

/* Any thread: two that compute it at once find the same. */
static uint64_t most_of(struct shunt_stream *stream, struct shunt_seat *seat)
{
	struct shunt_engine *engine = stream->engine;
	struct shunt_seat_out *out = &seat->out;
	uint64_t most = atomic_load(&out->overflow.most), unsent,
		 ring = atomic_load(&out->ring.bytes);
	int saved = errno;

	if (most)
		return most;
	most = option(stream, SOL_SOCKET, SO_SNDBUF);
	if (!(option(stream, SOL_SOCKET, SO_BUF_LOCK) & SOCK_SNDBUF_LOCK)) {
		if (most < engine->send_buffer)
			most = engine->send_buffer;
		if (ring < engine->config.ring_max)
			most += engine->config.ring_max - ring;
	}
	unsent = option(stream, IPPROTO_TCP, TCP_NOTSENT_LOWAT);
	if (unsent && unsent < most)
		most = unsent;
	/* Half a region of the arena: the widest stage that can be had. */
	if (seat->lane->fetches && most > shunt_arena_most(&seat->link->arena) / 2)
		most = shunt_arena_most(&seat->link->arena) / 2;
	most = most ? most : 1;
	atomic_store(&out->overflow.most, most);
	errno = saved;
	return most;
}

/* --- when --- */

void shunt_overflow_open(struct shunt_seat_out *out)
{
	atomic_store(&out->overflow.open_at, atomic_load(&out->ring.consumed));
}

void shunt_overflow_note(struct shunt_stream *stream)
{
	struct shunt_service *service = stream->engine->service;
	struct shunt_seat *seat = shunt_stream_seat(stream);
	struct shunt_seat_out *out = &seat->out;
	uint64_t consumed = atomic_load(&out->ring.consumed);

	if (shunt_seat_is_none(seat) || shunt_overflow_is_open(out) ||
	    (atomic_load(&out->overflow.waits_since) &&
	     atomic_load(&out->overflow.waits_at) == consumed))
		return;
	atomic_store(&out->overflow.waits_at, consumed);
	atomic_store(&out->overflow.waits_since, shunt_now(stream->engine));
	if (service)
		shunt_loop_remind(&stream->engine->loop, &service->tasks.overflow, 0);
}

/* --- taking --- */

bool shunt_overflow_is_kept(const struct shunt_stream *stream)
{
	return shunt_overflow_is_open(&stream->seat->out) &&
	       !shunt_send_buffer_may_widen(stream->seat);
}

/* As sk_stream_is_writeable(): a third of it is free. */
bool shunt_overflow_has_room(struct shunt_stream *stream)
{
	struct shunt_seat *seat = shunt_stream_seat(stream);
	struct shunt_seat_out *out = &seat->out;
	uint64_t most;

	if (!shunt_overflow_is_open(out) || !shunt_send_buffer_may_widen(seat))
		return false;
	most = most_of(stream, seat);
	if (shunt_send_buffer_used(seat) > (int64_t)(most - most / 3))
		return false;
	atomic_store(&out->overflow.promised, true);
	return true;
}

/* Makes the stage hold `most`, or as much as there is memory for. False: not now. tx.lock held. */
static bool widen(struct shunt_stream *stream, uint64_t most)
{
	struct shunt_lane *lane = stream->seat->lane;
	int result = -EBUSY;

	shunt_assert_held(&stream->tx.lock);
	/* The lane may be held all the time by a thread that waits for its window: a program was told of this room. */
	if (shunt_send_buffer_is_wide(stream->seat, most))
		return true;
	if (shunt_lock_try(&lane->lock)) {
		result = shunt_send_buffer_widen(stream->seat, most);
		if (result == -ENOMEM)
			shunt_overflow_begin(&stream->seat->out);	/* tried again after a wait */
		shunt_lane_leave(lane);
	}
	return !result;
}

/* Takes bytes though the ring has no room for them. tx.lock held. */
static size_t accept_beyond(struct shunt_stream *stream, struct shunt_iov *from, size_t bytes,
			    uint64_t most)
{
	bool wide = widen(stream, most);

	shunt_assert_held(&stream->tx.lock);
	bytes = wide ? shunt_lane_accept(stream->seat, from, bytes, most, false) : 0;
	stream->tx.offset += bytes;
	/* The thread that serves the lane tells when the stage can be widened. */
	shunt_lane_request(stream->seat->lane, stream->seat,
			   wide ? SHUNT_WORK_DATA : SHUNT_WORK_DONE);
	return bytes;
}

size_t shunt_overflow_take(struct shunt_stream *stream, struct shunt_iov *from, size_t bytes)
{
	uint64_t most;
	int64_t used;

	shunt_assert_held(&stream->tx.lock);
	if (atomic_load(&stream->seat->lane->failed))
		return 0;
	most = most_of(stream, stream->seat);
	used = shunt_send_buffer_used(stream->seat);
	if (used >= (int64_t)most)
		return 0;
	if (bytes <= SMALL && used > 0 && most - (uint64_t)used < bytes)
		most = (uint64_t)used + bytes;
	bytes = accept_beyond(stream, from, bytes, most);
	if (bytes)
		shunt_user_timeout_begin(stream);
	return bytes;
}

void shunt_overflow_changed(struct shunt_stream *stream)
{
	struct shunt_seat *seat = shunt_stream_seat(stream);

	if (shunt_seat_is_none(seat))
		return;
	atomic_store(&seat->out.overflow.most, 0);
	if (shunt_seat_unstarve(&seat->out))
		shunt_group_tell(stream->engine, stream, EPOLLOUT);
}

/* --- to TCP --- */

/*
 * It takes a HANDBACK that arrives at once, and no byte that only a completion makes superfluous.
 * After the direction's end the kernel's socket has been shut, and takes no byte. tx.lock held.
 */
static bool can_hand_back(struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;

	if (atomic_load(&stream->state) != SHUNT_LINKED || !shunt_heading_on_link(&out->heading))
		return false;
	if (shunt_end_has(&stream->end, SHUNT_END_SHUT_WRITE) || tx->backlog.bytes)
		return false;
	if (shunt_lane_keeps(stream->seat->lane) || stream->engine->config.soft_model[0])
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
 * for those before the UPGRADE. An answer to RETIRE says that it has.
 */
static bool is_heard(const struct shunt_stream *stream)
{
	return !shunt_heading_unpassed(&stream->seat->out.heading) ||
	       atomic_load(&stream->seat->leaving.retiring) == SHUNT_RETIRED;
}

bool shunt_overflow_must_be_heard(struct shunt_stream *stream)
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

/* The stream's bytes [from, at) as they lie in the peer's ring, and [at, to) from the stage. */
static bool copy_rest(struct shunt_stream *stream, uint8_t *out, uint64_t from, uint64_t at,
		      uint64_t to)
{
	shunt_assert_held(&stream->tx.lock);
	shunt_assert_held(&stream->seat->lane->lock);
	return (from == at || shunt_remote_read_ring(stream->seat, out, from, at)) &&
	       (at == to || shunt_send_buffer_copy(stream->seat, out + (at - from), at, to));
}

/*
 * TCP takes what is not posted, and where the direction `ends` what is unread, too. lane.lock and tx.lock held. False:
 * there is none, the ring has room for it, or the HANDBACK could not be posted.
 */
static bool hand_back(struct shunt_stream *stream, bool ends)
{
	struct shunt_lane *lane = stream->seat->lane;
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;
	uint64_t before = atomic_load(&out->handback_at), staged = atomic_load(&out->staged);
	uint64_t at, from;
	uint8_t *rest;

	shunt_assert_held(&lane->lock);
	shunt_assert_held(&stream->tx.lock);
	shunt_lane_serve(lane);
	at = atomic_load(&out->posted);
	from = ends && unread_from(out) < at ? unread_from(out) : at;
	if (from == at && (at == staged || shunt_seat_room(out, at)))
		return false;
	if (atomic_load(&lane->failed) || !shunt_lane_arrived(lane))
		return false;
	rest = shunt_again_add(tx, staged - from);
	if (!rest || !copy_rest(stream, rest, from, at, staged))
		goto fail;
	shunt_heading_turn(&out->heading, SHUNT_HEADING_ANNOUNCES);	/* before the reader can answer */
	atomic_store(&out->handback_at, at);
	out->announced++;
	/* One message: the queue pair takes all of it or nothing. */
	if (!shunt_chain_control(lane->chain, stream->seat,
				 from < at ? SHUNT_IMM_REPEAT : SHUNT_IMM_HANDBACK, 0, from) ||
	    !shunt_chain_flush(lane->chain)) {
		atomic_store(&out->handback_at, before);
		shunt_heading_try(&out->heading, SHUNT_HEADING_WITHDRAWS);	/* but for a liar's answer */
		out->announced--;
		goto fail;
	}
	/* The rest is TCP's: should the link die, its bytes end here. */
	__atomic_store_n(&stream->seat->control->word[SHUNT_CONTROL_ACCEPTED], at,
			 __ATOMIC_RELEASE);
	atomic_store(&out->posted, staged);
	atomic_fetch_and(&stream->seat->work, ~(uint32_t)SHUNT_WORK_DATA);
	shunt_heading_turn(&out->heading, SHUNT_HEADING_LEAVES);
	out->quick = false;
	return true;
fail:
	shunt_again_free(stream);
	return false;
}

/*
 * Writes what TCP has to carry. The rest waits for room, unless the reader has all of it in its ring (`spare`): a reader
 * that closes would answer what comes late with a reset. False: that rest has been dropped.
 */
static bool has_left(struct shunt_stream *stream, int fd, bool spare)
{
	struct shunt_engine *engine = stream->engine;
	bool all;

	shunt_assert_held(&stream->tx.lock);
	atomic_fetch_add_explicit(&engine->handbacks, 1, memory_order_relaxed);
	shunt_group_tell(engine, stream, SHUNT_READY_TRACK);
	all = shunt_tcp_backlog_write(engine, fd, stream) != -EAGAIN;
	if (!all && spare)
		shunt_again_free(stream);
	else if (!all)
		shunt_tcp_backlog_await(engine, stream);
	return all || !spare;
}

bool shunt_overflow_to_tcp(struct shunt_stream *stream, int fd)
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

/* A RETIRE that is to be answered, or comes later, wants nothing more. */
static void note_repeated(struct shunt_stream *stream)
{
	struct shunt_leaving *leaving = &stream->seat->leaving;

	if (atomic_load(&leaving->asked) == SHUNT_ASKED)
		leaving->offset = SHUNT_NEVER;
	else
		atomic_store(&leaving->asked, SHUNT_REPEATED);
}

static bool is_all_read(struct shunt_stream *stream)
{
	struct shunt_seat_out *out = &stream->seat->out;

	if (unread_from(out) < atomic_load(&out->posted))
		shunt_credit_look(stream->engine, stream);
	return unread_from(out) >= atomic_load(&out->staged);
}

bool shunt_overflow_repeat(struct shunt_stream *stream, int fd, bool exits)
{
	struct shunt_seat_out *out = &stream->seat->out;
	struct shunt_lane *lane = stream->seat->lane;
	bool back;

	shunt_assert_held(&stream->tx.lock);
	if (!can_hand_back(stream) || is_all_read(stream))
		return false;
	shunt_lock_take(&lane->lock);
	back = hand_back(stream, true);
	shunt_lock_leave(&lane->lock);
	shunt_lane_kick(lane);
	if (back && has_left(stream, fd,
			     !exits && atomic_load(&out->handback_at) == atomic_load(&out->staged)))
		note_repeated(stream);
	return back;
}

/* --- all streams --- */

struct look {
	uint64_t now;
	bool again;	/* there are others, whose time is not over */
};

static bool is_on_link(struct shunt_stream *stream, void *unused)
{
	(void)unused;
	return atomic_load(&stream->state) == SHUNT_LINKED &&
	       shunt_heading_on_link(&stream->seat->out.heading) && !shunt_fork_slots_held(stream);
}

/* exit() closes every connection. Where that resets, nothing is repeated. */
static void leave(struct shunt_stream *stream)
{
	shunt_assert_held(&stream->tx.lock);
	if (shunt_streams_resets(stream->engine, stream, stream->fd) ||
	    !shunt_overflow_repeat(stream, stream->fd, true))
		shunt_overflow_to_tcp(stream, stream->fd);
}

void shunt_overflow_leave(struct shunt_engine *engine, uint64_t until)
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

/* Those whose reader has given no credit for too long. */
static bool is_stuck(struct shunt_stream *stream, void *arg)
{
	struct shunt_seat_out *out = &stream->seat->out;
	uint64_t since = atomic_load(&out->overflow.waits_since);
	struct look *look = arg;

	if (!since)
		return false;
	if (look->now - since < PATIENCE &&
	    atomic_load(&out->overflow.waits_at) == atomic_load(&out->ring.consumed)) {
		look->again = true;
		return false;
	}
	atomic_store(&out->overflow.waits_since, 0);
	/* It reads: a sender that finds no room all the same says so again. */
	return atomic_load(&out->starved) &&
	       atomic_load(&out->overflow.waits_at) == atomic_load(&out->ring.consumed);
}

/*
 * The stage opens, and the sender is told: where the device still needs bytes of it, by the lane.
 */
static void open_waiting(struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;

	shunt_lock_take(&tx->lock);	/* keeps the stream on its lane */
	if (atomic_load(&stream->state) == SHUNT_LINKED) {
		shunt_overflow_open(out);
		if (shunt_overflow_is_kept(stream))
			shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_DONE);
		else if (shunt_seat_unstarve(out))
			shunt_group_tell(stream->engine, stream, EPOLLOUT);
	}
	shunt_lock_leave(&tx->lock);
}

/* True: to be looked at again. */
static bool open_stuck(struct shunt_engine *engine)
{
	struct look look = { .now = shunt_now(engine) };
	struct shunt_sweep sweep = { .wants = is_stuck, .arg = &look };
	struct shunt_stream *stream;

	shunt_group_poll_fully(engine);	/* credit that nobody has looked at */
	while ((stream = shunt_streams_next(engine, &sweep)) != NULL)
		open_waiting(stream);
	return look.again;
}

void shunt_overflow_run(struct shunt_task *task)
{
	struct shunt_engine *engine = shunt_service_of(task, overflow)->engine;
	uint64_t next = shunt_now(engine) + PATIENCE;

	if (!open_stuck(engine))
		return;
	task->not_before = next;
	shunt_task_at(task, next);
}
