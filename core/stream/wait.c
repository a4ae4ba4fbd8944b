/* SPDX-License-Identifier: MIT */
#include "core/stream/wait.h"
#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include "core/stream/stream_end.h"
#include "core/poll/group.h"
#include "core/base/narrow.h"
#include "core/base/sys.h"
#include "core/fd/thread.h"
#include "core/lane/send_queue.h"
#include "core/poll/cancel.h"
#include "core/poll/polling.h"
#include "core/stream/offer.h"
#include "core/stream/ready.h"
#include "core/stream/sleep.h"

#define EAGER 8	/* polls of a spin without a pause between them: an answer on its way is here before one ends */
#define MASK_ALWAYS (EPOLLERR | EPOLLHUP)

static bool ready(struct shunt_stream *stream, uint32_t events)
{
	if (events == SHUNT_READY_FETCHED)
		return !shunt_send_queue_pinned_wr(stream->seat);
	if (events == SHUNT_READY_ANSWERED)
		return shunt_ready_answered(stream);
	if (events == SHUNT_READY_GIVEN)
		return shunt_ready_given(stream);
	if (events & ~SHUNT_READY_OURS)
		events |= MASK_ALWAYS;
	return shunt_ready_user(stream) & events;
}

/* Polling would not see what is waited for: it is the kernel's or the service thread's to tell. */
static bool unseen(struct shunt_stream *stream, uint32_t events)
{
	return shunt_ready_kernel(stream, events) & events || events == SHUNT_READY_ANSWERED ||
	       events == SHUNT_READY_GIVEN;
}

/*
 * True: ready, a signal came, or the caller is to look around and wait again: closes and switches are seen
 * outside.
 */
static bool poll_awhile(struct shunt_stream *stream, uint32_t events,
			uint64_t deadline)
{
	struct shunt_spin spin;
	bool hit;
	int n;

	while (shunt_polling(stream->group)->drains && shunt_group_poll(stream->group) > 0 &&
	       !ready(stream, events))
		;
	if (ready(stream, events) || shunt_thread.signalled)
		return true;
	if (unseen(stream, events) || !shunt_spin_begin(stream->group, &spin, deadline))
		return false;
	do {
		if (spin.turns >= EAGER)
			shunt_pause();
		n = shunt_group_poll(stream->group);
		hit = ready(stream, events) || shunt_thread.signalled;
	} while (!hit && shunt_spin_on(stream->group, &spin, n));
	if (!shunt_spin_end(stream->group, &spin, hit))
		return hit;
	pthread_testcancel();
	return true;
}

struct waiter {
	struct shunt_stream *stream;
	uint32_t events;
	struct pollfd fds[1 + SHUNT_SLEEP_FDS];
};

/* Otherwise its descriptor is watched for what the kernel has to tell now, whatever the last poll has brought. */
static bool is_ready(void *arg)
{
	struct waiter *waiter = arg;
	uint32_t events = waiter->events, kernel = 0;

	/*
	 * A waiter for an event of ours has no use for the kernel's error. It stays, so the waiter would never sleep.
	 */
	if (events & ~SHUNT_READY_OURS)
		kernel = shunt_ready_kernel(waiter->stream, events) & (events | EPOLLERR);
	waiter->fds[0] = (struct pollfd) { .fd = kernel ? waiter->stream->fd : -1, .events = shunt_narrow_poll(kernel) };
	return ready(waiter->stream, events);
}

/* One real sleep, which a cancellation of the thread ends as well if it `heeds` them. 0, or -errno of ppoll. */
static int sleep_awhile(struct shunt_stream *stream, uint32_t events, uint64_t deadline, bool heeds)
{
	struct waiter waiter = { .stream = stream, .events = events };
	struct shunt_sleep_on on = { .stream = stream, .events = SHUNT_READY_WAKES(events) };
	struct shunt_sleep sleep = { .group = stream->group, .sleeper.heeds = heeds, .on = &on, .count = 1,
				     .ready = is_ready, .arg = &waiter };
	int result = shunt_sleep(&sleep, waiter.fds, 1, deadline, NULL);

	return result < 0 ? result : 0;
}

/*
 * Result of a wait for the signals that came: interrupted. If every handler was installed with SA_RESTART and no
 * timeout is set, the call begins anew (signal(7)).
 */
static int interrupted(uint64_t deadline)
{
	return shunt_thread.signalled == SHUNT_SIGNAL_RESTARTS && deadline == SHUNT_NEVER ? -ERESTART : -EINTR;
}

static int wait_stream(struct shunt_stream *stream, uint32_t events,
		       uint64_t deadline, bool heeds)
{
	int result;

	if (poll_awhile(stream, events, deadline))
		return shunt_thread.signalled ? interrupted(deadline) : 0;
	if (deadline != SHUNT_NEVER && stream->group->sys->now() >= deadline)
		return -EAGAIN;
	result = sleep_awhile(stream, events, deadline, heeds);
	if (shunt_thread.signalled)
		return interrupted(deadline);
	return result == -EINTR ? 0 : result;	/* a handler that is not ours has run: look again */
}

int shunt_wait_stream(struct shunt_stream *stream, uint32_t events,
		      uint64_t deadline)
{
	return wait_stream(stream, events, deadline, false);
}

/* For a call that has moved bytes: a cancelled thread shall return their number. */
static int wait_uncancelled(struct shunt_stream *stream, uint32_t events,
			    uint64_t deadline)
{
	int state = shunt_cancel_off(), result;
	bool heeds = state == PTHREAD_CANCEL_ENABLE;

	result = wait_stream(stream, events, deadline, heeds);
	if (!result && heeds && shunt_cancel_pending())
		result = -EINTR;
	shunt_cancel_restore(state);
	return result;
}

/* Its thread was cancelled; if the descriptor was closed meanwhile, the connection ends now. */
static void left(void *arg)
{
	struct shunt_stream *stream = arg;

	atomic_fetch_sub(&stream->waiters, 1);
	shunt_streams_end_orphan(stream);
	shunt_cancel_unwinds();
}

/* Not analysed: the lock is given up for a while. */
SHUNT_NO_LOCK_ANALYSIS int shunt_wait_call(struct shunt_stream *stream,
					   struct shunt_lock *lock, uint32_t events,
					   uint64_t deadline, bool moved)
{
	volatile int result;

	shunt_assert_held(lock);
	atomic_fetch_add(&stream->waiters, 1);
	shunt_lock_leave(lock);
	shunt_offer_goes_on(stream);
	pthread_cleanup_push(left, stream);
	if (__builtin_expect(moved || shunt_thread.moved, 0))
		result = wait_uncancelled(stream, events, deadline);
	else
		result = shunt_wait_stream(stream, events, deadline);
	pthread_cleanup_pop(0);
	shunt_lock_take(lock);
	atomic_fetch_sub(&stream->waiters, 1);
	return result;
}
