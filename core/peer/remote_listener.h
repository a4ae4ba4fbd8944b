/* SPDX-License-Identifier: MIT */
/*
 * A gate: where processes of other hosts come in with the channels of their links. A TCP listener on a port of its
 * own. An expected peer has a ticket, a cookie for one use and a limited time. A client that does not show one as its
 * first bytes is turned away. A connection that has shown nothing yet is not trusted. Such connections are few at a
 * time and have a deadline, and when one more comes the oldest goes.
 *
 * One thread. Times in nanoseconds of sys->now. The owner sleeps on gate->fd (readable: there is something to do)
 * until shunt_remote_listener_due() at the latest, then calls shunt_remote_listener_step().
 */
#ifndef SHUNT_CORE_PEER_REMOTE_LISTENER_H
#define SHUNT_CORE_PEER_REMOTE_LISTENER_H

#include "core/link/channel.h"

#define SHUNT_REMOTE_LISTENER_TICKETS 64
#define SHUNT_REMOTE_LISTENER_GUESTS 16

struct shunt_ticket {
	void *arg;
	uint64_t deadline;
	bool valid;
	uint8_t cookie[SHUNT_COOKIE_BYTES];
};

struct shunt_guest {
	int fd;			/* -1: free */
	size_t bytes;		/* shown so far */
	uint64_t deadline;
	uint8_t cookie[SHUNT_COOKIE_BYTES];
};

struct shunt_remote_listener {
	struct shunt_engine *engine;
	int fd;			/* an epoll of the next and the guests'; private */
	int listener;
	uint16_t port;		/* network order */
	uint16_t first_port, last_port; /* of those that it may have, host order; 0: any */
	uint64_t paused;	/* out of descriptors: nobody is accepted before */
	uint64_t patience;	/* ns that a guest or a ticket has */
	uint32_t silence_ms;	/* see shunt_channel_options() */
	void *arg;

	/* He has shown the ticket of this argument: the connection is the callee's, private and non-blocking. */
	void (*let_in)(void *gate_arg, void *ticket_arg, int fd);
	/* A guest shows what no ticket has: the callee may add tickets that it has not known of. May be NULL. */
	void (*unknown)(void *gate_arg);
	/* Nobody has shown it in time, or the gate is closed. May be NULL. */
	void (*expired)(void *gate_arg, void *ticket_arg);

	uint64_t turned_away;	/* guests; the engine counts those of all gates */
	struct shunt_ticket tickets[SHUNT_REMOTE_LISTENER_TICKETS];
	struct shunt_guest guests[SHUNT_REMOTE_LISTENER_GUESTS];
};

/*
 * Opens it at a local address, whose port is ignored. The members engine, patience, silence_ms, arg,
 * both ends of the ports and the two callbacks have been set. 0 or -errno; -EADDRINUSE: all of the ports are taken.
 */
int shunt_remote_listener_open(struct shunt_remote_listener *gate, const struct sockaddr *local);

/* A ticket and its cookie; it ends in one of the callbacks, never from within this call. 0, or -ENOSPC: too many. */
int shunt_remote_listener_expect(struct shunt_remote_listener *gate, void *arg, uint8_t cookie[SHUNT_COOKIE_BYTES]);
/* With a key: what is to be shown at the gate is not the cookie of this ticket but what is derived from it. */
void shunt_remote_listener_show(struct shunt_remote_listener *gate, void *arg,
				const uint8_t shown[SHUNT_COOKIE_BYTES]);

void shunt_remote_listener_step(struct shunt_remote_listener *gate);
/* UINT64_MAX: never. */
uint64_t shunt_remote_listener_due(const struct shunt_remote_listener *gate);
void shunt_remote_listener_close(struct shunt_remote_listener *gate);

#endif
