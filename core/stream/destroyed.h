/* SPDX-License-Identifier: MIT */
/*
 * The kernel ends the socket of a stream whose bytes travel on the link. An administrator has it destroyed (SOCK_DESTROY:
 * ss -K, cilium), or a reset comes that the peer's engine knows nothing of. Without Shunt that ends the connection, so
 * it does here.
 *
 * The service thread watches each linked socket for errors, as edges. The kernel's own traffic wakes it for nothing else.
 * A peer that resets or dies says so by the link, too, behind the bytes that the link has brought. So the link's word is
 * waited for before the kernel's counts, and meanwhile the error stays in the socket.
 */
#ifndef SHUNT_CORE_STREAM_DESTROYED_H
#define SHUNT_CORE_STREAM_DESTROYED_H

#include "core/loop/loop.h"
#include "core/stream/stream.h"

#define SHUNT_DESTROYED 16	/* sockets that are waited for; with more of them the first counts at once */

struct shunt_destroyed { /* service thread */
	struct shunt_stream *stream; /* not held: if it is another's connection by then, that is looked at */
	uint64_t at; /* ns: when the kernel's word counts */
};

/* The stream is on a link: its socket is watched. Both locks held; service thread. */
void shunt_destroyed_watch(struct shunt_engine *engine, struct shunt_stream *stream);
void shunt_destroyed_run(struct shunt_task *task);
/* So many bytes came past the engine (bypass.h): it is reset, and sleepers are told. rx.lock held, tx.lock free. */
void shunt_destroyed_bypassed(struct shunt_stream *stream, int bytes);
/* The next look for such bytes. */
void shunt_destroyed_bypass_run(struct shunt_task *task);

#endif
