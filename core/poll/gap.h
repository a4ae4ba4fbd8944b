/* SPDX-License-Identifier: MIT */
/*
 * Gaps between polls (XR-27). The process has not polled for poll_warn_us, no thread slept in
 * a wait, and the next poll finds bytes that have arrived. No device says when they came, so the
 * gap is the longest time that they can have waited. group.lock held throughout.
 *
 * - Gaps between polls. With poll_warn_us each poll notes when it began. It is 0 at first, because a look at
 *   the clock costs about as much as a poll that finds nothing. A later poll that finds bytes of a stream so long
 *   after is a gap, told once. It is none while a thread sleeps on the completion channel: the arrival wakes that
 *   thread. A device says nothing of when bytes came, so the gap is the longest time that they can have waited. A
 *   completion of a send is late only if a poll has looked in vain: slow_us counts up to that poll.
 */
#ifndef SHUNT_CORE_POLL_GAP_H
#define SHUNT_CORE_POLL_GAP_H

#include <stdbool.h>
#include <stdint.h>

struct ibv_wc;
struct shunt_group;

struct shunt_gap {	/* of the last poll that was timed; group.lock */
	uint64_t polls;		/* group.polls then: a poll in between was not timed */
	uint64_t at;		/* when it began, or when a sleep ended since; ns */
	uint64_t none_at;	/* it began then and left nothing in the CQs; 0: it may have left something */
};

/* A timed poll: for this, or for slow_us. */
#define shunt_gap_is_timed(group)                                                \
	((shunt_config_live(&(group)->config->poll_warn_us) |     \
	  shunt_config_live(&(group)->config->slow_us)) != 0)
/* A timed poll begins. How long bytes that it finds may have waited; 0: no longer than they may. */
uint64_t shunt_gap_begin(struct shunt_group *group, uint64_t now);
/* Of `count` completions those that bring bytes. True: there are some, and they have been told of. */
bool shunt_gap_found(struct shunt_group *group, const struct ibv_wc *wc, int count, uint64_t ns);
/* The poll that began at `now` is over. */
void shunt_gap_end(struct shunt_group *group, uint64_t now);
/* A thread that would have been woken by an arrival sleeps no more. */
void shunt_gap_woke(struct shunt_group *group);

#endif
