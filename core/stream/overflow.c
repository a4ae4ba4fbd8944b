/* SPDX-License-Identifier: MIT */
#include "core/stream/overflow.h"
#include "core/engine.h"
#include "core/stream/kernel_tcp.h"
#include "core/fd/own_fds.h"
#include "core/stream/sleep.h"
#include "core/stream/wait.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "core/lane/send_queue.h"
#include "core/poll/cancel.h"
#include "core/stream/user_timeout.h"

#define MS 1000000ull
#define PATIENCE (5 * MS)	/* without credit: some turns of a busy processor */
#define USUAL 4194304		/* of tcp_wmem */
#define WINDOW 98304		/* the kernel's first one, beside a limited send buffer, and a third that has to be free */
#define SMALL 2048		/* taken whole or not at all, as in tx.c */

/* --- how much --- */

uint64_t shunt_overflow_bound(struct shunt_engine *engine)
{
	unsigned long least, first, most = USUAL;
	char text[96] = "";
	int fd, state = shunt_cancel_off();
	ssize_t got;

	shunt_own_fds_begin(&engine->fds);
	fd = open("/proc/sys/net/ipv4/tcp_wmem", O_RDONLY | O_CLOEXEC);
	got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		close(fd);
	shunt_own_fds_end(&engine->fds);
	shunt_cancel_restore(state);
	if (got <= 0 || sscanf(text, "%lu %lu %lu", &least, &first, &most) != 3)
		return USUAL;
	return most;
}

static uint64_t option(struct shunt_stream *stream, int level, int name)
{
	socklen_t length = sizeof(int);
	int value = 0;

	if (stream->group->sys->getsockopt(stream->fd, level, name, &value, &length) || value < 0)
		return 0;
	return (uint64_t)value;
}

/* Any thread: two that compute it at once find the same. */
static uint64_t most_of(struct shunt_stream *stream, struct shunt_seat *seat)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	struct shunt_seat_out *out = &seat->out;
	uint64_t most = atomic_load(&out->overflow.most), unsent,
		 ring = atomic_load(&out->ring.bytes), next = engine->config.ring_max;
	int saved = errno;
	bool limited;

	if (most)
		return most;
	most = option(stream, SOL_SOCKET, SO_SNDBUF);
	unsent = option(stream, IPPROTO_TCP, TCP_NOTSENT_LOWAT);
	limited = option(stream, SOL_SOCKET, SO_BUF_LOCK) & SOCK_SNDBUF_LOCK;
	if (!limited && most < engine->send_buffer)
		most = engine->send_buffer;
	if (unsent && unsent < most) {
		most = unsent;
		limited = true;
	}
	if (limited && next > WINDOW)
		next = WINDOW;
	/* The larger ring, which is not there yet. */
	if (ring < next)
		most += next - ring;
	/* Half a region of the arena: the widest stage that can be had. */
	if (seat->lane->fetches && most > shunt_arena_most(&seat->link->arena) / 2)
		most = shunt_arena_most(&seat->link->arena) / 2;
	most = most ? most : 1;
	atomic_store(&out->overflow.most, most);
	errno = saved;
	return most;
}

/* --- when --- */

static void open_stage(struct shunt_seat_out *out)
{
	atomic_store(&out->overflow.open_at, atomic_load(&out->ring.consumed));
}

/* A sender waits for the credit behind `consumed`, or for memory. */
static bool is_waiting(const struct shunt_seat_out *out, uint64_t consumed)
{
	return atomic_load(&out->overflow.waits_since) && atomic_load(&out->overflow.waits_at) == consumed;
}

/*
 * The stage stands in for the larger ring, which the reader offers when it reads. Not where the device fetches from the
 * stage: a wide one would have to be registered for each new connection.
 */
bool shunt_overflow_opens(struct shunt_stream *stream)
{
	struct shunt_seat *seat = shunt_stream_seat(stream);
	struct shunt_seat_out *out = &seat->out;
	uint64_t consumed = atomic_load(&out->ring.consumed);

	if (shunt_seat_is_none(seat) || out->ring.bytes >= stream->group->config->ring_max ||
	    is_waiting(out, consumed) || seat->lane->fetches || !shunt_send_queue_may_widen(seat))
		return false;
	open_stage(out);
	return true;
}

void shunt_overflow_note(struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	struct shunt_seat *seat = shunt_stream_seat(stream);
	struct shunt_seat_out *out = &seat->out;
	uint64_t consumed = atomic_load(&out->ring.consumed);

	if (shunt_seat_is_none(seat) || shunt_overflow_is_open(out) || is_waiting(out, consumed))
		return;
	atomic_store(&out->overflow.waits_at, consumed);
	atomic_store(&out->overflow.waits_since, stream->group->sys->now());
	if (engine->service)
		shunt_loop_remind(&engine->loop, &engine->work.tasks.overflow, 0);
}

/* --- taking --- */

bool shunt_overflow_is_kept(const struct shunt_stream *stream)
{
	return shunt_overflow_is_open(&stream->seat->out) &&
	       !shunt_send_queue_may_widen(stream->seat);
}

/* As sk_stream_is_writeable(): a third of it is free. */
bool shunt_overflow_has_room(struct shunt_stream *stream)
{
	struct shunt_seat *seat = shunt_stream_seat(stream);
	struct shunt_seat_out *out = &seat->out;
	uint64_t most;

	if (!shunt_overflow_is_open(out) || !shunt_send_queue_may_widen(seat))
		return false;
	most = most_of(stream, seat);
	if (shunt_send_queue_used(seat) > (int64_t)(most - most / 3))
		return false;
	atomic_store(&out->overflow.promised, true);
	return true;
}

/* The thread that serves the lane tells when the stage can be widened. tx.lock held. */
static bool is_widened(struct shunt_stream *stream, uint64_t most)
{
	int result = shunt_send_queue_widen(stream->seat, most);

	shunt_assert_held(&stream->tx.lock);
	if (result == -ENOMEM)
		shunt_overflow_begin(&stream->seat->out);	/* tried again after a wait */
	if (result)
		shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_DONE);
	return !result;
}

uint64_t shunt_overflow_most(struct shunt_stream *stream)
{
	uint64_t most;

	shunt_assert_held(&stream->tx.lock);
	if (atomic_load(&stream->seat->lane->failed))
		return 0;
	most = most_of(stream, stream->seat);
	if (shunt_send_queue_used(stream->seat) >= (int64_t)most || !is_widened(stream, most))
		return 0;
	return most;
}

size_t shunt_overflow_take(struct shunt_stream *stream, struct shunt_iov *from, size_t bytes)
{
	uint64_t most;
	int64_t used;

	shunt_assert_held(&stream->tx.lock);
	if (atomic_load(&stream->seat->lane->failed))
		return 0;
	most = most_of(stream, stream->seat);
	used = shunt_send_queue_used(stream->seat);
	if (used >= (int64_t)most)
		return 0;
	if (bytes <= SMALL && used > 0 && most - (uint64_t)used < bytes)
		most = (uint64_t)used + bytes;
	if (!is_widened(stream, most))
		return 0;
	bytes = shunt_lane_accept(stream->seat, from, bytes, most, false);
	stream->tx.offset += bytes;
	shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_DATA);
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
		shunt_sleep_tell(stream, EPOLLOUT);
}

/* --- readers that do not read --- */

struct look {
	uint64_t now;
	bool again;	/* there are others, whose time is not over */
};

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
		open_stage(out);
		if (shunt_overflow_is_kept(stream))
			shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_DONE);
		else if (shunt_seat_unstarve(out))
			shunt_sleep_tell(stream, EPOLLOUT);
	}
	shunt_lock_leave(&tx->lock);
}

/* True: to be looked at again. */
static bool open_stuck(struct shunt_engine *engine)
{
	struct look look = { .now = shunt_now(engine) };
	struct shunt_sweep sweep = { .wants = is_stuck, .arg = &look };
	struct shunt_stream *stream;

	shunt_group_poll_fully(&engine->group);	/* credit that nobody has looked at */
	while ((stream = shunt_streams_next(engine, &sweep)) != NULL)
		open_waiting(stream);
	return look.again;
}

void shunt_overflow_run(struct shunt_task *task)
{
	struct shunt_engine *engine = shunt_engine_of(task, work.tasks.overflow);
	uint64_t next = shunt_now(engine) + PATIENCE;

	if (!open_stuck(engine))
		return;
	task->not_before = next;
	shunt_task_at(task, next);
}
