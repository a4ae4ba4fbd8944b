/* SPDX-License-Identifier: MIT */
/*
 * A stream of a relative's link is had without the relative, which does not answer. If it has not used the stream since the
 * fork (core/stream/rest.h), our copy says where its end stands. The other process of the link is told that, at its
 * door (core/peer/kin_door.h). It sends again over TCP what the relative has not read, and looks to TCP for what comes
 * next.
 */
#ifndef SHUNT_CORE_STREAM_TAKEOVER_H
#define SHUNT_CORE_STREAM_TAKEOVER_H

#include "shunt/wire.h"

struct shunt_engine;
struct shunt_stream;

#define SHUNT_KIN_DOOR 64	/* bytes of its name */

/* Where a stream at rest stands. */
struct shunt_stand shunt_takeover_stand(const struct shunt_stream *stream);
/* One attempt; waits for a moment. Its result is in the stream's slot. No lock held. */
void shunt_takeover_try(struct shunt_engine *engine, struct shunt_stream *stream);
/* The name of a process's door for relatives of its peers. */
void shunt_takeover_door(const struct shunt_identity *process, char name[SHUNT_KIN_DOOR]);

#endif
