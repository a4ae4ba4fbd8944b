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
#include <stddef.h>
#include <sys/socket.h>
#include "core/base/lock.h"
#include "core/base/reason.h"
#include "core/fd/file.h"
#include "core/fork/fork_slots.h"
#include "core/loop/loop.h"
#include "core/stream/end.h"
#include "core/stream/marks.h"
#include "core/link/seat.h"
#include "core/trace/histogram.h"
#include "shunt/wire.h"

struct shunt_link;
struct shunt_lane;
struct shunt_thread;
struct shunt_watch;
struct shunt_group;
struct shunt_cuts;
struct shunt_pacing;
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

/* How far the program has used it, and who knows. */
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

enum shunt_track { SHUNT_TCP, SHUNT_LINK };

/* Which side of the TCP connection we are: the kernel counts the SYN on the side that connected. */
enum shunt_role { SHUNT_CONNECTOR, SHUNT_ACCEPTOR, SHUNT_LISTENER };

struct shunt_bytes {	/* by track, for statistics */
	uint64_t tcp;
	uint64_t link;
	uint64_t late;		/* beyond the first SHUNT_LATE bytes, on either track */
	uint64_t late_tcp;
};

/* So many bytes from `offset` on have been carried. The direction's lock held. */
static inline void shunt_bytes_add(struct shunt_bytes *bytes, uint64_t offset, uint64_t count,
				   bool link)
{
	uint64_t late = offset >= SHUNT_LATE ? count :
			offset + count > SHUNT_LATE ? offset + count - SHUNT_LATE : 0;

	bytes->late += late;
	if (link) {
		bytes->link += count;
	} else {
		bytes->tcp += count;
		bytes->late_tcp += late;
	}
}

enum { SHUNT_LINGERS_ITSELF = -1 };

/* Bytes that TCP is to get before anything else, and the service thread's wait for room there: backlog.h. tx.lock. */
struct shunt_backlog {
	uint8_t *_Atomic bytes;	/* NULL: none */
	size_t size, done;	/* all of them, and those that the kernel has taken */
	uint64_t written;	/* bytes that TCP has carried so, and that bytes.tcp does not count */
	bool fin;		/* the direction has ended behind them */
	int fd;			/* the service thread waits for room on this copy; -1: it does not */
	struct linger linger;	/* the program's SO_LINGER while the kernel's is Shunt's; l_onoff: SHUNT_LINGERS_ITSELF if it is not */
};

/* Taking the peer's nonce out of TCP: proof.h. rx.lock. */
struct shunt_nonce_taking {
	bool end_reading;	/* the program has ended that: the kernel is told behind the nonce */
	uint64_t aside;		/* bytes read from TCP that were none of the stream's */
	_Atomic int fd;		/* the service thread's copy while it waits for the nonce; -1 */
};

/* Sends that are followed: traced.h. tx.lock. */
struct shunt_tx_trace {
	uint8_t of;		/* engine.traces when `passes` were granted */
	_Atomic uint8_t ruled;	/* K + 1 by a rule (core/peer/verdict.c); 0: SHUNT_TRACE counts */
	_Atomic uint32_t passes;	/* sends that need no look whether they are to be followed */
	struct shunt_pendings *_Atomic pendings;	/* those that are (core/trace/pending.h); NULL: none has been */
};

struct shunt_tx {	/* tx.lock */
	struct shunt_lock lock;
	_Atomic bool corked;	/* TCP_CORK */
	_Atomic uint32_t refusals;	/* grows with each send that may have to be tried again: then an edge (EPOLLOUT) is due */
	uint64_t offset;	/* of the next byte: sent by TCP, or placed or staged for the link */
	struct shunt_tx_trace trace;
	struct shunt_bytes bytes;
	uint8_t nonce[SHUNT_NONCE_BYTES];	/* as it is shown; of use from seat.out.show on, and while the backlog is it */
	uint64_t nonce_at;	/* bytes.tcp when the nonce was written (proof.h); SHUNT_NEVER: it has not been */
	struct shunt_backlog backlog;
	uint64_t sizes[SHUNT_SIZE_BUCKETS];	/* histogram of what each send took */
};

struct shunt_rx {	/* rx.lock */
	struct shunt_lock lock;
	_Atomic uint64_t head;	/* next byte the program will get */
	struct shunt_bytes bytes;
	_Atomic bool hung_up;	/* the kernel has ended both ways, ahead of the link's FIN: it has nothing to tell before that */
	_Atomic uint64_t answers;	/* id of a send that the program has read and not answered (traced.h); 0: none */
	struct shunt_nonce_taking nonce;
};

/* Being handed back for good: retire.h. */
struct shunt_handing {
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
	struct shunt_stream *next_inbox;	/* engine.work.inbox_lock */
};

/* Options that the engine honours itself; UINT64_MAX: not known yet, 0: none. */
struct shunt_options {
	_Atomic uint64_t receive_timeout_ns;
	_Atomic uint64_t send_timeout_ns;
	_Atomic int low_water;	/* SO_RCVLOWAT */
	_Atomic uint8_t asks;	/* enum shunt_asks (core/api.h) */
	_Atomic uint16_t changed;	/* those that the program has set (core/stream/spare.c) */
	_Atomic uint32_t user_timeout_ms;	/* TCP_USER_TIMEOUT; UINT32_MAX = not known yet, 0 = none */
};

/* It has come from another process, or has another holder: doubt.h. */
struct shunt_doubted {
	_Atomic uint8_t why;	/* enum shunt_cause; NONE: nobody else holds it, as far as is known */
	uint8_t looks;		/* that were in vain */
	_Atomic uint32_t shares; /* how often it has got another holder; streams_lock */
	bool queued;		/* its holders are about to be looked for; service thread */
	bool settled;		/* it was in doubt, and has its place from the kernel */
	uint64_t looked;	/* ns: when the last was, */
	uint64_t from;		/* and the sum of both offsets then */
};

/* Why it is not on a link. */
struct shunt_why {
	enum shunt_cause plain;	/* streams_lock, or both of its own */
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
	uint16_t caller;	/* acceptors: the peer's port, in network order; 0: not known */
	_Atomic uint32_t mode;	/* enum shunt_mode; from SHUNT_MODE_SEEN on: so many changes of relatives' have been noticed (fork_slots.h) */
	struct shunt_group *group;	/* of its engine: shunt_stream_engine() */
	struct shunt_end end;

	struct shunt_seat *seat;	/* its life on a link; never NULL */
	_Alignas(64) struct shunt_tx tx;
	_Alignas(64) struct shunt_rx rx;

	/* group.lock */
	_Alignas(64) struct shunt_watch *watches;	/* epoll registrations */
	struct shunt_sleep_on *sleepers;	/* threads that sleep until it is ready */
	uint8_t named;		/* the waiter in its control line (named.h) */
	struct shunt_stream *next_settle;	/* in group.settle, whose last names itself; NULL: it is not there */

	/* registry (engine.streams_lock) */
	_Atomic int fd;		/* one number that names it; -1 once closed */
	uint32_t numbers;	/* how many do */
	_Atomic(struct shunt_stream *) next_reap;	/* in engine.reap, whose last names itself; NULL: it is not there */
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
	struct shunt_pacing *_Atomic pacing;	/* on TCP, by a limit (core/qos/pacing.h); NULL: none has met it */
	struct shunt_rendezvous *rendezvous;	/* of the address it listens at, or was accepted at; NULL: none */
	_Atomic uint32_t uses; /* calls that were counted because it may be short (short_lived.h) */
	uint64_t born;
	_Atomic uint64_t carried_since;	/* ns; acceptors: the first byte over TCP (unclaimed.h); 0: none yet */
	struct shunt_why why;
	struct shunt_doubted doubt;
	struct shunt_stream *next_free;
	struct shunt_options options;
	struct shunt_spare *_Atomic spare;	/* core/stream/spare.h; NULL: the connection was never kept; set under both locks, freed under group.lock, too */
	struct shunt_stream *next_again;	/* in engine.spares.again, */
	_Atomic bool listed;	/* if it is there: its memory stays until somebody has looked at it */
	struct shunt_births *births;	/* listeners: connections that have been made anew (core/stream/births.h); NULL: they cannot; group.lock */
};

/* The stream on a seat. */
static inline struct shunt_stream *shunt_stream_of(const struct shunt_seat *seat)
{
	return seat->stream;
}

/* --- what is true of a stream right now, without asking the kernel; any thread --- */

/* It has a life on a link. Changes under both locks. */
static inline bool shunt_stream_is_seated(const struct shunt_stream *stream)
{
	return !shunt_seat_is_none(stream->seat);
}

/* For threads that hold no lock of the stream: it may leave the seat meanwhile, whose memory stays a seat's. */
static inline struct shunt_seat *shunt_stream_seat(const struct shunt_stream *stream)
{
	return __atomic_load_n(&stream->seat, __ATOMIC_ACQUIRE);
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
	return shunt_seat_is_released(stream->seat);
}

/* The same, maybe a moment late. */
static inline bool shunt_stream_looks_released(const struct shunt_stream *stream)
{
	return __builtin_expect(atomic_load_explicit(&stream->seat->release, memory_order_relaxed) &
					SHUNT_RELEASE_HEARD,
				0);
}

/* The peer is known to have attached it, too. */
static inline bool shunt_stream_is_agreed(const struct shunt_stream *stream)
{
	return atomic_load(&stream->claim.state) == SHUNT_CLAIM_AGREED;
}

/* Its peer has given it to another process. It has not left its seat yet, so nobody claims it. */
static inline bool shunt_stream_gives_up_seat(const struct shunt_stream *stream)
{
	return atomic_load(&((struct shunt_stream *)stream)->state) == SHUNT_CANDIDATE &&
	       shunt_stream_is_agreed(stream) && shunt_stream_is_seated(stream);
}

/* It is not being handed back for good. */
static inline bool shunt_stream_stays(const struct shunt_stream *stream)
{
	return atomic_load(&stream->seat->leaving.retiring) <= SHUNT_RESTING;
}

/* The peer, or a relative of it, has been given our direction back, or TCP has it from us: for good. */
static inline bool shunt_stream_is_given(const struct shunt_stream *stream)
{
	return atomic_load(&stream->seat->leaving.asked) >= SHUNT_GIVEN;
}

/* Another process may hold it: it is neither claimed nor granted (doubt.h). */
static inline bool shunt_stream_is_doubted(const struct shunt_stream *stream)
{
	return __builtin_expect(atomic_load_explicit(&stream->doubt.why, memory_order_relaxed) != 0,
				0);
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

#endif
