/* SPDX-License-Identifier: MIT */
/*
 * The accepting side of a claim: the claimed connection is looked for among those that our program has
 * accepted. The claim is parked until the program uses it, at most claim_ms. Service thread.
 */
#ifndef SHUNT_CORE_PEER_CLAIM_GRANT_H
#define SHUNT_CORE_PEER_CLAIM_GRANT_H

#include <stdbool.h>

struct shunt_link;
struct shunt_message;
struct shunt_service;
struct shunt_stream;
struct shunt_tuple;
struct shunt_worker;

/* CLAIM has come. */
void shunt_claim_heard(struct shunt_link *link, const struct shunt_message *message);
/* An accepted stream that the program has just used: a claim may wait for it. */
void shunt_claim_match(struct shunt_service *service, struct shunt_stream *stream);
/* ASK has come. */
void shunt_claim_asked(struct shunt_link *link, const struct shunt_message *message);
/* The worker has this connection (as it sees it): a claim that waits for it is sent there. False: none does. */
bool shunt_claim_is_had(struct shunt_service *service, const struct shunt_tuple *tuple,
			const struct shunt_worker *worker);
/* Refuses claims that have waited too long. */
void shunt_claim_miss(struct shunt_service *service);
/* The link is over: its parked claims are forgotten. */
void shunt_claim_forget(const struct shunt_link *link);

#endif
