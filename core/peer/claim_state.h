/* SPDX-License-Identifier: MIT */
/*
 * One stream's claim: begun, agreed on, refused, and for how long. Service thread throughout.
 *
 *	an acceptor   UNCLAIMED or TOLD ──▶ AGREED, or refused: LEAVING ──▶ UNCLAIMED
 *	a connector   UNCLAIMED ──▶ UNDER_WAY ──▶ AGREED, or refused: LEAVING ──▶ UNDER_WAY, and it ends
 */
#ifndef SHUNT_CORE_PEER_CLAIM_STATE_H
#define SHUNT_CORE_PEER_CLAIM_STATE_H

#include <stdbool.h>
#include "core/base/reason.h"
#include "core/peer/reconnect.h"
#include "core/stream/stream.h"

struct shunt_engine;
struct shunt_link;
struct shunt_stream;
struct shunt_tuple;
struct shunt_service;

struct shunt_refused {		/* an address that is not asked again for a while */
	struct shunt_name name;
	uint64_t at;
	enum shunt_cause cause;
};

#define SHUNT_REFUSED_SLOTS 64

extern const struct shunt_machine shunt_claim_machine;
/* As shunt_machine_after, of core/base/machine.h: the event is the state that is to follow. */
uint32_t shunt_claim_after(uint32_t from, uint32_t to);
/*
 * Turns stream->claim.state, as nobody else does while the stream lives. A turn that cannot come changes nothing;
 * builds that check locks (core/base/lock_check.h) abort.
 */
void shunt_claim_turn(struct shunt_stream *stream, enum shunt_claim_state to);
/* The same for a turn that depends on what the peer says. False: it cannot come, and nothing has changed. */
bool shunt_claim_try(struct shunt_stream *stream, enum shunt_claim_state to);
/* From the claim to its end: nobody else may claim it. */
bool shunt_claim_is_pending(const struct shunt_stream *stream);
/* It is under way, and the stream held, until shunt_claim_end() or shunt_claim_stays(). */
void shunt_claim_begin(struct shunt_stream *stream);
void shunt_claim_end(struct shunt_stream *stream);
/* It stays on TCP; no other does because of it. */
void shunt_claim_stays(struct shunt_engine *engine, struct shunt_stream *stream,
		       enum shunt_cause cause);
/* It stays on TCP, and so do others to that address for a while. */
void shunt_claim_fails(struct shunt_service *service, struct shunt_stream *stream,
		       enum shunt_cause cause);
/* Why nobody is asked at the stream's address now; SHUNT_CAUSE_NONE: somebody may be. */
enum shunt_cause shunt_claim_refusal(struct shunt_service *service,
				      const struct shunt_stream *stream);
/* Why a connection to this host was not claimed: the reason, or a better one that the kernel knows. */
enum shunt_cause shunt_claim_reason(struct shunt_service *service,
				     const struct shunt_stream *stream, enum shunt_cause cause);
/* Finds the stream's addresses, if they are not known. 0 or -errno. */
int shunt_claim_learn(struct shunt_engine *engine, struct shunt_stream *stream);
/*
 * False, for example: the process has changed its user since the link was made. Then it gets only
 * connections that are proven.
 */
bool shunt_claim_is_trusted(struct shunt_link *link);

#endif
