/* SPDX-License-Identifier: MIT */
/*
 * Admission: how much of a lane, and of the device, may be in flight at a time (RB-12…15, XR-13, XR-23).
 *
 * The window stands between the merge queue and the QP: it holds back what is posted, never what is
 * accepted. So what waits for it is merged, and a program sees no more of it than of a slow
 * network. Bytes are in flight from their posting until they are known to be complete. Only
 * signaled WRs tell, so a WR behind which the window closes is always signaled.
 *
 * A policy is one row of the table in window.c.
 *
 * Before a work request is built, four limits are asked (core/lane/chain.c). They are receives at the peer, slots of
 * the send queue, and for data the windows of the lane and of all lanes. A request that is alone may always go. A
 * gate of a room above is asked last, for that one too (core/qos/throttle.h).
 *
 * `admit` names the policy. A policy is one row of a table with three hooks: start, admit (may it be posted?),
 * completed (so many bytes, after so many ns). There are static, aimd and none. With aimd the window grows by a
 * fragment a round, and shrinks by a quarter when completions take twice the shortest time seen.
 *
 * Which limit was met how often is in the statistics (stalls), and the one met most is named there (bound_by). Every
 * chain ends in a solicited work request: one event for all of it.
 */
#ifndef SHUNT_CORE_LANE_WINDOW_H
#define SHUNT_CORE_LANE_WINDOW_H

#include <stdbool.h>
#include <stdatomic.h>
#include <stdint.h>
#include "core/poll/lane_counters.h"

struct shunt_config;
struct shunt_window;

extern const char *const shunt_limit_names[SHUNT_LIMITS];

struct shunt_admission {
	const char *name;	/* value of `admit` */
	void (*start)(struct shunt_window *window, const struct shunt_config *config);
	/* May so many more bytes be posted, within the limits? NULL: always. */
	bool (*admit)(struct shunt_window *window, uint32_t bytes);
	/* So many bytes have completed, ns after the last of them was posted. NULL: nothing is timed. */
	void (*completed)(struct shunt_window *window, uint64_t bytes, uint64_t ns);
};

/* A lane's hand: units that the gate has given to it ahead of its WRs. The gate alone reads it. Zeroes: an empty hand. */
struct shunt_gate_hand {
	uint32_t units;
	uint32_t epoch;	/* they are worth nothing in another one */
};

/*
 * A say in each data WR of a lane, beside the policy, for a room above: tokens (core/qos/). It is asked last, also for a
 * WR that is alone, and one gate may stand before several lanes. lane.lock held.
 */
struct shunt_gate {
	/* May a WR of so many bytes be posted? A yes counts at once. */
	bool (*admit)(struct shunt_gate *gate, struct shunt_gate_hand *hand, uint32_t bytes);
	/* Of an admitted WR only so many bytes were posted; 0: nothing was. */
	void (*shorten)(struct shunt_gate *gate, struct shunt_gate_hand *hand, uint32_t admitted,
			uint32_t posted);
};

/* A say in what arrives on the lanes of a link, for a room above: tokens. group.lock held. */
struct shunt_arrivals {
	/* A data message of so many bytes has come. NULL; or why the peer is not to be believed. */
	const char *(*count)(struct shunt_arrivals *arrivals, uint32_t bytes);
};

struct shunt_mark {		/* of one signaled WR */
	uint64_t posted;	/* data bytes up to and with it */
	uint64_t time;		/* when it was posted; 0: nobody wants to know */
};

struct shunt_window {		/* lane.lock, except P: group.lock */
	_Atomic uint64_t posted;	/* data bytes given to the QP */
	_Atomic uint64_t edge;	/* P: where the limit in bytes is reached: done + bytes */
	_Atomic uint64_t done;	/* P: of what was posted, known to be complete */
	uint64_t signal_at;	/* `posted` from which on a WR must be signaled */
	uint64_t usual;		/* bytes, where `window` is auto; set before the window is */
	uint64_t wrs;		/* limits; UINT64_MAX: none */
	uint64_t most_wrs;	/* in flight when one was signaled, ever */
	bool asked;		/* the policy, the device's window or the gate has a say in every WR */
	bool signals;		/* every data WR is to be signaled: only completions open what is asked */
	_Atomic uint64_t bytes;	/* P */
	uint64_t frag_bytes;
	const struct shunt_admission *policy;
	struct shunt_gate *gate;	/* NULL: none */
	struct shunt_gate_hand hand;
	uint64_t device_bytes;
	_Atomic uint64_t *device;	/* in flight in all lanes; NULL: not counted */
	struct shunt_mark *marks;	/* by WR number, modulo the SQ's depth */
	uint32_t mask;
	uint64_t most_bytes;	/* in flight when one completed, ever; P */
	/* of the policy; P */
	uint64_t fastest_ns;	/* least completion time seen */
	uint64_t cut_at;	/* `done` up to which the last reduction speaks */
	uint64_t most;		/* how far the window grows */
	uint64_t cuts;		/* reductions */
};

/* 0 or -ENOMEM. sq_depth: a power of two; `device`: the counter of the device. */
int shunt_window_init(struct shunt_window *window, const struct shunt_config *config, uint32_t sq_depth,
		      _Atomic uint64_t *device);
/* WRs in flight will never complete; the device's count forgets them. */
void shunt_window_fini(struct shunt_window *window);
/*
 * The configuration's limits have changed. All that was posted is complete, or a WR that is under way says when it
 * is; nothing was admitted that is not posted. Also group.lock held.
 */
void shunt_window_change(struct shunt_window *window, const struct shunt_config *config,
			 _Atomic uint64_t *device);
/* Another policy than the configuration's. */
void shunt_window_use(struct shunt_window *window, const struct shunt_admission *policy);
/* Puts a gate before the lane, or takes it away with NULL. */
void shunt_window_set_gate(struct shunt_window *window, struct shunt_gate *gate);
/* Of an admitted WR only so many bytes were posted. */
void shunt_window_shorten(struct shunt_window *window, uint32_t admitted, uint32_t posted);
/* An admitted WR was not posted after all. */
static inline void shunt_window_return(struct shunt_window *window, uint32_t bytes)
{
	shunt_window_shorten(window, bytes, 0);
}
/* WR number `number`, signaled, ends at `posted` data bytes in all; written before it is posted. */
void shunt_window_mark(struct shunt_window *window, uint64_t number, uint64_t posted, uint64_t now);
/* When the signaled WR `number` was posted; 0: it is not timed. group.lock held. */
static inline uint64_t shunt_window_time(const struct shunt_window *window, uint64_t number)
{
	return window->marks[number & window->mask].time;
}
/* WR number `number` has completed; `now` counts where it is timed. group.lock held. True: the device's window has opened. */
bool shunt_window_completed(struct shunt_window *window, uint64_t number, uint64_t now);
enum shunt_limit shunt_window_judge(struct shunt_window *window, uint64_t wrs, uint64_t ahead, uint32_t bytes);

static inline uint64_t shunt_window_inflight(const struct shunt_window *window)
{
	return atomic_load_explicit(&window->posted, memory_order_relaxed) -
	       atomic_load_explicit(&window->done, memory_order_acquire);
}

/* Nothing may be posted until bytes complete. Any thread, at the moment of asking. */
static inline bool shunt_window_full(const struct shunt_window *window)
{
	return atomic_load_explicit(&window->posted, memory_order_relaxed) >=
	       atomic_load_explicit(&window->edge, memory_order_relaxed);
}

/* The most that has been in flight: it grows until one completes. */
static inline uint64_t shunt_window_most(const struct shunt_window *window)
{
	uint64_t now = shunt_window_inflight(window);

	return now > window->most_bytes ? now : window->most_bytes;
}

/*
 * May a data WR of `bytes` be posted behind `wrs` WRs? Those are in flight or about to be posted, with `ahead` data
 * bytes in the latter. A lone WR is always admitted (PF-23). A yes counts for the device at once.
 */
static inline enum shunt_limit shunt_window_admit(struct shunt_window *window, uint64_t wrs, uint64_t ahead,
						  uint32_t bytes)
{
	uint64_t end = atomic_load_explicit(&window->posted, memory_order_relaxed) + ahead + bytes;

	if (__builtin_expect(!window->asked && wrs < window->wrs &&
			     end <= atomic_load_explicit(&window->edge, memory_order_acquire), 1))
		return SHUNT_LIMIT_NONE;
	return shunt_window_judge(window, wrs, ahead, bytes);
}

/*
 * Must a WR (`bytes` 0: without data) be signaled, so that the window opens again? That it has few WRs is for
 * the caller to see to, who signals at least every second of them.
 */
static inline bool shunt_window_signals(const struct shunt_window *window, uint64_t ahead, uint32_t bytes)
{
	return window->signals || atomic_load_explicit(&window->posted, memory_order_relaxed) + ahead + bytes >=
		       window->signal_at;
}

#endif
