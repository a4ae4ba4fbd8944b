/* SPDX-License-Identifier: MIT */
/* Work that streams have for the service thread: a part of an engine, new with each service (core/service.c). */
#ifndef SHUNT_CORE_STREAM_WORK_H
#define SHUNT_CORE_STREAM_WORK_H

#include <stdint.h>
#include "core/base/lock.h"
#include "core/loop/loop.h"
#include "core/stream/destroyed.h"

/* Those marked * run in each round, the others when they are due. */
struct shunt_stream_tasks {
	struct shunt_task claim_task_offers;	/* connections have been used for the first time */
	struct shunt_task claim_task_unclaimed;	/* an accepted connection carries bytes, and nobody has claimed it */
	struct shunt_task expire;	/* a sender gets nowhere, and its program may not wait for ever */
	struct shunt_task destroyed;	/* sockets of links have ended, of which the links may have a word */
	struct shunt_task bypass;	/* bytes have come over TCP that nobody has announced */
	struct shunt_task overflow;	/* a sender waits for credit */
	struct shunt_task retire;	/* *requests to hand back that can be answered */
	struct shunt_task given;	/* peers have taken streams back, which may come to a link of another process */
	struct shunt_task reset_unread;	/* a peer has closed and left bytes of ours unread */
	struct shunt_task spare;	/* connections that are kept: their ends, and what nobody takes */
	struct shunt_task pacing;	/* connections on TCP share a limit anew */
};

struct shunt_stream_work {
	struct shunt_stream_tasks tasks;
	struct shunt_lock inbox_lock;	/* of the next; any thread */
	struct shunt_stream *offers;	/* used for the first time */
	_Atomic uint64_t awaited;	/* by claims that wait: a bit for each caller's port (core/peer/claim_grant.h); 0: none waits */
	_Atomic uint32_t resends;	/* streams that wait for room on their sockets */
	/* Service thread. */
	struct shunt_stream *asked;	/* by their peers to go back to the kernel; not answered yet */
	uint64_t given_wait;	/* ns before the last look at streams that peers took back (core/peer/given.h); 0: there is a new one */
	struct shunt_destroyed destroyed[SHUNT_DESTROYED];	/* in the order of their time */
	uint32_t destroyed_count;
	uint64_t uring_look;		/* when to look for rings of io_uring */
};

#endif
