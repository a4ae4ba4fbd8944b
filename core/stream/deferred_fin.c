/* SPDX-License-Identifier: MIT */
#include "core/stream/deferred_fin.h"
#include "core/fd/own_fds.h"
#include <sys/socket.h>
#include "core/stream/backlog.h"

#define LATER 10000000ull	/* ns until there may be a descriptor to say an end with */

/* An end is to be said, but there is no descriptor for it: in a while. */
static void look_later(const struct shunt_group *group)
{
	shunt_loop_remind(group->loop, &group->loop->requests.fork_owner,
			  group->sys->now() + LATER);
}

static void leave(struct shunt_stream *stream)
{
	shunt_own_fds_close(stream->group->loop->fds, stream->seat->out.fin_later.fd);
	atomic_store(&stream->seat->out.fin_later.fd, SHUNT_FIN_NOT_DUE);
}

/* lane.lock held, or nobody posts any more, or there is no descriptor that a poster could end. */
static void end(struct shunt_stream *stream, int fd)
{
	if (!shunt_end_has(&stream->end,
			   SHUNT_END_OWES_RESET)) /* that is the end then, behind what is unread */
		stream->group->sys->shutdown(fd, SHUT_WR);
	leave(stream);
}

bool shunt_deferred_fin_keep(struct shunt_stream *stream, int fd, bool closing)
{
	struct shunt_seat_out *out = &stream->seat->out;
	bool due = shunt_seat_fin_is_due(out);
	int copy;

	if (atomic_load(&stream->state) != SHUNT_LINKED || !stream->seat->lane->retains)
		return false;
	if (atomic_load(&out->fin_later.fd) >= 0)
		return true;
	/* Its bytes are the kernel's, or the end has been said before, or nobody wants to hear it. */
	if (!due &&
	    ((!shunt_heading_on_link(&out->heading) && !shunt_heading_unpassed(&out->heading) &&
	      !shunt_heading_halted(&out->heading)) ||
	     shunt_end_has(&stream->end, SHUNT_END_SHUT_WRITE | SHUNT_END_RESET) ||
	     shunt_stream_is_released(stream)))
		return false;
	copy = shunt_own_fds_copy(stream->group->loop->fds, fd);	/* the program can still close its own */
	if (copy < 0 && closing) {
		if (due)	/* it has been promised, and another process may keep the socket open */
			end(stream, fd);
		return false;
	}
	atomic_store(&out->fin_later.fd, copy < 0 ? SHUNT_FIN_NO_FD : copy);
	if (copy < 0)
		look_later(stream->group);
	return true;
}

void shunt_deferred_fin_again(struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;
	int copy;

	shunt_lock_take(&tx->lock);
	if (atomic_load(&out->fin_later.fd) == SHUNT_FIN_NO_FD && stream->fd >= 0) {
		copy = shunt_own_fds_copy(stream->group->loop->fds, stream->fd);
		if (copy < 0) {
			look_later(stream->group);
		} else {
			atomic_store(&out->fin_later.fd, copy);
			shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_DONE);
		}
	}
	shunt_lock_leave(&tx->lock);
}

bool shunt_deferred_fin_look(struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;

	if (__builtin_expect(!shunt_seat_fin_is_due(out), 1) ||
	    shunt_seat_fin_is_kept(stream->seat))
		return false;
	if (out->fin_later.fd < 0 || tx->backlog.bytes || !out->fin_later.wr ||
	    (shunt_lane_keeps(stream->seat->lane) &&
	     atomic_load(&stream->seat->lane->retired) < out->fin_later.wr))
		return true;
	end(stream, out->fin_later.fd);
	return false;
}

void shunt_deferred_fin_resume(struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;
	int fd;

	shunt_assert_held(&stream->tx.lock);
	if (!shunt_seat_fin_is_due(out)) {
		if (tx->backlog.bytes && stream->fd >= 0)
			shunt_backlog_await(stream);
		return;
	}
	if (!tx->backlog.bytes || shunt_end_has(&stream->end, SHUNT_END_OWES_RESET)) {
		end(stream, out->fin_later.fd >= 0 ? out->fin_later.fd : stream->fd);
		return;
	}
	tx->backlog.fin = true;
	fd = tx->backlog.fd < 0 ? atomic_exchange(&out->fin_later.fd, SHUNT_FIN_NO_FD) : -1;
	leave(stream);
	shunt_backlog_await_on(stream, fd);
}

