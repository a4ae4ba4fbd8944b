/* SPDX-License-Identifier: MIT */
#include "core/stream/pinned.h"
#include "core/stream/sleep.h"
#include "core/stream/wait.h"
#include <sys/socket.h>
#include "core/base/copy.h"
#include "core/base/guard.h"
#include "core/engine.h"
#include "core/fd/thread.h"
#include "core/lane/roster.h"
#include "core/lane/send_queue.h"
#include "core/poll/cancel.h"
#include "core/stream/slow_stream.h"

bool shunt_pinned_pays(const struct shunt_stream *stream, int flags)
{
	const struct shunt_tx *tx = &stream->tx;
	const struct shunt_seat_out *out = &stream->seat->out;

	return shunt_heading_on_link(&out->heading) &&
	       atomic_load(&stream->state) == SHUNT_LINKED && stream->seat->lane->fetches &&
	       !out->pin && !(flags & (MSG_DONTWAIT | MSG_MORE)) &&
	       !shunt_stream_is_nonblocking(stream) && !atomic_load(&tx->corked);
}

/* A NIC's driver finds out when it pins the pages; the soft device would find out when the call is over. */
static bool is_there(const struct iovec *iov)
{
	const char *at = iov->iov_base, *last = at + iov->iov_len - 1;
	size_t page = shunt_guard_page();
	char byte;

	for (; at < last; at += page)
		if (!shunt_copy_plain(&byte, at, 1))
			return false;
	return shunt_copy_plain(&byte, last, 1);
}

bool shunt_pinned_take(struct shunt_stream *stream, struct shunt_pin *pin, const struct iovec *iov)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	uint64_t begun;

	if (!is_there(iov) || !shunt_send_queue_has_window(stream->seat))
		return false;
	begun = shunt_slow_begin(&engine->steps);
	/* No access flag: the device only reads it. Where that fails, the program is told by the copy's EFAULT. */
	pin->mr = shunt_fault_denies(SHUNT_DENY_MR) ?
			  NULL :
			  stream->seat->link->device->verbs->register_mr(
				  stream->seat->link->pd, iov->iov_base, iov->iov_len, 0);
	shunt_slow_stream(&shunt_stream_engine(stream)->steps, stream, SHUNT_STEP_REGISTER, begun,
			  iov->iov_len);
	if (!pin->mr)
		return false;
	*pin = (struct shunt_pin) { .mr = pin->mr, .at = iov->iov_base, .bytes = iov->iov_len };
	shunt_streams_hold(stream);	/* also over a cancellation and a close */
	atomic_store(&stream->seat->out.pin, pin);
	atomic_fetch_add(&engine->pins, 1);
	return true;
}

void shunt_pinned_tell(struct shunt_stream *stream)
{
	if (!shunt_send_queue_pinned_wr(stream->seat))
		return;
	atomic_store(&atomic_load(&stream->seat->window)->pinned_wr, 0);
	shunt_sleep_tell(stream, SHUNT_READY_FETCHED);
}

/* The seat, and with it the link and its domain, has waited for this (delivered.c). */
static void let_seat_go(struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	struct shunt_group *group = &engine->group;
	bool dead = false;

	shunt_lock_take(&group->lock);
	if (stream->seat->link && atomic_load(&stream->state) != SHUNT_LINKED) {
		dead = atomic_load(&stream->seat->lane->failed);
		shunt_lane_enqueue(stream->seat->lane, stream->seat, SHUNT_WORK_DONE);
		shunt_roster_kick(&engine->group, stream->seat->lane);
	}
	if (dead)	/* nobody is there to release it */
		shunt_streams_released(stream, SHUNT_RELEASED_BY_BOTH);
	shunt_lock_leave(&group->lock);
	shunt_group_after(group);
	if (dead)
		shunt_loop_wake(&engine->loop);
}

/* tx.lock held. */
static void let_go(struct shunt_stream *stream)
{
	struct shunt_pin *pin = stream->seat->out.pin;

	stream->seat->lane->link->device->verbs->deregister_mr(pin->mr);
	shunt_send_queue_unpin(stream->seat);
	let_seat_go(stream);
}

/* tx.lock held; given up meanwhile. */
static void await_fetched(struct shunt_stream *stream)
{
	int state = shunt_cancel_off();

	while (shunt_send_queue_pinned_wr(stream->seat)) {
		shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_DONE);
		shunt_thread_endure();	/* what is on its way cannot be called back */
		shunt_wait_call(stream, &stream->tx.lock, SHUNT_READY_FETCHED, SHUNT_NEVER, false);
	}
	shunt_cancel_restore(state);
}

void shunt_pinned_drop(struct shunt_stream *stream)
{
	await_fetched(stream);
	let_go(stream);
	shunt_streams_unhold(stream);
}

void shunt_pinned_cancelled(void *arg)
{
	struct shunt_stream *stream = arg;

	shunt_signal_defer_enter();
	shunt_lock_take(&stream->tx.lock);
	await_fetched(stream);
	let_go(stream);
	shunt_lock_leave(&stream->tx.lock);
	shunt_streams_end_orphan(stream);
	shunt_streams_unhold(stream);
	shunt_cancel_unwinds();
}
