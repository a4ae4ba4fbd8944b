/* SPDX-License-Identifier: MIT */
/*
 * The companion: a hidden epfd inside the program's. It has kernel sockets of streams on a link,
 * and the eventfd that wakes the set's sleepers. While the set leads, it also has the descriptors
 * that a leader sleeps on (DESIGN 7). group.lock held, but where it is said otherwise.
 */
#ifndef SHUNT_CORE_WAIT_COMPANION_H
#define SHUNT_CORE_WAIT_COMPANION_H

struct shunt_engine;
struct shunt_epset;

/* The set has one from here on. 0 or -ENOMEM. */
int shunt_companion_open(struct shunt_engine *engine, struct shunt_epset *set);
/* The thread about to sleep in the set leads: the completion channel moves there. 0 or -ENOMEM. */
int shunt_companion_lead(struct shunt_engine *engine, struct shunt_epset *set);
/*
 * A thread is about to sleep in a set that is the kernel's alone: it is not to hear of completions for others. No lock
 * held.
 */
void shunt_companion_rest(struct shunt_engine *engine, struct shunt_epset *set);
/* The channel is in no set any more. */
void shunt_companion_silence(struct shunt_engine *engine);
/* Sleepers in the set look again. */
void shunt_companion_kick(struct shunt_engine *engine, struct shunt_epset *set);

#endif
