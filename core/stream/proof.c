/* SPDX-License-Identifier: MIT */
#include "core/stream/proof.h"
#include "core/fd/own_fds.h"
#include "core/stream/handover.h"
#include "core/stream/eof.h"
#include "core/stream/nonce.h"
#include "core/stream/sleep.h"
#include "core/stream/tuple.h"
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
#include "core/stream/deferred_fin.h"
#include "core/stream/backlog.h"

bool shunt_proof_chance(struct shunt_stream *stream, uint8_t chance[SHUNT_CHANCE_BYTES])
{
	struct shunt_seat_in *in = &stream->seat->in;

	if (stream->group->sys->getrandom(in->proof.nonce, SHUNT_CHANCE_BYTES, GRND_NONBLOCK) !=
	    SHUNT_CHANCE_BYTES)
		return false;
	memcpy(chance, in->proof.nonce, SHUNT_CHANCE_BYTES);
	return true;
}

void shunt_proof_agree(struct shunt_link *link, struct shunt_stream *stream,
		       const uint8_t theirs[SHUNT_CHANCE_BYTES])
{
	bool claims = link->initiator;
	struct shunt_nonce_facts facts = { .tuple = claims ? stream->tuple : shunt_tuple_reverse(&stream->tuple) };

	memcpy(facts.hellos, link->hellos, sizeof(facts.hellos));
	memcpy(facts.chance[!claims], stream->seat->in.proof.nonce, SHUNT_CHANCE_BYTES);
	memcpy(facts.chance[claims], theirs, SHUNT_CHANCE_BYTES);
	shunt_nonce_make(&facts, claims, stream->tx.nonce);
	shunt_nonce_make(&facts, !claims, stream->seat->in.proof.nonce);
	atomic_store(&stream->seat->out.show, SHUNT_OWED);
	atomic_store(&stream->seat->in.proof.state, SHUNT_UNPROVEN);
}

static void say(struct shunt_stream *stream, enum shunt_message_type type)
{
	struct shunt_message message = { .type = type, .stream = stream->seat->peer_id };

	shunt_link_send(stream->seat->link, &message, NULL, 0);
}

/* --- the reader --- */

static void proof_ready(struct shunt_source *source, uint32_t events)
{
	struct shunt_stream *stream = shunt_loop_owner(source, struct shunt_stream, proof_source);

	(void)events;
	shunt_proof_heard(shunt_stream_engine(stream), stream);
}

/*
 * The nonce is no business of the program's waits, so the service thread waits for it. An edge is enough: what comes
 * while there are bytes before it is looked at by their reader.
 */
static bool watch(struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	struct shunt_rx *rx = &stream->rx;
	int copy;

	if (stream->fd < 0)
		return false;
	copy = shunt_own_fds_copy(&engine->fds, stream->fd);
	if (copy < 0)
		return false;
	stream->proof_source.ready = proof_ready;
	if (shunt_loop_add(&engine->loop, copy, &stream->proof_source,
			   EPOLLIN | EPOLLRDHUP | EPOLLET)) {
		shunt_own_fds_close(&engine->fds, copy);
		return false;
	}
	atomic_store(&rx->nonce.fd, copy);
	shunt_streams_hold(stream);
	return true;
}

static void unwatch(struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	struct shunt_rx *rx = &stream->rx;
	int fd = atomic_exchange(&rx->nonce.fd, -1);

	if (fd < 0)
		return;
	if (rx->nonce.end_reading)
		engine->sys->shutdown(fd, SHUT_RD);
	rx->nonce.end_reading = false;
	shunt_loop_remove(&engine->loop, fd);
	shunt_own_fds_close(&engine->fds, fd);
	shunt_streams_unhold(stream);
}

/* The one place where a reader's state changes, once it has one. rx.lock held. */
static void move(struct shunt_stream *stream, enum shunt_proof to, uint64_t at)
{
	struct shunt_group *group = stream->group;
	struct shunt_seat_in *in = &stream->seat->in;

	shunt_lock_take(&group->lock);
	atomic_store(&in->proof.at, at);
	atomic_store(&in->proof.state, to);
	if (to == SHUNT_PROVEN)
		shunt_end_learn(&stream->end, SHUNT_LEARN_PROOF, 0);
	shunt_lock_leave(&group->lock);
	if (to == SHUNT_EXPECTED)
		return;
	unwatch(stream);
	/* It may be our turn, and a child that shares the stream may have waited. */
	shunt_request_owner(stream->group->loop);
}

/* From now on the kernel's readiness for input is not the program's where the nonce comes next. */
static void tell_readers(struct shunt_stream *stream)
{
	shunt_sleep_tell(stream,
			 EPOLLIN | EPOLLRDHUP | EPOLLHUP | SHUNT_READY_ARRIVED | SHUNT_READY_TRACK);
}

static const char *is_out_of_turn(const struct shunt_link *link, struct shunt_stream *stream,
				  uint64_t at)
{
	if (atomic_load(&stream->seat->in.proof.state) != SHUNT_UNPROVEN)
		return "a second NONCE, or one for a connection that needs none";
	if (!link->initiator && atomic_load(&stream->seat->out.show) != SHUNT_SHOWN)
		return "a NONCE before it has read the acceptor's";
	return at < atomic_load(&stream->rx.head) || at >> 62 ?
		       "a NONCE where bytes have been read" :
		       NULL;
}

static bool can_take_out(struct shunt_stream *stream)
{
	struct shunt_seat_in *in = &stream->seat->in;

	return !shunt_end_has(&stream->end,
			      SHUNT_END_SHUT_READ | SHUNT_END_RESET | SHUNT_END_TCP_OVER) &&
	       !shunt_intake_final(&in->intake) && !shunt_intake_copied(&in->intake) &&
	       shunt_stream_stays(stream) && stream->parting != SHUNT_DISSOLVED;
}

void shunt_proof_place(struct shunt_link *link, struct shunt_stream *stream, uint64_t at)
{
	const char *wrong = NULL;
	bool expects = false;

	shunt_lock_take(&stream->rx.lock);
	if (atomic_load(&stream->state) == SHUNT_LINKED)
		wrong = is_out_of_turn(link, stream, at);
	if (!wrong && atomic_load(&stream->state) == SHUNT_LINKED) {
		expects = can_take_out(stream) && watch(stream);
		move(stream, expects ? SHUNT_EXPECTED : SHUNT_DISPROVEN,
		     expects ? at : SHUNT_NEVER);
	}
	if (expects)
		tell_readers(stream);	/* before the nonce can come */
	if (!wrong)
		say(stream, expects ? SHUNT_MSG_EXPECT : SHUNT_MSG_NO_NONCE);
	shunt_lock_leave(&stream->rx.lock);
	if (wrong)
		shunt_link_distrust(link, wrong);
}

static ssize_t receive(struct shunt_engine *engine, int fd, void *buffer, size_t bytes, int flags)
{
	struct iovec iov = { buffer, bytes };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	return engine->sys->recvmsg(fd, &message, flags | MSG_DONTWAIT);
}

static bool peer_has_ended(struct shunt_engine *engine, int fd)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof(info);

	return engine->sys->getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) ||
	       (info.tcpi_state != TCP_ESTABLISHED && info.tcpi_state != TCP_FIN_WAIT1 &&
		info.tcpi_state != TCP_FIN_WAIT2);
}

/* The program's bytes stand there, or its end does: TCP goes on as if there were no link. */
static void disprove(struct shunt_stream *stream)
{
	move(stream, SHUNT_DISPROVEN, SHUNT_NEVER);
}

/*
 * TCP ends within what may be the nonce, or bytes of the program that begin like it. The program gets ECONNRESET
 * instead of the bytes or an orderly end. rx.lock held.
 */
static void cut_off(struct shunt_engine *engine, struct shunt_stream *stream, int fd, size_t bytes)
{
	uint8_t part[SHUNT_NONCE_BYTES];

	receive(engine, fd, part, bytes, 0);
	stream->rx.nonce.aside += bytes;
	shunt_end_learn(&stream->end, SHUNT_LEARN_SUSPICION, 0);
	disprove(stream);
}

/* The program's bytes behind it may wait at their sender for its acknowledgement (Nagle), which this end may delay. */
static void acknowledge(struct shunt_engine *engine, int fd)
{
	int on = 1;

	engine->sys->setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
}

static void is_there(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	struct shunt_rx *rx = &stream->rx;
	uint8_t bytes[SHUNT_NONCE_BYTES];

	if (receive(engine, fd, bytes, sizeof(bytes), 0) != sizeof(bytes))
		return;
	acknowledge(engine, fd);
	rx->nonce.aside += sizeof(bytes);
	move(stream, SHUNT_PROVEN, SHUNT_NEVER);
	if (atomic_load(&stream->state) == SHUNT_LINKED &&
	    !shunt_intake_final(&stream->seat->in.intake))
		say(stream, SHUNT_MSG_PROVEN);
}

void shunt_proof_read(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;
	struct shunt_seat_in *in = &stream->seat->in;
	int copy = atomic_load(&rx->nonce.fd), fd = copy >= 0 ? copy : stream->fd;
	uint8_t bytes[SHUNT_NONCE_BYTES];
	ssize_t got;

	shunt_assert_held(&stream->rx.lock);
	if (!shunt_proof_is_next(stream) || fd < 0)
		return;
	got = receive(engine, fd, bytes, sizeof(bytes), MSG_PEEK);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got == 0 && shunt_end_has(&stream->end, SHUNT_END_SHUT_READ) &&
	    !peer_has_ended(engine, fd))
		return;	/* it is the program that has */
	if (got < 0) {
		shunt_stream_was_reset(stream, errno);
		shunt_end_learn(&stream->end, SHUNT_LEARN_EOF, 0); /* there is nothing before it */
	}
	if (got <= 0) {
		disprove(stream);
		return;
	}
	if (memcmp(bytes, in->proof.nonce, (size_t)got)) {
		/* A peer that knows of our close(), or of our failed queue pair, may send anything. */
		if (!shunt_intake_final(&in->intake) && atomic_load(&stream->state) == SHUNT_LINKED)
			shunt_link_distrust(stream->seat->link,
					    "it claims a connection that is not its own");
		disprove(stream);
	} else if (got == sizeof(bytes)) {
		is_there(engine, stream, fd);
	} else if (peer_has_ended(engine, fd)) {
		cut_off(engine, stream, fd, (size_t)got);
	}
}

void shunt_proof_heard(struct shunt_engine *engine, struct shunt_stream *stream)
{
	shunt_lock_take(&stream->rx.lock);
	if (atomic_load(&stream->seat->in.proof.state) == SHUNT_EXPECTED)
		shunt_proof_read(engine, stream);
	shunt_backlog_proven(stream);
	shunt_lock_leave(&stream->rx.lock);
	tell_readers(stream);
}

void shunt_proof_leave(struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;

	shunt_assert_held(&stream->rx.lock);
	shunt_assert_held(&stream->tx.lock);
	if (atomic_load(&stream->seat->in.proof.state) != SHUNT_EXPECTED)
		return;
	if (!shunt_proof_is_next(stream) || atomic_load(&rx->nonce.fd) < 0 ||
	    shunt_end_has(&stream->end, SHUNT_END_RESET))
		disprove(stream);	/* nobody will read what is before it, so nobody waits for it */
}

bool shunt_proof_end_reading(struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;

	shunt_assert_held(&stream->rx.lock);
	/* Else the kernel has been told before. */
	rx->nonce.end_reading = shunt_proof_is_next(stream) && atomic_load(&rx->nonce.fd) >= 0 &&
				(!shunt_end_has(&stream->end, SHUNT_END_SHUT_READ) ||
				 rx->nonce.end_reading);
	return rx->nonce.end_reading;
}

static bool is_watched(struct shunt_stream *stream, void *unused)
{
	(void)unused;
	return atomic_load(&stream->rx.nonce.fd) >= 0;
}

void shunt_proof_end_waiting(struct shunt_engine *engine)
{
	struct shunt_sweep sweep = { .wants = is_watched };
	struct shunt_stream *stream;

	while ((stream = shunt_streams_next(engine, &sweep)) != NULL) {
		shunt_lock_take(&stream->rx.lock);
		unwatch(stream);
		shunt_lock_leave(&stream->rx.lock);
		tell_readers(stream);
	}
}

/* --- the sender --- */

/* The one place where a sender's state changes, once it has one. tx.lock held. */
static void turn(struct shunt_stream *stream, enum shunt_show to)
{
	atomic_store(&stream->seat->out.show, to);
	shunt_sleep_tell(stream,
			 EPOLLOUT | SHUNT_READY_SETTLED | SHUNT_READY_TRACK);
}

/* The acceptor shows first: nothing of us is written for a peer that does not hold the connection. */
static bool is_our_turn(struct shunt_stream *stream)
{
	return atomic_load(&stream->seat->out.show) == SHUNT_OWED &&
	       atomic_load(&stream->state) == SHUNT_LINKED && shunt_stream_is_agreed(stream) &&
	       (atomic_load(&stream->role) == SHUNT_ACCEPTOR ||
		atomic_load(&stream->seat->in.proof.state) == SHUNT_PROVEN);
}

static bool can_write(struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;

	return !shunt_end_has(&stream->end, SHUNT_END_SHUT_WRITE | SHUNT_END_BROKEN) &&
	       !tx->backlog.bytes && !shunt_heading_halted(&stream->seat->out.heading) &&
	       !shunt_intake_final(&stream->seat->in.intake) && !shunt_stream_is_released(stream) &&
	       stream->parting != SHUNT_DISSOLVED && shunt_stream_stays(stream) &&
	       atomic_load(&stream->seat->leaving.asked) == SHUNT_NOT_ASKED;
}

void shunt_proof_say(struct shunt_stream *stream)
{
	struct shunt_message message = { .type = SHUNT_MSG_NONCE, .stream = stream->seat->peer_id };
	bool said;

	shunt_assert_held(&stream->tx.lock);
	if (!is_our_turn(stream))
		return;
	message.nonce.offset = stream->tx.offset;
	said = can_write(stream) && !shunt_link_send(stream->seat->link, &message, NULL, 0);
	turn(stream, said ? SHUNT_PLACED : SHUNT_WITHDRAWN);
}

void shunt_proof_write(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;

	shunt_lock_take(&stream->tx.lock);
	if (atomic_load(&out->show) == SHUNT_PLACED &&
	    atomic_load(&stream->state) == SHUNT_LINKED &&
	    !shunt_end_has(&stream->end, SHUNT_END_SHUT_WRITE)) {
		tx->backlog.bytes = tx->nonce;	/* takes no memory that could be refused */
		tx->backlog.done = 0;
		tx->backlog.size = sizeof(tx->nonce);
		tx->nonce_at = tx->bytes.tcp;
		if (shunt_backlog_write(engine, stream->fd, stream) == -EAGAIN)
			shunt_backlog_await(stream);
		turn(stream, SHUNT_WRITTEN);
	}
	shunt_lock_leave(&stream->tx.lock);
}

void shunt_proof_shown(struct shunt_link *link, struct shunt_stream *stream)
{
	struct shunt_seat_out *out = &stream->seat->out;
	bool wrong = false;

	shunt_lock_take(&stream->tx.lock);
	if (atomic_load(&stream->state) == SHUNT_LINKED) {
		wrong = atomic_load(&out->show) != SHUNT_WRITTEN;
		if (!wrong) {
			turn(stream, SHUNT_SHOWN);
			shunt_track_reconsider(shunt_stream_engine(stream), stream);
		}
	}
	shunt_lock_leave(&stream->tx.lock);
	if (wrong)
		shunt_link_distrust(link, "it has read a nonce that was not written");
}

void shunt_proof_withdraw(struct shunt_stream *stream)
{
	uint8_t show = atomic_load(&stream->seat->out.show);

	shunt_assert_held(&stream->tx.lock);
	if (show != SHUNT_OWED && show != SHUNT_PLACED)
		return;
	turn(stream, SHUNT_WITHDRAWN);
	if (show == SHUNT_PLACED && stream->seat->link)
		say(stream, SHUNT_MSG_NO_NONCE);
}

/* --- both --- */

void shunt_proof_refused(struct shunt_stream *stream)
{
	shunt_lock_take(&stream->rx.lock);
	if (atomic_load(&stream->seat->in.proof.state) == SHUNT_EXPECTED)
		disprove(stream);
	shunt_lock_take(&stream->tx.lock);
	if (atomic_load(&stream->seat->out.show) == SHUNT_OWED ||
	    atomic_load(&stream->seat->out.show) == SHUNT_PLACED)
		turn(stream, SHUNT_WITHDRAWN);
	shunt_lock_leave(&stream->tx.lock);
	shunt_backlog_proven(stream);
	shunt_lock_leave(&stream->rx.lock);
	tell_readers(stream);
}

struct waiting {
	struct shunt_stream *streams[64];
	int count;
};

/* It is our turn to show, or an end waits for a descriptor. */
static int find_waiting(struct shunt_stream *stream, void *arg)
{
	struct waiting *found = arg;

	if (!is_our_turn(stream) && atomic_load(&stream->seat->out.fin_later.fd) != SHUNT_FIN_NO_FD)
		return 0;
	stream->holds++;
	found->streams[found->count++] = stream;
	return found->count == 64;
}

void shunt_proof_run(struct shunt_task *task)
{
	struct shunt_engine *engine = shunt_engine_of(task, loop.requests.fork_owner);
	struct waiting found = { .count = 0 };

	shunt_lock_take(&engine->streams_lock);
	shunt_streams_each(engine, find_waiting, &found);
	shunt_lock_leave(&engine->streams_lock);
	for (int i = 0; i < found.count; i++) {
		struct shunt_stream *stream = found.streams[i];

		shunt_lock_take(&stream->rx.lock);	/* PROVEN comes before NONCE: is_there() */
		shunt_lock_take(&stream->tx.lock);
		shunt_proof_say(stream);
		shunt_lock_leave(&stream->tx.lock);
		shunt_lock_leave(&stream->rx.lock);
		shunt_deferred_fin_again(stream);
		shunt_streams_unhold(stream);
	}
	if (found.count == 64 && !shunt_task_waits(task))	/* else there are no descriptors for more */
		shunt_task_at(task, 0);
}
