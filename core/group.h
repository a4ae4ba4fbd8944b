/*
 * The poll group: the CQs, and the threads and epoll sets that care about them.
 *
 * Whoever needs progress polls: it takes completions, applies them to their streams, and tells
 * the epoll sets and sleeping threads they concern. One sleeping thread, the leader, sleeps on the
 * completion channel; the others are woken by whoever polled what they wait for.
 */
#ifndef SHUNT_CORE_GROUP_H
#define SHUNT_CORE_GROUP_H

#include <stdbool.h>
#include <stdint.h>
#include "core/device.h"
#include "core/lock.h"
#include "core/tally.h"

#define SHUNT_CQS_MAX 64	/* beyond SHUNT_CQS they are made as lanes need them */

struct shunt_engine;
struct shunt_epset;
struct shunt_lane;
struct shunt_stream;

struct shunt_sleeper {	/* one sleeping thread; on its stack; group.lock */
	int kick_fd;		/* an eventfd that ends its sleep */
	_Atomic bool asleep;	/* has looked for the last time; must be kicked */
	bool leader;
	bool told;		/* something changed on a stream it waits for */
	bool heeds;		/* cancellations of its thread */
	struct shunt_epset *set;	/* sleeps in this epoll set, NULL: in ppoll */
	uint32_t forks;		/* of the engine, when it fell asleep */
	struct shunt_sleeper *next, *previous;
};

struct shunt_sleep_on {	/* a sleeper's interest in one stream; group.lock */
	struct shunt_sleeper *sleeper;
	struct shunt_stream *stream;
	struct shunt_sleep_on *next;
};

struct shunt_group {
	struct shunt_lock lock;
	_Atomic bool open;		/* there is a device */
	struct shunt_device devices[SHUNT_DEVICES];	/* by enum shunt_which; opened as links need them */
	_Atomic int bell;		/* to sleep on: the channel of the device that is open, or an epoll of all theirs */
	struct ibv_cq *cqs[SHUNT_CQS_MAX];	/* each lane completes in one of them; all on their devices' channels */
	uint32_t cq_count;
	uint32_t cq_turn;		/* which is polled first */
	uint32_t cq_lanes[SHUNT_CQS_MAX];	/* how many lanes each has; service thread, as is the next */
	bool more;			/* the last poll did not empty the CQs */
	struct shunt_sleeper *sleepers;
	struct shunt_sleeper *leader;		/* sleeps on the channel */
	struct shunt_epset *channel_set;	/* epoll set whose companion holds what is slept on, */
	int channel_fd;			/* as this number: the bell of that time */
	struct shunt_epset *nested_sets;	/* watched from outside: kick_fd tells the kernel of them */
	struct shunt_lane *lanes;		/* all that complete here */
	struct shunt_tally ended;		/* what those that are gone had counted */
	struct shunt_lane *repost_lanes;	/* have used up many of their receives */
	struct shunt_lane *kick_lanes;		/* have work that a completion made possible */
	struct shunt_stream *settle;		/* have a switch to pass, if nobody is reading */
	_Atomic uint64_t inflight;	/* data bytes posted and not known to be complete, where SHUNT_WINDOW_DEVICE is set */
	bool service_asleep;			/* so does the service thread, beside the leader */
	_Atomic bool rearm;			/* an event was taken; who sleeps on the channel needs another */
	_Atomic bool after_due;			/* one of the two lists is not empty */
	_Atomic uint64_t sleep_cost;	/* ns, see sleepcost.h; 0: not measured */
	uint64_t polls, empty_polls, completions, arms, events, sleeps, kicks;
	uint64_t spins, spin_hits;	/* that found nothing, that found something */
	uint64_t backoffs;		/* times a thread gave up spinning for a while */
};

/* Opens the device on first use. NULL: there is none. Service thread. */
struct shunt_device *shunt_group_open(struct shunt_engine *engine, enum shunt_which which);
/* The RDMA device that leads to a peer, with the port and the address of that way. NULL: there is none, or they are too many. */
struct shunt_device *shunt_group_open_way(struct shunt_engine *engine, const struct shunt_way *way);
void shunt_group_close(struct shunt_engine *engine);
/* The largest power of two that is no more than either; of queues. */
uint32_t shunt_group_depth(uint64_t wanted, uint32_t most);
/* In a fork's child: nothing of the parent's is torn down; its memory is shared with the peers, its numbers are copies. */
void shunt_group_abandon(struct shunt_engine *engine);
void shunt_group_add_lane(struct shunt_engine *engine, struct shunt_lane *lane);
void shunt_group_remove_lane(struct shunt_engine *engine, struct shunt_lane *lane);
/* Nothing that was posted is still on its way. */
bool shunt_group_settled(struct shunt_engine *engine);
/*
 * Every lane gets its turn. True: none has work that waits. *served: somebody is serving one, and has work in hand
 * that is in no list.
 */
bool shunt_group_idle(struct shunt_engine *engine, bool *served);
/* The CQ for a new lane: one that has the fewest. NULL: no room for more. Service thread. */
struct ibv_cq *shunt_group_cq(struct shunt_engine *engine, struct shunt_device *device);
/* group.lock held. */
struct shunt_lane *shunt_group_lane(struct shunt_engine *engine, const struct ibv_cq *cq, uint32_t qp_num);

/*
 * Takes what completions there are, up to a limit, and applies them. Returns how many. May be called with stream and
 * lane locks held; does nothing when another thread is polling.
 */
int shunt_group_poll(struct shunt_engine *engine);
/* Takes all there are now, waiting for another thread's poll. No lock right of group.lock held. */
void shunt_group_poll_fully(struct shunt_engine *engine);
/* The same with group.lock already held; the caller runs shunt_group_after() once it has left it. */
int shunt_group_poll_locked(struct shunt_engine *engine);
void shunt_group_after_slow(struct shunt_engine *engine);

static inline void shunt_group_after(struct shunt_engine *engine, struct shunt_group *group)
{
	if (__builtin_expect(atomic_load_explicit(&group->after_due, memory_order_relaxed), 0))
		shunt_group_after_slow(engine);
}

/* The receives of the lane are posted again at the end of this poll. group.lock held. */
void shunt_group_repost(struct shunt_engine *engine, struct shunt_lane *lane);
/* For shunt_group_after(); group.lock held. */
void shunt_group_kick_lane(struct shunt_engine *engine, struct shunt_lane *lane);
void shunt_group_settle(struct shunt_engine *engine, struct shunt_stream *stream);

/*
 * Asks for an event on the next completion of any CQ: what is there already raises none, so whoever arms polls
 * before it sleeps. group.lock held.
 */
void shunt_group_arm(struct shunt_engine *engine);
/* Takes the events that ended a sleep. */
void shunt_group_take_event(struct shunt_engine *engine);
/* The same, and as many completions as SHUNT_POLL takes with one wake-up. No lock right of group.lock held. */
void shunt_group_hear(struct shunt_engine *engine);
/* As shunt_group_poll_locked(), after an event was taken. */
void shunt_group_hear_locked(struct shunt_engine *engine);

/*
 * Something changed on the stream (poll bits in `what`): epoll sets list it, its sleepers wake.
 * group.lock held.
 */
void shunt_group_notify(struct shunt_engine *engine, struct shunt_stream *stream, uint32_t what);
/* The same from outside the lock. */
void shunt_group_tell(struct shunt_engine *engine, struct shunt_stream *stream, uint32_t what);

/* Sleeping; group.lock held. The first to come leads: it must arm the CQ and sleep on the channel as well. */
void shunt_group_sleep_enter(struct shunt_engine *engine, struct shunt_sleeper *sleeper);
/* After the poll that follows: falls asleep unless it is `ready` or the poll has left something behind. */
void shunt_group_sleep_begin(struct shunt_engine *engine, struct shunt_sleeper *sleeper, bool ready);
void shunt_group_sleep_leave(struct shunt_engine *engine, struct shunt_sleeper *sleeper);
/* False in a fork's child whose handler returns to the sleep that it interrupted: nothing there knows of it. */
bool shunt_group_sleeps(const struct shunt_engine *engine, const struct shunt_sleeper *sleeper);
/* Woken and still in the list: leads from here on, if nobody does. */
bool shunt_group_sleep_lead(struct shunt_engine *engine, struct shunt_sleeper *sleeper);
void shunt_group_kick(struct shunt_engine *engine, struct shunt_sleeper *sleeper);
/* A thread has been cancelled: who heeds that looks whether it is the one. */
void shunt_group_cancelled(struct shunt_engine *engine);

#endif
