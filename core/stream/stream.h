/* SPDX-License-Identifier: MIT */
/*
 * A stream: one TCP socket of the program. Once both ends have agreed, each of its two directions travels on the
 * kernel's TCP or on a link.
 *
 * Offsets are 64-bit, absolute from the first byte of the connection, per direction, and never reused across a
 * switch. Fields marked P are written by a polling thread under group.lock, and read by any thread. Other fields
 * belong to the lock named beside them.
 */
#ifndef SHUNT_CORE_STREAM_STREAM_H
#define SHUNT_CORE_STREAM_STREAM_H

#include <stdbool.h>
#include <sys/socket.h>
#include "core/base/lock.h"
#include "core/base/reason.h"
#include "core/fd/file.h"
#include "core/loop/loop.h"
#include "core/stream/end.h"
#include "core/stream/intake.h"
#include "core/stream/marks.h"
#include "core/lane/heading.h"
#include "core/trace/histogram.h"
#include "shunt/wire.h"

struct shunt_link;
struct shunt_lane;
struct shunt_thread;
struct shunt_watch;
struct shunt_engine;
struct shunt_cuts;
struct shunt_zero_copy;
struct shunt_pacing;
struct shunt_fork_slot;
struct shunt_pendings;
struct shunt_rendezvous;

#define SHUNT_LATE 262144	/* bytes of a direction after which the link is expected to carry it */

enum shunt_state {
	SHUNT_UNUSED,	/* memory for one; under streams_lock */
	SHUNT_FRESH,	/* a socket that is not connected, or listens */
	SHUNT_CANDIDATE,/* connected or accepted; may be claimed */
	SHUNT_LINKED,	/* both ends agreed to carry it */
	SHUNT_PLAIN,	/* the kernel's alone, for good */
	SHUNT_CLOSED,	/* the program has closed it; the peer may not know yet */
	SHUNT_FOREIGN,	/* on a link of a relative of ours: to be asked for before use */
};

/* Its way to a link: core/peer/claim_state.h. */
enum shunt_claim_state {
	SHUNT_UNCLAIMED,
	SHUNT_CLAIM_TOLD,	/* acceptors: the owner of its address knows of it; it is not told again before it is another */
	SHUNT_CLAIM_UNDER_WAY,	/* connectors: the peer is to answer */
	SHUNT_CLAIM_AGREED,	/* the peer is known to have attached it, too: it may have switched */
	SHUNT_CLAIM_LEAVING,	/* refused: the seat is let go when nothing on its way names it */
	SHUNT_CLAIM_STATES
};

/* Why it has been claimed at another process, too; for each reason once. Bits. */
enum shunt_claim_moved {
	SHUNT_MOVED_ENDED = 1 << 0,	/* the one that was asked first has ended */
	SHUNT_MOVED_REDIRECTED = 1 << 1,
};

/* How far the program has used it, and who knows (DESIGN 5.2). */
enum shunt_usage {
	SHUNT_USE_NONE,		/* not at all */
	SHUNT_USE_BEGUN,
	SHUNT_USE_TOLD,		/* and who must know does */
};

/* Of its open file description. Bits. */
enum shunt_mode_bit {
	SHUNT_MODE_NONBLOCKING = 1 << 0,	/* O_NONBLOCK */
	SHUNT_MODE_SHARED = 1 << 1,	/* since a fork: relatives may change that and the options, too */
	SHUNT_MODE_UNCOUNTED = 1 << 2,	/* relatives may, but have no slot to count it in: it is looked for at each call */
	SHUNT_MODE_SEEN = 1 << 16,
};

/* How it parts with the program's descriptor, where close() is not all there is to it. */
enum shunt_parting {
	SHUNT_PARTING_NONE,
	SHUNT_ORPHANED,		/* closed under a blocking call; fd is our own copy */
	SHUNT_DISSOLVED,	/* by connect(AF_UNSPEC) */
};

/*
 * Being handed back for good: asked, and what the peer said. RESTING: not used since a fork, so a relative may take it
 * (core/fork/fork_rest.h). TAKEN: one has, and the peer has not confirmed that yet.
 */
enum shunt_retiring {
	SHUNT_STAYING,
	SHUNT_RESTING,
	SHUNT_TAKEN,
	SHUNT_RETIRING,
	SHUNT_RETIRED,
	SHUNT_CANNOT_RETIRE
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

/* How forks have left it. Bits. */
enum shunt_forked {
	SHUNT_FORK_LOST = 1 << 0,	/* there is a second owner, and there was no slot to count them */
	SHUNT_FORK_INHERITED = 1 << 1,	/* this process is not the first */
};

/* How far each end has let go of the seat. Bits: the two ends do not wait for each other. */
enum shunt_release {
	SHUNT_RELEASED_BY_US = 1 << 0,		/* and nothing that was posted is fetched any more */
	SHUNT_RELEASED_BY_PEER = 1 << 1,	/* and who waits on the stream knows */
	SHUNT_RELEASED_BY_BOTH = SHUNT_RELEASED_BY_US | SHUNT_RELEASED_BY_PEER,	/* the seat is free */
	SHUNT_RELEASE_POSTED = 1 << 2,		/* lane.lock: nothing may follow */
	SHUNT_RELEASE_HEARD = 1 << 3,		/* P: the peer has closed */
};

enum shunt_track { SHUNT_TCP, SHUNT_LINK };

/* Which side of the TCP connection we are: the kernel counts the SYN on the side that connected. */
enum shunt_role { SHUNT_CONNECTOR, SHUNT_ACCEPTOR, SHUNT_LISTENER };

/* Work that a stream wants from its lane; bits of lane_work. In the order a lane serves them. */
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
	SHUNT_WORK_DONE = 1 << 10,	/* something of the stream waits for WRs to be complete */
};

/* The peer is beyond its limit (core/qos/holding.h): work that is not done for it; and what was to be done since. */
enum {
	SHUNT_WITHHELD = 1,
	SHUNT_WITHHELD_CREDIT = 2,
	SHUNT_WITHHELD_RING = 4,
};

/* Work that may be posted only when all bytes before it have been. */
#define SHUNT_WORK_BEHIND_DATA \
	(SHUNT_WORK_DATA | SHUNT_WORK_HANDBACK | SHUNT_WORK_FIN | SHUNT_WORK_RELEASE)

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

struct shunt_bytes {	/* by track, for statistics */
	uint64_t tcp;
	uint64_t link;
	uint64_t late;		/* beyond the first SHUNT_LATE bytes, on either track */
	uint64_t late_tcp;
};

struct shunt_idle {	/* service thread, and exit(): core/recovery/idle.h */
	_Atomic uint64_t moved;	/* how far it had moved when somebody looked */
	_Atomic uint64_t since;	/* ns; the look that found it there first; 0: nobody has looked */
};

struct shunt_send_buffer {	/* tx.lock; see send_buffer.h */
	uint8_t *bytes;		/* NULL: none yet; changed under tx.lock and lane.lock */
	_Atomic uint32_t size;	/* bytes at `bytes`, a power of two; changed with it */
	struct shunt_cuts *_Atomic cuts;
	uint64_t place;		/* where the device fetches from it: offset in the link's arena */
	uint32_t lkey;
	/* where it keeps what was posted */
	_Atomic uint64_t kept_wr;	/* lane.lock: number of the last WR that it is kept for; 0 none */
	struct shunt_send_window *_Atomic window;	/* NULL: nothing is kept, or it was not given memory */
	_Atomic uint64_t reusable;	/* stream offset up to which they may be already */
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
	_Atomic bool grow_asked;
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

/* Bytes that TCP is to get before anything else, and the service thread's wait for room there: tcp_backlog.h. tx.lock. */
struct shunt_backlog {
	uint8_t *_Atomic bytes;	/* NULL: none */
	size_t size, done;	/* all of them, and those that the kernel has taken */
	uint64_t written;	/* bytes that TCP has carried so, and that bytes.tcp does not count */
	bool fin;		/* the direction has ended behind them */
	int fd;			/* the service thread waits for room on this copy; -1: it does not */
	bool lingers;		/* the kernel's SO_LINGER is Shunt's, and the program's is this */
	struct linger linger;
};

enum { SHUNT_FIN_NOT_DUE = -1, SHUNT_FIN_NO_FD = -2 /* there was no descriptor yet */ };

/* The kernel's end, which waits until FIN has arrived: deferred_fin.h. tx.lock. */
struct shunt_deferred_fin {
	_Atomic int fd;		/* the end is said on this, or one of these two */
	uint64_t wr;		/* lane.lock: number of the WR that is FIN; 0: not posted */
};

/* The nonce that this end shows in TCP: proof.h. tx.lock. */
struct shunt_proof_shown {
	_Atomic uint8_t show;	/* enum shunt_show */
	uint8_t nonce[SHUNT_NONCE_BYTES];
	uint64_t tcp;		/* bytes.tcp when it was written; SHUNT_NEVER: it has not been */
};

/* The nonce that the peer shows in TCP: proof.h. rx.lock. */
struct shunt_proof_seen {
	_Atomic uint8_t state;	/* enum shunt_proof; under rx.lock and group.lock */
	uint8_t nonce[SHUNT_NONCE_BYTES];	/* before the peer shows it: our chance */
	_Atomic uint64_t at;	/* stream offset behind which it stands; SHUNT_NEVER unless it is expected; under both locks */
	bool end_reading;	/* the program has ended that: the kernel is told behind the nonce */
	uint64_t aside;		/* bytes read from TCP that were none of the stream's */
	_Atomic int fd;		/* the service thread's copy while it waits for the nonce; -1 */
};

/* Sends that are followed: traced.h. tx.lock. */
struct shunt_tx_trace {
	uint8_t of;		/* engine.traces when `passes` were granted */
	_Atomic uint8_t ruled;	/* K + 1 by a rule (core/peer/verdict.c); 0: SHUNT_TRACE counts */
	_Atomic uint32_t passes;	/* sends that need no look whether they are to be followed */
	struct shunt_pendings *_Atomic pendings;	/* sends that are followed (core/trace/pending.h); NULL: none has been */
};

struct shunt_rx_trace {	/* rx.lock */
	_Atomic uint64_t followed;	/* end of a send that is followed and has been seen: the first that is unread; 0: none */
	_Atomic uint64_t answers;	/* P: id of a send that the program has read and not answered; 0: none */
};

/* The last send's thread, which may have polled since: tx.c. tx.lock. */
struct shunt_hearing {
	const struct shunt_thread *thread;	/* only compared */
	uint64_t polls, at;	/* its polls then; cycles when a send polled itself */
};

/* Bytes that wait for more (MSG_MORE, TCP_CORK): gather.h. tx.lock. */
struct shunt_gather {
	_Atomic bool corked;	/* TCP_CORK */
	_Atomic uint64_t since;	/* ns; what is staged waits for more that the program has announced; 0: it does not */
};

struct shunt_copying {	/* lane.lock; copying.c */
	uint64_t round;		/* times around the ring */
	uint64_t posted, bytes;	/* the lane's bytes at the last, and for one (0: not known) */
};

/* This end's ring, into which the peer writes: rings.h. rx.lock. */
struct shunt_own_ring {
	uint64_t credited;	/* head as the peer knows it */
	uint8_t *at;
	uint32_t bytes;
	_Atomic bool sender_waits;	/* P sets it: for any room there is, as soon as all has been read */
	bool asked_again;	/* the sender has filled the offered ring already */
	_Atomic bool grown;	/* the ring is larger than SHUNT_RING_MIN */
	_Atomic uint32_t next_bytes;	/* the ring that was offered, 0 none */
	uint8_t *next;
	uint64_t quiet_tail, quiet_since;	/* tail as it was last looked at, and since when it has been that */
	uint64_t from;		/* stream offset from which the ring is used */
	_Atomic uint64_t offered;	/* value of a RING that is to be sent */
};

/* The link's rights in this direction: its ring, and how far it may write. P alone. */
struct shunt_inbound {
	uint64_t from;		/* stream offset from which the sender's present ring counts */
	uint64_t end;		/* so far its bytes are known to have room; `head` may have moved since */
	const uint8_t *ring;	/* where that ring is */
	uint32_t bytes;		/* and its size */
};

struct shunt_tx {	/* tx.lock, except P */
	struct shunt_lock lock;
	struct shunt_heading heading;
	bool quick; /* on the link, nothing staged, nothing announced: a send is one WR */
	_Atomic bool want_link;	/* which track the next send should be on, */
	_Atomic uint8_t held;	/* if nobody wants it on TCP: SHUNT_HELD_… of track.h */
	_Atomic bool starved;	/* a send found no room: the next credit is an edge (EPOLLOUT) */
	_Atomic bool stuck_asked;	/* the peer has been asked whether it has read something meanwhile */
	_Atomic uint64_t
		stuck_since; /* that, or HALTED, for longer than the program may be willing to wait: user_timeout.h */
	uint64_t offset;	/* of the next byte: sent by TCP, or placed or staged for the link */
	struct shunt_peer_ring ring;
	struct shunt_overflow overflow;
	_Atomic uint32_t refusals;	/* grows with each send that may have to be tried again: then an edge (EPOLLOUT) is due */
	_Atomic uint64_t announced;	/* UPGRADEs and HANDBACKs */
	struct shunt_backlog backlog;
	struct shunt_proof_shown proof;
	struct shunt_hearing hearing;
	struct shunt_deferred_fin fin_later;
	struct shunt_send_buffer stage;	/* bytes accepted from the program that could not be posted at once */
	struct shunt_zero_copy *_Atomic pin;	/* the program's buffer that is registered, see zero_copy.h; NULL none */
	_Atomic uint64_t pinned_wr;	/* lane.lock: number of the last WR from it; 0: all are complete */
	struct shunt_gather gather;
	struct shunt_tx_trace trace;
	uint64_t last_wr;	/* lane.lock: number of the last WR with bytes of the stream */
	_Atomic uint64_t staged;	/* stream offset behind the last staged byte */
	_Atomic uint64_t posted;	/* lane.lock: stream offset behind the last byte given to the QP */
	_Atomic uint64_t exposed;	/* the same, but set before the QP gets it: credit may come that fast */
	struct shunt_copying copying;
	uint64_t flip_at;	/* torture: change tracks here */
	_Atomic uint64_t upgrade_at;	/* stream offset of the last announced UPGRADE */
	_Atomic uint64_t handback_at;	/* and HANDBACK */
	_Atomic uint64_t fin;	/* value of FIN */
	_Atomic uint64_t left_at;	/* P: the peer has closed, and the link had brought more than it has read, which is up to here; SHUNT_NEVER */
	struct shunt_bytes bytes;
	uint64_t sizes[SHUNT_SIZE_BUCKETS];	/* histogram of what each send took */
};

struct shunt_rx {	/* rx.lock, except P */
	struct shunt_lock lock;
	_Atomic uint64_t head;	/* next byte the program will get */
	struct shunt_own_ring ring;
	struct shunt_rx_trace trace;
	_Atomic uint64_t second; /* P: the announced end of the track after that */
	_Atomic uint64_t announced;	/* P: UPGRADEs and HANDBACKs that have come */
	struct shunt_proof_seen proof;
	_Atomic uint8_t
		withheld; /* SHUNT_WITHHELD…, 0: nothing is; set under group.lock, cleared under rx.lock */
	_Atomic uint64_t switched;	/* value of a SWITCHED that is to be sent */
	struct shunt_bytes bytes;

	/* One cache line has all that a poll needs for a message. The words that each receive writes are in other lines. */
	_Alignas(64) _Atomic uint64_t tail;	/* P: behind the last byte that the link has placed */
	_Atomic uint64_t boundary;	/* P: announced end of the present track; SHUNT_NEVER none */
	_Atomic uint64_t next_from;	/* P: stream offset from which the offered ring is used */
	struct shunt_intake intake;
	struct shunt_inbound link;
};

/* Its place in a lane's merge queue, and the work that it wants there: lane_queue.h. */
struct shunt_queue {
	_Atomic uint32_t work;	/* enum shunt_work */
	uint64_t chain;		/* lane.lock: number of the chain that has its last WR */
	struct shunt_stream *next;	/* lane.queue_lock; the last names itself; NULL: it is not queued */
};

/* Other processes that hold it, since a fork: fork_slots.h. */
struct shunt_holders {
	uint8_t forked;		/* enum shunt_forked */
	struct shunt_fork_slot *_Atomic slot;	/* what its holders know of each other; NULL: nobody else holds it */
	uint32_t generation;	/* of the slot; UINT32_MAX: this process is not counted there any more */
	uint64_t rest;		/* the slot's count of uses when it came to rest before the last fork; 0: it did not */
};

/* Being handed back for good: retire.h. */
struct shunt_handing {
	_Atomic uint8_t retiring;	/* enum shunt_retiring: as this end asked */
	_Atomic uint8_t asked;	/* enum shunt_asked: as the peer did; REPEATED and the next two under tx.lock */
	uint64_t offset;	/* from where the peer wants it again; SHUNT_NEVER: TCP has it already */
	uint64_t announced;
	struct shunt_stream *next;	/* service.asked */
	_Atomic int fd;		/* of a process that asked for it; -1 nobody */
	_Atomic bool wanted;	/* a child of vfork(), which shares this memory, asks for it */
};

/* On its way to a link. Service thread. */
struct shunt_claim {
	_Atomic uint32_t state;	/* enum shunt_claim_state */
	uint8_t moved;		/* enum shunt_claim_moved */
	uint64_t begun;		/* ns; 0: it is not timed (core/trace/slow_step.h) */
	uint64_t named_until;	/* it was refused, and messages of its lane up to this one may name its seat */
	uint32_t line;		/* of links, one of which has died under it (reconnect.h); 0 none */
	uint32_t return_tries;	/* how often its claim has failed since, */
	uint64_t return_at;	/* and when it is to be made again */
	struct shunt_stream *next_offer;	/* in the service thread's lists */
	struct shunt_stream *next_inbox;	/* service.inbox_lock */
};

/* Options that the engine honours itself; UINT64_MAX: not known yet, 0: none. */
struct shunt_options {
	_Atomic uint64_t receive_timeout_ns;
	_Atomic uint64_t send_timeout_ns;
	_Atomic int low_water;	/* SO_RCVLOWAT */
	_Atomic uint8_t asks;	/* enum shunt_asks (core/api.h) */
	_Atomic uint32_t user_timeout_ms;	/* TCP_USER_TIMEOUT; UINT32_MAX = not known yet, 0 = none */
};

/* Why it is not on a link. */
struct shunt_why {
	enum shunt_reason plain;	/* streams_lock, or both of its own */
	uint8_t left;		/* tx.lock: enum shunt_left, why it left the link last, */
	uint32_t left_times;	/* and how often it did */
};

struct shunt_stream {
	struct shunt_file file;
	struct shunt_source source;	/* of the service thread's epoll: the socket's end, and room on its copy (destroyed.h) */
	struct shunt_source proof_source;	/* the same: the peer's nonce */
	_Atomic uint8_t state;	/* enum shunt_state; changes under both locks */
	_Atomic uint8_t role;	/* enum shunt_role */
	uint8_t place;		/* connectors: which count of brief ones is theirs */
	_Atomic uint8_t lasting; /* enum shunt_lasting (short_lived.h) */
	_Atomic uint8_t mock;	/* enum shunt_mock; service thread */
	_Atomic uint8_t usage;	/* enum shunt_usage */
	_Atomic uint32_t mode;	/* enum shunt_mode; from SHUNT_MODE_SEEN on: so many changes of relatives' have been noticed (fork_slots.h) */
	struct shunt_queue queue;
	uint32_t id;		/* ours, as the peer calls the stream */
	uint32_t peer_id;
	struct shunt_lane *lane;
	struct shunt_link *_Atomic link;	/* changes under group.lock */
	struct shunt_engine *engine;
	struct shunt_end end;

	_Alignas(64) struct shunt_tx tx;
	_Alignas(64) struct shunt_rx rx;

	/* group.lock */
	_Alignas(64) struct shunt_watch *watches;	/* epoll registrations */
	struct shunt_sleep_on *sleepers;	/* threads that sleep until it is ready */
	struct shunt_stream *next_settle;	/* in group.settle, whose last names itself; NULL: it is not there */

	/* registry (engine.streams_lock) */
	_Atomic int fd;		/* one number that names it; -1 once closed */
	uint32_t numbers;	/* how many do */
	_Atomic uint8_t release;	/* enum shunt_release */
	struct shunt_stream *next_reap;
	struct shunt_handing handing;
	struct shunt_holders sharing;
	uint8_t parting;	/* enum shunt_parting */
	_Atomic uint32_t waiters;	/* threads inside a blocking call */
	bool refusing;		/* both directions shut: data is answered by a reset; tx.lock */
	uint32_t holds;		/* who else names it: the memory is not reused before they let go */
	struct shunt_claim claim;
	struct shunt_tuple tuple;	/* see shunt_tuple_is_known() */
	/* Connectors: the address that the program has connected to; all 0: not known. */
	uint8_t dialled[16];
	uint64_t network;	/* SO_NETNS_COOKIE, known with the tuple; 0: not told */
	uint32_t proven_on;	/* service thread: number of the channel whose other end holds its peer, too; 0 none */
	struct shunt_possession *possession;	/* the same: that is being proven (core/peer/possession.h); NULL: it is not */
	struct shunt_marks marks;
	struct shunt_idle idle;	/* on the link */
	struct shunt_pacing *_Atomic pacing;	/* on TCP, by a limit (core/qos/pacing.h); NULL: none has met it */
	struct shunt_rendezvous *rendezvous;	/* of the address it listens at, or was accepted at; NULL: none */
	_Atomic uint32_t uses; /* calls that were counted because it may be short (short_lived.h) */
	uint64_t born;
	_Atomic uint64_t carried_since;	/* ns; acceptors: the first byte over TCP (unclaimed.h); 0: none yet */
	struct shunt_why why;
	struct shunt_stream *next_free;
	struct shunt_control *control;	/* our control line: the peer writes it */
	struct shunt_options options;
};

/* --- what is true of a stream right now, without asking the kernel; any thread --- */

/* The kernel's end is to be said later. */
static inline bool shunt_tx_fin_is_due(const struct shunt_tx *tx)
{
	return atomic_load(&tx->fin_later.fd) != SHUNT_FIN_NOT_DUE;
}

/* TCP's alone: it is on no link, and on no way to one that a call must look at. */
static inline bool shunt_stream_is_kernels(const struct shunt_stream *stream)
{
	uint8_t state = atomic_load_explicit(&((struct shunt_stream *)stream)->state,
					     memory_order_relaxed);

	return state == SHUNT_PLAIN || state == SHUNT_FRESH;
}

/* The peer has closed it. */
static inline bool shunt_stream_is_released(const struct shunt_stream *stream)
{
	return atomic_load(&stream->release) & SHUNT_RELEASE_HEARD;
}

/* The same, maybe a moment late. */
static inline bool shunt_stream_looks_released(const struct shunt_stream *stream)
{
	return __builtin_expect(atomic_load_explicit(&stream->release, memory_order_relaxed) &
					SHUNT_RELEASE_HEARD,
				0);
}

/* The peer is known to have attached it, too. */
static inline bool shunt_stream_is_agreed(const struct shunt_stream *stream)
{
	return atomic_load(&stream->claim.state) == SHUNT_CLAIM_AGREED;
}

/* It is not being handed back for good. */
static inline bool shunt_stream_stays(const struct shunt_stream *stream)
{
	return atomic_load(&stream->handing.retiring) <= SHUNT_RESTING;
}

/* The peer, or a relative of it, has been given our direction back, or TCP has it from us: for good. */
static inline bool shunt_stream_is_given(const struct shunt_stream *stream)
{
	return atomic_load(&stream->handing.asked) >= SHUNT_GIVEN;
}

/* It is being used, or about to be: who must know does not yet (core/stream/offer.h). */
static inline bool shunt_stream_use_is_news(const struct shunt_stream *stream)
{
	return __builtin_expect(atomic_load_explicit(&stream->usage,
						     memory_order_relaxed) != SHUNT_USE_TOLD, 0);
}

static inline bool shunt_stream_is_nonblocking(const struct shunt_stream *stream)
{
	return atomic_load_explicit(&stream->mode, memory_order_relaxed) & SHUNT_MODE_NONBLOCKING;
}

/* Relatives hold it, or did: what they have changed is to be looked for (core/stream/stream_option.h). */
static inline bool shunt_stream_is_shared(const struct shunt_stream *stream)
{
	return __builtin_expect((atomic_load_explicit(&stream->mode, memory_order_relaxed) &
				 SHUNT_MODE_SHARED) != 0,
				0);
}

/* `count`: how many changes relatives have made by now (core/fork/fork_slots.h). */
static inline bool shunt_stream_mode_differs(uint32_t mode, uint32_t count)
{
	return mode / SHUNT_MODE_SEEN != count || mode & SHUNT_MODE_UNCOUNTED;
}

static inline uint64_t shunt_tx_limit(const struct shunt_tx *tx)
{
	/*
	 * A sender that has stored `starved` looks here again. Pairs with the exchange in shunt_tx_unstarve(), which comes after the
	 * store of `consumed`. An acquire alone may go ahead of the store (ldapr of aarch64), and the credit is never told.
	 */
	uint64_t consumed = atomic_load(&tx->ring.consumed);

	return (consumed > tx->ring.from ? consumed : tx->ring.from) + tx->ring.bytes;
}

/*
 * Bytes that the ring has room for from stream offset `from` on; 0 also where `from` is beyond it.
 */
static inline uint64_t shunt_tx_room(const struct shunt_tx *tx, uint64_t from)
{
	uint64_t limit = shunt_tx_limit(tx);

	return __builtin_expect(limit > from, 1) ? limit - from : 0;
}

/* There is room again, or may be. True: a send has found none before. */
static inline bool shunt_tx_unstarve(struct shunt_tx *tx)
{
	if (!atomic_exchange(&tx->starved, false))
		return false;
	atomic_store(&tx->stuck_since, 0);
	return true;
}

/* The next send will use another ring: one was offered, and nothing is staged for the present one. */
static inline bool shunt_tx_turns(const struct shunt_tx *tx)
{
	return atomic_load_explicit(&tx->ring.offer, memory_order_relaxed) &&
	       atomic_load(&tx->staged) == atomic_load(&tx->posted);
}

/* The work that posts what is staged. */
static inline uint32_t shunt_tx_rest(const struct shunt_tx *tx)
{
	return atomic_load(&tx->staged) != atomic_load(&tx->posted) ? SHUNT_WORK_DATA : 0;
}

#endif
