/* SPDX-License-Identifier: MIT */
/*
 * Possession: both ends of a claim show each other that they hold the connection's sockets. That happens before the
 * link has memory, before a seat is taken, and without a byte in the stream. The kernel is the witness (witness.h).
 *
 *   claimant                                   acceptor
 *     ASK(tuple, digest of A)   ────────────→  parked until the program has used the connection
 *                               ←────────────  CHALLENGE(B)
 *     shows part 0; REVEAL(A)   ────────────→  looks; shows part 0
 *     looks; shows part 1       ←────────────  SHOWN(0)
 *     SHOWN(1)                  ────────────→  looks; shows part 1
 *       …                                        …
 *     looks; its own are back   ←────────────  SHOWN(7)
 *     SHOWN(8)                  ────────────→  its own are back
 *
 * A part is four options of the socket (core/stream/marks.h). Its bits are a hash over both halves of chance, the two
 * ends of the channel as the kernel numbers them, and the connection. Neither end can choose them. The claimant has
 * told the digest of its half before it hears the acceptor's, and the acceptor tells its own before it hears the
 * claimant's. A process between the two ends may pass questions on. It has two channels, so its two proofs want
 * different bits. Guessing 32 bits right is 1 of 2^32, and each wrong guess counts against the user (limits.h).
 *
 * A proof is of one connection on one channel. Pairs of processes that could ptrace each other need none (trust.h).
 * Service thread throughout.
 */
#ifndef SHUNT_CORE_PEER_POSSESSION_H
#define SHUNT_CORE_PEER_POSSESSION_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/reason.h"
#include "shunt/wire.h"

struct shunt_engine;
struct shunt_link;
struct shunt_service;
struct shunt_stream;
struct shunt_task;

#define SHUNT_PROOF_NS 5000000000ull	/* that one may take from its CHALLENGE on */

/* The stream is to be proven on the link's channel before it is claimed there. Its claim has begun. */
void shunt_possession_ask(struct shunt_link *link, struct shunt_stream *stream);
/* A peer's ASK is for this stream of ours, which the program has used. `number` is the peer's. */
void shunt_possession_asked(struct shunt_link *link, struct shunt_stream *stream, uint32_t number,
			    const uint8_t digest[SHUNT_DIGEST_BYTES]);
/* CHALLENGE, REVEAL or SHOWN has come, or a REFUSE or REDIRECT of a proof. */
void shunt_possession_hear(struct shunt_link *link, const struct shunt_message *message);
/* The message is for a proof: not for a stream, and no ASK. */
bool shunt_possession_is_for(const struct shunt_message *message);
/* The connection may be claimed on the link: there is a proof, or none is needed. */
bool shunt_possession_is_proven(const struct shunt_link *link, const struct shunt_stream *stream);

/* The link is over: so are its proofs. Claims of ours fail for `reason`. */
void shunt_possession_link_down(struct shunt_link *link, enum shunt_cause cause);
/* Sockets that should show something are looked at, and proofs that take too long end. */
void shunt_possession_run(struct shunt_task *task);

#endif
