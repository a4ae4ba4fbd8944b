/*
 * The service thread: rendezvous, claims, links, statistics. One per process, started when a listener
 * offers a rendezvous or a connection asks for one. Data never wakes it (DESIGN 7).
 *
 * Everything in struct shunt_service belongs to that thread but the fields named otherwise.
 */
#ifndef SHUNT_CORE_SERVICE_H
#define SHUNT_CORE_SERVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/un.h>
#include "core/admin.h"
#include "core/engine.h"
#include "core/sleepcost.h"
#include "core/loop.h"

struct cm_listener;
struct shunt_abroad;
struct shunt_teller;
struct shunt_had;

/*
 * One listening address of ours: what we offer there or, where another process was first, our connection to that
 * one. The memory stays as long as the process, and a fork's child goes on with a copy. engine.rendezvous_lock, but
 * for what is named otherwise.
 */
struct shunt_rendezvous {
	struct shunt_source source;
	struct shunt_name name;
	_Atomic int fd;			/* ours; -1: we do not own the name */
	struct shunt_stream *listener;	/* one that has the address; NULL: closed */
	struct shunt_service *service;
	struct cm_listener *abroad;	/* the same for other hosts; service thread, as is the next */
	bool tried_abroad;
	bool strangers;			/* a process of another user accepts there, too; the same */
	struct shunt_source have_source;
	int have_fd;			/* where others who accept there come in (have.c) */
	uint64_t leave_at;		/* no listener is left, but connections that may be claimed until then; 0: it has one */
	_Atomic uint32_t *_Atomic wanted;	/* any thread: claims come for connections that the owner does not have */
	_Atomic uint32_t own_wanted;	/* it points here, or where a fork's children see it too */
	uint64_t wanted_until;		/* service thread, as are the next */
	_Atomic bool joining;		/* any thread: we accept there without owning the name (join.c) */
	struct shunt_source owner_source;
	int owner_fd;			/* to the owner; -1 */
	_Atomic bool alone;		/* any thread reads it: no owner has been found */
	bool turned_away;		/* service thread: the owner is another user's, or does not let us in */
	uint64_t look_at;		/* when to look for one again */
	uint32_t failures;		/* to find one, in a row */
	struct shunt_rendezvous *next;
};

struct shunt_parked {		/* a claim whose connection the program has not used yet */
	struct shunt_link *link;
	struct shunt_tuple tuple;
	uint64_t network;
	struct shunt_place place;
	uint8_t nonce[SHUNT_NONCE_BYTES];
	uint64_t deadline;
	struct shunt_parked *next;
};

struct shunt_refused {		/* an address that is not asked again for a while */
	struct shunt_name name;
	uint64_t until;
	enum shunt_reason reason;
};

#define SHUNT_REFUSED_SLOTS 64

/*
 * What the service thread does without being told by a descriptor, in the order of a round. They are named for
 * their files; those marked * run in each round, the others when they are due.
 */
struct shunt_tasks {
	struct shunt_task prove;	/* a nonce is to be asked for, or has come and a child waits for it */
	struct shunt_task listen;	/* a rendezvous has been added or withdrawn */
	struct shunt_task offer;	/* connections have been used for the first time */
	struct shunt_task doors;	/* peers may be heard again */
	struct shunt_task claim;	/* *connections are established, parked claims expire */
	struct shunt_task abroad;	/* *the connection manager's timers */
	struct shunt_task withdraw;	/* a name outlives its listener for a while */
	struct shunt_task unclaimed;	/* an accepted connection carries bytes, and nobody has claimed it */
	struct shunt_task keepalive;	/* idle lanes */
	struct shunt_task expiry;	/* a sender gets nowhere, and its program may not wait for ever */
	struct shunt_task proof;	/* ends that wait for a nonce */
	struct shunt_task overflow;	/* a sender waits for credit */
	struct shunt_task join;		/* owners of rendezvous are to be found */
	struct shunt_task have;		/* tellers whose rendezvous has gone; wanted_until */
	struct shunt_task limits;	/* links without a HELLO */
	struct shunt_task retire;	/* *requests to hand back that can be answered */
	struct shunt_task unread;	/* a peer has closed and left bytes of ours unread */
	struct shunt_task links;	/* *links that have settled, or are over; streams that are reaped */
	struct shunt_task leave;	/* *the thread is to end */
	struct shunt_task comeback;	/* *channels that rest, streams that return */
	struct shunt_task gather;	/* a stream holds bytes for more that was announced */
	struct shunt_task trim;		/* there may be memory to let go */
	struct shunt_task mock;		/* a device has WRs that it has not carried out */
	struct shunt_task fault;	/* *faults that are due */
};

/* The service whose task this is. */
#define shunt_service_of(task, name) shunt_loop_owner(task, struct shunt_service, tasks.name)

struct shunt_service {
	struct shunt_engine *engine;
	struct shunt_tasks tasks;
	pthread_t thread;
	bool threaded;
	_Atomic bool leaving;		/* any thread: the service thread is to end (leave.c) */
	uint64_t leave_by;		/* ns, until when the present part of that may last; 0: it has not begun. Service thread */
	bool links_left;		/* streams have been handed back as far as they can: the links end. Service thread */
	bool ended;			/* there is no service thread, and may be one again; service_lock */
	pid_t tid;			/* of the service thread */
	struct shunt_sleepcost sleepcost;
	_Atomic bool stopping;
	_Atomic bool watching;		/* any thread: a lane waits for credit */
	_Atomic bool resting;		/* any thread: it would not learn that a lane's QP takes nothing */
	_Atomic uint32_t held_ends;	/* any thread: ends that wait for a nonce (proof.c) */

	struct shunt_lock inbox_lock;	/* of the next; any thread */
	struct shunt_stream *offers;	/* used for the first time */
	struct shunt_stream *connecting;/* connect() has not finished */

	struct shunt_stream *asked;	/* by their peers to go back to the kernel; not answered yet */
	_Atomic uint32_t refusing;	/* streams of which the program wants nothing more: see tx.c */
	_Atomic uint32_t resends;	/* streams that wait for room on their sockets */

	uint64_t uring_look;		/* when to look for rings of io_uring */

	bool keeping;			/* there are lanes whose peers are to be asked: keepalive.c */
	struct shunt_link *keep_next;	/* where the present look goes on; NULL: it begins anew */

	struct shunt_link *links;
	struct shunt_comeback *comebacks;
	uint32_t lines;			/* how many there have been */
	struct shunt_abroad *abroad;	/* NULL: never needed */
	struct shunt_parked *parked;
	_Atomic uint32_t parked_count;
	struct shunt_refused refused[SHUNT_REFUSED_SLOTS];
	uint32_t refused_next;
	struct shunt_teller *tellers;	/* who accepts at addresses of ours */
	uint32_t teller_count;
	struct shunt_had *had;		/* what they have; NULL: nothing yet */
	struct shunt_rendezvous process;	/* shunt/link/PID: for who was sent to us by another process */

	bool limited;			/* that a peer has met a limit has been said (limits.c) */
	uint8_t deaf;			/* enum shunt_deaf: why peers that come are not heard; 0: they are */
	uint64_t deaf_until;		/* ns, with SHUNT_DEAF_SHORT */
	struct shunt_source statistics_source;
	int statistics_fd;
	struct shunt_admin admin;
	struct shunt_source rights_source;
	int rights_fd;
};

/* The same connection, seen from its other end? */
static inline bool shunt_tuple_reversed(const struct shunt_tuple *a, const struct shunt_tuple *b)
{
	return !memcmp(a->local, b->peer, 16) && !memcmp(a->peer, b->local, 16) &&
	       a->local_port == b->peer_port && a->peer_port == b->local_port;
}

/* --- listen.c: the addresses that we listen at; more of it in engine.h --- */

/*
 * Takes both names of the rendezvous. 0 or -errno. rendezvous_lock held; the crowd: see porter.h.
 */
int shunt_listen_bind(struct shunt_service *service, struct shunt_rendezvous *rendezvous,
		      struct shunt_crowd *crowd);
/* Rendezvous have been added or withdrawn. */
void shunt_listen_run(struct shunt_task *task);
/* Names whose last listener was closed go a while after it. */
void shunt_listen_run_withdraw(struct shunt_task *task);
/* In a fork's child. */
void shunt_listen_abandon(struct shunt_engine *engine);

/* --- redirect.c: the claimant is sent to another process --- */

/* A REDIRECT of the peer. */
void shunt_redirect_follow(struct shunt_link *link, struct shunt_stream *stream, uint32_t process);

/* --- have.c: who accepts at an address of ours, and what he has --- */

/* A process has come where co-listeners come in: see loop.h. */
void shunt_have_welcome(struct shunt_source *source, uint32_t events);
/* Who has said that he has the claimed connection; 0: nobody, and whoever says it now will be heard. */
pid_t shunt_have_find(struct shunt_service *service, const struct shunt_tuple *claimed);
/* Does a process that may not tell us accept at the claimed connection's address? */
bool shunt_have_strangers(struct shunt_service *service, const struct shunt_tuple *claimed);
/* What is over: those who came to a name that has gone, and the want of messages. */
void shunt_have_run(struct shunt_task *task);
/* In a fork's child. */
void shunt_have_abandon(struct shunt_service *service);

/* --- join.c: we accept at an address that another process owns --- */

/* The program has used a connection that it has accepted there. */
void shunt_join_tell(struct shunt_service *service, struct shunt_stream *stream);
/* The owner has said something: see loop.h. */
void shunt_join_hear(struct shunt_source *source, uint32_t events);
/* Looks for owners, or becomes one. */
void shunt_join_run(struct shunt_task *task);

/* --- trim.c: memory that is not needed --- */

void shunt_trim_run(struct shunt_task *task);

/* --- rendezvous.c: finding the peer's process --- */

/* Both ends of a connection, as `fd` has them. 0 or -errno (-ENOTCONN: still connecting). */
int shunt_rendezvous_tuple(struct shunt_engine *engine, int fd, struct shunt_tuple *tuple);
/*
 * The same of a stream, and its network. streams_lock held: close() takes it before, or a call
 * under way would delay it.
 */
int shunt_rendezvous_learn(struct shunt_stream *stream);
bool shunt_rendezvous_is_local(struct shunt_engine *engine, const struct shunt_tuple *tuple);
/* A channel to the process that offers a rendezvous for the tuple's peer, or -errno. */
int shunt_rendezvous_connect(struct shunt_engine *engine, const struct shunt_tuple *tuple,
			     struct shunt_name *name);
/* The name of the rendezvous for a peer address; `any`: for its port on every address. */
void shunt_rendezvous_name(const uint8_t address[16], uint16_t port, bool any,
			   struct shunt_name *name);
/* The name of the rendezvous for the address that `fd` listens on. 0 or -errno. */
int shunt_rendezvous_of(struct shunt_engine *engine, int fd, struct shunt_name *name);
/* The names that a listener which takes connections to the address may have, the most exact first; how many. */
int shunt_rendezvous_names(const uint8_t address[16], uint16_t port, struct shunt_name names[SHUNT_NAMES]);
bool shunt_rendezvous_is_among(const struct shunt_name *name, const struct shunt_name *names, int count);
/* Does a listener of that name take connections to the address? */
bool shunt_rendezvous_covers(const struct shunt_name *name, const uint8_t address[16], uint16_t port);
/* Where its owner's co-listeners come in. */
void shunt_rendezvous_have(const struct shunt_name *name, struct shunt_name *have);
/* The name of one process, for claims that were sent to it. */
void shunt_rendezvous_process(pid_t pid, struct shunt_name *name);
/* Takes the name: a listening private descriptor, or -errno. */
int shunt_rendezvous_offer(struct shunt_engine *engine, const struct shunt_name *name);
/* A channel to who has the name, if the two processes may be linked, or -errno. */
int shunt_rendezvous_knock(struct shunt_engine *engine, const struct shunt_name *name);
/* The next peer that has come and may be linked, or -errno. */
int shunt_rendezvous_accept(struct shunt_engine *engine, int fd);

#endif
