/* SPDX-License-Identifier: MIT */
/*
 * Waiters: where several threads sleep at a time, each is woken by the peer itself.
 *
 * One leader that wakes the others is right for one thread. With two and more it costs a wake-up before each wake-up, and
 * all go in step with it. So the service thread takes the leader's place when a second thread falls asleep beside it. From
 * then on SHUNT_WAITERS threads and epoll sets have a number each, and a descriptor of the device's to sleep on. A stream
 * that one of them alone waits for names it in its control line, and arrivals for the stream wake that one. Arrivals for
 * other streams wake the service thread, which tells those whom they concern. A set
 * keeps its number; a thread has one as long as it sleeps.
 *
 * A sleeper that has a number and needs no more is apart (sleeper.h). It may be woken for nothing, by an entry from before. Nothing is
 * slept over: entries are changed before the last poll. All with group.lock held.
 */
#ifndef SHUNT_CORE_POLL_WAITER_H
#define SHUNT_CORE_POLL_WAITER_H

#include <stdbool.h>
#include <stdint.h>

struct shunt_group;

struct shunt_waiters {
	_Atomic bool begun;		/* several threads have slept at a time, on a device that has waiters */
	_Atomic bool served;		/* and the service thread leads, because all links have bells of theirs */
	bool held;		/* a fault has held completions back: what a waiter was rung for may come to it later */
	_Atomic uint32_t deaf;		/* links that have none */
	uint32_t taken;		/* bit i: number i */
	uint32_t generation;	/* of their descriptors */
};

/* Another thread has fallen asleep beside the leader. */
void shunt_waiters_begin(struct shunt_group *group);
/* The service thread sleeps on the channel from here on: it leads, if it can. */
void shunt_waiters_serve(struct shunt_group *group);
/* So many links more are up whose peer has no bells. With one of them a sleeper leads again. Takes group.lock. */
void shunt_waiters_deaf(struct shunt_group *group, int change);
/* The device closes: no stream names a waiter any more. */
void shunt_waiters_end(struct shunt_group *group);
bool shunt_waiter_is_free(const struct shunt_group *group);
/* A number, `wanted` if it is free; 0: none. */
uint32_t shunt_waiter_take(struct shunt_group *group, uint32_t wanted);
void shunt_waiter_give(struct shunt_group *group, uint32_t waiter);
/* A descriptor that it sleeps on beside its waker. */
int shunt_waiter_fd(struct shunt_group *group, uint32_t waiter);
/* It is about to poll for the last time, or is awake. */
void shunt_waiter_arm(struct shunt_group *group, uint32_t waiter, bool asleep);
/* Its events are taken. No lock needed. */
void shunt_waiter_hear(struct shunt_group *group, uint32_t waiter);

#endif
