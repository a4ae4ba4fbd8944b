/* SPDX-License-Identifier: MIT */
/*
 * Streams at rest. A fork's child cannot have a stream of its parent's link back while the parent is stopped: by a signal,
 * a debugger or a freezer. But if the parent has not used the stream since the fork, the child's copy of it is exact. Such
 * a stream rests. The second word of its slot (core/fork/fork_rest.h) decides who comes first: the owner, which uses it,
 * or a relative, which takes it.
 *
 * The owner's next send, receive or shutdown ends the rest: one compare-and-swap a fork. News that the owner's polls bring
 * meanwhile do not count, because the peer knows all of that, too.
 *
 * A relative that takes a stream tells the peer (core/stream/takeover.h). The peer says so to the owner as well, which finds its
 * stream gone when it goes on.
 */
#ifndef SHUNT_CORE_STREAM_REST_H
#define SHUNT_CORE_STREAM_REST_H

#include <stdbool.h>

struct shunt_forks;
struct shunt_stream;

struct shunt_sharing {
	struct shunt_forks *forks;
	bool full;	/* there is no slot left */
};

/*
 * Before a fork, for each stream: a slot for what both processes will hold, and a linked stream comes to rest. 0.
 * streams_lock and group.lock held.
 */
int shunt_rest_share(struct shunt_stream *stream, void *sharing);
/*
 * The program is about to use the stream. True: not now, because it is being handed back, or a relative has taken it.
 * rx.lock or tx.lock held.
 */
bool shunt_rest_holds(struct shunt_stream *stream);
/* No answer will come: the link is over. */
void shunt_rest_over(struct shunt_stream *stream);
/* The owner is about to use it. False: a relative has taken it. rx.lock or tx.lock held. */
bool shunt_rest_end(struct shunt_stream *stream);
/* The peer will not let a relative have it any more: it is the owner's, also if one has tried. The same. */
void shunt_rest_revoke(struct shunt_stream *stream);
/* Takes it from its owner, unless that has used it since the fork that has made us. True: it is ours to tell the peer. */
bool shunt_rest_take(struct shunt_stream *stream);

#endif
