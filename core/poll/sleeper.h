/* SPDX-License-Identifier: MIT */
/*
 * Threads that sleep until a completion comes, and how they wake. One of them, the leader, sleeps
 * on the completion channel; the others are woken by the thread that polled what they wait for.
 * All with group.lock held, except shunt_sleeper_cancelled().
 *
 * - Several CQs. `cqs` of them share the one completion channel. Lanes take them in turn, polls rotate, arming
 *   arms all. A poll has one limit for all of them, a spin one time.
 * - Solicited events. Arming asks for arrivals alone, with two exceptions. A lane has work that the completion of a
 *   send may make possible, or the service thread sleeps for such work.
 * - Arm, look again, sleep. A sleeping thread registers with the group, then polls once more under the lock. Then it
 *   sleeps in one real ppoll or epoll_pwait2 on its waker and on its streams' TCP sockets. If that last poll reached
 *   its limit, the thread does not sleep: completions from before the arming raise no event.
 * - Leader. The first sleeper leads: it arms the CQs and also sleeps on the completion channel. A leader that leaves
 *   takes its event first. Then it looks for a thread that sleeps in an epoll set, best in its own. The channel moves
 *   to that set's companion, and that thread leads without being woken. If there is none, it wakes another sleeper,
 *   which leads without getting up if there is nothing else to do. A thread that takes an event while a leader sleeps
 *   arms again, and wakes the leader if completions were left behind. A thread that polls a completion for a sleeper
 *   kicks that sleeper, if it is one of the events that the sleeper asks for. A poll whose streams are all the
 *   kernel's sleeps apart: it never leads, and nobody wakes it to. It asks the kernel once, with the time it may
 *   wait, and that answer is the program's. A stream of it that joins a link wakes it.
 */
#ifndef SHUNT_CORE_POLL_SLEEPER_H
#define SHUNT_CORE_POLL_SLEEPER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct shunt_group;
struct shunt_epset;
struct shunt_stream;

struct shunt_sleeper {	/* one sleeping thread; on its stack; group.lock */
	int kick_fd;		/* an eventfd that ends its sleep */
	_Atomic bool asleep;	/* has looked for the last time; must be kicked */
	bool apart;		/* no completion concerns it, or its waiter is told of all that do: never leads; set before it enters */
	uint32_t waiter;	/* its number (waiter.h); 0: none */
	bool leader;
	bool told;		/* something changed on a stream it waits for */
	bool heeds;		/* cancellations of its thread */
	struct shunt_epset *set;	/* sleeps in this epoll set, NULL: in ppoll */
	struct shunt_sleeper *next, *previous;
};

struct shunt_sleep_on {	/* a sleeper's interest in one stream, or of a poll in one epoll set; group.lock */
	struct shunt_sleeper *sleeper;
	struct shunt_stream *stream;	/* NULL: none */
	uint32_t events;		/* bits of shunt_group_notify() that wake it */
	struct shunt_epset *set;	/* of a poll: held; NULL: none */
	struct shunt_sleep_on *next;
};

/* The first to come that is not apart leads: it must arm the CQ and sleep on the channel as well. */
void shunt_sleeper_enter(struct shunt_group *group, struct shunt_sleeper *sleeper);
/* After the poll that follows: falls asleep unless it is `ready` or the poll has left something behind. */
void shunt_sleeper_begin(struct shunt_group *group, struct shunt_sleeper *sleeper, bool ready);
void shunt_sleeper_leave(struct shunt_group *group, struct shunt_sleeper *sleeper);
/* Woken and still in the list: leads from here on, if nobody does. */
bool shunt_sleeper_lead(struct shunt_group *group, struct shunt_sleeper *sleeper);
void shunt_sleeper_kick(struct shunt_group *group, struct shunt_sleeper *sleeper);
/* It was apart: it is to look again, and may lead. Of several in one set some may sleep on. */
void shunt_sleeper_recall(struct shunt_group *group, struct shunt_sleeper *sleeper);
/* A thread has been cancelled: who heeds that looks whether it is the one. */
void shunt_sleeper_cancelled(struct shunt_group *group);

#endif
