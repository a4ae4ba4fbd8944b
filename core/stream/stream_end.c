/* SPDX-License-Identifier: MIT */
#include "core/stream/bypass.h"
#include "core/stream/kept.h"
#include "core/stream/kernel_tcp.h"
#include "core/stream/release.h"
#include "core/stream/sleep.h"
#include "core/stream/stream_end.h"
#include "core/fd/own_fds.h"
#include "core/stream/deferred_fin.h"
#include "core/stream/marks.h"
#include "core/stream/hand_back.h"
#include "core/stream/shutdown.h"
#include "core/stream/spare.h"
#include "core/stream/tapped.h"
#include "core/stream/track.h"
#include <errno.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include "core/engine.h"
#include "core/stream/backlog.h"
#include "core/stream/proof.h"
#include "core/stream/repeat.h"
#include "core/fork/fork_slots.h"
#include "core/loop/request.h"

void shunt_streams_reset(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	shunt_streams_reset_tcp(engine->sys, fd);
	shunt_end_learn(&stream->end, SHUNT_LEARN_SHUT_WRITE, 0);
	shunt_end_learn(&stream->end, SHUNT_LEARN_OWN_RESET, 0);
	shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_RESET);
}

/* Its program has closed, and has read all: nobody would see a reset. */
static bool peer_is_gone(struct shunt_stream *stream)
{
	shunt_assert_held(&stream->tx.lock);
	return (atomic_load(&stream->seat->in.closed) || shunt_stream_is_released(stream)) &&
	       shunt_hand_back_is_all_read(stream);
}

/* Both locks held. */
static void say_goodbye(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	bool loses, aborts, due = false, waits = false;

	shunt_assert_held(&stream->rx.lock);
	shunt_group_poll_fully(&engine->group);
	shunt_track_settle(stream);
	if (shunt_end_error(&stream->end))
		shunt_bypass_compare(stream);
	loses = stream->parting == SHUNT_DISSOLVED || shunt_streams_loses(stream, fd);
	aborts = !loses && shunt_streams_lingers_zero(stream, fd);
	if (!loses && (!aborts || peer_is_gone(stream)) &&
	    shunt_spare_keep(engine, stream, fd, &waits)) {
		due = shunt_tx_finish_unkicked(stream);	/* FIN and RELEASE wake the peer once */
	} else {
		shunt_spare_unshut(stream);
		if (loses || aborts)
			shunt_streams_reset(engine, stream, fd);
		else
			shunt_tx_end(stream, fd);
	}
	shunt_proof_leave(stream);
	if (!waits)
		shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_RELEASE);
	else if (due)
		shunt_lane_kick(stream->seat->lane);
	shunt_streams_leave_dead(stream);
}

static void add_bytes(struct shunt_bytes *sum, const struct shunt_bytes *more)
{
	sum->tcp += more->tcp;
	sum->link += more->link;
	sum->late += more->late;
	sum->late_tcp += more->late_tcp;
}

void shunt_streams_end(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	uint8_t state;
	bool seated, settled;

	if (shunt_fork_slots_held(&stream->sharing) && atomic_load(&stream->state) == SHUNT_LINKED)
		shunt_stream_retire(engine, fd, stream, SHUNT_CAUSE_FORK);
	if (shunt_intake_repeats(&shunt_stream_seat(stream)->in.intake))
		shunt_repeat_await(stream, fd);	/* what the closed socket would answer with a reset */
	engine->end_hooks->unwatch(engine, stream);
	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	shunt_files_close(engine->fds.files, fd);
	state = atomic_load(&stream->state);
	shunt_tapped_event(stream, SHUNT_TAP_CLOSE);
	if (state == SHUNT_LINKED)
		say_goodbye(engine, stream, fd);
	else if (shunt_stream_gives_up_seat(stream))
		shunt_streams_leave_dead(stream);
	shunt_short_lived_ends(engine, stream);
	atomic_store(&stream->state, SHUNT_CLOSED);
	shunt_fork_slots_leave(&shunt_stream_engine(stream)->forks, &stream->sharing);
	if (stream->tx.backlog.bytes)
		shunt_backlog_await(stream);
	shunt_request_refuse(&engine->loop, &stream->refusing, false);
	shunt_seat_unquicken(&stream->seat->out);
	shunt_lock_take(&engine->streams_lock);
	shunt_marks_undo_held(stream);
	if (!(atomic_load(&stream->seat->release) & SHUNT_RELEASE_KEPT))
		shunt_kept_forget(engine, stream);
	stream->fd = -1;
	settled = stream->doubt.settled;
	stream->holds += settled;
	seated = stream->seat->link || stream->holds;
	add_bytes(&engine->totals.tx, &stream->tx.bytes);
	add_bytes(&engine->totals.rx, &stream->rx.bytes);
	shunt_histogram_merge(engine->totals.sizes, stream->tx.sizes, SHUNT_SIZE_BUCKETS);
	engine->totals.uncounted += state == SHUNT_PLAIN;
	shunt_lock_leave(&engine->streams_lock);
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
	if (stream->role == SHUNT_LISTENER) {
		engine->end_hooks->births_end(engine, stream);
		engine->end_hooks->withdraw(engine, stream);
	} else if (settled) {
		engine->end_hooks->withdraw(engine, stream);
	}
	shunt_spares_look(&engine->group);
	if (seated)
		shunt_sleep_tell(stream, EPOLLIN | EPOLLOUT | EPOLLHUP);	/* whatever a sleeper asks for */
	else
		shunt_streams_free(stream);
	if (settled)
		shunt_streams_unhold(stream);
}

/* Both locks held: who waits has neither, and looks again when it has. */
static bool adopt_waited(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	int copy;

	if (!atomic_load(&stream->waiters))	/* who waits in the kernel is the kernel's to keep */
		return false;
	copy = shunt_own_fds_copy(&engine->fds, fd);
	if (copy < 0)
		return false;
	shunt_lock_take(&engine->streams_lock);
	stream->fd = copy;
	stream->parting = SHUNT_ORPHANED;
	shunt_files_close(engine->fds.files, fd);
	shunt_lock_leave(&engine->streams_lock);
	return true;
}

bool shunt_streams_orphan(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	bool made;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	made = adopt_waited(engine, stream, fd);
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
	if (made)
		engine->end_hooks->unwatch(engine, stream);
	return made;
}

bool shunt_streams_still(struct shunt_engine *engine, int *fd, struct shunt_stream *stream)
{
	if (__builtin_expect(stream->parting == SHUNT_ORPHANED, 0)) {
		*fd = stream->fd;
		return true;
	}
	return shunt_stream_is(engine, *fd, stream);
}

void shunt_streams_end_orphan(struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	bool last;
	int fd;

	shunt_lock_take(&engine->streams_lock);
	last = stream->parting == SHUNT_ORPHANED && !atomic_load(&stream->waiters);
	if (last)
		stream->parting = SHUNT_PARTING_NONE;
	fd = stream->fd;
	shunt_lock_leave(&engine->streams_lock);
	if (!last)
		return;
	shunt_streams_end(engine, stream, fd);
	shunt_own_fds_close(&engine->fds, fd);
}
