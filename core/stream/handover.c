/* SPDX-License-Identifier: MIT */
#include "core/stream/handover.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "core/fd/own_fds.h"
#include "core/fork/fork_door.h"
#include "core/fork/fork_slots.h"
#include "core/link/trust.h"
#include "core/peer/deaf.h"
#include "core/loop/endpoint.h"
#include "core/poll/cancel.h"
#include "core/engine.h"
#include "core/stream/takeover.h"
#include "core/stream/tuple.h"

#define PATIENCE 6000000000ull	/* ns until an owner that does not answer is given up */
#define MOMENT 50000000ull	/* ns until an owner that has not answered may be passed by */
#define AGAIN 1000000		/* ns until the next knock, where the last one has not been heard */

/* --- who touches it --- */

static bool is_dead(pid_t pid)
{
	return kill(pid, 0) && errno == ESRCH;
}

/* At one of the names that the owner's door may have. Results: see door_knock(). */
static int knock_at(struct shunt_engine *engine, pid_t owner, uint32_t number, int to)
{
	char name[SHUNT_ENDPOINT_NAME];
	struct sockaddr_un address;
	socklen_t length;
	struct ucred peer;

	shunt_fork_door_name(&engine->forks, owner, number, name);
	length = shunt_endpoint_address(name, &address);

	if (engine->sys->connect(to, (struct sockaddr *)&address, length))
		return errno == EAGAIN && is_dead(owner) ? -ECONNREFUSED : -errno;
	/*
	 * In another PID namespace it has no number. Any process may take the name of one that has
	 * ended.
	 */
	return shunt_trust_peer(engine->sys, to, &peer) && (peer.pid == owner || !peer.pid) ?
		       0 :
		       -EPERM;
}

/* Until it hangs up, or (none) a while. True: it has. */
static bool owner_await(struct shunt_engine *engine, int to, uint64_t until)
{
	struct pollfd waiting = { .fd = to, .events = POLLIN };
	uint64_t now = shunt_now(engine), left = to < 0 ? AGAIN : until > now ? until - now : 0;
	struct timespec patience = { (time_t)(left / 1000000000), (long)(left % 1000000000) };

	return engine->sys->ppoll(&waiting, 1, &patience, NULL) > 0;
}

/* The owner's answer; `stream` is ours, or shared by a vfork() (then `asked` is NULL). */
static enum shunt_told owner_told(const struct shunt_question *asked, struct shunt_stream *stream)
{
	if (asked)
		return shunt_fork_slots_told(asked);
	if (atomic_load(&stream->handing.wanted))
		return SHUNT_TOLD_NOTHING;
	return atomic_load(&stream->seat->leaving.retiring) == SHUNT_RETIRED ||
			       !shunt_stream_is_linked(stream) ?
		       SHUNT_TOLD_YES :
		       SHUNT_TOLD_NO;
}

/* In a child of vfork() the table of descriptors is the parent's memory, but not the parent's. */
static int open_foreign(struct shunt_engine *engine)
{
	return engine->sys->socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static int open_private(struct shunt_engine *engine)
{
	return shunt_own_fds_make(&engine->fds, open_foreign(engine));
}

static void close_own(struct shunt_engine *engine, int fd, bool foreign)
{
	if (!foreign)
		shunt_own_fds_close(&engine->fds, fd);
	else if (fd >= 0)
		engine->sys->close(fd);
}

/* There is nobody any more who could have it, or it cannot be had. */
static bool is_final(int result)
{
	return !result || result == -ECONNREFUSED || result == -EPERM || result == -EBUSY;
}

/*
 * 0: the owner will hear of it, and hangs up on `to` when it has dealt with a question. With -EAGAIN many knock just
 * now, and it is alive. Another error: nobody is there whose link the stream could be on. A stranger may sit on a
 * name that the owner had before.
 */
static int door_knock(struct shunt_engine *engine, pid_t owner, bool foreign, int *to)
{
	int result = -ECONNREFUSED, said;

	for (uint32_t number = shunt_fork_door_count(&engine->forks); number-- > 0;) {
		*to = foreign ? open_foreign(engine) : open_private(engine);
		said = *to < 0 ? -EMFILE : knock_at(engine, owner, number, *to);
		if (!said)
			return 0;
		close_own(engine, *to, foreign);
		if (is_final(result))
			result = said;
	}
	return result;
}

/*
 * The owner has heard of the question. It may be stopped: then the stream is had without it, where nothing of it is in
 * its memory alone.
 */
static void owner_pass_by(struct shunt_engine *engine, int to, const struct shunt_question *asked,
			  struct shunt_stream *stream, uint64_t until)
{
	uint64_t now = shunt_now(engine);

	while (now < until &&
	       !owner_await(engine, to, until - now < MOMENT ? until : now + MOMENT)) {
		if (asked && owner_told(asked, stream) == SHUNT_TOLD_NOTHING)
			shunt_takeover_try(engine, stream);
		if (owner_told(asked, stream) != SHUNT_TOLD_NOTHING)
			return;
		now = shunt_now(engine);
	}
}

/*
 * It is marked. 0; -EBUSY: it cannot be had; -EAGAIN: there is no answer; or there is nobody to
 * ask. No lock held.
 */
static int owner_ask(struct shunt_engine *engine, pid_t owner, const struct shunt_question *asked,
		     struct shunt_stream *stream)
{
	uint64_t until = shunt_now(engine) + PATIENCE;
	enum shunt_told answer;
	int result = 0, to;

	while ((answer = owner_told(asked, stream)) == SHUNT_TOLD_NOTHING &&
	       shunt_now(engine) < until) {
		result = door_knock(engine, owner, !asked, &to);
		if (!result) {
			owner_pass_by(engine, to, asked, stream, until);
			close_own(engine, to, !asked);
		} else if (result != -EAGAIN) {
			return result;
		}
		if (owner_told(asked, stream) == SHUNT_TOLD_NOTHING)	/* it was another's turn */
			owner_await(engine, -1, until);
	}
	if (answer == SHUNT_TOLD_NOTHING)
		return -EAGAIN;
	return answer == SHUNT_TOLD_YES ? 0 : -EBUSY;
}

/* From a child of vfork(): the memory is the parent's, whose service thread goes on. */
int shunt_handover_ask_parent(struct shunt_engine *engine, struct shunt_stream *stream)
{
	int result, state = shunt_cancel_off();

	atomic_store(&stream->handing.wanted, true);
	result = owner_ask(engine, engine->forks.pid, NULL, stream);
	shunt_cancel_restore(state);
	return result;
}

static void stream_settle(struct shunt_stream *stream)
{
	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	if (atomic_load(&stream->state) == SHUNT_FOREIGN) {
		shunt_streams_because(shunt_stream_engine(stream), stream, SHUNT_CAUSE_FORK);
		atomic_store(&stream->state, SHUNT_PLAIN);
	}
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
}

static void say_failure(int fd, const struct shunt_stream *stream, int error)
{
	const struct shunt_log_about about = {
		.fd = fd,
		.tuple = shunt_tuple_is_known(&stream->tuple) ? &stream->tuple : NULL,
		.accepted = stream->role == SHUNT_ACCEPTOR,
	};

	shunt_log_write_about(SHUNT_LOG_WARN, &about, "its owner did not hand it over (error %d)",
			      error);
}

int shunt_handover_ask(struct shunt_engine *engine, int fd, struct shunt_stream *stream)
{
	int saved = errno, result = -EAGAIN, state;
	struct shunt_question asked;
	pid_t owner;

	if (atomic_load(&stream->state) != SHUNT_FOREIGN)
		return 0;
	state = shunt_cancel_off();
	shunt_streams_hold(stream);	/* another thread may close it */
	if (stream->sharing.slot) {	/* else there were too many to be counted */
		owner = shunt_fork_slots_ask(&stream->sharing, &asked);
		/* 0: it has been handed back meanwhile. */
		result = owner ? owner_ask(engine, owner, &asked, stream) : 0;
	}
	if (result)
		say_failure(fd, stream, -result);
	if (is_final(result))
		stream_settle(stream);
	shunt_streams_unhold(stream);
	shunt_cancel_restore(state);
	errno = saved;
	/* To use the socket now would mix up its bytes. The kernel, too, may be short of memory for a moment. */
	return is_final(result) ? result : -ENOMEM;
}

/* --- whose link it is on --- */

void shunt_handover_answer(struct shunt_engine *engine, struct shunt_stream *stream)
{
	int fd = atomic_exchange(&stream->handing.fd, -1);

	if (fd < 0)
		return;
	shunt_fork_slots_tell(&shunt_stream_engine(stream)->forks, &stream->sharing,
			      atomic_load(&stream->seat->leaving.retiring) == SHUNT_RETIRED);
	atomic_store(&stream->handing.wanted, false);
	shunt_porter_dismiss(&engine->porter, fd);
	shunt_streams_unhold(stream);
}
