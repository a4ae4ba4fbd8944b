/* SPDX-License-Identifier: MIT */
/*
 * connect() and accept() of connections that are used again: core/stream/spare.h has what they are. api.h has the calls of the
 * libc boundary.
 */
#ifndef SHUNT_CORE_BORN_H
#define SHUNT_CORE_BORN_H

#include <stdbool.h>
#include <sys/socket.h>

struct shunt_births;
struct shunt_engine;
struct shunt_stream;

/* The connection that has been made is to be claimed at once, so that spares come of it, or may be used on. */
bool shunt_born_wants_seed(struct shunt_engine *engine, int fd, const struct sockaddr *address,
			   socklen_t length);
/* Births of the listener at which the connection was accepted, in use once more. NULL: it can have none. Both locks of the stream held. */
struct shunt_births *shunt_born_births(struct shunt_engine *engine, struct shunt_stream *stream);
/* It may have another backlog than before. No lock held. */
void shunt_born_listens(struct shunt_engine *engine, struct shunt_stream *listener);
/* The listener is closed, or shut: it has none from now on. No lock held. */
void shunt_born_end(struct shunt_engine *engine, struct shunt_stream *listener);
/* Somebody accepts there to whom Shunt cannot give them: it has none, and there are no more. No lock held. */
void shunt_born_bar(struct shunt_engine *engine, struct shunt_stream *listener);
/*
 * Listeners at whose address another one accepts by now get no more spares. Resting spares stay: a peer may
 * be taking one, and its connection would be lost. True: there are listeners of this kind. Service thread.
 */
bool shunt_born_look(struct shunt_engine *engine);

#endif
