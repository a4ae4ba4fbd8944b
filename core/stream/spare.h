/* SPDX-License-Identifier: MIT */
/*
 * Connections that are used again. A program that makes one for each request pays for three things that the kernel does:
 * it connects, accepts and ends. Both engines keep such a connection instead, once both programs have closed it, with its
 * socket, its seat and its rings. It is a spare. The next connect() to the address takes it: the socket gets the program's
 * number by dup3(), and the peer's accept() gives the other end. The socket is connected, so names, options, forks and the
 * way back to TCP are what they were.
 *
 *	connector				acceptor
 *	close(): FIN, RELEASE that keeps	→
 *						← close(): FIN, RELEASE that keeps
 *						← RELEASE that rests: its end has begun anew
 *	(begins anew, and rests)
 *	connect(): UPGRADE at 0			→ the listener is readable
 *
 * Either end may close first. If the other one has not read all by then, FIN goes at once, and RELEASE when it has. Behind
 * shutdown() the kernel's end is put off for a moment, because close() may follow. Both are ended as others are where that
 * takes longer than 50 ms, or where the process exits: TCP gets what is unread. A process that is killed meanwhile cannot do
 * that, and its peer's program alone has these bytes. SO_LINGER of zero does not reset a connection that its peer has
 * closed, so such an end is kept, too.
 *
 * One that keeps nothing says so in its RELEASE, and all is as for any other connection. A spare that is given up is closed
 * like a connection: RESET and RELEASE, and the kernel's end of the socket. The connector looks whether that has come before
 * it takes one, so a listener that is closed refuses at once. Where the link has ended, an acceptor resets the socket. A birth
 * may have been on its way, whose program must not read an end.
 *
 * A spare is taken only if the kernel has made a connection to its address within the last second. One in a thousand is
 * the kernel's. For that one the connector's first call waits a moment for its claim. Both ends are on one host. The program
 * has done nothing with the socket that cannot be undone: SHUNT_SPARE_OPTIONS.
 */
#ifndef SHUNT_CORE_STREAM_SPARE_H
#define SHUNT_CORE_STREAM_SPARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include "core/stream/short_lived.h"

struct shunt_births;
struct shunt_engine;
struct shunt_group;
struct shunt_stream;
struct shunt_task;

#define SHUNT_SPARES 256 /* of a process */
#define SHUNT_SPARE_OPTIONS 10 /* whose values are put back; a connection with another one is not kept */

struct shunt_spare {
	int fd; /* our own copy of the socket */
	_Atomic bool
		rests; /* both programs have closed it, and it has begun anew; changes under both locks */
	_Atomic bool waits; /* the program has closed it before the peer has read all: RELEASE is still to be said */
	_Atomic bool born; /* acceptors: the peer has connected; group.lock */
	bool popped; /* accept() is about to give it to the program, or to list it again; group.lock */
	_Atomic bool ends; /* it is to be given up, by the service thread */
	bool untold; /* connect() has said EINPROGRESS, and the next one says that it is connected */
	bool nonblocking; /* the socket is */
	bool again; /* it has begun anew; under both locks */
	/* Options (core/stream/spare_option.c), bits by number; under both locks. */
	uint16_t known;	/* `first` has the value of a new connection, */
	uint16_t noted;	/* `last` has the value that the program has set last, */
	uint16_t stale;	/* and the socket still has that, though it has begun anew */
	int first[SHUNT_SPARE_OPTIONS], last[SHUNT_SPARE_OPTIONS];
	struct sockaddr_storage peer; /* of the socket */
	uint16_t port; /* of that */
	uint64_t since; /* ns; it rests, or is in use */
	struct shunt_births *births; /* acceptors: of its listener; group.lock */
	struct shunt_stream *next; /* connectors that rest: streams_lock; births: group.lock */
};

/* Of an address that connections go to, or of several. */
struct shunt_spare_place {
	_Atomic uint64_t made_at; /* ns; the kernel has made one that came to a link; 0: none */
	_Atomic uint64_t seed_at; /* when the next one may be made that is claimed at once */
	_Atomic uint32_t pause; /* us, until the one after that */
	_Atomic uint32_t wait; /* us that it waits to be claimed; 0: the least (core/stream/offer.c) */
	_Atomic uint32_t births; /* since `made_at` */
};

/* The room's part of an engine. */
struct shunt_spares {
	_Atomic(struct shunt_stream *)
		again; /* something has happened to them: shunt_spares_look() */
	struct shunt_stream *first; /* connectors that rest; streams_lock */
	struct shunt_births *births; /* unused ones; group.lock */
	_Atomic uint32_t count, resting;
	_Atomic bool armed, waited; /* the task comes soon; something waits since it came last */
	_Atomic uint64_t connected, accepted; /* births, of each end */
	struct shunt_spare_place places[SHUNT_SHORT_LIVED_PLACES];
};

/* --- it becomes one --- */

/* The program ends its direction: true if the kernel's end is put off, because the program may be about to close. Both locks held. */
bool shunt_spare_shut(struct shunt_engine *engine, struct shunt_stream *stream, int fd);
/* That is not put off any longer. tx.lock held. */
void shunt_spare_unshut(struct shunt_stream *stream);
/*
 * The program closes its end, which is orderly: true if it is kept. *waits: RELEASE is said when the peer has read all, or
 * gives up waiting. Both locks held.
 */
bool shunt_spare_keep(struct shunt_engine *engine, struct shunt_stream *stream, int fd,
		      bool *waits);
/* The peer has closed, and so has read all: RELEASE waits no longer. group.lock held. */
void shunt_spare_answer(struct shunt_engine *engine, struct shunt_stream *stream);
/* Those that wait are ended like others that are not kept: TCP gets what is unread. The process exits. No lock held. */
void shunt_spares_leave(struct shunt_engine *engine, uint64_t until);
/* The acceptor says more behind its RELEASE: that it has begun anew, then that it gives up. NULL, or what is wrong. group.lock held. */
const char *shunt_spare_heard(struct shunt_engine *engine, struct shunt_stream *stream);
/* The kernel has bytes for one that is closed: it is to answer them with a reset. Service thread. */
void shunt_spare_refuse(struct shunt_stream *stream);
/* Looks at all to which something has happened. No lock held but of a stream. */
void shunt_spares_look(struct shunt_group *group);
void shunt_spare_run(struct shunt_task *task);
/* The peer hears that one that rests is closed. tx.lock held. */
void shunt_spare_give_up(struct shunt_stream *stream);
/* One that rests is closed. No lock held. */
void shunt_spare_end(struct shunt_engine *engine, struct shunt_stream *stream);
/* All that rest are; `births`: those of this listener alone. No lock held. */
void shunt_spares_end(struct shunt_engine *engine, const struct shunt_births *births);

/* In a fork's child: the copies of sockets are the parent's, and so are those that rest. The first of all, before any stream. */
void shunt_spares_abandon(struct shunt_engine *engine);
void shunt_spare_inherit(struct shunt_engine *engine, struct shunt_stream *stream);

/* --- it is taken --- */

struct shunt_spare_target {
	uint8_t address[16];
	uint16_t port; /* network order */
	sa_family_t family; /* of the socket */
};

/* One that leads there, which is no longer listed, and held. NULL: there is none. */
struct shunt_stream *shunt_spare_find(struct shunt_engine *engine,
				      const struct shunt_spare_target *target);
/* It can still be taken. Both locks held. */
bool shunt_spare_is_good(struct shunt_engine *engine, struct shunt_stream *stream);
/* It becomes the program's, with this number, which the table gets. Both locks held. */
void shunt_spare_take(struct shunt_engine *engine, struct shunt_stream *stream, int fd,
		      bool nonblocking);
/* A connector has come to a link: the kernel has said yes. */
void shunt_spare_made(struct shunt_engine *engine, const struct shunt_stream *stream);
/* Before a fork: the options of those in use are as the program has set them. */
void shunt_spares_share(struct shunt_engine *engine);

#endif
