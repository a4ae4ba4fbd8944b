/* SPDX-License-Identifier: MIT */
/*
 * The throttle of one end of a link: what this end may send there (HA-05, HA-06). It is a gate before all lanes of the
 * link (core/lane/window.h). A limit takes tokens from one bucket. Where the node hands out tokens, each work request
 * needs some of the link's account, too. Without a token the bytes wait in their streams, as they do without credit:
 * EAGAIN, a blocking send, a poll for writing. The service thread serves the lanes again when there are tokens.
 * Nothing is timed while nobody waits.
 *
 * The way of a token. core/lane/window.c asks the gate of a lane last, for each data work request. The gate is the
 * throttle of the link, one for all its lanes. A refusal marks the throttle, and posts the task once. The task finds
 * when the tokens are due and serves the lanes then. So a link that waits wakes the service thread about once a
 * millisecond, and one that does not wait, never. The room peer tells this one when a link is up, when a connection
 * is granted and when a link is over.
 */
#ifndef SHUNT_CORE_QOS_THROTTLE_H
#define SHUNT_CORE_QOS_THROTTLE_H

#include "core/lane/window.h"
#include "core/device/page.h"
#include "core/qos/account.h"
#include "core/qos/fetch.h"
#include "core/qos/holding.h"
#include "core/qos/ledger.h"
#include "core/qos/pacing.h"
#include "core/qos/portions.h"
#include "core/qos/tokens.h"
#include "shunt/wire.h"

struct shunt_engine;
struct shunt_link;
struct shunt_own_sends;
struct shunt_pool;
struct shunt_task;

enum shunt_throttle_wait {
	SHUNT_THROTTLE_CLEAR, /* nobody waits for tokens */
	SHUNT_THROTTLE_WAITS, /* a lane was refused; the task looks at it when tokens are due */
	SHUNT_THROTTLE_SERVES, /* the task has them, and serves the lanes; one that is refused says WAITS */
};

/* The service thread writes it, and group.lock too is held where statistics read; fields named otherwise apart. */
struct shunt_throttle {
	struct shunt_gate gate;
	struct shunt_link *link;
	struct shunt_bucket bucket;
	_Atomic uint8_t wait; /* enum shunt_throttle_wait; any thread, as the next six */
	_Atomic bool open; /* the process ends: what it has accepted goes out */
	_Atomic uint32_t need; /* tokens that the lane wanted that was refused last */
	_Atomic uint64_t tokens; /* taken, in all; lanes may have a few in hand */
	_Atomic uint32_t epoch; /* of what lanes have in hand */
	_Atomic uint32_t ahead; /* tokens that a lane takes beyond what it needs */
	_Atomic uint64_t waits; /* times that CLEAR has become WAITS */
	/* ns, SHUNT_NEVER: the first token from then on makes a report due. */
	_Atomic uint64_t report_at;
	_Atomic bool report_due;
	_Atomic uint64_t rate; /* of the lanes, as in tokens.h; 0: no limit. Written by the service thread */
	_Atomic bool counted; /* the peer's node hands out tokens: the account has ours. Written by the service thread */
	struct shunt_account account;
	struct shunt_fetch fetch;
	char name[SHUNT_QOS_NAME]; /* of the class; "": none */

	uint64_t since; /* ns: when it was made */
	struct shunt_pace pace; /* group.lock */

	uint64_t node_rate; /* of all tokens that the node hands out, or takes for its own sends; 0: it does neither */

	/* the claimant's end, which is told */
	uint64_t period; /* ns; 0: it is not told anything */
	uint64_t limit; /* that it was told; 0: none */
	struct shunt_paced paced; /* those of its streams that stay on TCP; they share the limit with `out` */
	uint64_t reported_at, reported_waits, reported_tcp;
	bool reported_short;

	/* the node's end */
	char declared[SHUNT_QOS_NAME];
	uint32_t class; /* SHUNT_QOS_NO_CLASS */
	uint64_t told; /* the rate that the peer was told last */
	struct shunt_portion in; /* of the class's limit: the peer's sends */
	struct shunt_holding holding; /* of the peer's sends, by what arrives */
	/* the same, where the node hands out tokens (monitor.h) */
	bool member;
	struct shunt_ledger_client tokens_of;
	struct shunt_portion reserved; /* of the class's reservation */
	uint64_t short_periods; /* in which it has used all of its part */
	uint64_t part, granted; /* tokens of this period: planned, and said */
	uint64_t arrived_before; /* tokens that had arrived when it began */
	struct shunt_pool *pool; /* NULL: none for it */
	struct shunt_page_loan loan; /* of the pool's page */
	struct shunt_own_sends *_Atomic own; /* whose tokens our sends need; NULL: none. Written as `rate` */
	_Atomic uint32_t handed; /* tokens for our next work request */
	uint64_t served_at; /* the turn of `own` in which it was handed some last */

	struct shunt_portion out; /* of a class's limit, or of the link's: what our lanes send */
};

/* The link's throttle; made at the first call. NULL: out of memory. */
struct shunt_throttle *shunt_throttle_of(struct shunt_link *link);
void shunt_throttle_free(struct shunt_link *link);
/* So much from now on; 0: no limit. */
void shunt_throttle_set(struct shunt_throttle *throttle, uint64_t rate);
/* Tokens of the account are needed from now on; `rate`: of all that the node hands out. 0: no more. */
void shunt_throttle_count(struct shunt_throttle *throttle, uint64_t rate);
/* Tokens in the hands of lanes are worth nothing any more: a period has begun. */
void shunt_throttle_renew(struct shunt_throttle *throttle);
/* Our sends need tokens of these, too, which come at this rate; NULL: of none. */
void shunt_throttle_own(struct shunt_throttle *throttle, struct shunt_own_sends *own,
			uint64_t rate);
/* Nothing but the tokens of `own` keeps it waiting. Service thread. */
bool shunt_throttle_is_ripe(const struct shunt_throttle *throttle);
/* The lanes are served: there are tokens. Service thread. True: nobody waits any more. */
bool shunt_throttle_release(struct shunt_throttle *throttle);
/* Serves those who have waited long enough, and says when to look again. */
void shunt_throttle_serve(struct shunt_throttle *throttle, struct shunt_task *task, uint64_t now);
/* The process ends: no throttle holds anything back any more. group.lock is taken. */
void shunt_throttle_open_all(struct shunt_engine *engine);
/* Bytes that the link's lanes have posted. */
uint64_t shunt_throttle_bytes(const struct shunt_throttle *throttle);

#endif
