/* SPDX-License-Identifier: MIT */
/*
 * Between hosts, and between network namespaces, a claim is worth nothing until both ends have shown that they hold the
 * TCP socket. Each shows a nonce (nonce.h) in the TCP stream itself, the acceptor first, and before any byte of the
 * program is on the link:
 *
 *	shows			reads
 *	NONCE(n)	→	knows the place
 *			←	EXPECT
 *	16 bytes at n	→	takes them out	(in TCP; the program's bytes go on behind them)
 *			←	PROVEN
 *
 * From NONCE to EXPECT the sender writes nothing else to TCP. The claimant says NONCE only after it has said PROVEN.
 * A direction may be upgraded when both nonces have been read. NO_NONCE instead of EXPECT: the reader cannot take it
 * out; instead of the nonce: it will not be written. Then the stream stays on TCP, as it does where something else
 * stands at n: those bytes are the program's.
 *
 * The nonces are shown before the link carries a byte, the acceptor's first (core/stream/proof.c). They are no
 * business of the program's: the service thread waits for the peer's on a copy of the descriptor. A stream whose
 * reader stands before it is not readable. A sender that has said where its own will stand is not writable until the
 * peer has asked for it. A program that closes or ends reading meanwhile finds the kernel's end of reading behind the
 * nonce. A closed socket would answer the nonce with a reset. out.show and in.proof of the seat are the states, and
 * each changes in one place. SHUNT_TUNE=proof=nonce with SHUNT_TUNE=retain=always runs all of this between two processes of one
 * host, on the soft device. The simulator does it with every third seed, and diff.sh takes it like any mode.
 */
#ifndef SHUNT_CORE_STREAM_PROOF_H
#define SHUNT_CORE_STREAM_PROOF_H

#include "core/stream/stream.h"

struct shunt_service;
struct shunt_task;

/* Our part of what decides the nonces, for CLAIM or ACCEPT. False: there is no randomness. */
bool shunt_proof_chance(struct shunt_stream *stream, uint8_t chance[SHUNT_CHANCE_BYTES]);
/* Both parts are known, so both nonces are. Before the stream is attached. */
void shunt_proof_agree(struct shunt_link *link, struct shunt_stream *stream,
		       const uint8_t theirs[SHUNT_CHANCE_BYTES]);

/* --- the reader --- */

/* NONCE has come. Service thread. */
void shunt_proof_place(struct shunt_link *link, struct shunt_stream *stream, uint64_t at);
/* The reader stands where the nonce may be: takes it out if it is there. */
void shunt_proof_read(struct shunt_engine *engine, struct shunt_stream *stream)
	SHUNT_REQUIRES(stream->rx.lock);
/* Something has come on TCP, perhaps the nonce. Service thread, or its waiter. */
void shunt_proof_heard(struct shunt_engine *engine, struct shunt_stream *stream);
/*
 * The program closes it, or ends reading. A nonce that is still to come must find the socket open. Otherwise the
 * kernel would answer it with a reset, and drop what we have sent. True if the kernel's end comes behind it. rx.lock
 * held; for the first both.
 */
void shunt_proof_leave(struct shunt_stream *stream);
bool shunt_proof_end_reading(struct shunt_stream *stream) SHUNT_REQUIRES(stream->rx.lock);
/* The service thread has ended: the reader takes the nonce out; a closed stream does not wait for it. No lock held. */
void shunt_proof_end_waiting(struct shunt_engine *engine);

/* --- the sender --- */

/* The peer has attached the stream: the acceptor says where its nonce will stand. */
void shunt_proof_say(struct shunt_stream *stream) SHUNT_REQUIRES(stream->tx.lock);
/* EXPECT has come. Service thread. */
void shunt_proof_write(struct shunt_engine *engine, struct shunt_stream *stream);
/* PROVEN has come. Service thread. */
void shunt_proof_shown(struct shunt_link *link, struct shunt_stream *stream);
/* A nonce that has not been written will not be: the stream stays on TCP. */
void shunt_proof_withdraw(struct shunt_stream *stream) SHUNT_REQUIRES(stream->tx.lock);

/* --- both --- */

/* NO_NONCE has come. Service thread. */
void shunt_proof_refused(struct shunt_stream *stream);
void shunt_proof_run(struct shunt_task *task);

/* How many of the bytes that the kernel has still to deliver (SIOCOUTQ) are the nonce. tx.lock held. */
static inline int shunt_proof_unsent(const struct shunt_tx *tx, int unsent)
{
	int64_t rest = tx->nonce_at != SHUNT_NEVER ?
			       unsent - (int64_t)(tx->bytes.tcp - tx->nonce_at) :
			       0;

	return rest <= 0 ? 0 : rest < SHUNT_NONCE_BYTES ? (int)rest : SHUNT_NONCE_BYTES;
}

/* The place has been said, and the reader may not know it yet: TCP has to wait. Not for a peer that is gone. */
static inline bool shunt_proof_holds(const struct shunt_stream *stream)
{
	struct shunt_stream *s = (struct shunt_stream *)stream;
	uint8_t show = atomic_load_explicit(&s->seat->out.show, memory_order_relaxed);

	return __builtin_expect(show == SHUNT_PLACED, 0) && !shunt_stream_is_released(s);
}

/* Both ends have shown what they had to: either direction may go to the link. */
static inline bool shunt_proof_is_complete(const struct shunt_stream *stream)
{
	struct shunt_stream *s = (struct shunt_stream *)stream;

	return atomic_load(&s->seat->out.show) == SHUNT_SHOWN &&
	       atomic_load(&s->seat->in.proof.state) == SHUNT_PROVEN;
}

/* Where the reader's present track ends, or a nonce begins; SHUNT_NEVER. A switch and a nonce are never ahead at once. */
static inline uint64_t shunt_proof_end_of_track(const struct shunt_seat_in *in)
{
	struct shunt_seat_in *r = (struct shunt_seat_in *)in;
	uint64_t end = atomic_load_explicit(&r->boundary, memory_order_relaxed);

	if (__builtin_expect(end == SHUNT_NEVER, 1))
		end = atomic_load_explicit(&r->proof.at, memory_order_relaxed);
	return end;
}

/* The next thing in TCP is to be the nonce. */
static inline bool shunt_proof_is_next(const struct shunt_stream *stream)
{
	struct shunt_stream *r = (struct shunt_stream *)stream;

	return __builtin_expect(atomic_load_explicit(&r->seat->in.proof.at, memory_order_relaxed) ==
					atomic_load_explicit(&r->rx.head, memory_order_relaxed),
				0);
}

#endif
