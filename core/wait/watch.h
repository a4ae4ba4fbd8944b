/* SPDX-License-Identifier: MIT */
/*
 * A watch: the registration of one descriptor of a stream in one epoll set, what is true of it, and the set's ready list.
 * All of it is under group.lock.
 */
#ifndef SHUNT_CORE_WAIT_WATCH_H
#define SHUNT_CORE_WAIT_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct shunt_engine;
struct shunt_epset;
struct shunt_group;
struct shunt_stream;

/* Of the events that the program gives. */
#define SHUNT_WATCH_MODES (EPOLLET | EPOLLONESHOT | EPOLLEXCLUSIVE | EPOLLWAKEUP)

enum shunt_home {	/* where the kernel has the registration */
	SHUNT_HOME_SET,		/* the program's epfd, with the program's data */
	SHUNT_HOME_COMPANION,	/* the companion, with the watch as data */
	SHUNT_HOME_NONE,	/* nowhere: both directions are on the link */
};

struct shunt_watch {	/* one descriptor's registration in one set */
	struct shunt_epset *set;
	struct shunt_stream *stream;
	int fd;
	uint32_t events;	/* as the program gave them */
	uint64_t data;
	uint32_t kernel_events;	/* what the companion asks the kernel for */
	uint32_t kernel_ready;	/* what it has reported since the last report to the program */
	uint8_t home;
	bool fresh;		/* something arrived since the last report (edge-triggered) */
	bool asked_anew;	/* the companion begins with what is true, whether that is an edge or not */
	bool could_send;	/* edge-triggered, in the program's epfd: there was room when it came there, */
	uint32_t since;		/* and so many waits in the kernel had begun */
	bool can_send;		/* edge-triggered: the program has been told so, */
	uint32_t refusals;	/* and so many sends of the stream had been refused (stream.h) */
	bool disabled;		/* EPOLLONESHOT has fired */
	bool listed;		/* in the set's ready list */
	bool moved;		/* out of the program's epfd since it was last looked at */
	bool named;		/* the stream names the set's waiter */
	struct shunt_watch *next_of_stream;
	struct shunt_watch *next_ready;
};

/* Into the ready list, before what was found since: the kernel has told of it earlier. It is not there yet. */
void shunt_watch_list_first(struct shunt_watch *watch);
/* Out of the ready list, wherever it is. */
void shunt_watch_unlist(struct shunt_watch *watch);
/* The kernel's events are not known: it will be asked when the watch is reported. */
void shunt_watch_suspect(struct shunt_watch *watch);
/* Something has changed, but the program knows that it can send, no send was refused since, and there is no more to say. */
bool shunt_watch_is_no_edge(struct shunt_engine *engine, struct shunt_watch *watch, uint32_t what);
/* It is about to leave the program's epfd, or has just come there. */
void shunt_watch_leaves_kernel(struct shunt_watch *watch);
void shunt_watch_comes_to_kernel(struct shunt_engine *engine, struct shunt_watch *watch);
/* Something of it is new: it is listed, and the set tells those who sleep in it. */
void shunt_watch_touch(struct shunt_engine *engine, struct shunt_watch *watch);
/* The same, and those who sleep in the set hear of it anyway. */
void shunt_watch_list(struct shunt_engine *engine, struct shunt_watch *watch);
/*
 * The same of a registration with EPOLLEXCLUSIVE. `served`: a thread of another such set has been woken, and none is here.
 * True: one has been now, too. A thread that was woken before, for something else, may be full with that.
 */
bool shunt_watch_touch_exclusive(struct shunt_engine *engine, struct shunt_watch *watch,
				 bool served);
/*
 * It has been added or modified, and tells at once what is true. A sleeper of the set is woken by no more than that: what comes
 * later is told under group.lock, held here, or by the companion.
 */
void shunt_watch_begin(struct shunt_engine *engine, struct shunt_watch *watch);
/* The kernel reported `ready` for a watch whose home is the companion. */
void shunt_watch_heard(struct shunt_engine *engine, struct shunt_watch *watch, uint32_t ready);
/* Events for the program, without waiting and without the kernel, which has said the `beside` events before `events`. */
int shunt_watch_collect(struct shunt_engine *engine, struct shunt_epset *set,
			struct epoll_event *events, int max, int beside);
/* The stream names the set's waiter, or none, as is right now. A thread that sleeps in the set looks again if that changes. */
void shunt_watch_name(struct shunt_engine *engine, struct shunt_watch *watch);
/* The streams' names are of no use to the set any more. */
void shunt_watch_unname(struct shunt_engine *engine, struct shunt_watch *watch);
/* Of all watches of the stream: another waits for it, too. */
void shunt_watch_shared(struct shunt_group *group, struct shunt_stream *stream);
/* Readable for a poll on the set itself: something on its list is true. */
bool shunt_watch_any_ready(struct shunt_engine *engine, struct shunt_epset *set);

#endif
