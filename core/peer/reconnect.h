/* SPDX-License-Identifier: MIT */
/*
 * Back to the link after a failover. The queue pair is dead, but both processes and the channel between them are
 * there. The channel rests; then the link's initiator says HELLO on it again, and a new link takes the place of the old
 * one. A message has to go over the new queue pair and be acknowledged. Then the streams that are quiet on TCP are
 * claimed again, as new ones are.
 *
 * A link that dies soon after makes the next rest twice as long. Which end decides what: the initiator when, the
 * acceptor for each stream whether it is ready; the initiator asks again later. Service thread throughout.
 *
 * Return. The dead link hands its channel and its line to a shunt_reconnect, and goes as its last seat is left. A
 * line is a number for all links that follow one another, the rendezvous' name, and how long the channel rested last.
 * When the rest is over the initiator makes a link around the channel. Its queue pair is on trial until one message
 * has been acknowledged. So a path that is still broken gets no stream, and the new link dies empty.
 *
 * Then streams of the line are claimed again, 64 at a time. A stream is let go of by the dead link when it is quiet.
 * It becomes a candidate (its seat begins anew; offsets are the kernel's counts from then on, doubt.h), and attaches
 * as any other. A stream that is not quiet, or that the acceptor refuses, is
 * tried again after return_ms. Each time that is twice as long, up to 64 times. A stream that has ended a
 * direction stays on TCP.
 *
 * The rest is return_ms. It is twice the former one where the link had not lasted ten times that, up to
 * return_max_ms. comebacks and streams_returned count both.
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
