/* SPDX-License-Identifier: MIT */
/*
 * The proofs of a process (possession.h): a list, oldest first, and a table by number. Service thread.
 */
#ifndef SHUNT_CORE_PEER_PROOFS_H
#define SHUNT_CORE_PEER_PROOFS_H

#include <stdbool.h>
#include <stdint.h>
#include "core/peer/proof_parts.h"

struct shunt_link;
struct shunt_service;
struct shunt_stream;

enum shunt_possession_state {
	SHUNT_PROOF_ASKED,	/* claimant: ASK is out */
	SHUNT_PROOF_QUEUED,	/* acceptor: CHALLENGE will go when others are over */
	SHUNT_PROOF_CHALLENGED,	/* acceptor: CHALLENGE is out */
	SHUNT_PROOF_SHOWING,	/* both know what the sockets have to show */
};

struct shunt_possession {
	struct shunt_link *link;
	struct shunt_stream *stream;	/* held */
	enum shunt_possession_state state;
	uint32_t number, peer_number;	/* for messages to us, and to the peer */
	uint8_t half[SHUNT_PROOF_HALF];	/* ours */
	uint8_t digest[SHUNT_DIGEST_BYTES];	/* acceptor: of the claimant's */
	uint32_t ours, theirs;		/* what the sockets have to show */
	uint32_t round;			/* SHOWING: the part that is being shown or looked for */
	bool shows;			/* our socket has marks */
	bool looks;			/* the peer's socket is to be looked at */
	uint64_t cookie;		/* of the peer's socket; 0: not seen yet */
	uint64_t until;			/* ns; SHUNT_NEVER: it may take any time */
	struct shunt_possession *prev, *next, *next_same;
};

#define SHUNT_PROOFS_PER_LINK 64	/* that are under way at once; the others wait */
#define SHUNT_PROOF_BUCKETS 256

/* Of a service. */
struct shunt_proofs {
	struct shunt_possession *first, *last;	/* in the order in which they were asked for */
	struct shunt_possession *by_number[SHUNT_PROOF_BUCKETS];
	uint32_t number;	/* of the last one */
	bool queued_due;	/* one that has waited may begin */
};

/* One more, with chance of its own; the stream is held. NULL: no memory, or no randomness yet. */
struct shunt_possession *shunt_proofs_make(struct shunt_link *link, struct shunt_stream *stream,
					   enum shunt_possession_state state);
/* It is in neither any more, and remains the caller's to free. */
void shunt_proofs_remove(struct shunt_possession *proof);
/* The stream's on the link, or NULL. */
struct shunt_possession *shunt_proofs_of(const struct shunt_link *link,
					 const struct shunt_stream *stream);
/* The one of that number on the link, or NULL. */
struct shunt_possession *shunt_proofs_find(const struct shunt_link *link, uint32_t number);

#endif
