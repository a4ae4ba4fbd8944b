/*
 * The registry of streams: type-stable memory, and what the program does with descriptors.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include "core/engine.h"
#include "core/epset.h"
#include "core/proof.h"
#include "core/stage.h"

#define SLAB_STREAMS 64

static bool add_slab(struct shunt_engine *engine)
{
	size_t bytes = SLAB_STREAMS * sizeof(struct shunt_stream);
	struct shunt_stream **slabs, *slab;

	slabs = realloc(engine->slabs, (engine->slab_count + 1) * sizeof(*slabs));
	if (!slabs)
		return false;
	engine->slabs = slabs;
	slab = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (slab == MAP_FAILED)
		return false;
	slabs[engine->slab_count++] = slab;
	for (int i = SLAB_STREAMS - 1; i >= 0; i--) {
		slab[i].engine = engine;
		slab[i].next_free = engine->free_streams;
		engine->free_streams = &slab[i];
	}
	return true;
}

/* Everything but what stale holders of the pointer may still be using: locks and list links. */
static void reset(struct shunt_engine *engine, struct shunt_stream *stream, int fd, bool nonblocking)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_rx *rx = &stream->rx;

	stream->file.kind = SHUNT_FILE_STREAM;
	stream->source.kind = SHUNT_SOURCE_STREAM;
	stream->proof_source.kind = SHUNT_SOURCE_PROOF;
	rx->proof_fd = -1;
	rx->end_reading = rx->end_writing = rx->early_reset = false;
	stream->in_use = true;
	stream->fd = fd;
	stream->numbers = 1;
	stream->reason = NULL;
	stream->lane = NULL;
	stream->link = NULL;
	stream->id = stream->peer_id = 0;
	stream->tuple_known = false;
	stream->claimed = false;
	atomic_store(&stream->agreed, false);
	stream->holds = 0;
	atomic_store(&stream->retiring, SHUNT_STAYING);
	stream->retire_fd = -1;
	stream->shared = false;
	stream->dissolving = false;
	stream->orphan = false;
	stream->resend_fd = -1;
	stream->awaited = false;
	stream->refusing = false;
	atomic_store(&stream->asked, SHUNT_NOT_ASKED);
	tx->announced = 0;
	atomic_store(&rx->announced, 0);
	tx->resend_fin = false;
	tx->end_fd = -1;
	tx->fin_wr = 0;
	atomic_store(&tx->halted, false);
	stream->in_chain = 0;
	stream->let_go = false;
	tx->pin = NULL;
	atomic_store(&tx->pinned_wr, 0);
	tx->old_bytes = 0;
	stream->role = SHUNT_CONNECTOR;
	stream->born = shunt_now(engine);
	atomic_store(&stream->nonblocking, nonblocking);
	atomic_store(&stream->used, false);
	atomic_store(&stream->releases, 0);
	atomic_store(&stream->released, false);
	atomic_store(&stream->lane_work, 0);
	atomic_store(&stream->receive_timeout_ns, UINT64_MAX);
	atomic_store(&stream->send_timeout_ns, UINT64_MAX);
	atomic_store(&stream->low_water, 1);

	tx->track = SHUNT_TCP;
	tx->quick = tx->shut = tx->grow_asked = false;
	atomic_store(&tx->want_link, false);
	atomic_store(&tx->unpassed, 0);
	atomic_store(&tx->starved, false);
	atomic_store(&tx->dead, false);
	atomic_store(&tx->gathering, false);
	atomic_store(&tx->corked, false);
	tx->last_wr = 0;
	tx->offset = tx->ring_from = 0;
	tx->ring_bytes = 0;
	atomic_store(&tx->consumed, 0);
	atomic_store(&tx->offer, 0);
	tx->blocked_at = SHUNT_NEVER;
	atomic_store(&tx->turning, false);
	tx->flip_at = SHUNT_NEVER;
	tx->bytes = (struct shunt_bytes) { 0 };

	rx->track = SHUNT_TCP;
	rx->shut = rx->tcp_eof = rx->final = false;
	rx->asked_again = false;
	atomic_store(&rx->grown, false);
	rx->quiet_tail = rx->quiet_since = 0;
	rx->kept_error = 0;
	rx->told = false;
	atomic_store(&rx->reset, false);
	atomic_store(&rx->error, 0);
	atomic_store(&rx->head, 0);
	atomic_store(&rx->tail, 0);
	atomic_store(&rx->boundary, SHUNT_NEVER);
	atomic_store(&rx->second, SHUNT_NEVER);
	atomic_store(&rx->retired, false);
	atomic_store(&rx->refused, false);
	atomic_store(&rx->fin, SHUNT_NEVER);
	atomic_store(&rx->proof, SHUNT_PROVEN);
	atomic_store(&rx->early_fin, SHUNT_NEVER);
	tx->must_prove = tx->shown = false;
	atomic_store(&rx->next_bytes, 0);
	atomic_store(&rx->next_from, SHUNT_NEVER);
	rx->credited = 0;
	atomic_store(&rx->sender_waits, false);
	rx->ring = NULL;
	rx->ring_bytes = 0;
	rx->ring_from = 0;
	rx->link_open = false;
	rx->bytes = (struct shunt_bytes) { 0 };
	atomic_store(&stream->state, SHUNT_FRESH);
}

struct shunt_stream *shunt_streams_new(struct shunt_engine *engine, int fd, bool nonblocking)
{
	struct shunt_stream *stream = NULL;

	if (atomic_load(&engine->reap))
		shunt_streams_reap(engine);
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
	free(stream->tx.resend);
	stream->tx.resend = NULL;
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

void shunt_streams_vacate(struct shunt_stream *stream)
{
	if (stream->link)
		shunt_link_unseat(stream->link, stream);
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

void shunt_streams_reap(struct shunt_engine *engine)
{
	struct shunt_stream *stream = atomic_exchange(&engine->reap, NULL);

	while (stream) {
		struct shunt_stream *next = stream->next_reap;

		shunt_streams_vacate(stream);
		stream = next;
	}
}

int shunt_streams_each(struct shunt_engine *engine, int (*visit)(struct shunt_stream *, void *),
		       void *arg)
{
	int result = 0;

	for (uint32_t i = 0; i < engine->slab_count && !result; i++)
		for (int j = 0; j < SLAB_STREAMS && !result; j++)
			if (engine->slabs[i][j].in_use)
				result = visit(&engine->slabs[i][j], arg);
	return result;
}

void shunt_streams_count_reason(struct shunt_engine *engine, const char *reason)
{
	for (int i = 0; i < SHUNT_REASONS; i++) {
		if (engine->reasons[i].text == reason || !engine->reasons[i].text) {
			engine->reasons[i].text = reason;
			engine->reasons[i].count++;
			return;
		}
	}
}

void shunt_streams_plain(struct shunt_engine *engine, struct shunt_stream *stream, const char *reason)
{
	shunt_lock_take(&engine->streams_lock);
	if (stream->in_use && !stream->reason) {
		stream->reason = reason;
		shunt_streams_count_reason(engine, reason);
	}
	shunt_lock_leave(&engine->streams_lock);
	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	if (atomic_load(&stream->state) == SHUNT_CANDIDATE)
		atomic_store(&stream->state, SHUNT_PLAIN);
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
}

bool shunt_stream_is_plain(const struct shunt_stream *stream)
{
	uint8_t state = atomic_load_explicit(&((struct shunt_stream *)stream)->state,
					     memory_order_relaxed);

	return state == SHUNT_PLAIN || state == SHUNT_FRESH;
}

/* --- the table --- */

static void set_slot(struct shunt_engine *engine, int fd, struct shunt_file *file)
{
	shunt_files_set(engine->files, fd, file);
}

void shunt_file_socket(struct shunt_engine *engine, int fd, bool nonblocking)
{
	struct shunt_stream *stream;

	if (fd < 0 || (size_t)fd >= engine->files->limit)
		return;
	stream = shunt_streams_new(engine, fd, nonblocking);
	if (stream)
		set_slot(engine, fd, &stream->file);
}

static struct shunt_stream *stream_at(struct shunt_engine *engine, int fd)
{
	struct shunt_file *file = shunt_file(engine, fd);

	return file && file->kind == SHUNT_FILE_STREAM ? (struct shunt_stream *)file : NULL;
}

static void become_candidate(struct shunt_engine *engine, struct shunt_stream *stream, uint8_t role)
{
	stream->role = role;
	stream->born = shunt_now(engine);
	atomic_store(&stream->state, engine->device_choice == SHUNT_DEVICE_NONE ? SHUNT_PLAIN :
		     SHUNT_CANDIDATE);
	shunt_lock_take(&engine->streams_lock);
	engine->totals.streams++;
	shunt_lock_leave(&engine->streams_lock);
}

void shunt_file_connected(struct shunt_engine *engine, int fd, int result)
{
	struct shunt_stream *stream = stream_at(engine, fd);

	if (!stream || (result && result != -EINPROGRESS && result != -EINTR))
		return;
	if (atomic_load(&stream->state) == SHUNT_FRESH && stream->role != SHUNT_LISTENER)
		become_candidate(engine, stream, SHUNT_CONNECTOR);
}

void shunt_file_accepted(struct shunt_engine *engine, int fd, bool nonblocking)
{
	struct shunt_stream *stream;

	shunt_file_socket(engine, fd, nonblocking);
	stream = stream_at(engine, fd);
	if (stream)
		become_candidate(engine, stream, SHUNT_ACCEPTOR);
}

void shunt_file_listening(struct shunt_engine *engine, int fd)
{
	struct shunt_stream *stream = stream_at(engine, fd);

	if (!stream || engine->device_choice == SHUNT_DEVICE_NONE)
		return;
	if (stream->role == SHUNT_LISTENER && atomic_load(&stream->state) == SHUNT_FRESH)
		return;	/* only its backlog changes */
	stream->role = SHUNT_LISTENER;
	shunt_service_listen(engine, fd);
}

void shunt_file_epoll(struct shunt_engine *engine, int fd)
{
	struct shunt_epset *set;

	if (fd < 0 || (size_t)fd >= engine->files->limit)
		return;
	set = shunt_epset_create(engine, fd);
	if (set)
		set_slot(engine, fd, &set->file);
}

void shunt_file_duplicated(struct shunt_engine *engine, int old, int fd)
{
	struct shunt_file *file = shunt_file(engine, old);

	if (!file || file->kind == SHUNT_FILE_PRIVATE)
		return;
	shunt_lock_take(&engine->streams_lock);
	if (file->kind == SHUNT_FILE_STREAM)
		((struct shunt_stream *)file)->numbers++;
	else
		((struct shunt_epset *)file)->numbers++;
	set_slot(engine, fd, file);
	shunt_lock_leave(&engine->streams_lock);
}

/* --- the end --- */

static int another_number(struct shunt_engine *engine, const struct shunt_file *file)
{
	for (size_t fd = 0; fd < atomic_load(&engine->files->top); fd++)
		if (shunt_file(engine, fd) == file)
			return fd;
	return -1;
}

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
static bool lingers_zero(struct shunt_engine *engine, int fd)
{
	struct linger linger = { 0, 0 };
	socklen_t length = sizeof(linger);

	return !engine->sys->getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &length) &&
	       linger.l_onoff && !linger.l_linger;
}

/* Both locks held. */
static void say_goodbye(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	int unread = 0;

	shunt_group_poll_fully(engine);
	shunt_track_settle(engine, stream);
	engine->sys->ioctl(fd, FIONREAD, &unread);
	if (shunt_proof_pending(&stream->rx) && atomic_load(&stream->rx.boundary) == atomic_load(&stream->rx.head) &&
	    unread <= SHUNT_NONCE_BYTES)
		unread = 0;	/* a part of the nonce */
	if (stream->dissolving || unread || unread_on_link(&stream->rx) || lingers_zero(engine, fd)) {
		shunt_streams_reset_tcp(engine, fd);
		stream->tx.shut = true;
		shunt_lane_request(stream->lane, stream, SHUNT_WORK_RESET);
	} else {
		shunt_tx_end(stream, fd);
	}
	shunt_lane_request(stream->lane, stream, SHUNT_WORK_RELEASE);
	if (!stream->link || atomic_load(&stream->link->state) == SHUNT_LINK_DEAD) {	/* nobody is there to release it */
		shunt_streams_released(stream, SHUNT_RELEASED_BY_US);
		shunt_streams_released(stream, SHUNT_RELEASED_BY_PEER);
		shunt_service_wake(engine);
	}
}

static void end_stream(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	uint8_t state;
	bool seated;

	if (stream->shared && atomic_load(&stream->state) == SHUNT_LINKED)
		shunt_stream_retire(engine, fd, stream, "shared by a fork");
	shunt_epset_drop_stream(engine, stream);
	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	set_slot(engine, fd, NULL);
	state = atomic_load(&stream->state);
	if (state == SHUNT_LINKED)
		say_goodbye(engine, stream, fd);
	atomic_store(&stream->state, SHUNT_CLOSED);
	shunt_proof_leave(stream);
	if (stream->tx.resend)
		shunt_service_await(engine, stream);
	shunt_service_refuse(engine, stream, false);
	stream->tx.quick = false;
	shunt_lock_take(&engine->streams_lock);
	stream->fd = -1;
	seated = stream->link != NULL || stream->holds;
	add_bytes(&engine->totals.tx, &stream->tx.bytes);
	add_bytes(&engine->totals.rx, &stream->rx.bytes);
	shunt_lock_leave(&engine->streams_lock);
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
	if (stream->role == SHUNT_LISTENER)
		shunt_service_unlisten(engine, stream);
	if (seated)
		shunt_group_tell(engine, stream, EPOLLIN | EPOLLOUT);
	else
		free_if_done(stream);
}

void shunt_file_dissolving(struct shunt_engine *engine, int fd)
{
	struct shunt_stream *stream = stream_at(engine, fd);
	bool nonblocking;

	if (!stream || stream->numbers != 1 || shunt_stream_is_plain(stream))
		return;
	nonblocking = atomic_load(&stream->nonblocking);
	stream->dissolving = true;
	end_stream(engine, stream, fd);
	shunt_file_socket(engine, fd, nonblocking);
}

/*
 * A number is closed while a thread is inside a blocking call on it: the call goes on, and the
 * connection ends with it, as the kernel's reference does it. False: nobody is.
 */
static bool make_orphan(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	int copy;

	if (!atomic_load(&stream->waiters))	/* who waits in the kernel is the kernel's to keep */
		return false;
	copy = shunt_private_copy(engine, fd);
	if (copy < 0)
		return false;
	shunt_epset_drop_stream(engine, stream);
	shunt_lock_take(&engine->streams_lock);
	stream->fd = copy;
	stream->orphan = true;
	set_slot(engine, fd, NULL);
	shunt_lock_leave(&engine->streams_lock);
	return true;
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
	end_stream(engine, stream, fd);
	shunt_private_close(engine, fd);
}

static void close_stream(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	bool last;

	/* A registration outlives the number it was made with, but nobody can move it any more. */
	if (stream->numbers > 1 && shunt_epset_knows(engine, stream, fd))
		shunt_stream_retire(engine, fd, stream, "closed under a number that epoll knows");
	shunt_lock_take(&engine->streams_lock);
	last = --stream->numbers == 0;
	if (!last) {
		set_slot(engine, fd, NULL);
		if (stream->fd == fd)
			stream->fd = another_number(engine, &stream->file);
	}
	shunt_lock_leave(&engine->streams_lock);
	if (last && !make_orphan(engine, stream, fd))
		end_stream(engine, stream, fd);
}

static void close_set(struct shunt_engine *engine, struct shunt_epset *set, int fd)
{
	bool last;

	shunt_lock_take(&engine->streams_lock);
	set_slot(engine, fd, NULL);
	last = --set->numbers == 0;
	if (!last && set->fd == fd)
		set->fd = another_number(engine, &set->file);
	shunt_lock_leave(&engine->streams_lock);
	if (last)
		shunt_epset_close(engine, set);
}

void shunt_file_closing(struct shunt_engine *engine, int fd)
{
	struct shunt_file *file = shunt_file(engine, fd);
	int saved = errno;

	if (!file || file->kind == SHUNT_FILE_PRIVATE)
		return;
	if (file->kind == SHUNT_FILE_STREAM)
		close_stream(engine, (struct shunt_stream *)file, fd);
	else
		close_set(engine, (struct shunt_epset *)file, fd);
	errno = saved;
}

/* --- small things the boundary asks --- */

void shunt_stream_set_nonblocking(struct shunt_stream *stream, bool nonblocking)
{
	atomic_store(&stream->nonblocking, nonblocking);
}

/* As tcp_push_pending_frames(): what is held goes when the cork is pulled, or Nagle's rule is switched off. */
static void tcp_option_changed(struct shunt_stream *stream, int name)
{
	socklen_t length = sizeof(int);
	int on = 0;

	if ((name != TCP_CORK && name != TCP_NODELAY) ||
	    stream->engine->sys->getsockopt(stream->fd, IPPROTO_TCP, name, &on, &length))
		return;
	if (name == TCP_CORK) {
		shunt_stream_corked(stream, on);
	} else if (on) {
		shunt_lock_take(&stream->tx.lock);
		shunt_stream_push(stream);
		shunt_lock_leave(&stream->tx.lock);
	}
}

void shunt_stream_never_waits(struct shunt_stream *stream, int name)
{
	atomic_store(name == SO_RCVTIMEO ? &stream->receive_timeout_ns : &stream->send_timeout_ns, 1);
}

void shunt_stream_option_changed(struct shunt_stream *stream, int level, int name)
{
	socklen_t length = sizeof(int);
	int low = 1;

	if (level == IPPROTO_TCP)
		tcp_option_changed(stream, name);
	if (level != SOL_SOCKET)
		return;
	if (name == SO_RCVTIMEO)
		atomic_store(&stream->receive_timeout_ns, UINT64_MAX);
	if (name == SO_SNDTIMEO)
		atomic_store(&stream->send_timeout_ns, UINT64_MAX);
	if (name == SO_RCVLOWAT && !stream->engine->sys->getsockopt(stream->fd, level, name, &low, &length))
		atomic_store(&stream->low_water, low > 0 ? low : 1);
}

int shunt_stream_take_error(struct shunt_engine *engine, struct shunt_stream *stream)
{
	int error = atomic_exchange(&stream->rx.kept_error, 0);

	if (error || atomic_load(&stream->state) != SHUNT_LINKED)
		return error;
	shunt_group_poll(engine);
	return shunt_stream_pop_error(stream);
}

void shunt_stream_keep_error(struct shunt_stream *stream, int error)
{
	atomic_store(&stream->rx.kept_error, error);
}
