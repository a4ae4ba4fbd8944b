/* SPDX-License-Identifier: MIT */
/*
 * A lane: one RC QP of a link, and the merge queue in front of it (RB-01…05).
 *
 * A send on an idle lane is posted at once, straight from the program's buffer when it fits inline. When the lane is
 * busy or out of credit, bytes are staged per stream, and the lane's holder serves all streams. Contiguous bytes of a
 * stream become one WR, several streams one chain with one doorbell, as `batch` allows. Later arrivals leave at
 * once: they mark the lane dirty. The holder looks again after it has left the lock, so no flush is lost (PF-07).
 *
 * Nothing ever waits in order to be merged. Bytes are held back in two cases. The stream has a WR under way that will
 * say when it is done (CP-01), or the program announces more (MSG_MORE).
 *
 * Locks. lane.lock; the merge queue under queue_lock; the receiving side under group.lock. A lane lasts as long as a
 * stream has its seat there, and as long as a thread holds its lock: removing waits for both. A thread that serves a
 * lane for no stream takes the lock under group.lock, where the lane is still known, and leaves it there. A thread
 * that has let go of a seat may still be inside, with the stream's locks; the seat is vacated when those are free.
 */
#ifndef SHUNT_CORE_LANE_LANE_H
#define SHUNT_CORE_LANE_LANE_H

#include "core/base/iov.h"
#include "core/base/lock.h"
#include "core/base/verbs.h"
#include "core/lane/lane_stats.h"
#include "core/lane/window.h"
#include "core/lane/slow_lane.h"
#include "core/link/seat.h"

#define SHUNT_CONTROL_RESERVE 4	/* receives kept back for LANE messages (XR-20) */
#define SHUNT_INLINE_LEAST 8	/* what a control message takes */
#define SHUNT_LANE_SGES 16	/* parts of one WR, at most; a provider may grant a queue pair more than it was asked for */

struct shunt_chain;
struct shunt_followed;
struct shunt_imm_queue;
struct shunt_lane_trace;

/*
 * Calls of a lane into the room above, about one of its streams. lane.lock held. Nothing here is
 * called for a message that goes the short way.
 */
struct shunt_lane_hooks {
	/*
	 * WRs of the stream may be complete: their waiters are told. `work` is still to be posted for it. True: something
	 * still waits.
	 */
	bool (*done)(struct shunt_seat *seat, uint32_t work);
	/* A sender that was told to wait may find room. */
	void (*roomy)(struct shunt_seat *seat);
	/* The peer's ring has no room for what is staged. */
	void (*stuck)(struct shunt_seat *seat);
	/* RELEASE has been posted, and the device needs nothing of the stream any more. */
	void (*released)(struct shunt_seat *seat);
	/* Stream offset up to which the program has read. */
	uint64_t (*read_to)(const struct shunt_seat *seat);
	/* The program sends nothing more. */
	bool (*ended)(const struct shunt_seat *seat);
	/* Either end has reset the connection: nobody reads what is not posted. */
	bool (*broken)(const struct shunt_seat *seat);
};

struct shunt_lane {
	struct shunt_link *link;
	struct shunt_group *group;	/* in which it completes */
	const struct shunt_lane_hooks *hooks;
	struct ibv_qp *qp;
	uint32_t rkey;			/* of the peer's control lines */
	uint32_t number;		/* in its link; the peer's has the same */
	uint32_t serial;		/* of this process' lanes, from 0: rules of faults name it */
	uint64_t peer_controls;		/* address of the peer's control lines */
	uint32_t copies_from;		/* bytes of a WR from which on copying.c says how the device copies them */
	bool copies_past;		/* SHUNT_TUNE=copy=nt: past the caches */
	uint32_t max_inline, frag_bytes, sq_depth, signal_every;
	uint64_t *words;	/* sq_depth registered ones, a WR's own each, where the device takes none inline; else NULL */
	uint32_t words_lkey;
	uint32_t max_sges;	/* parts that one WR may have: no more than SHUNT_LANE_SGES */
	uint32_t reserve;		/* SHUNT_CONTROL_RESERVE */
	_Atomic bool merges; /* `batch`; written with the lock, read with none */
	bool chains; /* the same */
	bool fetches;			/* the device fetches what is longer than max_inline itself, from
					 * registered memory, until the WR is complete */
	bool retains;			/* what was posted is kept until it has arrived */
	_Atomic bool failed;		/* its link is over: nothing more is accepted for it */
	const uint32_t *backlog;	/* WRs that the device has not carried out; its own count, NULL if it has none */
	const uint32_t *rings;		/* nonzero: the device is to be asked to ring (shunt_lane_ring); NULL: it rings as it posts */

	_Alignas(64) struct shunt_lock lock;
	_Atomic bool dirty;		/* there may be work that the holder has not seen */
	_Atomic bool refused;		/* the QP did not take a WR: no completion tells when it would */
	bool late;			/* the device had WRs that it has not carried out yet */
	uint32_t unsignaled;
	uint64_t sent;			/* WRs posted to the SQ: messages to the peer, and READs */
	uint64_t reads;			/* of them: READs, probes and WRITEs without a word, which take no receive of the peer's */
	uint64_t last_signaled;		/* the number of one of them */
	_Atomic uint64_t retired;	/* P: WRs known to be complete */
	_Atomic uint64_t allowed;	/* P: messages the peer has receives for, in all */
	struct shunt_lane_counters counters;
	struct shunt_chain *chain;	/* under construction */
	uint64_t last_timed;		/* number of a WR that is timed */
	struct shunt_lane_trace *trace;	/* the peer takes records of sends (lane_trace.h); NULL: it does not */
	_Alignas(64) struct shunt_window window;	/* what each WR asks is in one line */

	_Alignas(64) struct shunt_lock queue_lock;
	struct shunt_seat *first, *last;	/* the merge queue */
	_Atomic uint32_t waiting;	/* streams in it */
	struct shunt_seat *held;	/* wait for a completion of their own */
	_Atomic uint32_t holding;	/* how many do */

	/* group.lock */
	_Alignas(64) uint64_t received;	/* messages polled */
	uint64_t flushed;		/* receives that the end of the QP has given back */
	uint64_t granted;		/* `allowed` as we last told the peer */
	uint64_t reposted;
	uint64_t repost_at;	/* `received` from which on more are to be posted */
	struct shunt_followed *_Atomic followed;	/* sends of the peer (core/trace/followed.h); NULL: it was offered no ring */
	uint64_t held_until;	/* ns: a fault has held completions back until then (fault_device.c) */
	uint32_t rq_depth;
	struct shunt_imm_queue *imm; /* NULL: the device has WRITE_WITH_IMM (core/device/imm.c) */
	uint32_t seats;		/* streams that it carries */
	bool repost_due;	/* in polled.repost_lanes */
	bool metered; /* link.arrivals has a say in data messages */
	_Atomic bool lane_due;		/* a LANE message is to be sent */
	_Atomic uint64_t lane_value;
	bool repeated;			/* group.lock: the present lane_value was said again (nop.h) */
	bool kicked;			/* in polled.kick_lanes */
	struct shunt_lane *next_kick, *next_repost;
	struct shunt_lane *next_in_group;			/* group.lanes */
	struct shunt_lane **at_in_group;			/* what points to this lane there; NULL: it is not listed */
	struct shunt_lane *next_in_row, **at_in_row;		/* group.lane_rows */
	struct shunt_slow slow;		/* service thread */
	_Atomic uint64_t mute_since;	/* nothing that is posted reaches anybody (fault.h); 0: no such thing */
	uint64_t mute_wr;		/* the first that did not */
	bool unheld;			/* group.lock: a poll holds none of its completions back (fault_device.c) */
	_Atomic bool unsettled;		/* somebody waits until all that was posted has arrived */

	/* service thread: keepalive.c */
	uint64_t seen_sent, seen_received;	/* at the last look */
	uint64_t seen_retired;	/* lane.retired at the last look */
	uint64_t stuck_since;	/* ns: the look at which seen_retired was new and a completion awaited; 0: none is */
	uint64_t nop_allowed;	/* lane.allowed when a NOP was sent, and one; 0: none was */
	uint64_t probe;			/* number of the WR that asks whether the peer is there */
	uint64_t asked_at;		/* ns: when a command has posted `probe`; 0: none waits for it. lane.lock */

	/* Histogram: timed WRs, from posting until a poll has found them complete. group.lock */
	uint64_t link_ns[SHUNT_TIME_BUCKETS];
};

/* Of sq_depth, one is left unused, so that a completion queue has a power of two less one (core/poll/devices.c). */
static inline uint32_t shunt_lane_slots(const struct shunt_lane *lane)
{
	return lane->sq_depth - 1;
}

/* Bytes of a stage stay until their WRs are complete; so does a seat. */
static inline bool shunt_lane_keeps(const struct shunt_lane *lane)
{
	return lane->fetches || lane->retains;
}

/* Adjacent staged bytes become one WR. */
static inline bool shunt_lane_merges(const struct shunt_lane *lane)
{
	return atomic_load_explicit(&lane->merges, memory_order_relaxed);
}

/* `link` and `number` are set. */
int shunt_lane_init(struct shunt_lane *lane);
void shunt_lane_fini(struct shunt_lane *lane);
/*
 * `batch`, `chain`, signal_every or a window has changed. False: the send queue is full and nothing has
 * changed, so the caller comes again. Service thread.
 */
bool shunt_lane_change(struct shunt_lane *lane);

/*
 * Places up to `bytes` of iov at the stream's offset in the peer's ring, or stages them. tx.lock held, stream on the
 * link. Returns how many bytes were taken: less than asked when room is short; 0 when it has run out.
 */
size_t shunt_lane_send(struct shunt_lane *lane, struct shunt_seat *seat, struct shunt_iov *from,
		       size_t bytes);
/* The same for bytes behind which the program announces more: they may wait for it (MSG_MORE). */
size_t shunt_lane_gather(struct shunt_lane *lane, struct shunt_seat *seat, struct shunt_iov *from,
			 size_t bytes);
/*
 * Takes bytes that are posted later, until the stage holds `most`; should the link die before, the peer
 * learns of them. `apart`: see shunt_send_queue_take(). Returns how many.
 */
size_t shunt_lane_accept(struct shunt_seat *seat, struct shunt_iov *from, size_t bytes,
			 uint64_t most, bool apart);
/*
 * For bytes that are not in memory yet: how many may be written to *at until the stage holds `most`. 0: it is full.
 * shunt_lane_fill() takes so many of them as have been written. Both under one hold of tx.lock. `apart`: as above.
 */
size_t shunt_lane_fill_room(struct shunt_seat *seat, uint64_t most, bool apart, void **at);
void shunt_lane_fill(struct shunt_seat *seat, size_t bytes, bool apart);
/* Posts what was gathered. */
void shunt_lane_push(struct shunt_lane *lane, struct shunt_seat *seat);

/*
 * Uses the ring that the peer has offered from here on, though there is nothing to send. tx.lock held, stream on
 * the link. False: something is staged or queued, or the lane cannot post; the next send does it, if none comes
 * somebody has to try again.
 */
bool shunt_lane_change_ring(struct shunt_lane *lane, struct shunt_seat *seat);

/*
 * Puts a gate before the lane's data, of which one WR then has at most so many bytes; or takes it away (NULL and 0).
 * After that nobody is asking the former gate.
 */
void shunt_lane_set_gate(struct shunt_lane *lane, struct shunt_gate *gate, uint32_t frag_bytes);
/* Nothing that is queued for the stream will be posted any more. */
void shunt_lane_forget(struct shunt_lane *lane, struct shunt_seat *seat);
/* TCP may carry a stream whose HANDBACK has not been passed: the peer is known to have its HANDBACK. Otherwise its link tells when. */
bool shunt_lane_handed_over(struct shunt_lane *lane, struct shunt_seat *seat);
/* The number of the last WR that asks for a completion; 0: none does. No lock right of lane.lock held. */
uint64_t shunt_lane_awaited(struct shunt_lane *lane);
/* How many messages the peer has been sent. No lock right of lane.lock held. */
uint64_t shunt_lane_messages(struct shunt_lane *lane);
/* The peer's have come up to this one. False: the service thread looks again. */
bool shunt_lane_heard(struct shunt_lane *lane, uint64_t messages);
/* Everything posted has arrived. False: the service thread looks again. */
bool shunt_lane_settled(struct shunt_lane *lane);
/* The same, and nobody is told. */
bool shunt_lane_arrived(struct shunt_lane *lane);
/* The queue pair goes to its error state: messages that have not arrived never will. lane.lock held. */
void shunt_lane_break(struct shunt_lane *lane);

/* Posts the receives that were consumed and tells the peer when it is due. group.lock held. */
void shunt_lane_repost(struct shunt_lane *lane);
/* A LANE message is due, with all receives that were posted. group.lock held; the caller has the lane served. */
void shunt_lane_announce(struct shunt_lane *lane);
int shunt_lane_post_receives(struct shunt_lane *lane, uint32_t count);

#endif
