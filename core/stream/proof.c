/* SPDX-License-Identifier: MIT */
#include "core/stream/proof.h"
#include "core/fd/own_fds.h"
#include "core/fork/fork_handover.h"
#include "core/stream/eof.h"
#include "core/stream/inbound.h"
#include "core/stream/nonce.h"
#include "core/stream/tuple.h"
#include "core/stream/retire.h"
#include "core/stream/track.h"
#include "core/stream/wait.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include "core/engine.h"
#include "core/link/link.h"
#include "core/service.h"
#include "core/stream/again.h"
#include "core/stream/deferred_fin.h"
#include "core/stream/tcp_backlog.h"

#define PATIENCE 60000000000ull	/* ns that the kernel's end waits for a nonce: no longer than the kernel does for the other end */
#define LOOK 1000000000ull	/* ns between two looks at who waits */
#define UNPROVEN 10000000ull	/* ns until there may be a descriptor to wait for a nonce with */

bool shunt_proof_chance(struct shunt_stream *stream, uint8_t chance[SHUNT_CHANCE_BYTES])
{
	struct shunt_rx *rx = &stream->rx;

	if (stream->engine->sys->getrandom(rx->nonce, SHUNT_CHANCE_BYTES, GRND_NONBLOCK) != SHUNT_CHANCE_BYTES)
		return false;
	memcpy(chance, rx->nonce, SHUNT_CHANCE_BYTES);
	return true;
}

void shunt_proof_agree(struct shunt_link *link, struct shunt_stream *stream, const uint8_t theirs[SHUNT_CHANCE_BYTES])
{
	bool claims = link->initiator;
	struct shunt_nonce_facts facts = { .tuple = claims ? stream->tuple : shunt_tuple_reverse(&stream->tuple) };

	memcpy(facts.hellos, link->hellos, sizeof(facts.hellos));
	memcpy(facts.chance[!claims], stream->rx.nonce, SHUNT_CHANCE_BYTES);
	memcpy(facts.chance[claims], theirs, SHUNT_CHANCE_BYTES);
	shunt_nonce_make(&facts, claims, stream->tx.nonce);
	shunt_nonce_make(&facts, !claims, stream->rx.nonce);
	stream->tx.must_prove = true;
	atomic_store(&stream->rx.proof, SHUNT_UNPROVEN);
}

/*
 * The nonce is no business of the program's waits, so the service thread waits for it. An edge is enough: what comes
 * while there are bytes before it is looked at by who reads those.
 */
static bool watch(struct shunt_stream *stream)
{
	struct shunt_engine *engine = stream->engine;
	struct shunt_rx *rx = &stream->rx;

	if (stream->fd < 0 || rx->proof_fd >= 0)
		return true;
	rx->proof_fd = shunt_own_fds_copy(engine, stream->fd);
	if (rx->proof_fd < 0)
		return false;
	if (shunt_loop_add(&engine->loop, rx->proof_fd, &stream->proof_source, EPOLLIN | EPOLLRDHUP | EPOLLET)) {
		shunt_own_fds_close(engine, rx->proof_fd);
		rx->proof_fd = -1;
		return false;
	}
	shunt_streams_hold(stream);
	return true;
}

/* rx.lock held. */
static void hold_end(struct shunt_stream *stream)
{
	struct shunt_engine *engine = stream->engine;

	if (atomic_load(&stream->rx.held_until))
		return;
	atomic_store(&stream->rx.held_until, shunt_now(engine) + PATIENCE);
	if (!atomic_fetch_add(&engine->service->held_ends, 1))
		shunt_loop_remind(&engine->loop, &engine->service->tasks.proof, 0);
}

static void let_end_go(struct shunt_stream *stream)
{
	if (atomic_exchange(&stream->rx.held_until, 0))
		atomic_fetch_sub(&stream->engine->service->held_ends, 1);
}

static void unwatch(struct shunt_stream *stream)
{
	struct shunt_engine *engine = stream->engine;
	struct shunt_rx *rx = &stream->rx;

	if (rx->proof_fd < 0)
		return;
	if (rx->end_reading)
		engine->sys->shutdown(rx->proof_fd, SHUT_RD);
	if (atomic_load(&rx->held_until))
		engine->sys->shutdown(rx->proof_fd, SHUT_WR);
	let_end_go(stream);
	shunt_loop_remove(&engine->loop, rx->proof_fd);
	shunt_own_fds_close(engine, rx->proof_fd);
	rx->proof_fd = -1;
	shunt_streams_unhold(stream);
}

static bool is_next(const struct shunt_rx *rx)
{
	return rx->proof_fd >= 0 && atomic_load(&rx->boundary) == atomic_load(&rx->head) && !atomic_load(&rx->reset);
}

void shunt_proof_leave(struct shunt_stream *stream)
{
	struct shunt_engine *engine = stream->engine;
	struct shunt_rx *rx = &stream->rx;

	if (atomic_load(&rx->proof) != SHUNT_EXPECTED || is_next(rx))
		return;
	unwatch(stream);
	shunt_lock_take(&engine->group.lock);
	atomic_store(&rx->proof, SHUNT_PROVEN);	/* nobody will read what is before it, so nobody waits for it */
	shunt_lock_leave(&engine->group.lock);
	shunt_deferred_fin_proven(stream);
}

bool shunt_proof_end_reading(struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;

	rx->end_reading = is_next(rx) && (!rx->shut || rx->end_reading);	/* else the kernel has been told before */
	return rx->end_reading;
}

bool shunt_proof_end_writing(struct shunt_stream *stream)
{
	bool must = stream->rx.shut && !stream->rx.end_reading && is_next(&stream->rx);

	if (must)
		hold_end(stream);
	else
		let_end_go(stream);
	return must;
}

void shunt_proof_heard(struct shunt_engine *engine, struct shunt_stream *stream)
{
	shunt_lock_take(&stream->rx.lock);
	if (atomic_load(&stream->state) == SHUNT_LINKED)
		shunt_track_settle(engine, stream);
	else if (stream->rx.proof_fd >= 0 && shunt_proof_read(engine, stream))
		unwatch(stream);	/* closed; now the kernel's socket is, too */
	shunt_tcp_backlog_proven(stream);
	shunt_lock_leave(&stream->rx.lock);
	shunt_group_tell(engine, stream, EPOLLIN | EPOLLRDHUP | EPOLLHUP | SHUNT_READY_ARRIVED | SHUNT_READY_TRACK);
}

void shunt_proof_ready(struct shunt_source *source, uint32_t events)
{
	struct shunt_stream *stream = shunt_loop_owner(source, struct shunt_stream, proof_source);

	(void)events;
	shunt_proof_heard(stream->engine, stream);
}

void shunt_proof_expect(struct shunt_stream *stream)
{
	struct shunt_message message = { .type = SHUNT_MSG_EXPECT, .stream = stream->peer_id };
	struct shunt_rx *rx = &stream->rx;

	if (atomic_load(&rx->proof) != SHUNT_UNPROVEN || atomic_load(&rx->boundary) == SHUNT_NEVER ||
	    atomic_load(&stream->retiring) == SHUNT_RETIRING || (rx->shut && stream->tx.shut))
		return;
	if (!watch(stream)) {
		shunt_proof_later(stream->engine);
		return;
	}
	if (shunt_link_send(stream->link, &message, NULL, 0))
		unwatch(stream);
	else
		atomic_store(&rx->proof, SHUNT_EXPECTED);
}

/* --- the reader --- */

static ssize_t receive(struct shunt_engine *engine, int fd, void *buffer, size_t bytes, int flags)
{
	struct iovec iov = { buffer, bytes };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	return engine->sys->recvmsg(fd, &message, flags | MSG_DONTWAIT);
}

/* A child that shares the stream may have waited for this (fork_handover.c). */
static void tell_child(struct shunt_engine *engine, struct shunt_stream *stream)
{
	if (atomic_load(&stream->retire_fd) >= 0)
		shunt_proof_soon(engine);
}

static void proven(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;

	shunt_lock_take(&engine->group.lock);
	atomic_store(&rx->proof, SHUNT_PROVEN);
	atomic_store(&rx->fin, atomic_exchange(&rx->early_fin, SHUNT_NEVER));
	if (rx->early_reset)
		shunt_inbound_reset(engine, stream);
	shunt_lock_leave(&engine->group.lock);
	unwatch(stream);
	shunt_deferred_fin_proven(stream);
	tell_child(engine, stream);
	/* The accepting end has waited for this with its own direction: the next send begins it. */
	if (atomic_load(&stream->agreed) && atomic_load(&stream->retiring) == SHUNT_STAYING && !rx->final)
		atomic_store(&stream->tx.want_link, true);
}

/* The link was to bring bytes from `boundary` on, and what came behind a message that was not believed did not count. */
static bool was_dropped(const struct shunt_stream *stream, uint64_t boundary)
{
	return boundary != SHUNT_NEVER && stream->link && atomic_load(&stream->link->distrusted) &&
	       atomic_load(&stream->rx.early_fin) != boundary;
}

/*
 * Nothing was shown: TCP goes on as if there were no link. But where TCP ends right there, it is a peer that was killed
 * before it could show anything, and what it had sent on the link is missing.
 */
static void disprove(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;
	uint64_t boundary = atomic_load(&rx->boundary);

	shunt_lock_take(&engine->group.lock);
	if ((atomic_load(&rx->tail) > boundary || was_dropped(stream, boundary)) && !atomic_load(&rx->retired))
		rx->unproven_at = boundary;
	atomic_store(&rx->proof, SHUNT_PROVEN);
	atomic_store(&rx->early_fin, SHUNT_NEVER);
	rx->link_open = false;
	rx->owed = 0;
	atomic_store(&rx->retired, true);	/* what the link still brings counts for nothing */
	atomic_store(&rx->tail, atomic_load(&rx->head));
	atomic_store(&rx->boundary, SHUNT_NEVER);
	atomic_store(&rx->second, SHUNT_NEVER);
	atomic_store(&rx->next_from, SHUNT_NEVER);
	shunt_lock_leave(&engine->group.lock);
	unwatch(stream);
	shunt_deferred_fin_proven(stream);
	tell_child(engine, stream);
}

static bool peer_has_ended(struct shunt_engine *engine, int fd)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof(info);

	return engine->sys->getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) ||
	       (info.tcpi_state != TCP_ESTABLISHED && info.tcpi_state != TCP_FIN_WAIT1 && info.tcpi_state != TCP_FIN_WAIT2);
}

/*
 * TCP ends within what may be the nonce, or bytes of the program that begin like it. The program
 * gets neither the bytes nor an orderly end: ECONNRESET. rx.lock held.
 */
static void cut_off(struct shunt_engine *engine, struct shunt_stream *stream, int fd, size_t bytes)
{
	struct shunt_rx *rx = &stream->rx;
	uint64_t boundary = atomic_load(&rx->boundary);
	uint8_t part[SHUNT_NONCE_BYTES];

	receive(engine, fd, part, bytes, 0);
	rx->aside += bytes;
	disprove(engine, stream);
	rx->unproven_at = boundary;
}

int shunt_proof_read(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;
	int fd = rx->proof_fd >= 0 ? rx->proof_fd : stream->fd;
	uint8_t bytes[SHUNT_NONCE_BYTES];
	ssize_t got;

	if (atomic_load(&rx->proof) == SHUNT_UNPROVEN || fd < 0)
		return 0;
	got = receive(engine, fd, bytes, sizeof(bytes), MSG_PEEK);
	if (got > 0 && got < (ssize_t)sizeof(bytes) && !memcmp(bytes, rx->nonce, (size_t)got) &&
	    peer_has_ended(engine, fd)) {
		cut_off(engine, stream, fd, (size_t)got);
		return -1;
	}
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got == 0 && rx->shut && !peer_has_ended(engine, fd))
		return 0;	/* it is the program that has */
	if (got < 0) {
		shunt_stream_was_reset(stream, errno);
		rx->tcp_eof = true;	/* there is nothing before it */
	}
	/* To who has closed, a peer that knows sends what it likes. */
	if (got > 0 && memcmp(bytes, rx->nonce, got) && !rx->final && atomic_load(&stream->state) == SHUNT_LINKED)
		shunt_link_distrust(stream->link, "it claims a connection that is not its own");
	if (got <= 0 || memcmp(bytes, rx->nonce, got)) {
		disprove(engine, stream);
		if (got > 0)
			rx->doubtful = false;	/* it was another's link: the connection has lost nothing with it */
		return -1;
	}
	if (got < (ssize_t)sizeof(bytes) || receive(engine, fd, bytes, sizeof(bytes), 0) != sizeof(bytes))
		return 0;
	rx->aside += sizeof(bytes);
	proven(engine, stream);
	return 1;
}

bool shunt_proof_drop(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;

	if (!shunt_proof_pending(rx))
		return false;
	rx->final = true;
	if (atomic_load(&rx->proof) == SHUNT_UNPROVEN)
		disprove(engine, stream);
	return true;
}

static bool is_overdue(struct shunt_stream *stream, void *now)
{
	uint64_t until = atomic_load(&stream->rx.held_until);

	return until && until <= *(uint64_t *)now;
}

/* The peer was perhaps never asked: the link died before, or it does not do what it should. */
static void stop_waiting(struct shunt_engine *engine, struct shunt_stream *stream)
{
	shunt_lock_take(&stream->rx.lock);
	if (atomic_load(&stream->rx.held_until))
		disprove(engine, stream);
	let_end_go(stream);	/* there is nothing left to wait with */
	shunt_tcp_backlog_proven(stream);
	if (atomic_load(&stream->state) == SHUNT_LINKED)
		shunt_track_settle(engine, stream);
	shunt_lock_leave(&stream->rx.lock);
	shunt_group_tell(engine, stream, EPOLLIN | EPOLLRDHUP | EPOLLHUP | SHUNT_READY_ARRIVED | SHUNT_READY_TRACK);
}

static void end_overdue(struct shunt_engine *engine, uint64_t now)
{
	struct shunt_sweep sweep = { .wants = is_overdue, .arg = &now };
	struct shunt_stream *stream;

	while ((stream = shunt_streams_next(engine, &sweep)) != NULL)
		stop_waiting(engine, stream);
}

void shunt_proof_end_waiting(struct shunt_engine *engine)
{
	end_overdue(engine, SHUNT_NEVER);
}

void shunt_proof_run_overdue(struct shunt_task *task)
{
	struct shunt_service *service = shunt_service_of(task, proof);
	uint64_t now = shunt_now(service->engine);

	if (!atomic_load(&service->held_ends))
		return;
	end_overdue(service->engine, now);
	shunt_task_at(task, now + LOOK);
}

/* --- the service thread asks for nonces --- */

void shunt_proof_soon(struct shunt_engine *engine)
{
	shunt_loop_post(&engine->loop, &engine->service->tasks.prove);
}

void shunt_proof_later(struct shunt_engine *engine)
{
	shunt_loop_remind(&engine->loop, &engine->service->tasks.prove, shunt_now(engine) + UNPROVEN);
}

struct unproven {
	struct shunt_stream *streams[64];
	int count;
};

/* Or its end waits for a descriptor. */
static int find_unproven(struct shunt_stream *stream, void *arg)
{
	struct unproven *found = arg;

	if ((atomic_load(&stream->rx.proof) != SHUNT_UNPROVEN || atomic_load(&stream->rx.boundary) == SHUNT_NEVER) &&
	    !(atomic_load(&stream->tx.lingers) && atomic_load(&stream->tx.end_fd) < 0))
		return 0;
	stream->holds++;
	found->streams[found->count++] = stream;
	return found->count == 64;
}

void shunt_proof_run(struct shunt_task *task)
{
	struct shunt_engine *engine = shunt_service_of(task, prove)->engine;
	struct unproven found = { .count = 0 };

	shunt_lock_take(&engine->streams_lock);
	shunt_streams_each(engine, find_unproven, &found);
	shunt_lock_leave(&engine->streams_lock);
	for (int i = 0; i < found.count; i++) {
		struct shunt_stream *stream = found.streams[i];

		shunt_lock_take(&stream->rx.lock);
		shunt_track_settle(engine, stream);
		shunt_lock_leave(&stream->rx.lock);
		shunt_deferred_fin_again(stream);
		shunt_streams_unhold(stream);
	}
	if (found.count == 64 && !shunt_task_waits(task))	/* else there are no descriptors for more */
		shunt_task_at(task, 0);
	shunt_fork_handover_proven(engine);
}

/* --- the writer --- */

/* Behind what is to be written to TCP. Where it is alone, as nearly always, this takes no memory that could be refused. */
static bool put(struct shunt_tx *tx)
{
	uint8_t *room;

	if (!tx->resend) {
		tx->resend = tx->nonce;
		tx->resend_done = 0;
		tx->resend_bytes = sizeof(tx->nonce);
		return true;
	}
	room = shunt_again_add(tx, sizeof(tx->nonce));
	if (room)
		memcpy(room, tx->nonce, sizeof(tx->nonce));
	return room;
}

void shunt_proof_write(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;

	shunt_lock_take(&tx->lock);
	if (shunt_proof_owed(stream) && shunt_deferred_fin_fd(stream) >= 0 && put(tx)) {
		tx->must_prove = false;
		tx->shown = true;
		tx->shown_tcp = tx->bytes.tcp;
		if (shunt_retire_resend(engine, shunt_deferred_fin_fd(stream), stream) == -EAGAIN)
			shunt_tcp_backlog_await(engine, stream);
		else
			shunt_deferred_fin_proven(stream);
	}
	shunt_lock_leave(&tx->lock);
	shunt_group_tell(engine, stream, EPOLLOUT | SHUNT_READY_SETTLED);
}
