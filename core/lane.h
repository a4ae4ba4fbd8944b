/*
 * A lane: one RC QP of a link, and the merge queue in front of it (RB-01…05).
 *
 * A send on an idle lane is posted at once, straight from the program's buffer when it fits
 * inline. When the lane is busy or out of credit, bytes are staged per stream; whoever holds the lane
 * serves everybody's: contiguous bytes of a stream become one WR, several streams one chain with
 * one doorbell, as SHUNT_BATCH allows. Later arrivals leave at once: they mark the lane dirty, and the holder
 * looks again after it has left the lock, so no flush is lost (PF-07).
 *
 * Nothing ever waits in order to be merged. Bytes are held back only while the stream has a WR that is
 * known to be under way and will say when it is done (CP-01), or because the program says so (MSG_MORE).
 */
#ifndef SHUNT_CORE_LANE_H
#define SHUNT_CORE_LANE_H

#include "core/lock.h"
#include "core/stream.h"
#include "core/tally.h"
#include "core/verbs.h"
#include "core/window.h"

#define SHUNT_CONTROL_RESERVE 4	/* receives kept back for LANE messages (XR-20) */
#define SHUNT_INLINE_LEAST 8	/* what a control message takes */

struct shunt_chain;

struct shunt_lane {
	struct shunt_link *link;
	struct ibv_qp *qp;
	uint32_t rkey;			/* of the peer's control lines */
	uint64_t peer_controls;		/* address of the peer's control lines */
	uint32_t max_inline, max_sges, frag_bytes, sq_depth, signal_every;
	uint32_t reserve;		/* SHUNT_CONTROL_RESERVE */
	bool merges, chains;		/* SHUNT_BATCH */
	bool fetches;			/* the device fetches what is longer than max_inline itself, from
					 * registered memory, until the WR is complete */
	bool retains;			/* what was posted is kept until it has arrived (DESIGN 6) */
	const uint32_t *backlog;	/* WRs that the device has not carried out; its own count, NULL if it has none */

	_Alignas(64) struct shunt_lock lock;
	_Atomic bool dirty;		/* there may be work that the holder has not seen */
	bool late;			/* the device had WRs that it has not carried out yet */
	uint32_t unsignaled;
	uint64_t sent;			/* WRs posted to the SQ: messages to the peer, and READs */
	uint64_t reads;			/* of them: READs */
	uint64_t last_signaled;		/* the number of one of them */
	_Atomic uint64_t retired;	/* P: WRs known to be complete */
	_Atomic uint64_t allowed;	/* P: messages the peer has receives for, in all */
	struct shunt_lane_counters counters;
	struct shunt_chain *chain;	/* under construction */
	struct shunt_window window;

	_Alignas(64) struct shunt_lock queue_lock;
	struct shunt_stream *first, *last;	/* the merge queue */
	_Atomic uint32_t waiting;	/* streams in it */
	struct shunt_stream *held;	/* wait for a completion of their own */
	_Atomic uint32_t holding;	/* how many do */

	/* group.lock */
	_Alignas(64) uint64_t received;	/* messages polled */
	uint64_t flushed;		/* receives that the end of the QP has given back */
	uint64_t granted;		/* `allowed` as we last told the peer */
	uint64_t reposted;
	_Atomic bool lane_due;		/* a LANE message is to be sent */
	_Atomic uint64_t lane_value;
	bool kicked;			/* in group.kick_lanes */
	struct shunt_lane *next_kick;
	struct shunt_lane *next_in_group;
	_Atomic bool failed;
	_Atomic bool unsettled;		/* somebody waits until all that was posted has arrived */
};

/* Bytes of a stage stay until their WRs are complete; so does a seat. */
static inline bool shunt_lane_keeps(const struct shunt_lane *lane)
{
	return lane->fetches || lane->retains;
}

int shunt_lane_init(struct shunt_lane *lane, struct shunt_link *link);
void shunt_lane_fini(struct shunt_lane *lane);

/*
 * Places up to `bytes` of iov at the stream's offset in the peer's ring, or stages them. tx.lock
 * held, stream on the link. Returns how many bytes were taken: less than asked when there is no
 * room; 0 when there is none at all.
 */
size_t shunt_lane_send(struct shunt_lane *lane, struct shunt_stream *stream,
		       const struct iovec *iov, int iovcnt, size_t skip, size_t bytes);
/* The same for bytes behind which the program announces more: they may wait for it (MSG_MORE). */
size_t shunt_lane_gather(struct shunt_lane *lane, struct shunt_stream *stream, const struct iovec *iov,
			 size_t skip, size_t bytes);
/* Posts what was gathered. tx.lock held. */
void shunt_lane_push(struct shunt_lane *lane, struct shunt_stream *stream);

/*
 * Uses the ring that the peer has offered from here on, though there is nothing to send. tx.lock held, stream on
 * the link. False: something is staged or queued, or the lane cannot post; the next send does it, if none comes
 * somebody has to try again.
 */
bool shunt_lane_change_ring(struct shunt_lane *lane, struct shunt_stream *stream);

/* Queues work for the stream and serves the lane unless somebody is. Any stream lock may be held. */
void shunt_lane_request(struct shunt_lane *lane, struct shunt_stream *stream, uint32_t work);
/* Queues it only: for a caller that holds group.lock or lane.lock. */
void shunt_lane_enqueue(struct shunt_lane *lane, struct shunt_stream *stream, uint32_t work);
/* Queues it until WRs have completed. lane.lock held. */
void shunt_lane_hold(struct shunt_lane *lane, struct shunt_stream *stream, uint32_t work);
/* All WRs from the program's buffer are complete, or will never be. */
void shunt_lane_fetched(struct shunt_stream *stream);
/* Nothing that is queued for the stream will be posted any more. */
void shunt_lane_forget(struct shunt_lane *lane, struct shunt_stream *stream);
/* Serves what is queued; lane.lock held. */
void shunt_lane_serve(struct shunt_lane *lane);
/* Serves what is queued, unless somebody is. */
void shunt_lane_kick(struct shunt_lane *lane);
/* TCP may carry a stream whose HANDBACK has not been passed: the peer is known to have its HANDBACK. Otherwise its link tells when. */
bool shunt_lane_handed_over(struct shunt_lane *lane, struct shunt_stream *stream);
/* Everything posted has arrived. False: the service thread looks again. */
bool shunt_lane_settled(struct shunt_lane *lane);
/* The same, and nobody is told. */
bool shunt_lane_arrived(struct shunt_lane *lane);
/* Work is waiting for credit, or somebody for what was posted to arrive. */
bool shunt_lane_stalled(struct shunt_lane *lane);

/* Posts the receives that were consumed and tells the peer when it is due. group.lock held. */
void shunt_lane_repost(struct shunt_lane *lane);
int shunt_lane_post_receives(struct shunt_lane *lane, uint32_t count);

#endif
