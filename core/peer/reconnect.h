/* SPDX-License-Identifier: MIT */
/*
 * Back to the link after a failover. The queue pair is dead, but both processes and the channel between them are
 * there. The channel rests; then the link's initiator says HELLO on it again, and a new link takes the place of the old
 * one. A message has to go over the new queue pair and be acknowledged. Then the streams that are quiet on TCP are
 * claimed again, as new ones are.
 *
 * A link that dies soon after makes the next rest twice as long. Which end decides what: the initiator when, the
 * acceptor for each stream whether it is ready; the initiator asks again later. Service thread throughout.
 */
#ifndef SHUNT_CORE_PEER_RECONNECT_H
#define SHUNT_CORE_PEER_RECONNECT_H

#include <stdbool.h>
#include <stdint.h>
#include "core/link/channel.h"
#include "core/link/line.h"
#include "core/loop/loop.h"

struct shunt_link;
struct shunt_service;
struct shunt_stream;
struct shunt_task;

struct shunt_reconnect {		/* a channel that rests */
	struct shunt_source source;
	struct shunt_channel channel;
	struct shunt_line line;
	bool initiator;
	uint64_t at;		/* when the initiator says HELLO; until when the acceptor waits for that */
	struct shunt_reconnect *next;
};

/* The link is over after a failover: takes its channel. False: nothing of it may come back. */
bool shunt_reconnect_take(struct shunt_link *link);
/* Channels that have rested, and streams that return. */
void shunt_reconnect_run(struct shunt_task *task);
/* Those that rest: nothing of them is left. */
void shunt_reconnect_forget(struct shunt_service *service);

/* The link's queue pair is known to work, or nobody doubts it: streams may be claimed on it. */
bool shunt_reconnect_tried(struct shunt_link *link);

/* The peer claims a stream on the link: of an earlier one of its line, perhaps, and it is let go of there. */
void shunt_reconnect_claimed(struct shunt_link *link, const struct shunt_tuple *peer);
/* Its link is dead: it becomes a candidate again. False: something of the link is still to be read or told. No lock held. */
bool shunt_reconnect_let_go(struct shunt_stream *stream);
/* The stream has a link again, or for the first time. Both locks held. */
void shunt_reconnect_done(struct shunt_stream *stream);
/* A claim has failed: true if the stream will be claimed again, so it stays as it is. */
bool shunt_reconnect_later(struct shunt_stream *stream);

#endif
