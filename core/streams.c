/*
 * The registry of streams: type-stable memory, who still names it, and how a stream ends.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include "core/again.h"
#include "core/attach.h"
#include "core/decision.h"
#include "core/engine.h"
#include "core/expiry.h"
#include "core/epset.h"
#include "core/overflow.h"
#include "core/owed.h"
#include "core/proof.h"
#include "core/roots.h"
#include "core/shared.h"
#include "core/stage.h"

static bool add_slab(struct shunt_engine *engine)
{
	struct shunt_stream **slabs, *slab;

	slabs = realloc(engine->slabs, (engine->slab_count + 1) * sizeof(*slabs));
	if (!slabs)
		return false;
	engine->slabs = slabs;
	slab = shunt_roots_map(SHUNT_SLAB_STREAMS * sizeof(*slab));
	if (!slab)
		return false;
	slabs[engine->slab_count++] = slab;
	for (int i = SHUNT_SLAB_STREAMS - 1; i >= 0; i--) {
		slab[i].engine = engine;
		slab[i].next_free = engine->free_streams;
		engine->free_streams = &slab[i];
	}
	return true;
}

/* Each after the one before; what is read afterwards is read after all of them: one barrier instead of fifty. */
#define set(word, value) atomic_store_explicit(word, value, memory_order_release)

void shunt_streams_unlink(struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_rx *rx = &stream->rx;

	stream->lane = NULL;
	stream->id = stream->peer_id = 0;
	set(&stream->agreed, false);
	set(&stream->retiring, SHUNT_STAYING);
	set(&stream->asked, SHUNT_NOT_ASKED);
	stream->in_chain = 0;
	stream->let_go = false;
	set(&stream->releases, 0);
	set(&stream->released, false);
	set(&stream->lane_work, 0);

	set(&tx->track, SHUNT_TCP);
	tx->quick = false;
	set(&tx->grow_asked, false);
	set(&tx->announced, 0);
	set(&tx->left_at, SHUNT_NEVER);
	set(&tx->upgrade_at, 0);
	set(&tx->handback_at, 0);	/* of another stream that had this memory: a failover asks what came before it */
	tx->resend_fin = false;
	tx->kernels = false;
	set(&tx->lingers, false);
	set(&tx->end_fd, -1);
	tx->fin_wr = 0;
	set(&tx->halted, false);
	set(&tx->pin, NULL);
	set(&tx->pinned_wr, 0);
	set(&tx->old_bytes, 0);
	set(&tx->want_link, false);
	set(&tx->held, 0);
	set(&tx->unpassed, 0);
	set(&tx->starved, false);
	set(&tx->stuck_since, 0);
	set(&tx->gathering, false);
	tx->last_wr = 0;
	set(&tx->ring_from, 0);
	set(&tx->ring_bytes, 0);
	set(&tx->consumed, 0);
	set(&tx->offer, 0);
	tx->blocked_at = SHUNT_NEVER;
	shunt_overflow_begin(tx);
	set(&tx->turning, false);
	tx->flip_at = SHUNT_NEVER;
	set(&tx->must_prove, false);
	shunt_stage_free(&tx->stage);

	set(&rx->track, SHUNT_TCP);
	set(&rx->final, false);
	rx->doubtful = rx->early_reset = false;
	rx->unproven_at = SHUNT_NEVER;
	rx->asked_again = false;
	set(&rx->announced, 0);
	set(&rx->grown, false);
	rx->quiet_tail = rx->quiet_since = 0;
	set(&rx->boundary, SHUNT_NEVER);
	set(&rx->second, SHUNT_NEVER);
	set(&rx->retired, false);
	set(&rx->refused, false);
	set(&rx->fin, SHUNT_NEVER);
	set(&rx->proof, SHUNT_PROVEN);
	set(&rx->early_fin, SHUNT_NEVER);
	set(&rx->next_bytes, 0);
	set(&rx->next_from, SHUNT_NEVER);
	rx->credited = 0;
	set(&rx->sender_waits, false);
	rx->ring = NULL;
	rx->ring_bytes = 0;
	rx->ring_from = 0;
	rx->link_open = false;
	atomic_thread_fence(memory_order_seq_cst);
}

/* Everything but what stale holders of the pointer may still be using: locks and list links. */
static void reset(struct shunt_engine *engine, struct shunt_stream *stream, int fd, bool nonblocking)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_rx *rx = &stream->rx;

	shunt_streams_unlink(stream);
	stream->file.kind = SHUNT_FILE_STREAM;
	stream->source.kind = SHUNT_SOURCE_STREAM;
	stream->proof_source.kind = SHUNT_SOURCE_PROOF;
	stream->in_use = true;
	set(&stream->fd, fd);
	stream->numbers = 1;
	stream->reason = SHUNT_REASON_NONE;
	stream->left = SHUNT_LEFT_NEVER;
	stream->left_times = 0;
	set(&stream->link, NULL);
	stream->tuple_known = false;
	stream->claimed = false;
	set(&stream->leaving, false);
	stream->redirected = stream->asked_twice = stream->told = false;
	stream->rendezvous = NULL;
	set(&stream->carried_since, 0);
	stream->line = stream->return_tries = 0;
	stream->return_at = 0;
	stream->holds = 0;
	set(&stream->retire_fd, -1);
	set(&stream->wanted, false);
	stream->shared = false;
	set(&stream->slot, NULL);
	stream->slot_left = false;
	set(&stream->uses, 0);
	stream->inherited = false;
	stream->dissolving = false;
	stream->orphan = false;
	stream->resend_fd = -1;
	stream->awaited = stream->lingers = false;
	stream->refusing = false;
	set(&stream->role, SHUNT_CONNECTOR);
	set(&stream->mock, (uint8_t)__atomic_load_n(&engine->config.mock, __ATOMIC_SEQ_CST));
	set(&stream->nonblocking, nonblocking);
	set(&stream->touched, false);
	set(&stream->used, false);
	set(&stream->receive_timeout_ns, UINT64_MAX);
	set(&stream->send_timeout_ns, UINT64_MAX);
	set(&stream->low_water, 1);
	set(&stream->stamps, SHUNT_STAMPS_UNKNOWN);
	set(&stream->user_timeout_ms, SHUNT_EXPIRY_UNKNOWN);

	set(&tx->shut, false);
	tx->shown = false;
	set(&tx->dead, false);
	set(&tx->corked, false);
	tx->resent = 0;
	tx->offset = 0;
	tx->bytes = (struct shunt_bytes) { 0 };

	rx->proof_fd = -1;
	rx->end_reading = false;
	set(&rx->held_until, 0);
	rx->aside = rx->owed = 0;
	set(&rx->shut, false);
	set(&rx->tcp_eof, false);
	set(&rx->kept_error, 0);
	set(&rx->owes_reset, false);
	set(&rx->told, false);
	set(&rx->reset, false);
	set(&rx->error, 0);
	set(&rx->head, 0);
	set(&rx->tail, 0);
	rx->bytes = (struct shunt_bytes) { 0 };
	atomic_store(&stream->state, SHUNT_FRESH);
}

struct shunt_stream *shunt_streams_new(struct shunt_engine *engine, int fd, bool nonblocking)
{
	struct shunt_stream *stream = NULL;

	if (atomic_load(&engine->reap) && shunt_lock_try(&engine->seats_lock)) {
		shunt_streams_reap(engine);
		shunt_lock_leave(&engine->seats_lock);
	}
	shunt_lock_take(&engine->streams_lock);
	if (engine->free_streams || add_slab(engine)) {
		stream = engine->free_streams;
		engine->free_streams = stream->next_free;
		reset(engine, stream, fd, nonblocking);
	}
	shunt_lock_leave(&engine->streams_lock);
	return stream;
}

static void add_bytes(struct shunt_bytes *sum, const struct shunt_bytes *more)
{
	sum->tcp += more->tcp;
	sum->link += more->link;
	sum->late += more->late;
	sum->late_tcp += more->late_tcp;
}

/* streams_lock held. */
static void free_locked(struct shunt_engine *engine, struct shunt_stream *stream)
{
	if (!stream->in_use || stream->holds || stream->link || stream->fd >= 0)
		return;
	stream->in_use = false;
	shunt_stage_free(&stream->tx.stage);
	shunt_again_free(&stream->tx);
	stream->next_free = engine->free_streams;
	engine->free_streams = stream;
}

static void free_if_done(struct shunt_stream *stream)
{
	struct shunt_engine *engine = stream->engine;

	shunt_lock_take(&engine->streams_lock);
	free_locked(engine, stream);
	shunt_lock_leave(&engine->streams_lock);
}

void shunt_streams_hold(struct shunt_stream *stream)
{
	shunt_lock_take(&stream->engine->streams_lock);
	stream->holds++;
	shunt_lock_leave(&stream->engine->streams_lock);
}

void shunt_streams_unhold(struct shunt_stream *stream)
{
	struct shunt_engine *engine = stream->engine;

	shunt_lock_take(&engine->streams_lock);
	stream->holds--;
	free_locked(engine, stream);
	shunt_lock_leave(&engine->streams_lock);
}

/*
 * If the peer was asked to hand the stream back, it will not answer any more: reading goes on, and who waits for that
 * looks again, here or in a child.
 */
static void answer_nobody(struct shunt_stream *stream)
{
	uint8_t retiring = SHUNT_RETIRING;

	if (atomic_compare_exchange_strong(&stream->retiring, &retiring, SHUNT_CANNOT_RETIRE))
		shunt_group_tell(stream->engine, stream, EPOLLIN | EPOLLOUT | SHUNT_READY_ANSWERED);
	shunt_rights_answer(stream->engine, stream);
}

static void unseat(struct shunt_stream *stream)
{
	if (!stream->link)
		return;
	answer_nobody(stream);
	shunt_link_unseat(stream->link, stream);
}

void shunt_streams_vacate(struct shunt_stream *stream)
{
	unseat(stream);
	free_if_done(stream);
}

void shunt_streams_released(struct shunt_stream *stream, uint8_t by)
{
	struct shunt_engine *engine = stream->engine;
	struct shunt_stream *first = atomic_load(&engine->reap);
	uint8_t before = atomic_fetch_or(&stream->releases, by);

	if (before & by || (before | by) != (SHUNT_RELEASED_BY_US | SHUNT_RELEASED_BY_PEER))
		return;
	do {
		stream->next_reap = first;
	} while (!atomic_compare_exchange_weak(&engine->reap, &first, stream));
}

bool shunt_streams_reap(struct shunt_engine *engine)
{
	struct shunt_stream *stream = atomic_exchange(&engine->reap, NULL);
	bool any = stream != NULL;

	while (stream) {
		struct shunt_stream *next = stream->next_reap;

		/* Who has just let go of it may still be about to leave its lane, which can go with its last seat. */
		shunt_lock_take(&stream->rx.lock);
		shunt_lock_take(&stream->tx.lock);
		unseat(stream);
		shunt_lock_leave(&stream->tx.lock);
		shunt_lock_leave(&stream->rx.lock);
		free_if_done(stream);
		stream = next;
	}
	return any;
}

int shunt_streams_each(struct shunt_engine *engine, int (*visit)(struct shunt_stream *, void *),
		       void *arg)
{
	int result = 0;

	for (uint32_t i = 0; i < engine->slab_count && !result; i++)
		for (int j = 0; j < SHUNT_SLAB_STREAMS && !result; j++)
			if (engine->slabs[i][j].in_use)
				result = visit(&engine->slabs[i][j], arg);
	return result;
}

bool shunt_streams_note(struct shunt_engine *engine, struct shunt_stream *stream, enum shunt_reason reason)
{
	if (!stream->in_use || stream->reason)
		return false;
	stream->reason = reason;
	engine->reasons[reason]++;
	return true;
}

void shunt_streams_because(struct shunt_engine *engine, struct shunt_stream *stream, enum shunt_reason reason)
{
	bool first;

	shunt_lock_take(&engine->streams_lock);
	first = shunt_streams_note(engine, stream, reason);
	shunt_lock_leave(&engine->streams_lock);
	if (first)
		shunt_decision_plain(stream, reason);
}

void shunt_streams_plain(struct shunt_engine *engine, struct shunt_stream *stream, enum shunt_reason reason)
{
	shunt_streams_because(engine, stream, reason);
	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	if (atomic_load(&stream->state) == SHUNT_CANDIDATE && !shunt_stream_knows_more(stream))
		atomic_store(&stream->state, shunt_shared_settle(stream) ? SHUNT_PLAIN : SHUNT_FOREIGN);
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
}

bool shunt_streams_ours(struct shunt_engine *engine, struct shunt_stream *stream)
{
	enum shunt_whose whose = shunt_shared_touch(stream);

	if (whose != SHUNT_OURS)
		shunt_streams_plain(engine, stream, SHUNT_REASON_FORK);
	return whose == SHUNT_OURS;
}

bool shunt_stream_is_plain(const struct shunt_stream *stream)
{
	uint8_t state = atomic_load_explicit(&((struct shunt_stream *)stream)->state,
					     memory_order_relaxed);

	return state == SHUNT_PLAIN || state == SHUNT_FRESH;
}

bool shunt_streams_kernel_fails(struct shunt_engine *engine, int fd, const struct shunt_stream *stream)
{
	struct pollfd pfd = { .fd = fd };
	struct timespec now = { 0 };

	return shunt_stream_is_plain(stream) && engine->sys->ppoll(&pfd, 1, &now, NULL) > 0 && pfd.revents & POLLERR;
}

bool shunt_stream_is_linked(const struct shunt_stream *stream)
{
	return atomic_load(&((struct shunt_stream *)stream)->state) == SHUNT_LINKED;
}

/* --- the end --- */

/* Data nobody read makes close() a reset (RFC 2525 2.17); the kernel does not see the ring's. */
static bool unread_on_link(const struct shunt_rx *rx)
{
	return atomic_load(&rx->tail) > atomic_load(&rx->head) &&
	       (rx->track == SHUNT_LINK || atomic_load(&rx->boundary) != SHUNT_NEVER);
}

void shunt_streams_reset_tcp(struct shunt_engine *engine, int fd)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	int saved = errno;

	engine->sys->connect(fd, &none, sizeof(none));
	errno = saved;
}

/* SO_LINGER with a time of zero: close() resets. */
static bool lingers_zero(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	struct linger linger = { 0, 0 };
	socklen_t length = sizeof(linger);

	if (!shunt_owed_linger(stream, &linger))
		engine->sys->getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &length);
	return linger.l_onoff && !linger.l_linger;
}

bool shunt_streams_resets(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	int unread = 0;

	engine->sys->ioctl(fd, FIONREAD, &unread);
	if (shunt_proof_pending(&stream->rx) && atomic_load(&stream->rx.boundary) == atomic_load(&stream->rx.head) &&
	    unread <= SHUNT_NONCE_BYTES)
		unread = 0;	/* a part of the nonce */
	return unread || unread_on_link(&stream->rx) || stream->rx.owes_reset || lingers_zero(engine, stream, fd);
}

void shunt_streams_reset(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	shunt_streams_reset_tcp(engine, fd);
	stream->tx.shut = true;
	shunt_lane_request(stream->lane, stream, SHUNT_WORK_RESET);
}

/* Who has let go of its seat may lose it at any moment, to whoever reaps: the link is there as long as this lock is held. */
static uint8_t state_of_link(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_link *link;
	uint8_t state;

	shunt_lock_take(&engine->group.lock);
	link = stream->link;
	state = link ? atomic_load(&link->state) : SHUNT_LINK_DEAD;
	shunt_lock_leave(&engine->group.lock);
	return state;
}

/* Both locks held. */
static void say_goodbye(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	uint8_t state;

	shunt_group_poll_fully(engine);
	shunt_track_settle(engine, stream);
	if (stream->dissolving || shunt_streams_resets(engine, stream, fd))
		shunt_streams_reset(engine, stream, fd);
	else
		shunt_tx_end(stream, fd);
	shunt_proof_leave(stream);
	shunt_lane_request(stream->lane, stream, SHUNT_WORK_RELEASE);
	state = state_of_link(engine, stream);
	if (state == SHUNT_LINK_BROKEN && stream->rx.final)
		shunt_failover_let_go(stream);	/* it has been told of; else that is still to come, and does this */
	if (state == SHUNT_LINK_DEAD) {	/* nobody is there to release it */
		shunt_streams_released(stream, SHUNT_RELEASED_BY_US);
		shunt_streams_released(stream, SHUNT_RELEASED_BY_PEER);
		shunt_service_wake(engine);
	}
}

void shunt_streams_end(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	uint8_t state;
	bool seated;

	if (shunt_shared_held(stream) && atomic_load(&stream->state) == SHUNT_LINKED)
		shunt_stream_retire(engine, fd, stream, SHUNT_REASON_FORK);
	shunt_epset_drop_stream(engine, stream);
	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	shunt_files_close(engine->files, fd);
	state = atomic_load(&stream->state);
	if (state == SHUNT_LINKED)
		say_goodbye(engine, stream, fd);
	shunt_brief_ends(engine, stream);
	atomic_store(&stream->state, SHUNT_CLOSED);
	shunt_shared_leave(stream);
	if (stream->tx.resend)
		shunt_owed_await(engine, stream);
	shunt_service_refuse(engine, stream, false);
	stream->tx.quick = false;
	shunt_lock_take(&engine->streams_lock);
	stream->fd = -1;
	seated = stream->link != NULL || stream->holds;
	add_bytes(&engine->totals.tx, &stream->tx.bytes);
	add_bytes(&engine->totals.rx, &stream->rx.bytes);
	engine->totals.uncounted += state == SHUNT_PLAIN;
	shunt_lock_leave(&engine->streams_lock);
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
	if (stream->role == SHUNT_LISTENER)
		shunt_listen_withdraw(engine, stream);
	if (seated)
		shunt_group_tell(engine, stream, EPOLLIN | EPOLLOUT);
	else
		free_if_done(stream);
}

/* Both locks held: who waits has neither, and looks again when it has. */
static bool adopt_waited(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	int copy;

	if (!atomic_load(&stream->waiters))	/* who waits in the kernel is the kernel's to keep */
		return false;
	copy = shunt_private_copy(engine, fd);
	if (copy < 0)
		return false;
	shunt_lock_take(&engine->streams_lock);
	stream->fd = copy;
	stream->orphan = true;
	shunt_files_close(engine->files, fd);
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
		shunt_epset_drop_stream(engine, stream);
	return made;
}

bool shunt_streams_still(struct shunt_engine *engine, int *fd, struct shunt_stream *stream)
{
	if (__builtin_expect(stream->orphan, 0)) {
		*fd = stream->fd;
		return true;
	}
	return shunt_stream_is(engine, *fd, stream);
}

void shunt_streams_end_orphan(struct shunt_engine *engine, struct shunt_stream *stream)
{
	bool last;
	int fd;

	shunt_lock_take(&engine->streams_lock);
	last = stream->orphan && !atomic_load(&stream->waiters);
	if (last)
		stream->orphan = false;
	fd = stream->fd;
	shunt_lock_leave(&engine->streams_lock);
	if (!last)
		return;
	shunt_streams_end(engine, stream, fd);
	shunt_private_close(engine, fd);
}

/* --- small things the boundary asks --- */

void shunt_stream_set_nonblocking(struct shunt_stream *stream, bool nonblocking)
{
	atomic_store(&stream->nonblocking, nonblocking);
}

/* As tcp_push_pending_frames(): what is held goes when the cork is pulled, or Nagle's rule is switched off. */
static void tcp_option_changed(struct shunt_stream *stream, int name, const void *value)
{
	int on;

	if (name == TCP_USER_TIMEOUT)
		shunt_expiry_changed(stream);
	if (name == TCP_NOTSENT_LOWAT)
		shunt_overflow_changed(stream);
	if (name != TCP_CORK && name != TCP_NODELAY)
		return;
	memcpy(&on, value, sizeof(on));
	if (name == TCP_CORK) {
		shunt_stream_corked(stream, on);
	} else if (on && atomic_load(&stream->tx.gathering)) {
		shunt_lock_take(&stream->tx.lock);
		shunt_stream_push(stream);
		shunt_lock_leave(&stream->tx.lock);
	}
}

void shunt_stream_never_waits(struct shunt_stream *stream, int name)
{
	atomic_store(name == SO_RCVTIMEO ? &stream->receive_timeout_ns : &stream->send_timeout_ns, 1);
}

static const int stamps[] = { SO_TIMESTAMP, SO_TIMESTAMPNS, SO_TIMESTAMP_NEW, SO_TIMESTAMPNS_NEW };

static bool is_stamps(int name)
{
	for (size_t i = 0; i < sizeof(stamps) / sizeof(stamps[0]); i++)
		if (stamps[i] == name)
			return true;
	return false;
}

bool shunt_stream_stamped(struct shunt_engine *engine, int fd, struct shunt_stream *stream)
{
	uint8_t given = SHUNT_STAMPS_NONE;

	if (atomic_load(&stream->stamps) != SHUNT_STAMPS_UNKNOWN)
		return atomic_load(&stream->stamps) == SHUNT_STAMPS_GIVEN;
	for (size_t i = 0; i < sizeof(stamps) / sizeof(stamps[0]); i++) {
		socklen_t length = sizeof(int);
		int on = 0;

		if (!engine->sys->getsockopt(fd, SOL_SOCKET, stamps[i], &on, &length) && on)
			given = SHUNT_STAMPS_GIVEN;
	}
	atomic_store(&stream->stamps, given);
	return given == SHUNT_STAMPS_GIVEN;
}

void shunt_stream_option_changed(struct shunt_stream *stream, int level, int name, const void *value)
{
	socklen_t length = sizeof(int);
	int low = 1;

	if (level == IPPROTO_TCP)
		tcp_option_changed(stream, name, value);
	if (level != SOL_SOCKET)
		return;
	if (name == SO_LINGER)
		shunt_owed_linger_changed(stream);
	if (is_stamps(name))
		atomic_store(&stream->stamps, SHUNT_STAMPS_UNKNOWN);
	if (name == SO_RCVTIMEO)
		atomic_store(&stream->receive_timeout_ns, UINT64_MAX);
	if (name == SO_SNDTIMEO)
		atomic_store(&stream->send_timeout_ns, UINT64_MAX);
	if (name == SO_SNDBUF || name == SO_SNDBUFFORCE)
		shunt_overflow_changed(stream);
	if (name == SO_RCVLOWAT && !stream->engine->sys->getsockopt(stream->fd, level, name, &low, &length))
		atomic_store(&stream->low_water, low > 0 ? low : 1);
}

int shunt_stream_hear_error(struct shunt_stream *stream, int error)
{
	if (atomic_load(&stream->rx.told))
		return 0;	/* by the link, before the kernel knew */
	if (error)
		shunt_stream_told_error(stream, error);
	return error;
}

int shunt_stream_kernel_error(struct shunt_stream *stream)
{
	int error = 0;
	socklen_t length = sizeof(error);

	stream->engine->sys->getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &length);
	return shunt_stream_hear_error(stream, error);
}

bool shunt_stream_knows_more(struct shunt_stream *stream)
{
	if (atomic_load(&stream->rx.error) || atomic_load(&stream->rx.kept_error))
		return true;
	if (!atomic_load(&stream->rx.told))
		return false;
	if (!shunt_stream_tcp_closed(stream))
		return true;
	if (atomic_load(&stream->rx.reset))	/* else the kernel told it, and may know of another by now */
		shunt_stream_kernel_error(stream);
	return false;
}

int shunt_stream_link_error(struct shunt_engine *engine, struct shunt_stream *stream)
{
	int error = atomic_exchange(&stream->rx.kept_error, 0);

	if (error || atomic_load(&stream->state) != SHUNT_LINKED)
		return error;
	shunt_group_poll(engine);
	return shunt_stream_pop_error(stream);
}

int shunt_stream_take_error(struct shunt_engine *engine, struct shunt_stream *stream)
{
	int error = shunt_stream_link_error(engine, stream);

	return error ? error : shunt_stream_kernel_error(stream);
}

/* It says nothing of the connection. */
static bool is_about_the_call(int error)
{
	return error == EAGAIN || error == EINTR || error == EFAULT || error == ENOMEM || error == EINVAL ||
	       error == EOPNOTSUPP || error == ENOTCONN;
}

/*
 * The link may tell of a reset later. Where the kernel has given up by itself (ETIMEDOUT), the peer need not know, and
 * nobody tells.
 */
int shunt_stream_told_error(struct shunt_stream *stream, int error)
{
	uint8_t state = atomic_load(&stream->state);

	if (is_about_the_call(error) || (state != SHUNT_LINKED && state != SHUNT_CANDIDATE) || !shunt_stream_tcp_closed(stream))
		return -error;
	atomic_store(&stream->rx.told, true);
	if (state == SHUNT_CANDIDATE)
		return -error;	/* and remains one: shunt_attach() */
	atomic_store(&stream->tx.dead, true);
	if (error != ECONNRESET && error != EPIPE)
		atomic_store(&stream->rx.reset, true);
	return -error;
}

void shunt_stream_keep_error(struct shunt_stream *stream, int error)
{
	atomic_store(&stream->rx.kept_error, error);
}
