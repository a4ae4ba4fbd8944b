/* SPDX-License-Identifier: MIT */
/* Both ends of a connection, as a claim names it. */
#ifndef SHUNT_CORE_STREAM_TUPLE_H
#define SHUNT_CORE_STREAM_TUPLE_H

#include <stdbool.h>
#include <string.h>
#include <shunt/wire.h>

struct shunt_fds;
struct shunt_sys;

/* A TCP socket that has a peer has a port; all zero where the kernel has not been asked, or had no answer. */
static inline bool shunt_tuple_is_known(const struct shunt_tuple *tuple)
{
	return tuple->local_port;
}

/* The same connection, seen from its other end? */
static inline bool shunt_tuple_reversed(const struct shunt_tuple *a, const struct shunt_tuple *b)
{
	return !memcmp(a->local, b->peer, 16) && !memcmp(a->peer, b->local, 16) &&
	       a->local_port == b->peer_port && a->peer_port == b->local_port;
}

/* The connection as its other end sees it. */
static inline struct shunt_tuple shunt_tuple_reverse(const struct shunt_tuple *tuple)
{
	struct shunt_tuple other = { .local_port = tuple->peer_port, .peer_port = tuple->local_port };

	memcpy(other.local, tuple->peer, sizeof(other.local));
	memcpy(other.peer, tuple->local, sizeof(other.peer));
	return other;
}

/* As `fd` has them, asked of the kernel. 0 or -errno (-ENOTCONN: still connecting). Any thread. */
int shunt_tuple_of(const struct shunt_sys *sys, int fd, struct shunt_tuple *tuple);
/* The peer's address is one of this host's. Any thread. */
bool shunt_tuple_is_local(struct shunt_fds *fds, const struct shunt_tuple *tuple);

#endif
