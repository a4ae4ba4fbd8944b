/* SPDX-License-Identifier: MIT */
#include "core/stream/spare.h"
#include "core/stream/kept.h"
#include "core/stream/spare_option.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include "core/base/address.h"
#include "core/engine.h"
#include "core/lane/roster.h"
#include "core/lane/send_queue.h"
#include "core/stream/births.h"
#include "core/stream/deferred_fin.h"
#include "core/stream/hand_back.h"
#include "core/stream/proof.h"
#include "core/stream/streams.h"
#include "core/stream/uring.h"
#include "core/stream/track.h"
#include "core/stream/release.h"
#include "core/lane/lane_serve.h"
#include "core/fd/own_fds.h"

#define IDLE 10000000000ull /* ns: a spare that nobody has taken for so long is given up */

#define MADE_PAUSE 4000u /* us: longest pause that stays behind a seed which came to the link; the next doubles it */

#define PATIENCE 50000000ull /* ns that a peer may take to read all of a connection that is closed, and a program to close one */

/* --- the program closes it --- */

static bool is_quiet_out(const struct shunt_stream *stream)
{
	const struct shunt_seat_out *out = &stream->seat->out;

	return shunt_heading_on_link(&out->heading) &&
	       shunt_seat_fin_is_due(out) == shunt_kept_shut(stream) &&
	       !shunt_heading_unpassed(&out->heading) && !shunt_heading_halted(&out->heading) &&
	       !atomic_load(&out->ring.offer) && !atomic_load(&out->ring.turning) &&
	       !atomic_load(&out->pin) && !atomic_load(&out->held) &&
	       atomic_load(&out->show) == SHUNT_SHOWN && out->flip_at == SHUNT_NEVER &&
	       atomic_load(&out->left_at) == SHUNT_NEVER && !stream->tx.backlog.bytes &&
	       stream->tx.backlog.fd < 0 && stream->tx.nonce_at == SHUNT_NEVER;
}

static bool is_quiet_in(const struct shunt_stream *stream)
{
	const struct shunt_seat_in *in = &stream->seat->in;

	return shunt_intake_on_link(&in->intake) && !shunt_intake_final(&in->intake) &&
	       !shunt_intake_repeats(&in->intake) && !shunt_intake_copied(&in->intake) &&
	       atomic_load(&in->boundary) == SHUNT_NEVER &&
	       atomic_load(&in->second) == SHUNT_NEVER &&
	       atomic_load(&in->tail) == atomic_load(&stream->rx.head) &&
	       !atomic_load(&in->ring.next_bytes) && atomic_load(&in->next_from) == SHUNT_NEVER &&
	       !atomic_load(&in->withheld) && atomic_load(&in->proof.state) == SHUNT_PROVEN &&
	       atomic_load(&stream->rx.nonce.fd) < 0;
}

#define ENDS                                                                                       \
	(SHUNT_END_TCP_OVER | SHUNT_END_RESET | SHUNT_END_BROKEN | SHUNT_END_SUSPECT |             \
	 SHUNT_END_EARLY | SHUNT_END_SHUT_READ | SHUNT_END_SHUT_WRITE | SHUNT_END_REFUSED |        \
	 SHUNT_END_OWES_RESET)

/* Nothing of the stream is under way, and nobody else has it. One that a watched ring names is the kernel's. */
static bool is_alone(struct shunt_engine *engine, struct shunt_stream *stream)
{
	const struct shunt_seat *seat = stream->seat;

	return !shunt_stream_is_shared(stream) && !stream->sharing.slot &&
	       !stream->sharing.forked && stream->parting == SHUNT_PARTING_NONE &&
	       !atomic_load(&stream->waiters) && !atomic_load(&stream->pacing) &&
	       !stream->possession && atomic_load(&seat->leaving.retiring) == SHUNT_STAYING &&
	       atomic_load(&seat->leaving.asked) == SHUNT_NOT_ASKED && !stream->claim.line &&
	       !engine->group.finished && !atomic_load(&engine->stays) &&
	       atomic_load(&engine->uring) <= SHUNT_URING_REFUSED;
}

/* Between two processes of one host, in one network. */
static bool is_near(const struct shunt_seat *seat)
{
	const struct shunt_link *link = seat->link;

	return link && atomic_load(&link->state) == SHUNT_LINK_UP &&
	       !atomic_load(&link->distrusted) && !atomic_load(&link->failed) &&
	       !atomic_load(&seat->lane->failed) && !seat->lane->retains && !link->peer_retains &&
	       !link->nonces && !link->throttle;
}

/* RELEASE of a peer that keeps nothing has come. */
static bool peer_lets_go(const struct shunt_seat *seat)
{
	return (atomic_load(&seat->release) & (SHUNT_RELEASE_HEARD | SHUNT_RELEASE_KEEPS)) ==
	       SHUNT_RELEASE_HEARD;
}

/* The peer can read all without this end. While this process lives, it gives what is unread to TCP if it is asked, or exits. */
static bool is_posted(const struct shunt_seat_out *out)
{
	return atomic_load(&out->posted) == atomic_load(&out->staged);
}

static bool may_keep(struct shunt_engine *engine, struct shunt_stream *stream)
{
	uint32_t ends = shunt_kept_shut(stream) ? ENDS & ~SHUNT_END_SHUT_WRITE : ENDS;

	shunt_assert_held(&stream->tx.lock);
	return engine->config.born == SHUNT_BORN_AUTO && is_near(stream->seat) &&
	       is_quiet_out(stream) && is_quiet_in(stream) && !shunt_end_has(&stream->end, ends) &&
	       is_alone(engine, stream) && shunt_spare_option_may_keep(stream) &&
	       !(atomic_load(&stream->options.asks) & SHUNT_NEEDS_ANY) &&
	       !peer_lets_go(stream->seat) && is_posted(&stream->seat->out);
}

/*
 * The other end of the socket. False: it is not known. After a connect() that did not wait the kernel has yet to say once
 * that it is connected. It says so here, and not to the next program, which is told so for its own.
 */
static bool note_address(struct shunt_engine *engine, const struct shunt_stream *stream,
			 struct shunt_spare *spare, int fd)
{
	socklen_t length = sizeof(spare->peer);
	int saved = errno;
	uint8_t peer[16];
	bool known;

	known = !engine->sys->getpeername(fd, (struct sockaddr *)&spare->peer, &length) &&
		!shunt_address_of(&spare->peer, peer, &spare->port);
	if (known && stream->role == SHUNT_CONNECTOR)
		engine->sys->connect(fd, (struct sockaddr *)&spare->peer, length);
	errno = saved;
	return known;
}

/* stream->spare, if there is room and memory for it. */
static void make(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	struct shunt_spare *spare;

	if (atomic_fetch_add(&engine->spares.count, 1) >= SHUNT_SPARES)
		goto undo;
	spare = calloc(1, sizeof(*spare));
	if (!spare)
		goto undo;
	spare->nonblocking = shunt_stream_is_nonblocking(stream);
	if (note_address(engine, stream, spare, fd))
		spare->fd = shunt_own_fds_copy(&engine->fds, fd);
	else
		spare->fd = -1;
	if (spare->fd >= 0) {
		stream->spare = spare;
		shunt_loop_change(&engine->loop, fd, &stream->source, EPOLLIN | EPOLLET);
		shunt_loop_post(&engine->loop, &engine->work.tasks.spare);
		return;
	}
	free(spare);
undo:
	atomic_fetch_sub(&engine->spares.count, 1);
}

/* `births` are in use by it now, in place of those that it had. */
static void enter(struct shunt_engine *engine, struct shunt_stream *stream,
		  struct shunt_births *births)
{
	struct shunt_births *had = births;

	shunt_lock_take(&engine->group.lock);
	if (stream->spare) {
		had = stream->spare->births;
		stream->spare->births = births;
	}
	shunt_births_let_go(&engine->spares, had);
	shunt_lock_leave(&engine->group.lock);
}

/* The task comes soon to look after what waits. Both locks held. */
static void await_task(struct shunt_engine *engine, struct shunt_stream *stream)
{
	stream->spare->since = shunt_now(engine);
	atomic_store(&engine->spares.waited, true);
	if (!atomic_exchange(&engine->spares.armed, true))
		shunt_loop_post(&engine->loop, &engine->work.tasks.spare);
}

/* It has a spare, of births if it is an acceptor. */
static bool prepare(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	struct shunt_births *births = NULL;

	if (!may_keep(engine, stream))
		return false;
	if (stream->role == SHUNT_ACCEPTOR) {
		births = engine->end_hooks->births(engine, stream);
		if (!births)
			return false;
	}
	if (!stream->spare)
		make(engine, stream, fd);
	enter(engine, stream, births);
	return stream->spare;
}

/* The kernel's end is to be said later, with our copy of the socket. */
static void put_off(struct shunt_stream *stream)
{
	atomic_store(&stream->seat->out.fin_later.fd, stream->spare->fd);
	stream->spare->fd = -1;
}

bool shunt_spare_shut(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	shunt_assert_held(&stream->rx.lock);
	shunt_assert_held(&stream->tx.lock);
	if (shunt_end_at(&stream->end) != SHUNT_NEVER || !prepare(engine, stream, fd))
		return false;
	put_off(stream);
	atomic_store(&stream->seat->out.fin_later.put_off, true);
	await_task(engine, stream);
	return true;
}

void shunt_spare_unshut(struct shunt_stream *stream)
{
	if (shunt_kept_unshut(stream))
		shunt_deferred_fin_resume(stream);
}

bool shunt_spare_keep(struct shunt_engine *engine, struct shunt_stream *stream, int fd, bool *waits)
{
	bool all_read;

	shunt_assert_held(&stream->rx.lock);
	shunt_assert_held(&stream->tx.lock);
	if (!prepare(engine, stream, fd))
		return false;
	if (shunt_kept_unshut(stream))
		stream->spare->fd =
			atomic_exchange(&stream->seat->out.fin_later.fd, SHUNT_FIN_NOT_DUE);
	stream->spare->nonblocking = shunt_stream_is_nonblocking(stream);
	if (!shunt_spare_option_put_back(stream))
		return false;
	put_off(stream);
	all_read = shunt_hand_back_is_all_read(stream);
	shunt_lock_take(&engine->group.lock);
	atomic_fetch_or(&stream->seat->release, SHUNT_RELEASE_KEPT);
	*waits = !all_read && !shunt_stream_is_released(stream);
	atomic_store(&stream->spare->waits, *waits);
	shunt_lock_leave(&engine->group.lock);
	if (*waits) {
		shunt_end_learn(&stream->end, SHUNT_LEARN_SHUT_READ, 0);
		await_task(engine, stream);
	}
	return true;
}

/* --- something happens to it --- */

void shunt_spare_answer(struct shunt_engine *engine, struct shunt_stream *stream)
{
	shunt_assert_held(&engine->group.lock);
	if (!shunt_kept_waits(stream) || !atomic_exchange(&stream->spare->waits, false))
		return;
	shunt_lane_enqueue(stream->seat->lane, stream->seat, SHUNT_WORK_RELEASE);
	shunt_roster_kick(&engine->group, stream->seat->lane);
}

const char *shunt_spare_heard(struct shunt_engine *engine, struct shunt_stream *stream)
{
	const uint8_t kept = SHUNT_RELEASE_KEPT | SHUNT_RELEASE_KEEPS,
		      said = SHUNT_RELEASE_RESTS | SHUNT_RELEASE_OVER;
	uint8_t release = atomic_load(&stream->seat->release);

	shunt_assert_held(&engine->group.lock);
	if ((release & said) == SHUNT_RELEASE_RESTS) {
		atomic_fetch_or(&stream->seat->release, SHUNT_RELEASE_OVER);
		shunt_kept_ends(stream);
		return NULL;
	}
	/* close() may still be about to note that it is over: it has both locks, so nothing begins anew before. */
	if (stream->role != SHUNT_CONNECTOR || (release & (kept | said)) != kept)
		return "a rest out of turn";
	atomic_fetch_or(&stream->seat->release, SHUNT_RELEASE_RESTS);
	shunt_kept_later(stream);
	return NULL;
}

void shunt_spare_refuse(struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	int unread = 0;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	if (atomic_load(&stream->state) == SHUNT_CLOSED && stream->seat->out.fin_later.fd >= 0 &&
	    !engine->sys->ioctl(stream->seat->out.fin_later.fd, FIONREAD, &unread) && unread)
		shunt_deferred_fin_resume(stream);
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
}

/*
 * The thread that has posted the last of it may still be about to note that. It may be this one, which polls while it posts, so
 * it is not waited for.
 */
static bool is_posting(struct shunt_stream *stream)
{
	if (!shunt_lock_try(&stream->seat->lane->lock))
		return true;
	shunt_lock_leave(&stream->seat->lane->lock);
	return false;
}

/* Both locks held. */
static void begin_anew(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_spare_place *place = &engine->spares.places[stream->place];
	struct shunt_spare *spare = stream->spare;
	bool over;

	spare->fd = atomic_exchange(&stream->seat->out.fin_later.fd, SHUNT_FIN_NOT_DUE);
	shunt_streams_begin_anew(stream, spare->fd);
	spare->since = shunt_now(engine);
	spare->untold = false;
	spare->again = true;
	atomic_store(&spare->born, false);
	atomic_store(&spare->rests, true);
	if (stream->role == SHUNT_ACCEPTOR)
		shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_REST);
	over = atomic_load(&spare->ends) || shunt_stream_is_released(stream);
	if (over)
		shunt_kept_ends(stream);
	if (over || stream->role == SHUNT_ACCEPTOR)
		return;
	/* Connections there do become spares: the next may be made for that at once. */
	atomic_store(&place->pause, 0);
	atomic_store(&place->wait, 0);
	atomic_store(&place->seed_at, 0);
	shunt_lock_take(&engine->streams_lock);
	spare->next = engine->spares.first;
	engine->spares.first = stream;
	shunt_lock_leave(&engine->streams_lock);
	atomic_fetch_add(&engine->spares.resting, 1);
}

static bool link_is_up(const struct shunt_stream *stream)
{
	const struct shunt_link *link = stream->seat->link;

	return link && atomic_load(&link->state) == SHUNT_LINK_UP &&
	       !atomic_load(&stream->seat->lane->failed);
}

static bool has_listener(struct shunt_stream *stream)
{
	bool has;

	shunt_lock_take(&stream->group->lock);
	has = stream->spare->births && stream->spare->births->listener;
	shunt_lock_leave(&stream->group->lock);
	return has;
}

/* The listener has gone: the peer is to find that before it hears that this end rests. */
static void refuse_next(struct shunt_engine *engine, struct shunt_stream *stream)
{
	engine->sys->shutdown(stream->seat->out.fin_later.fd, SHUT_RDWR);
	atomic_store(&stream->spare->ends, true);
}

enum next { NOTHING, LATER, ENDS_NOW, REAPED };

/* Both locks held. */
static enum next look_at(struct shunt_engine *engine, struct shunt_stream *stream)
{
	uint8_t state = atomic_load(&stream->state), release = atomic_load(&stream->seat->release);

	if (shunt_kept_rests(stream) && atomic_load(&stream->spare->born))
		return NOTHING;	/* accept() gives it to the program, however it has ended */
	if (shunt_kept_rests(stream))	/* a failover may have made it the kernel's */
		return state != SHUNT_LINKED || !link_is_up(stream) ||
				       release & SHUNT_RELEASE_HEARD ||
				       shunt_end_has(&stream->end, ENDS) ?
			       ENDS_NOW :
			       NOTHING;
	if (state != SHUNT_CLOSED || !shunt_stream_is_seated(stream))
		return NOTHING;
	if (!shunt_kept_by_both(stream))
		return NOTHING;
	if (!link_is_up(stream) || atomic_load(&stream->seat->out.fin_later.fd) < 0)
		return REAPED;
	if (stream->role == SHUNT_CONNECTOR && !(release & SHUNT_RELEASE_RESTS))
		return NOTHING;
	if (is_posting(stream))
		return LATER;
	if (stream->role == SHUNT_ACCEPTOR && !has_listener(stream))
		refuse_next(engine, stream);
	begin_anew(engine, stream);
	return NOTHING;
}

/* False: somebody is using it. */
static bool run(struct shunt_engine *engine, struct shunt_stream *stream)
{
	enum next next;

	if (!shunt_lock_try(&stream->rx.lock))
		return false;
	if (!shunt_lock_try(&stream->tx.lock)) {
		shunt_lock_leave(&stream->rx.lock);
		return false;
	}
	next = look_at(engine, stream);
	if (next == ENDS_NOW)
		shunt_kept_ends(stream);
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
	if (next == REAPED)
		shunt_streams_reap_later(stream);
	return next != LATER;
}

void shunt_spares_look(struct shunt_group *group)
{
	struct shunt_engine *engine = shunt_engine_of(group, group);
	struct shunt_stream *stream, *next;

	if (!atomic_load_explicit(&engine->spares.again, memory_order_relaxed))
		return;
	for (stream = atomic_exchange(&engine->spares.again, NULL); stream; stream = next) {
		next = stream->next_again;
		atomic_store(&stream->listed, false);
		if (run(engine, stream))
			shunt_streams_free(stream);
		else
			shunt_kept_later(stream);
	}
}

/* --- it is given up --- */

static void unlist(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_stream **p = &engine->spares.first;

	shunt_assert_held(&engine->streams_lock);
	while (*p && *p != stream)
		p = &(*p)->spare->next;
	if (!*p)
		return;
	*p = stream->spare->next;
	atomic_fetch_sub(&engine->spares.resting, 1);
}

/* A birth waits for accept(), unless the listener has gone, or is being accepted. From here on there will be none. */
static bool may_end(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_spare *spare = stream->spare;
	bool ends = shunt_kept_rests(stream);

	shunt_lock_take(&engine->group.lock);
	if (ends && atomic_load(&spare->born) && (spare->popped || spare->births->listener))
		ends = false;
	if (ends)
		atomic_store(&spare->ends, true);
	shunt_lock_leave(&engine->group.lock);
	return ends;
}

void shunt_spare_give_up(struct shunt_stream *stream)
{
	shunt_assert_held(&stream->tx.lock);
	shunt_end_learn(&stream->end, SHUNT_LEARN_SHUT_WRITE, 0);
	shunt_end_learn(&stream->end, SHUNT_LEARN_OWN_RESET, 0);
	atomic_store(&stream->state, SHUNT_CLOSED); /* first: nobody is to settle it by the next line */
	/* RELEASE has all bits: a peer that has not heard the first one yet may read this one's value. */
	if (stream->role == SHUNT_ACCEPTOR)
		atomic_store(&stream->rx.head, SHUNT_NEVER);
	shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_RESET);
	shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_RELEASE);
}

/*
 * A listener's close() returns behind this, and a connect() after that is to find nobody there. So what has been requested is
 * posted, and not left to another thread that has the lane. tx.lock held.
 */
static void post_all(struct shunt_lane *lane)
{
	shunt_lock_take(&lane->lock);
	shunt_lane_serve(lane);
	shunt_lock_leave(&lane->lock);
	shunt_lane_kick(lane);
}

void shunt_spare_end(struct shunt_engine *engine, struct shunt_stream *stream)
{
	bool rests, seated = false;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	rests = may_end(engine, stream);
	if (rests) {
		/* A birth may be lost with the link: its program is to have an error, and no end. */
		if (stream->role == SHUNT_ACCEPTOR && !link_is_up(stream))
			shunt_streams_reset_tcp(engine->sys, stream->spare->fd);
		if (stream->seat->link && atomic_load(&stream->state) == SHUNT_LINKED) {
			shunt_spare_give_up(stream);
			if (stream->role == SHUNT_ACCEPTOR)
				post_all(stream->seat->lane);
			shunt_streams_leave_dead(stream);
		}
		atomic_store(&stream->state, SHUNT_CLOSED);
		shunt_lock_take(&engine->streams_lock);
		unlist(engine, stream);
		shunt_kept_forget(engine, stream);
		stream->fd = -1;
		seated = stream->seat->link || stream->holds;
		shunt_lock_leave(&engine->streams_lock);
	}
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
	if (rests && !seated)
		shunt_streams_free(stream);
}

struct leaving {
	uint64_t since;	/* ns; what was closed later goes on */
	bool exits;	/* the process, and nothing goes on */
};

/* Nothing of it waits any longer, and it is not kept. tx.lock held. */
static void leave(struct shunt_engine *engine, struct shunt_stream *stream, bool exits)
{
	bool waits;

	shunt_assert_held(&stream->tx.lock);
	shunt_spare_unshut(stream);
	shunt_lock_take(&engine->group.lock);
	waits = stream->spare && atomic_exchange(&stream->spare->waits, false);
	shunt_lock_leave(&engine->group.lock);
	if (!waits) {	/* its RELEASE is posted, and nothing may come behind that */
		if (exits)
			shunt_deferred_fin_resume(stream);
		return;
	}
	shunt_hand_back_unread(stream, shunt_deferred_fin_fd(stream), exits);
	atomic_fetch_and(&stream->seat->release, (uint8_t)~SHUNT_RELEASE_KEPT);
	shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_RELEASE);
	shunt_deferred_fin_resume(stream);
}

/*
 * At exit also one that only this program has closed. Then the kernel's end comes before what its peer still sends, which is
 * answered by a broken pipe.
 */
static bool is_to_leave(struct shunt_stream *stream, void *arg)
{
	const struct leaving *leaving = arg;

	return stream->spare &&
	       (shunt_kept_waits(stream) || shunt_kept_shut(stream) ||
		(leaving->exits && shunt_seat_fin_is_due(&stream->seat->out) &&
		 !shunt_kept_by_both(stream))) &&
	       stream->spare->since <= leaving->since;
}

/* False: one of them is in use. */
static bool leave_all(struct shunt_engine *engine, struct leaving leaving, uint64_t until)
{
	struct shunt_sweep sweep = { .wants = is_to_leave, .arg = &leaving };
	struct shunt_stream *stream;
	bool all = true, taken;

	while ((stream = shunt_streams_next(engine, &sweep)) != NULL) {
		taken = shunt_streams_take_last(stream, until);
		all &= taken;
		if (!taken)
			continue;
		leave(engine, stream, leaving.exits);
		shunt_lock_leave(&stream->tx.lock);
	}
	return all;
}

void shunt_spares_leave(struct shunt_engine *engine, uint64_t until)
{
	if (atomic_load(&engine->spares.count))
		leave_all(engine, (struct leaving){ UINT64_MAX, true }, until);
}

struct wanted {
	const struct shunt_births *births;
	bool ends; /* only those that are to be given up */
};

static bool is_wanted(struct shunt_stream *stream, void *arg)
{
	const struct wanted *wanted = arg;
	const struct shunt_spare *spare = stream->spare;

	return spare && atomic_load(&spare->rests) &&
	       (!wanted->ends || atomic_load(&spare->ends)) &&
	       (!wanted->births || spare->births == wanted->births);
}

static void end_those(struct shunt_engine *engine, struct wanted wanted)
{
	struct shunt_sweep sweep = { .wants = is_wanted, .arg = &wanted };
	struct shunt_stream *stream;

	while ((stream = shunt_streams_next(engine, &sweep)) != NULL)
		shunt_spare_end(engine, stream);
}

void shunt_spares_end(struct shunt_engine *engine, const struct shunt_births *births)
{
	if (atomic_load(&engine->spares.count))
		end_those(engine, (struct wanted) { .births = births });
}

/* Connectors alone give up what nobody takes. An acceptor would have to tell a peer that may be taking it. */
static void end_idle(struct shunt_engine *engine, uint64_t now)
{
	struct shunt_stream *stream;

	do {
		shunt_lock_take(&engine->streams_lock);
		stream = engine->spares.first;
		while (stream && stream->spare->since + IDLE > now)
			stream = stream->spare->next;
		if (stream) {
			unlist(engine, stream);
			stream->holds++;
		}
		shunt_lock_leave(&engine->streams_lock);
		if (stream) {
			shunt_spare_end(engine, stream);
			shunt_streams_unhold(stream);
		}
	} while (stream);
}

void shunt_spare_run(struct shunt_task *task)
{
	struct shunt_engine *engine = shunt_engine_of(task, work.tasks.spare);
	uint64_t now = shunt_now(engine);
	bool soon, more;

	shunt_spares_look(&engine->group);
	more = engine->end_hooks->births_look(engine);
	end_those(engine, (struct wanted) { .ends = true });
	end_idle(engine, now);
	soon = atomic_exchange(&engine->spares.waited, false);
	soon |= !leave_all(engine, (struct leaving){ now - PATIENCE, false }, now);
	atomic_store(&engine->spares.armed, soon);
	soon |= atomic_load(&engine->spares.waited);	/* since; it may have found it armed */
	if (soon || more || atomic_load(&engine->spares.count))
		shunt_task_at(task, now + (soon ? PATIENCE : IDLE / 4));
}

void shunt_spares_abandon(struct shunt_engine *engine)
{
	atomic_store(&engine->spares.again, NULL);
	engine->spares.first = NULL;
	atomic_store(&engine->spares.count, 0);
	atomic_store(&engine->spares.resting, 0);
}

void shunt_spare_inherit(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_spare *spare = stream->spare;

	atomic_store(&stream->listed, false);
	if (!spare)
		return;
	shunt_own_fds_close(&engine->fds, spare->fd);
	if (atomic_load(&spare->rests)) {
		stream->fd = -1;
		atomic_store(&stream->state, SHUNT_CLOSED);
	}
	if (shunt_kept_shut(stream)) /* the parent says the end */
		atomic_store(&stream->seat->out.fin_later.put_off, false);
	free(spare);
	stream->spare = NULL;
}

static bool is_stale(struct shunt_stream *stream, void *arg)
{
	(void)arg;
	return stream->spare && stream->spare->stale && stream->fd >= 0;
}

void shunt_spares_share(struct shunt_engine *engine)
{
	struct shunt_sweep sweep = { .wants = is_stale };
	struct shunt_stream *stream;

	if (!atomic_load(&engine->spares.count))
		return;
	while ((stream = shunt_streams_next(engine, &sweep)) != NULL)
		shunt_spare_option_freshen(stream, SHUNT_SPARE_OPTION_ALL);
}

/* --- it is taken --- */

static void set_nonblocking(struct shunt_engine *engine, struct shunt_spare *spare,
			    bool nonblocking)
{
	int flags;

	if (spare->nonblocking == nonblocking)
		return;
	flags = engine->sys->fcntl(spare->fd, F_GETFL);
	engine->sys->fcntl(spare->fd, F_SETFL,
			   nonblocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
	spare->nonblocking = nonblocking;
}

void shunt_spare_take(struct shunt_engine *engine, struct shunt_stream *stream, int fd,
		      bool nonblocking)
{
	struct shunt_spare *spare = stream->spare;

	shunt_assert_held(&stream->tx.lock);
	set_nonblocking(engine, spare, nonblocking);
	shunt_lock_take(&engine->streams_lock);
	stream->fd = fd;
	atomic_store(&stream->mode, nonblocking ? SHUNT_MODE_NONBLOCKING : 0);
	stream->born = spare->since = shunt_now(engine);
	atomic_store(&stream->usage, SHUNT_USE_TOLD);
	atomic_store(&spare->rests, false);
	shunt_files_set(engine->fds.files, fd, &stream->file);
	engine->totals.streams++;
	engine->totals.linked++;
	shunt_lock_leave(&engine->streams_lock);
	if (atomic_load(&stream->seat->out.held)) /* an operator's word came while it rested */
		shunt_track_reconsider(engine, stream);
}

static bool leads_to(const struct shunt_stream *stream, const struct shunt_spare_target *target)
{
	return stream->spare->port == target->port &&
	       stream->spare->peer.ss_family == target->family &&
	       !memcmp(stream->dialled, target->address, sizeof(target->address));
}

struct shunt_stream *shunt_spare_find(struct shunt_engine *engine,
				      const struct shunt_spare_target *target)
{
	struct shunt_stream *stream;

	shunt_lock_take(&engine->streams_lock);
	stream = engine->spares.first;
	while (stream && !leads_to(stream, target))
		stream = stream->spare->next;
	if (stream) {
		unlist(engine, stream);
		stream->holds++;
	}
	shunt_lock_leave(&engine->streams_lock);
	return stream;
}

/* The kernel's connection is what it was: the peer has not given it up. */
static bool is_open(struct shunt_engine *engine, const struct shunt_spare *spare)
{
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	return engine->sys->recvmsg(spare->fd, &message, MSG_PEEK | MSG_DONTWAIT) < 0 &&
	       errno == EAGAIN;
}

/* No word of an operator, of the peer or of a ring of io_uring has come for it. */
static bool is_as_begun(const struct shunt_stream *stream)
{
	const struct shunt_seat *seat = stream->seat;

	return is_quiet_out(stream) && is_quiet_in(stream) &&
	       atomic_load(&seat->leaving.retiring) == SHUNT_STAYING &&
	       atomic_load(&seat->leaving.asked) == SHUNT_NOT_ASKED;
}

bool shunt_spare_is_good(struct shunt_engine *engine, struct shunt_stream *stream)
{
	shunt_assert_held(&stream->rx.lock);
	return atomic_load(&stream->state) == SHUNT_LINKED && link_is_up(stream) &&
	       !shunt_end_has(&stream->end, ENDS) && !shunt_stream_is_released(stream) &&
	       is_as_begun(stream) && is_open(engine, stream->spare);
}

/* --- the kernel's yes --- */

void shunt_spare_made(struct shunt_engine *engine, const struct shunt_stream *stream)
{
	struct shunt_spare_place *place = &engine->spares.places[stream->place];
	uint32_t pause;

	if (stream->role != SHUNT_CONNECTOR || engine->config.born == SHUNT_BORN_OFF)
		return;
	atomic_store(&place->births, 0);
	atomic_store(&place->made_at, shunt_now(engine));
	/* It may become a spare, and if it was too late for that, the next one need not wait for long. */
	pause = MADE_PAUSE + 4 * atomic_load(&place->wait);
	if (atomic_load(&place->pause) > pause)
		atomic_store(&place->pause, pause);
}
