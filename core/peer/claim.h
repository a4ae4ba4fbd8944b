/* SPDX-License-Identifier: MIT */
/*
 * Which connections move to a link: the connecting side claims (here), the accepting side matches
 * (claim_grant.h), both confirm. Service thread throughout. docs/PROTOCOL.md has the exchange.
 */
#ifndef SHUNT_CORE_PEER_CLAIM_H
#define SHUNT_CORE_PEER_CLAIM_H

#include <stdbool.h>
#include "core/base/reason.h"
#include "core/engine.h"
#include "core/loop/loop.h"

struct shunt_message;
struct shunt_service;

struct shunt_parked {		/* a claim whose connection the program has not used yet */
	struct shunt_link *link;
	struct shunt_tuple tuple;
	uint64_t network;
	uint32_t number;	/* of a proof that is asked for, with SHUNT_PROOF_BIT; 0: a claim */
	struct shunt_place place;		/* of a claim, as is the next */
	uint8_t chance[SHUNT_CHANCE_BYTES];
	uint8_t digest[SHUNT_DIGEST_BYTES];	/* of a proof */
	uint64_t deadline;
	struct shunt_parked *next;
};

struct shunt_refused {		/* an address that is not asked again for a while */
	struct shunt_name name;
	uint64_t until;
	enum shunt_reason reason;
};

#define SHUNT_REFUSED_SLOTS 64

/* A stream the program has just used: claim it, or see whether it has been claimed. Takes the
 * caller's hold. */
void shunt_claim_offer(struct shunt_service *service, struct shunt_stream *stream);
/* The stream is to be carried by this link. */
void shunt_claim_on(struct shunt_link *link, struct shunt_stream *stream);
/* The same for a stream that was on a link before. */
void shunt_claim_again(struct shunt_link *link, struct shunt_stream *stream);
/* ACCEPT has come. */
void shunt_claim_accepted(struct shunt_link *link, struct shunt_stream *stream, const struct shunt_message *message);
/* It stays on TCP, and so do others to that address for a while. */
void shunt_claim_fails(struct shunt_service *service, struct shunt_stream *stream, enum shunt_reason reason);
/* Why a connection to this host was not claimed: the reason, or a better one that the kernel knows. */
enum shunt_reason shunt_claim_reason(struct shunt_service *service,
				     const struct shunt_stream *stream, enum shunt_reason reason);
/* It stays on TCP; no other does because of it. */
void shunt_claim_stays(struct shunt_engine *engine, struct shunt_stream *stream, enum shunt_reason reason);

/* The peer has knocked, and connections are proven on this link. */
void shunt_claim_link_met(struct shunt_link *link);
void shunt_claim_link_up(struct shunt_link *link);
void shunt_claim_link_down(struct shunt_link *link);
/* A link over the channel `fd` (or -errno) to the owner of that name, a stranger or not. NULL: none, and why. */
struct shunt_link *shunt_claim_new_link(struct shunt_service *service, int fd, bool strange,
					const struct shunt_name *name, enum shunt_reason *reason);
/* Finds the stream's addresses, if they are not known. 0 or -errno. */
int shunt_claim_learn(struct shunt_engine *engine, struct shunt_stream *stream);
/*
 * False, for example: the process has changed its user since the link was made. Then it gets only
 * connections that are proven.
 */
bool shunt_claim_is_trusted(struct shunt_link *link);
/* Connections that are established by now, and claims that have waited too long. */
void shunt_claim_run(struct shunt_task *task);

#endif
