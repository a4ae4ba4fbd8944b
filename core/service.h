/* SPDX-License-Identifier: MIT */
/*
 * The service thread: rendezvous, claims, links, statistics. One per process, started when a listener offers a
 * rendezvous or a connection asks for one. Data never wakes it. Its work is in the files that its tasks
 * and sources are named for; service.c creates, starts and stops it (engine.h).
 *
 * Everything in struct shunt_service belongs to that thread but the fields named otherwise.
 */
#ifndef SHUNT_CORE_SERVICE_H
#define SHUNT_CORE_SERVICE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include "core/admin/admin.h"
#include "core/admin/dump.h"
#include "core/engine.h"
#include "core/loop/loop.h"
#include "core/peer/claim.h"
#include "core/peer/claim_state.h"
#include "core/peer/limits.h"
#include "core/peer/proofs.h"
#include "core/peer/rendezvous.h"
#include "core/peer/witness.h"
#include "core/poll/sleepcost.h"

struct shunt_meeting;
struct shunt_monitor;
struct shunt_qos;
struct shunt_remote;
struct shunt_co_listener;
struct shunt_worker_connection;

/*
 * Work of the service thread that no descriptor announces, in the order of a round. They are named
 * for their files; those marked * run in each round, the others when they are due.
 */
struct shunt_tasks {
	struct shunt_task listen;	/* a rendezvous has been added or withdrawn */
	struct shunt_task claim;	/* *connections are established, parked claims expire */
	struct shunt_task doubt;	/* holders of connections that came from other processes are to be looked for */
	struct shunt_task meeting;	/* names in SHUNT_DIR are to be taken or given back */
	struct shunt_task remote;	/* *the connection manager's timers */
	struct shunt_task listen_withdraw;	/* a name outlives its listener for a while */
	struct shunt_task keepalive;	/* idle lanes */
	struct shunt_task listener_worker;	/* owners of rendezvous are to be found */
	struct shunt_task listener_owner;	/* co-listeners whose rendezvous has gone; wanted_until */
	struct shunt_task possession;	/* sockets are to be looked at; a proof takes too long */
	struct shunt_task limits;	/* links without a HELLO, and answers in doubt */
	struct shunt_task links;	/* *links that have settled, or are over; streams that are reaped */
	struct shunt_task no_new_privs;	/* a thread of the program is about to set it */
	struct shunt_task leave;	/* *the thread is to end */
	struct shunt_task reconnect;	/* *channels that rest, streams that return */
	struct shunt_task qos; /* tokens are due, or reports, or portions of a limit */
	struct shunt_task idle; /* what has moved on links */
	struct shunt_task eviction; /* links that nothing uses */
	struct shunt_task dump; /* a tap is left, and threads may be at work with it */
	struct shunt_task live; /* lanes are to follow variables that have changed */
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
	_Atomic bool follows;		/* it has set no_new_privs; the service thread (no_new_privs.c) */
	sem_t followed;			/* posted behind that */
	bool measures; /* its cost is measured: written before there is a thread */
	struct shunt_sleepcost sleepcost;
	_Atomic bool stopping;

	struct shunt_stream *connecting;	/* connect() has not finished */
	struct shunt_stream *doubted;	/* by claim.next_offer, each held: doubt.h */
	uint64_t doubt_at;		/* ns: when they may be looked at */

	uint64_t idle_every;		/* ns between two looks of idle.c */
	bool keeping;			/* there are lanes whose peers are to be asked: keepalive.c */
	struct shunt_link *keep_next;	/* where the present look goes on; NULL: it begins anew */

	struct shunt_link *links;
	struct shunt_reconnect *reconnects;
	uint32_t lines;			/* how many there have been */
	struct shunt_remote *remote;	/* NULL: never needed */
	struct shunt_meeting *meeting;	/* NULL: never needed, or SHUNT_DIR is not set; written under rendezvous_lock */
	struct shunt_qos *qos;		/* NULL: no rules; written under group.lock, as readers hold */
	uint32_t qos_count; /* how many rules there have been */
	struct shunt_monitor *monitor;	/* NULL: no rules have had a capacity */
	struct shunt_proofs proofs;
	struct shunt_witness witness;
	struct shunt_guest_user users[SHUNT_GUEST_USERS];	/* of peers that have to prove (limits.h) */
	struct shunt_doubts doubts;
	struct shunt_parked *parked;
	struct shunt_refused refused[SHUNT_REFUSED_SLOTS];
	uint32_t refused_next;
	struct shunt_co_listener *co_listeners;	/* who accepts at addresses of ours */
	struct shunt_worker_connection *worker_connections;	/* what they have; NULL: nothing yet */
	struct shunt_rendezvous process;	/* shunt/link/IDENTITY: for who was sent to us by another process */
	struct shunt_rendezvous meeting_place; /* the socket in SHUNT_DIR, under all its names (meeting.h) */

	bool limited;			/* that a peer has met a limit has been said (limits.c) */
	uint8_t deaf;			/* enum shunt_deaf: why peers that come are not heard; 0: they are */
	uint64_t deaf_until;		/* ns, with SHUNT_DEAF_SHORT */
	struct shunt_source statistics_source;
	int statistics_fd;
	struct shunt_admin admin;
	struct shunt_dump dump;
	struct shunt_source rights_source;
	int rights_fd;
	struct shunt_source kin_source;
	int kin_fd;	/* where relatives of peers ask (kin_door.h); -1: no peer has forked */
};

/* See engine.serve. */
bool shunt_service_start(struct shunt_engine *engine);
/* One round, waiting at most `timeout_ms`. */
void shunt_service_step(struct shunt_engine *engine, int timeout_ms);
void shunt_service_abandon(struct shunt_engine *engine);

#endif
