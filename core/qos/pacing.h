/* SPDX-License-Identifier: MIT */
/*
 * A limit on TCP: each connection of a class that sends on TCP is paced by the kernel (SO_MAX_PACING_RATE, socket(7)).
 * It shares the limit with what the links of the class send: it is one more portion (portions.h). At the client the
 * streams of a link that stay on TCP share what the link was told with the link's lanes.
 *
 * The service thread looks at all connections: when one comes or changes tracks, when rules change, and eight times a
 * period while any is paced. Nothing is remembered of the connections from one look to the next but their portions, so
 * one that has gone is not missed. Without rules there is no look.
 *
 * The program sees the option as if it were alone: its own value is kept here while ours is the kernel's. A rate of the
 * program's own is for the kernel to keep, so as long as there is one, the direction stays on TCP (SHUNT_HELD_PACED).
 *
 * TCP_INFO says what has arrived, too, so a client whose streams stay on TCP is seen at the node, whether it has Shunt or
 * not. It is counted, and not held: the kernel acknowledges what it takes, and a smaller receive buffer would be the
 * program's. An honest client is paced by its own kernel. Bytes that come after the last look at a connection are not
 * counted.
 *
 * The streams of a look are held until the kernel has been told. TCP_INFO says what each has sent, and whether more
 * waits. streams_lock keeps the option, so the call of the program and the look cannot cross.
 */
#ifndef SHUNT_CORE_QOS_PACING_H
#define SHUNT_CORE_QOS_PACING_H

#include <stdbool.h>
#include <stdint.h>
#include "core/qos/portions.h"

/*
 * A rate as in tokens.h, 4 Mbit/s: one that sends nothing keeps it, or an equal portion where that is less. Bytes
 * that the kernel has begun to time, up to 64 KiB, are not timed anew when the connection gets more.
 */
#define SHUNT_PACING_LEAST 128000ull

struct shunt_engine;
struct shunt_service;
struct shunt_stream;
struct shunt_task;

struct shunt_pacing { /* of a stream that a limit has met */
	/* Bytes a second that the kernel was told to let through; 0: what the program has set. Under streams_lock. */
	_Atomic uint64_t rate;
	uint64_t own; /* the program's SO_MAX_PACING_RATE while `rate` is not 0; streams_lock */
	bool wide; /* the kernel takes 64 bits of it; streams_lock */

	/* the service thread's */
	struct shunt_portion portion; /* as if its bytes were tokens; at == 0: it has none yet */
	uint32_t matched_at; /* number of the rules that gave `class`; 0: none have */
	uint32_t class; /* by its host and port alone; SHUNT_QOS_NO_CLASS */
	uint32_t channel; /* number of the channel of its last link; 0: none */
	uint64_t arrived; /* bytes that TCP has brought, as of the last time that its use was asked for */
	_Atomic bool anew; /* accepted under a limit: all that arrives counts. Set by the thread that accepts, before a look */
	struct shunt_stream *next; /* of those that share with it, while there is a look */
};

struct shunt_paced { /* those that share a limit */
	struct shunt_stream *first; /* while there is a look; the service thread's, as all of it */
	uint64_t every; /* ns: the use of each is asked for so often */
	/* As of the last look; written under group.lock, as are the others. */
	uint32_t count;
	uint64_t rate, used; /* of all together */
	uint64_t tokens, waits; /* of all that were here, in all */
	uint64_t arrived; /* tokens that TCP has brought by all that were here; at the node also of each client's link */
};

/* --- the service thread --- */

/* Finds the streams on TCP, shares limits anew and tells the kernel. */
void shunt_pacing_look(struct shunt_service *service, uint64_t now);
void shunt_pacing_run(struct shunt_task *task);
/* Rules, or the limit that a link was told, are others. */
void shunt_pacing_rules_changed(struct shunt_service *service);
/* The portions of those on TCP, before `first`. */
struct shunt_portion *shunt_pacing_join(const struct shunt_paced *paced,
					struct shunt_portion *first);
/* The kernel is told what they have got: those that have less, or the others. */
void shunt_pacing_apply(const struct shunt_paced *paced, bool less);

/* --- any thread --- */

/* Bytes a second that the kernel was told to let through; 0: it is not paced. The stream is held, or streams_lock is. */
uint64_t shunt_pacing_rate(struct shunt_stream *stream);
/* In a child: it has no link, and no use of it is known. */
void shunt_pacing_inherit(struct shunt_stream *stream);

/* Has the program set a rate, or the socket inherited one from its listener? tx.lock held. */
bool shunt_pacing_is_asked(struct shunt_stream *stream);

/* A connection was accepted: it is paced from its first byte. */
void shunt_pacing_accepted(struct shunt_stream *stream);
/* The socket is to be what the program has made it. */
void shunt_pacing_lift(struct shunt_stream *stream);

#endif
