/* SPDX-License-Identifier: MIT */
/*
 * Which connections move to a link: the connecting side claims (here), the accepting side matches
 * (claim_grant.h), both confirm. Service thread throughout. docs/dev/PROTOCOL.md has the exchange.
 */
#ifndef SHUNT_CORE_PEER_CLAIM_H
#define SHUNT_CORE_PEER_CLAIM_H

#include <stdbool.h>
#include "core/base/reason.h"
#include "core/loop/loop.h"
#include "shunt/wire.h"

struct shunt_engine;
struct shunt_link;
struct shunt_name;
struct shunt_stream;
struct shunt_task;
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

/* A stream the program has just used: claim it, or see whether it has been claimed. Takes the
 * caller's hold. */
void shunt_claim_offer(struct shunt_service *service, struct shunt_stream *stream);
/* The same, without a hold, of one that is known to be ours alone. */
void shunt_claim_go_on(struct shunt_service *service, struct shunt_stream *stream);
/* ACCEPT has come. */
void shunt_claim_accepted(struct shunt_link *link, struct shunt_stream *stream, const struct shunt_message *message);
void shunt_claim_link_down(struct shunt_link *link);
/* A link over the channel `fd` (or -errno) to the owner of that name, a stranger or not. NULL: none, and why. */
struct shunt_link *shunt_claim_new_link(struct shunt_service *service, int fd, bool strange,
					const struct shunt_name *name, enum shunt_cause *cause);
/* Connections that are established by now, and claims that have waited too long. */
void shunt_claim_run(struct shunt_task *task);

#endif
