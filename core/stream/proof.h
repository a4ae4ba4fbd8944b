/* SPDX-License-Identifier: MIT */
/*
 * Across hosts a claim is worth nothing until the claimant has shown that it holds the TCP socket (DESIGN 5.4).
 * Each end gives the other a nonce over the link; a direction's first bytes on the link count only when that has
 * been read from TCP, at the byte where the link begins. It is written there after the reader has said that it
 * expects it (EXPECT), and the accepting end begins with its own direction only after the other has been proven:
 * so nothing is ever written into the stream of a peer that does not know of it, as far as the peer can tell.
 * If something else comes there, the claim was forged: the bytes are the program's, and the link is broken off.
 */
#ifndef SHUNT_CORE_STREAM_PROOF_H
#define SHUNT_CORE_STREAM_PROOF_H

#include "core/stream/stream.h"

struct shunt_service;
struct shunt_task;

/* Our part of what decides the nonces, for CLAIM or ACCEPT. False: there is no randomness. */
bool shunt_proof_chance(struct shunt_stream *stream, uint8_t chance[SHUNT_CHANCE_BYTES]);
/* Both parts are known, so both nonces are. Before the stream is attached. */
void shunt_proof_agree(struct shunt_link *link, struct shunt_stream *stream, const uint8_t theirs[SHUNT_CHANCE_BYTES]);
/* An upgrade has been announced: the peer is told that its nonce is expected. rx.lock held. */
void shunt_proof_expect(struct shunt_stream *stream);
/* The reader stands there. 1: it has been read; 0: not yet; -1: the bytes there are the program's. rx.lock held. */
int shunt_proof_read(struct shunt_engine *engine, struct shunt_stream *stream);
/* Something has come on TCP, perhaps that. Service thread. */
void shunt_proof_heard(struct shunt_engine *engine, struct shunt_stream *stream);
/* The same, of the stream whose `proof_source` this is: see loop.h. */
void shunt_proof_ready(struct shunt_source *source, uint32_t events);
/* A peer's nonce is to be asked for, and another thread has the stream's lock; any thread, any lock. */
void shunt_proof_soon(struct shunt_engine *engine);
/* The same, or an end is to be said (deferred_fin.h), but there is no descriptor to wait for it with: in a while. */
void shunt_proof_later(struct shunt_engine *engine);
/* Asks for nonces and says ends where that could not be done at once. */
void shunt_proof_run(struct shunt_task *task);
/* The peer expects ours. Service thread. */
void shunt_proof_write(struct shunt_engine *engine, struct shunt_stream *stream);
/*
 * The link is dead before the direction was proven. Where the peer was told to write the nonce it may still come: then
 * what the link has brought counts, and TCP goes on behind it. Otherwise it does not count. Both locks held. True: so
 * it was.
 */
bool shunt_proof_drop(struct shunt_engine *engine, struct shunt_stream *stream);

/*
 * The program closes it, or ends reading. A nonce that is still to come must find the socket open, or the kernel
 * would answer it with a reset: true if the kernel's end comes behind it. rx.lock held; for the first both, and before
 * RELEASE: the lane is ours.
 */
void shunt_proof_leave(struct shunt_stream *stream);
bool shunt_proof_end_reading(struct shunt_stream *stream);
/* The same of writing, where the kernel has been told that reading has ended. Not for longer than a minute. Both locks held. */
bool shunt_proof_end_writing(struct shunt_stream *stream);
/* Ends that have waited too long for a nonce. */
void shunt_proof_run_overdue(struct shunt_task *task);
/* The service thread has ended: none of them waits any longer. No lock held. */
void shunt_proof_end_waiting(struct shunt_engine *engine);

/* How many of the bytes that the kernel has still to deliver (SIOCOUTQ) are the nonce. tx.lock held. */
static inline int shunt_proof_unsent(const struct shunt_tx *tx, int unsent)
{
	int64_t rest = tx->shown ? unsent - (int64_t)(tx->bytes.tcp - tx->shown_tcp) : 0;

	return rest <= 0 ? 0 : rest < SHUNT_NONCE_BYTES ? (int)rest : SHUNT_NONCE_BYTES;
}

/* The direction begins on the link, and TCP has to carry our nonce before anything else; not to a peer that is gone. */
static inline bool shunt_proof_owed(const struct shunt_stream *stream)
{
	return __builtin_expect(stream->tx.must_prove, 0) && stream->tx.announced &&
	       !atomic_load(&((struct shunt_stream *)stream)->released);
}

static inline bool shunt_proof_pending(const struct shunt_rx *rx)
{
	return __builtin_expect(atomic_load_explicit(&((struct shunt_rx *)rx)->proof, memory_order_relaxed) != SHUNT_PROVEN, 0);
}

#endif
