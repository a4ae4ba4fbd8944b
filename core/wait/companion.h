/* SPDX-License-Identifier: MIT */
/*
 * The companion: a hidden epfd inside the program's. It has kernel sockets of streams on a link,
 * and the eventfd that wakes the set's sleepers. While the set leads, it also has the descriptors
 * that a leader sleeps on. group.lock held, but where it is said otherwise.
 */
#ifndef SHUNT_CORE_WAIT_COMPANION_H
#define SHUNT_CORE_WAIT_COMPANION_H

#include <stdbool.h>

struct shunt_engine;
struct shunt_group;
struct shunt_epset;

/* The set has one from here on. 0 or -ENOMEM. */
int shunt_companion_open(struct shunt_engine *engine, struct shunt_epset *set);
/* The thread about to sleep in the set leads: the completion channel moves there. 0 or -ENOMEM. */
int shunt_companion_lead(struct shunt_engine *engine, struct shunt_epset *set);
/* The same where a thread of the set sleeps already, and leads from here on. False: it does not wake by the channel. */
bool shunt_companion_ring_in(struct shunt_group *group, struct shunt_epset *set);
/* Is what the leader sleeps on in the set now? No lock held: it may be otherwise a moment later. */
bool shunt_companion_rings(struct shunt_engine *engine, const struct shunt_epset *set);
/*
 * A thread is about to sleep in a set that is the kernel's alone: it is not to hear of completions for others. No lock
 * held.
 */
void shunt_companion_rest(struct shunt_engine *engine, struct shunt_epset *set);
/* The channel is in no set any more. */
void shunt_companion_silence(struct shunt_engine *engine);
/* The set's waiter wakes it. False: it cannot. group.lock held, as the next. */
bool shunt_companion_waits(struct shunt_engine *engine, struct shunt_epset *set);
/* Not any more. */
void shunt_companion_waits_no_more(struct shunt_engine *engine, struct shunt_epset *set);
/* Sleepers in the set look again. */
void shunt_companion_kick(struct shunt_engine *engine, struct shunt_epset *set);

#endif
