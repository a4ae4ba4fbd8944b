/* SPDX-License-Identifier: MIT */
/*
 * The poll group: the CQs, and the threads and epoll sets that care about them.
 *
 * Any thread that needs progress polls. It takes completions, applies them to their streams, and
 * tells the epoll sets and sleeping threads they concern (sleeper.h).
 */
#ifndef SHUNT_CORE_POLL_GROUP_H
#define SHUNT_CORE_POLL_GROUP_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/lock.h"
#include "core/device/device.h"
#include "core/poll/lane_counters.h"
#include "core/poll/gap.h"
#include "core/poll/waiter.h"

#define SHUNT_CQS_MAX 64	/* beyond `cqs` they are made as lanes need them */
#define SHUNT_LANE_ROWS 1024	/* 2^n: 8,192 links of strangers are eight in a row */

struct shunt_group;
struct shunt_epset;
struct shunt_lane;
struct shunt_lanes;
struct shunt_link;
struct shunt_loop;
struct shunt_sleeper;
struct shunt_stream;
struct shunt_tapping;

/*
 * Calls of polling and of links into rooms above them; set with the group, and never changed. group.lock held, except
 * for `settle` and `condemned`.
 */
struct shunt_hooks {
	struct shunt_device_hooks device;
	/* Acts on a completion. */
	void (*apply)(struct shunt_group *group, const struct ibv_cq *cq, const struct ibv_wc *wc);
	/* Something changed on a stream that has watches; as shunt_sleep_notify(). */
	void (*notify)(struct shunt_group *group, struct shunt_stream *stream, uint32_t what);
	/* The leader's channel moves to this set, in which a thread sleeps. False: it cannot. */
	bool (*ring_in)(struct shunt_group *group, struct shunt_epset *set);
	/* A thread sleeps on the stream, too, from here on: no set that watches it is its only waiter. */
	void (*shared)(struct shunt_group *group, struct shunt_stream *stream);
	/* Receives are posted again on the lanes of group.polled.repost_lanes. */
	void (*repost)(struct shunt_group *group);
	/* A lane has work that the completion of a send may make possible. */
	bool (*stalls)(struct shunt_group *group);
	/* Bytes of the program have been found that may have waited for a poll so many ns; `count` is what this poll took with them. */
	void (*late)(struct shunt_group *group, const struct ibv_wc *wc, uint64_t ns, int count);
	/* Lanes are served, and streams pass their switches, until none of polled.kick_lanes and group.settle is left. */
	void (*settle)(struct shunt_group *group);
	/* A link is of no use any more: its lanes take nothing. Any lock may be held. */
	void (*condemned)(struct shunt_link *link);
};

/*
 * The state that the open devices have brought, in two parts: of what a poll reads, and of what it writes. Both are made
 * anew as a whole when the devices close (devices.c), so no turn and no count outlives its CQs.
 */
struct shunt_cqs {
	uint32_t count;
	struct ibv_cq *of[SHUNT_CQS_MAX];	/* each lane completes in one of them; all on their devices' channels */
	uint32_t lanes[SHUNT_CQS_MAX];	/* that complete in each; service thread */
	uint32_t room[SHUNT_CQS_MAX];	/* lanes that each can have and never overflows (PF-09); service thread */
};

struct shunt_polled {
	uint32_t turn;			/* the CQ that is polled first */
	bool more;			/* the last poll did not empty the CQs */
	bool service_asleep;		/* the service thread sleeps on the channel, beside the leader, */
	bool service_sends;		/* and completions of sends concern it, too */
	_Atomic bool rearm;		/* an event was taken; a thread that sleeps on the channel needs another */
	uint32_t metered;	/* links of which arrivals are counted: polls are timed for them (emptied_at) */
	struct shunt_lane *repost_lanes;	/* have used up many of their receives */
	struct shunt_lane *kick_lanes;		/* have work that a completion made possible */
};

struct shunt_group {
	struct shunt_lock seats_lock;	/* who may take seats away: see lock.h */
	/* Seldom written. */
	const struct shunt_hooks *hooks;
	const struct shunt_config *config;
	const struct shunt_sys *sys;
	struct shunt_loop *loop;
	struct shunt_fault *fault;	/* may stand before devices */
	struct shunt_lanes *common;	/* of all lanes */
	struct shunt_tapping *tapping; /* of all streams */
	bool single_core;		/* of the machine: polling could only keep the peer from running */
	bool finished;			/* the process ends */
	_Atomic bool open;		/* there is a device */
	_Atomic uint64_t sleep_cost;	/* ns, see sleepcost.h; 0: not measured */
	char device_error[200];	/* reason for no device, "" with a device; with the lock */
	enum shunt_cause device_cause;	/* why the last device could not be opened; service thread */
	struct shunt_device devices[SHUNT_DEVICES];	/* by enum shunt_which; opened as links need them */
	_Atomic int bell;		/* to sleep on: the channel of the device that is open, or an epoll of all theirs */
	struct shunt_cqs cqs;

	/* One cache line has what each poll writes. Calls that do not poll keep off it. */
	_Alignas(64) struct shunt_lock lock;
	_Atomic bool after_due;		/* polled.kick_lanes or settle is not empty */
	struct shunt_polled polled;
	uint64_t polls, empty_polls, completions;
	uint64_t emptied_at;	/* ns: all that was there then has been polled; while polled.metered */

	_Alignas(64) struct shunt_gap gap;
	struct shunt_waiters waiters;
	struct shunt_sleeper *sleepers;
	struct shunt_sleeper *leader;		/* sleeps on the channel */
	struct shunt_epset *channel_set;	/* epoll set whose companion holds what is slept on, */
	int channel_fd;			/* as this number: the bell of that time */
	/*
	 * A thread of this set polls, and looks at its list next, so others of the set are not kicked meanwhile. It
	 * kicks another itself for what it leaves there (look_at_streams in epwait.c). A signal handler that
	 * comes first keeps that event waiting, as it keeps one that the kernel has given to the thread.
	 */
	struct shunt_epset *looker;
	struct shunt_lane *lanes;		/* all that complete here */
	struct shunt_lane *lane_rows[SHUNT_LANE_ROWS];	/* the same lanes, by the last bits of their queue pairs' numbers */
	struct shunt_lane_stats ended;		/* what those that are gone had counted */
	struct shunt_stream *settle;		/* have a switch to pass, if nobody is reading */
	_Atomic uint64_t inflight;	/* data bytes posted and not known to be complete, where window_device is set */
	uint64_t arms, events, sleeps, kicks;
	uint64_t spins, spin_hits;	/* that found nothing, that found something */
	uint64_t backoffs;		/* times a thread gave up spinning for a while */
};

/*
 * Takes what completions there are, up to a limit, and applies them. Returns how many. May be called with stream and
 * lane locks held; does nothing when another thread is polling.
 */
int shunt_group_poll(struct shunt_group *group);
/*
 * So many completions can be there at most. A loop that takes all there are takes no more than that. Otherwise a peer that
 * posts as fast as we poll could keep the loop for ever. group.lock held.
 */
int64_t shunt_group_most(const struct shunt_group *group);
/*
 * Takes all there are now, and not what comes meanwhile. Waits for another thread's poll. No lock right of group.lock
 * held.
 */
void shunt_group_poll_fully(struct shunt_group *group);
/* The same with group.lock already held; the caller runs shunt_group_after() once it has left it. */
int shunt_group_poll_locked(struct shunt_group *group);

/* Does the work that polls have left. No lock held but of a stream. */

static inline void shunt_group_after(struct shunt_group *group)
{
	if (__builtin_expect(atomic_load_explicit(&group->after_due, memory_order_relaxed), 0))
		group->hooks->settle(group);
}

/*
 * Asks for an event on the next completion of any CQ: what is there already raises none, so an arming thread polls
 * before it sleeps. With group.lock held.
 */
void shunt_group_arm(struct shunt_group *group);

struct shunt_rest {
	bool (*over)(
		struct shunt_group *group,
		void *arg); /* what is waited for is there; called after a poll, no lock held */
	void *arg;
	int fd; /* ends the rest, too, by POLLIN; -1 none */
	uint64_t until; /* SHUNT_NEVER: for ever; `over` may bring it forward */
};

/*
 * Sleeps on the completion channel until something comes, unless it is over: the sleep of a thread that waits for
 * no stream. True: it is over. No lock right of group.lock held.
 */
bool shunt_group_rest(struct shunt_group *group, struct shunt_rest *rest);
/* Takes the events that ended a sleep. */
void shunt_group_take_event(struct shunt_group *group);
/* The same, and as many completions as `poll` takes with one wake-up. No lock right of group.lock held. */
void shunt_group_hear(struct shunt_group *group);
/* As shunt_group_poll_locked(), after an event was taken. */
void shunt_group_hear_locked(struct shunt_group *group);

#endif
