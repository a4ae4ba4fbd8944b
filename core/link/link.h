/* SPDX-License-Identifier: MIT */
/*
 * A link: what two processes share. It holds lanes, our arena, the table of streams by our number, and the channel
 * for slow messages. The peer writes control lines and rings in our arena. A link dies with either process.
 */
#ifndef SHUNT_CORE_LINK_LINK_H
#define SHUNT_CORE_LINK_LINK_H

#include "core/base/lock.h"
#include "core/base/sha256.h"
#include "core/link/arena.h"
#include "core/link/channel.h"
#include "core/link/patience.h"
#include "core/loop/loop.h"
#include "core/link/line.h"
#include "core/link/seat.h"
#include "core/trace/clock.h"

struct shunt_engine;
struct shunt_lane;
struct shunt_throttle;

/* BROKEN: its queue pair is dead, and both ends tell each other how far it had come (failover.c). */
enum shunt_link_state { SHUNT_LINK_HELLO, SHUNT_LINK_UP, SHUNT_LINK_BROKEN, SHUNT_LINK_DEAD };

/* Following sends: who has asked whom (core/peer/tracing.h). Service thread. */
struct shunt_link_tracing {
	bool asked;		/* we: for the peer's rings; no more than once */
	bool taken;		/* they have been offered */
	bool wanted;		/* the peer: for ours */
	bool offered;		/* they have been, or there is no memory for them */
	uint64_t bytes;		/* of the arena: our rings, and the page for the peer's */
	uint32_t questions;	/* about the time, so far */
	uint64_t asked_at;	/* ns: the one that is not answered; 0: all are */
	uint64_t ask_at;	/* ns: when the next one is due */
	struct shunt_clock clock;	/* the peer's host */
};

struct shunt_link {
	struct shunt_source source;	/* of the service thread's epoll */
	struct shunt_engine *engine;
	_Atomic uint8_t state;
	bool initiator;		/* we connected to the peer's rendezvous */
	uint8_t joining; /* queue pairs that are not connected yet, at the connecting end; the channel rests. Service thread */
	bool met;		/* the peer has knocked, or need not: service thread */
	struct shunt_channel channel;	/* sending under send_lock, receiving the service thread's */
	struct shunt_device *device;
	struct ibv_pd *pd;
	bool waits;	/* the peer has been given bells of waiters; service thread sets it before the first stream */
	uint8_t *arena_base;
	struct shunt_arena arena;
	uint64_t peer_arena;	/* address and size as the peer told us, checked */
	uint64_t peer_arena_bytes;
	uint64_t maps;		/* bytes of the peer's segment, at most, where address space is limited; 0: it is not (share.h) */
	uint64_t space;		/* of its engine's space_links */
	uint32_t peer_streams;
	uint32_t peer_pid;	/* from the kernel; another host's is the peer's word, for messages alone */
	uid_t peer_user;	/* within one host, from the kernel: as it connected, or listened */
	uint32_t proving;	/* proofs under way, at the accepting end; service thread */
	bool peer_retains;
	bool nonces;		/* that is how a connection is proven to be the claimant's (proof.h) */
	uint8_t kin[SHUNT_KIN_BYTES];	/* what our relatives show to the peer (core/stream/rest.h); written before a fork */
	bool kin_told;		/* the peer knows; the same */
	bool kin_heard;		/* and we know what its relatives show; service thread, as is the next */
	uint8_t peer_kin[SHUNT_KIN_BYTES];
	uint8_t hellos[2][SHUNT_SHA256_BYTES];	/* digests of the initiator's and the acceptor's HELLO, for nonces */
	uint32_t peer_receives;	/* depth of its receive queue */
	uint64_t hello_by;	/* ns: when it has to have said HELLO, at the accepting end */
	uint32_t parked;	/* its claims that wait for our program; service thread */

	struct shunt_seat **table;	/* by our number, 0 is the lanes' own; written under group.lock */
	uint32_t table_size;
	uint32_t next_id;
	uint32_t top;		/* numbers from here on were never used; service thread */
	uint32_t seated;		/* entries in use */
	uint64_t
		unused_since; /* ns: it has been seen without streams, and since then has had none; 0: not (core/peer/eviction.h) */
	/* Of what we send (core/qos/); NULL: nothing limits it. Written under group.lock. */
	struct shunt_throttle *throttle;
	struct shunt_stream *refused;	/* their seats are let go when nothing on its way names them; service thread */
	struct shunt_stream *waiting;	/* to be claimed once the link is up; service thread */
	const char *failure;
	_Atomic bool failed;	/* of no use any more; so are all its lanes */
	int lost;		/* why the channel ended, where that was the network's fault: the streams' error; 0 */
	_Atomic bool distrusted;	/* the peer breaks the protocol: it is not spoken to any more */
	struct shunt_patience patience;
	bool silent;		/* nothing that it says from here on is heard (core/peer/silent.h); service thread */
	uint64_t broke_at;	/* its streams are going over to TCP since then; 0: that is not timed; service thread */
	bool resumed;		/* the peer has told of all streams; service thread */

	struct shunt_line line;	/* which it is of, and the name of its rendezvous without the leading NUL */
	bool on_trial, tried;	/* the queue pair's predecessor has died: it has to show that it works */
	uint64_t bring_at;	/* when streams of the line are looked at again; SHUNT_NEVER: they all are here */
	bool wants_write;
	struct shunt_idle idle;
	struct shunt_lock send_lock;
	struct shunt_link *next;
	struct shunt_arrivals *arrivals; /* group.lock; asked where lanes are metered */

	struct shunt_link_tracing tracing;
	uint32_t lane_count;	/* changes under group.lock, by the service thread before the link is up */
	uint32_t lane_room;
	struct shunt_lane *lanes;	/* lane_room of them, for as long as the link (core/lane/lanes.h) */
};

/* The channel has room. Service thread. */
void shunt_link_writable(struct shunt_link *link);
/* Events for which the channel's descriptor is registered. */
static inline uint32_t shunt_link_events(const struct shunt_link *link)
{
	return (link->joining || link->silent ? 0 : EPOLLIN) | (link->wants_write ? EPOLLOUT : 0);
}
/* Sends a message, or keeps it until the channel has room. fds stay the caller's. Any thread. */
int shunt_link_send(struct shunt_link *link, const struct shunt_message *message, const int *fds, int count);

/*
 * Sends a message which the peer hears if it is sent at all: one that waits for room might not be. 0 or -errno; -EAGAIN:
 * the service thread has another round when there is room. Any thread.
 */
int shunt_link_send_now(struct shunt_link *link, const struct shunt_message *message);

void shunt_link_give_ring(struct shunt_link *link, uint8_t *ring, uint32_t bytes);
/* Pages of a ring can go back to the system while the link is there. */
bool shunt_link_gives_pages(const struct shunt_link *link);
/* They do, if they can. The peer writes nothing there. */
void shunt_link_drop_pages(struct shunt_link *link, uint8_t *ring, uint32_t bytes);
/* Whether the peer may have such a ring in its arena; that it is one of its memory regions, the device checks. */
bool shunt_link_ring_is_sound(const struct shunt_link *link, uint64_t offset, uint64_t bytes);
/* Whether the peer may have such a seat for a stream. */
bool shunt_link_place_is_sound(const struct shunt_link *link, const struct shunt_place *place);

static inline struct shunt_seat *shunt_link_seat(struct shunt_link *link, uint32_t id)
{
	return id < link->table_size ? __atomic_load_n(&link->table[id], __ATOMIC_ACQUIRE) : NULL;
}

/* For messages, behind the peer's process id: " of another host", or nothing. */
const char *shunt_link_where(const struct shunt_link *link);
/* The peer broke the protocol: logged once, the link dies, the process lives. group.lock may be held. */
void shunt_link_distrust(struct shunt_link *link, const char *what);
/* The link is of no use any more; the service thread will bury it. Any lock may be held. */
void shunt_link_fail(struct shunt_link *link, const char *why);

/* Its lanes take nothing more. True: this call has done it. Any lock may be held. */
bool shunt_link_condemn(struct shunt_link *link);

#endif
