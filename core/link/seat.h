/* SPDX-License-Identifier: MIT */
/*
 * A seat: a stream's life on one link. It begins when the service thread gives the stream a number on the link
 * (seats.h). It ends when both ends have released it, or the link is dead. The lane and the poll know seats; which
 * stream sits on one is the business of the rooms above.
 *
 * Offsets are those of the stream: 64-bit, absolute from the first byte of the connection, per direction. Fields marked P
 * are written by a polling thread under group.lock, and read by any thread. tx.lock and rx.lock are the stream's.
 */
#ifndef SHUNT_CORE_LINK_SEAT_H
#define SHUNT_CORE_LINK_SEAT_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/lock.h"
#include "core/link/heading.h"
#include "core/link/intake.h"
#include "core/loop/loop.h"
#include "shunt/wire.h"

struct shunt_cuts;
struct shunt_lane;
struct shunt_link;
struct shunt_pendings;
struct shunt_pin;
struct shunt_send_window;
struct shunt_stream;
struct shunt_thread;

/*
 * Being handed back for good: asked, and what the peer said. RESTING: not used since a fork, so a relative may take it
 * (core/stream/rest.h). TAKEN: one has, and the peer has not confirmed that yet. CANNOT_RETIRE: the peer has declined.
 * UNANSWERED: its link has ended before it could answer.
 */
enum shunt_retiring {
	SHUNT_STAYING,
	SHUNT_RESTING,
	SHUNT_TAKEN,
	SHUNT_RETIRING,
	SHUNT_RETIRED,
	SHUNT_CANNOT_RETIRE,
	SHUNT_UNANSWERED
};

/*
 * Asked to hand back by the peer, or by a relative that has taken its end (GIVEN_AWAY); what was answered. REPEATED: not
 * asked yet, and TCP has all that the peer has not read (repeat.h).
 */
enum shunt_asked {
	SHUNT_NOT_ASKED,
	SHUNT_ASKED,
	SHUNT_DECLINED,
	SHUNT_GIVEN,
	SHUNT_GIVEN_AWAY,
	SHUNT_REPEATED,
};

/* How far each end has let go of the seat. Bits: the two ends do not wait for each other. */
enum shunt_release {
	SHUNT_RELEASED_BY_US = 1 << 0,		/* and nothing that was posted is fetched any more */
	SHUNT_RELEASED_BY_PEER = 1 << 1,	/* and who waits on the stream knows */
	SHUNT_RELEASED_BY_BOTH = SHUNT_RELEASED_BY_US | SHUNT_RELEASED_BY_PEER,	/* the seat is free */
	SHUNT_RELEASE_POSTED = 1 << 2,		/* lane.lock: nothing may follow */
	SHUNT_RELEASE_HEARD = 1 << 3,		/* P: the peer has closed */
	SHUNT_RELEASE_KEPT = 1 << 4,		/* this end keeps the connection (core/stream/spare.h); under both locks */
	SHUNT_RELEASE_KEEPS = 1 << 5,		/* P: the peer does */
	SHUNT_RELEASE_RESTS = 1 << 6,		/* P: it has begun anew */
	SHUNT_RELEASE_OVER = 1 << 7,		/* P: and has released that, too, before this end has begun anew */
};

/* Work that a stream wants from its lane; bits of seat.work. In the order a lane serves them. */
enum shunt_work {
	SHUNT_WORK_UPGRADE = 1 << 0,
	SHUNT_WORK_DATA = 1 << 1,
	SHUNT_WORK_HANDBACK = 1 << 2,
	SHUNT_WORK_FIN = 1 << 3,
	SHUNT_WORK_RESET = 1 << 4,
	SHUNT_WORK_CREDIT = 1 << 5,
	SHUNT_WORK_SWITCHED = 1 << 6,
	SHUNT_WORK_RING = 1 << 7,
	SHUNT_WORK_RELEASE = 1 << 8,
	SHUNT_WORK_BLOCKED = 1 << 9,
	SHUNT_WORK_REST = 1 << 11,	/* RELEASE again: it has begun anew (core/stream/spare.h) */
	SHUNT_WORK_DONE = 1 << 10,	/* something of the stream waits for WRs to be complete */
};

/* Work that may be posted only when all bytes before it have been. */
#define SHUNT_WORK_BEHIND_DATA \
	(SHUNT_WORK_DATA | SHUNT_WORK_HANDBACK | SHUNT_WORK_FIN | SHUNT_WORK_RELEASE)

/* The peer is beyond its limit (core/qos/holding.h): work that is not done for it; and what was to be done since. */
enum {
	SHUNT_WITHHELD = 1,
	SHUNT_WITHHELD_CREDIT = 2,
	SHUNT_WITHHELD_RING = 4,
};

/*
 * The peer's nonce in TCP (proof.h): not needed or seen; not announced yet; to be taken out of TCP. DISPROVEN: other
 * bytes stood there, or it cannot be taken out, and the stream stays on TCP.
 */
enum shunt_proof { SHUNT_PROVEN, SHUNT_UNPROVEN, SHUNT_EXPECTED, SHUNT_DISPROVEN };

/*
 * Our nonce: not needed or seen; not announced yet; announced, and TCP waits for EXPECT; written. WITHDRAWN: it will
 * not be written, and the stream stays on TCP.
 */
enum shunt_show { SHUNT_SHOWN, SHUNT_OWED, SHUNT_PLACED, SHUNT_WRITTEN, SHUNT_WITHDRAWN };

/* seat.in.bypass of a stream that has ended so. */
enum { SHUNT_BYPASS_ENDED = UINT8_MAX };

struct shunt_idle {	/* service thread, and exit(): core/recovery/idle.h */
	_Atomic uint64_t moved;	/* how far it had moved when somebody looked */
	_Atomic uint64_t since;	/* ns; the look that found it there first; 0: nobody has looked */
};

struct shunt_send_stage {	/* tx.lock; see send_queue.h */
	uint8_t *bytes;		/* NULL: none yet; changed under tx.lock and lane.lock */
	_Atomic uint32_t size;	/* bytes at `bytes`, a power of two; changed with it */
	struct shunt_cuts *_Atomic cuts;
	uint32_t lkey;		/* of a device that fetches from it */
};

/* The peer's ring, into which this end writes. tx.lock, except P. */
struct shunt_peer_ring {
	_Atomic uint64_t from;	/* stream offset from which the present ring is used */
	uint64_t address;	/* as RDMA calls it */
	_Atomic uint32_t bytes;
	uint32_t rkey;
	uint64_t old_address;	/* of the ring before `from` */
	_Atomic uint32_t old_bytes;
	uint32_t old_rkey;
	_Atomic uint64_t consumed;	/* P: link offset up to which the peer has made room */
	_Atomic uint64_t offer;	/* P: another ring of the peer, as RING says it; 0 none */
	_Atomic bool turning;	/* RING_FROM is on its way: the next offer may come before this one is cleared */
	uint64_t blocked_at;	/* `consumed` when the peer was last told that this end waits for more */
};

/* When the send buffer is open to bytes that the ring has no room for: overflow.h. tx.lock. */
struct shunt_overflow {
	_Atomic uint64_t open_at;	/* `consumed` for which it is open; SHUNT_NEVER: none */
	_Atomic bool promised;	/* a program may have been told of room there, and has not sent since */
	_Atomic uint64_t waits_at;	/* `consumed` when a sender last found no room */
	_Atomic uint64_t waits_since;	/* ns; when that was; 0: no sender waits */
	_Atomic uint64_t most;	/* bytes that an open buffer may hold; 0: not known yet */
};

enum { SHUNT_FIN_NOT_DUE = -1, SHUNT_FIN_NO_FD = -2 /* there was no descriptor yet */ };

/* The kernel's end, which waits until FIN has arrived: deferred_fin.h. tx.lock. */
struct shunt_deferred_fin {
	_Atomic int fd;		/* the end is said on this, or one of these two */
	_Atomic bool put_off;	/* the program has ended its direction, and may be about to close: core/stream/spare.h; changes under tx.lock */
	uint64_t wr;		/* lane.lock: number of the WR that is FIN; 0: not posted */
};

/* The nonce that the peer shows in TCP: core/stream/proof.h. rx.lock. */
struct shunt_proof_seen {
	_Atomic uint8_t state;	/* enum shunt_proof; under rx.lock and group.lock */
	uint8_t nonce[SHUNT_NONCE_BYTES];	/* before the peer shows it: our chance */
	_Atomic uint64_t at;	/* stream offset behind which it stands; SHUNT_NEVER unless it is expected; under both locks */
};

/* The last send's thread, which may have polled since: tx.c. tx.lock. */
struct shunt_hearing {
	const struct shunt_thread *thread;	/* only compared */
	uint64_t polls, at;	/* its polls then; cycles when a send polled itself */
};

struct shunt_copying {	/* lane.lock; copying.c */
	uint64_t round;		/* times around the ring */
	uint64_t posted, bytes;	/* the lane's bytes at the last, and for one (0: not known) */
};

/* This end's ring, into which the peer writes: rings.h. rx.lock. */
struct shunt_own_ring {
	uint64_t credited;	/* head as the peer knows it */
	uint8_t *at;
	uint32_t bytes;		/* reclaim.c looks at it without the lock */
	_Atomic bool sender_waits;	/* P sets it: for any room there is, as soon as all has been read */
	bool largest;	/* no larger ring can be offered before this one is changed */
	_Atomic uint32_t next_bytes;	/* the ring that was offered, 0 none */
	uint8_t *next;
	uint64_t from;		/* stream offset from which the ring is used; the same */
	_Atomic uint64_t offered;	/* value of a RING that is to be sent */
};

/* The link's rights in this direction: its ring, and how far it may write. P alone. */
struct shunt_inbound {
	uint64_t from;		/* stream offset from which the sender's present ring counts */
	uint64_t end;		/* so far its bytes are known to have room; `head` may have moved since */
	const uint8_t *ring;	/* where that ring is */
	uint32_t bytes;		/* and its size */
};

/* The direction that this end sends. tx.lock, except P. */
struct shunt_seat_out {
	/* One cache line has what each send writes, and the next one what it reads of the peer's ring. */
	struct shunt_heading heading;
	bool quick; /* on the link, nothing staged, nothing announced: a send is one WR */
	_Atomic bool want_link;	/* which track the next send should be on, */
	_Atomic uint8_t held;	/* if nobody wants it on TCP: SHUNT_HELD_… of track.h */
	_Atomic bool starved;	/* a send found no room: the next credit is an edge (EPOLLOUT) */
	_Atomic uint8_t show;	/* enum shunt_show: of the nonce that this end shows in TCP (core/stream/proof.h) */
	_Atomic uint64_t staged;	/* stream offset behind the last staged byte */
	_Atomic uint64_t posted;	/* lane.lock: stream offset behind the last byte given to the QP */
	_Atomic uint64_t exposed;	/* the same, but set before the QP gets it: credit may come that fast */
	uint64_t last_wr;	/* lane.lock: number of the last WR with bytes of the stream */
	struct shunt_pin *_Atomic pin;	/* the program's buffer that is registered, see send_queue.h; NULL none */
	_Atomic uint64_t gather_since;	/* ns; what is staged waits for more that the program has announced; 0: it does not */
	_Alignas(64) struct shunt_peer_ring ring;
	struct shunt_hearing hearing;
	struct shunt_overflow overflow;
	_Atomic uint64_t announced;	/* UPGRADEs and HANDBACKs */
	_Atomic uint64_t
		stuck_since; /* that, or HALTED, for longer than the program may be willing to wait: user_timeout.h */
	struct shunt_deferred_fin fin_later;
	struct shunt_send_stage stage;	/* bytes accepted from the program that could not be posted at once */
	struct shunt_copying copying;
	uint64_t flip_at;	/* torture: change tracks here */
	_Atomic uint64_t upgrade_at;	/* stream offset of the last announced UPGRADE */
	_Atomic uint64_t handback_at;	/* and HANDBACK */
	_Atomic uint64_t fin;	/* value of FIN */
	_Atomic uint64_t left_at;	/* P: the peer has closed, and the link had brought more than it has read, which is up to here; SHUNT_NEVER */
};

/* The direction that this end receives. rx.lock, except P. */
struct shunt_seat_in {
	/* One cache line has all that a poll needs for a message. The words that each receive writes are in other lines. */
	_Atomic uint64_t tail;	/* P: behind the last byte that the link has placed */
	_Atomic uint64_t boundary;	/* P: announced end of the present track; SHUNT_NEVER none */
	_Atomic uint64_t next_from;	/* P: stream offset from which the offered ring is used */
	struct shunt_intake intake;
	struct shunt_inbound link;
	_Alignas(64) struct shunt_own_ring ring;
	_Atomic uint64_t followed;	/* end of a send that is followed and has been seen: the first that is unread; 0: none */
	_Atomic uint8_t
		withheld; /* SHUNT_WITHHELD…, 0: nothing is; set under group.lock, cleared under rx.lock */
	_Atomic bool closed;	/* P: with FIN: the peer's program has closed, too */
	_Atomic uint8_t bypass;	/* looks that found bytes of TCP which nobody has announced (core/stream/bypass.h) */
	_Atomic uint64_t second; /* P: the announced end of the track after that */
	_Atomic uint64_t announced;	/* P: UPGRADEs and HANDBACKs that have come */
	_Atomic uint64_t switched;	/* value of a SWITCHED that is to be sent */
	struct shunt_proof_seen proof;
};

/* How it leaves the link for good: core/stream/retire.h. */
struct shunt_leaving {
	_Atomic uint8_t retiring;	/* enum shunt_retiring: as this end asked */
	_Atomic uint8_t asked;	/* enum shunt_asked: as the peer did; REPEATED and the next two under tx.lock */
	_Atomic bool reads;	/* as far as this end has asked, ours stays on the link; under tx.lock */
	uint64_t offset;	/* from where the peer wants it again; SHUNT_NEVER: TCP has it already */
	uint64_t announced;
};

struct shunt_seat {
	/* The next life has these, too, because a thread that is late may still look at them. */
	struct shunt_stream *stream;	/* that sits here, or has */
	struct shunt_seat *next;	/* in its lane's queue; the last one names itself, so NULL: not queued. lane.queue_lock */
	struct shunt_pendings *_Atomic pendings;	/* its stream's sends that are followed (core/trace/pending.h); NULL: none */
	struct shunt_send_window *_Atomic window;	/* core/lane/send_queue.h; NULL: nothing is kept, or it was not given memory */

#ifdef SHUNT_LOCK_CHECKS
	const struct shunt_lock *sender;	/* the sending thread holds it: the stream's tx.lock */
#endif

	/* From here on each life begins anew. */
	struct shunt_link *_Atomic link;	/* changes under group.lock */
	struct shunt_lane *lane;
	uint32_t id;		/* ours, as the peer calls the stream */
	uint32_t peer_id;
	struct shunt_control *control;	/* our control line: the peer writes it */
	_Atomic uint32_t work;	/* enum shunt_work: what it wants of its lane (lane_queue.h) */
	_Atomic uint8_t release;	/* enum shunt_release */
	uint64_t chain;		/* lane.lock: number of the chain that has its last WR */
	_Alignas(64) struct shunt_seat_out out;
	_Alignas(64) struct shunt_seat_in in;
	struct shunt_leaving leaving;
	struct shunt_idle idle;	/* on the link */
};

/* Of streams that have none: read only, and what it says is true of them. */
extern const struct shunt_seat shunt_seat_none;

/*
 * Where seats come from. Their memory is never anything else, so a thread that is late reads of another seat at worst.
 * streams_lock.
 */
struct shunt_seat_pool {
	struct shunt_seat *free;
	struct shunt_seat **slabs;	/* of SHUNT_SLAB_SEATS each */
	uint32_t slab_count;
};

#define SHUNT_SLAB_SEATS 16

/* A seat on which nothing has happened yet. NULL: no memory. */
struct shunt_seat *shunt_seat_make(struct shunt_seat_pool *pool);
/*
 * Its stream begins anew on the same seat. All of both directions is as on a new one, but for the rings. There are no
 * offers, and nothing is under way. Both locks of the stream and group.lock held.
 */
void shunt_seat_begin_anew(struct shunt_seat *seat);
/* Nothing of the seat is in use, and nobody finds it by its link or its stream. */
void shunt_seat_free(struct shunt_seat_pool *pool, struct shunt_seat *seat);

static inline bool shunt_seat_is_none(const struct shunt_seat *seat)
{
	return seat == &shunt_seat_none;
}

/* The caller holds the stream's tx.lock; builds that check locks abort else. A seat without a stream has none. */
static inline void shunt_seat_assert_sends(const struct shunt_seat *seat)
{
#ifdef SHUNT_LOCK_CHECKS
	if (seat->sender)
		shunt_assert_held(seat->sender);
#else
	(void)seat;
#endif
}

/* The peer has closed the stream. */
static inline bool shunt_seat_is_released(const struct shunt_seat *seat)
{
	return atomic_load(&seat->release) & SHUNT_RELEASE_HEARD;
}

/* The kernel's end is to be said later. */
static inline bool shunt_seat_fin_is_due(const struct shunt_seat_out *out)
{
	return atomic_load(&out->fin_later.fd) != SHUNT_FIN_NOT_DUE;
}

/* Nobody has to say it, as far as is known: core/stream/spare.h. */
static inline bool shunt_seat_fin_is_kept(const struct shunt_seat *seat)
{
	uint8_t release = atomic_load(&seat->release);

	return (release & SHUNT_RELEASE_KEPT || atomic_load(&seat->out.fin_later.put_off)) &&
	       (release & SHUNT_RELEASE_KEEPS || !(release & SHUNT_RELEASE_HEARD));
}

static inline uint64_t shunt_seat_limit(const struct shunt_seat_out *out)
{
	/*
	 * A sender that has stored `starved` looks here again. Pairs with the exchange in shunt_seat_unstarve(), which comes after the
	 * store of `consumed`. An acquire alone may go ahead of the store (ldapr of aarch64), and the credit is never told.
	 */
	uint64_t consumed = atomic_load(&out->ring.consumed);

	return (consumed > out->ring.from ? consumed : out->ring.from) + out->ring.bytes;
}

/*
 * Bytes that the ring has room for from stream offset `from` on; 0 also where `from` is beyond it.
 */
static inline uint64_t shunt_seat_room(const struct shunt_seat_out *out, uint64_t from)
{
	uint64_t limit = shunt_seat_limit(out);

	return __builtin_expect(limit > from, 1) ? limit - from : 0;
}

/* There is room again, or may be. True: a send has found none before. */
static inline bool shunt_seat_unstarve(struct shunt_seat_out *out)
{
	if (!atomic_exchange(&out->starved, false))
		return false;
	atomic_store(&out->stuck_since, 0);
	return true;
}

/* The next send looks at everything. The end of streams that never had a seat says so, too. */
static inline void shunt_seat_unquicken(struct shunt_seat_out *out)
{
	if (out->quick)
		out->quick = false;
}

/* The next send will use another ring: one was offered, and nothing is staged for the present one. */
static inline bool shunt_seat_turns(const struct shunt_seat_out *out)
{
	return atomic_load_explicit(&out->ring.offer, memory_order_relaxed) &&
	       atomic_load(&out->staged) == atomic_load(&out->posted);
}

/* The work that posts what is staged. */
static inline uint32_t shunt_seat_rest(const struct shunt_seat_out *out)
{
	return atomic_load(&out->staged) != atomic_load(&out->posted) ? SHUNT_WORK_DATA : 0;
}

#endif
