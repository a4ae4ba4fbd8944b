/* SPDX-License-Identifier: MIT */
/*
 * Connections that change hands. A process may get a connection that another one has made or used: by exec, by
 * SCM_RIGHTS, or as a relative. Such a stream is a candidate in doubt. The kernel serves it, its calls are counted, and
 * it is neither claimed nor granted.
 *
 * Once it has lasted, the service thread asks who else holds the socket (core/peer/doubt.c). If nobody does, the stream
 * takes its place from the kernel's counts. These say the offset of the next byte of each direction, and which end has
 * connected. From then on it is a candidate as any other. If anybody has used the socket since, the counts differ when it
 * attaches (core/peer/attach.c).
 *
 * If somebody holds it, the stream is looked at again when it has been used for some milliseconds more, and for longer each
 * time. At last it is plain, for good. A connector whose peer had no Shunt, or did not have the connection, is claimed again
 * in the same way: another process may have it.
 *
 * Which end has connected: the kernel counts the SYN among the bytes that were acknowledged, and not among those sent.
 */
#ifndef SHUNT_CORE_STREAM_DOUBT_H
#define SHUNT_CORE_STREAM_DOUBT_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/reason.h"

struct shunt_engine;
struct shunt_stream;
struct shunt_sys;

#define SHUNT_DOUBT_GIVEN SHUNT_CAUSE_HELD	/* back from its link, and without its place yet (core/peer/given.h) */
#define SHUNT_DOUBT_LOOKS 12	/* at the holders of one stream */
#define SHUNT_DOUBT_CLAIMS 100	/* of one stream whose peer does not have it, */
#define SHUNT_DOUBT_CLAIMS_ALONE 16	/* or where nobody offers anything: most servers are so */

/* Where a connection stands, as the kernel counts it. */
struct shunt_place_on_tcp {
	uint64_t written, read;	/* bytes of the program, by whoever has held the socket */
	bool connector;
	bool held;	/* others may hold the socket: nothing of it is changed, and urgent data is overlooked */
};

/*
 * `known`: place->connector is. 0; -EAGAIN: bytes moved meanwhile; -ENOTCONN: it is not established; -ENOPROTOOPT: the
 * kernel does not say enough.
 */
int shunt_doubt_place(const struct shunt_sys *sys, int fd, bool known,
		      struct shunt_place_on_tcp *place);
/* The offsets of a stream on no track but TCP become the kernel's. Results as above. Both locks held. */
int shunt_doubt_take_place(struct shunt_engine *engine, struct shunt_stream *stream, bool known);
/* The peer has given the stream to another process: it is a candidate again, and has its place. Service thread. */
void shunt_doubt_return(struct shunt_stream *stream);

/* A new stream, whose socket another process has connected, or accepted: it is in doubt. */
void shunt_doubt_begin(struct shunt_stream *stream, enum shunt_cause why);
/* A candidate that was in use has a second holder, as far as we know. No other thread uses it. */
void shunt_doubt_share(struct shunt_stream *stream);
/* It is in doubt, or was and waits for its next claim. True: not now. The program's thread, with each use. */
bool shunt_doubt_waits(struct shunt_engine *engine, struct shunt_stream *stream);
/* It is looked at, or claimed, once more later. False: it has been, `most` times. Service thread. */
bool shunt_doubt_later(struct shunt_stream *stream, uint8_t most);
/*
 * Nobody else holds it: takes its place from the kernel. `shares`: doubt.shares before the look. 0; -EBUSY: it has got
 * another holder since; or as shunt_doubt_place(). Service thread.
 */
int shunt_doubt_settle(struct shunt_engine *engine, struct shunt_stream *stream, uint32_t shares);

#endif
