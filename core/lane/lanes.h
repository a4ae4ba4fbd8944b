/* SPDX-License-Identifier: MIT */
/*
 * The lanes of a link (RB-21): making as many as both ends want, and telling streams which is theirs. Lane n of one
 * end is connected with lane n of the other. A stream keeps its lane for as long as it is on the link, so its
 * messages stay in order. Streams of different lanes share no lock, no window and no queue of the device.
 *
 * They live and die together: what makes one of them useless ends the link for all of them (link.c).
 *
 * A link has `lanes` lanes, or as many as the peer wants if that is fewer. The default is 4 on RDMA devices, which work
 * on several QPs at a time. On the soft device a QP is no faster for not being alone. It costs 90 KiB, a descriptor
 * and 30 instructions of each poll. There the default is one for each epoll set that the program has when the link
 * begins. At most 4, and 64 more than links in all. Threads that wait apart send apart. If queues or memory do not
 * suffice for all, there are fewer.
 *
 * A stream gets the lane with the fewest streams. Each lane has a merge queue, a window, both credits, posted
 * receives and doorbells of its own; window_device is one for all lanes. A link that is half alive would raise
 * every question of a failover for each stream.
 */
#ifndef SHUNT_CORE_LANE_LANES_H
#define SHUNT_CORE_LANE_LANES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "shunt/wire.h"

#define SHUNT_LANES_AUTO UINT64_MAX	/* of `lanes` */

struct shunt_device;
struct shunt_group;
struct shunt_lane_hooks;
struct shunt_trace_book;

#define SHUNT_LANES_SHARED 4u	/* of a link, at most, where the device leaves it to us, */
#define SHUNT_LANES_MORE 64u	/* and of all links beyond the first of each: peers decide how many links there are */

/* Of one more link, where the device leaves it to us. `more`: what others have beyond the first. */
static inline uint32_t shunt_lanes_share(uint32_t sets, uint32_t more)
{
	uint32_t count = sets < 1 ? 1 : sets < SHUNT_LANES_SHARED ? sets : SHUNT_LANES_SHARED;

	return more + count - 1 <= SHUNT_LANES_MORE ? count : 1;
}

/* All lanes have this in common. */
struct shunt_lanes {
	const struct shunt_lane_hooks *hooks;
	uint64_t copy_near;		/* of copying.h */
	uint64_t ring_quiet;		/* ns, see core/recovery/reclaim.h; tests shorten it */
	_Atomic uint32_t sets;		/* epoll sets that the program has */
	_Atomic int links_up;		/* links that carry or may carry streams */
	_Atomic bool pin_from_chosen;	/* set by the service thread */
	_Atomic uint64_t pin_from;	/* bytes; a blocking send from here on may be fetched (zero_copy.h) */
	_Atomic uint64_t queue_pairs;	/* that devices have made so far */
	_Atomic uint64_t wide_windows;	/* bytes that windows of streams have beyond the small one (send_queue.h) */
	struct shunt_trace_book *_Atomic book;	/* NULL: nothing has been followed */
};
struct shunt_lane;
struct shunt_link;

/*
 * Memory for as many as a link on this device shall have, until it is destroyed: lane_room. `more`: what others have
 * beyond the first. False: no memory.
 */
bool shunt_lanes_reserve(struct shunt_link *link, const struct shunt_group *group,
			 const struct shunt_device *device, uint32_t more);
/* Makes so many, or as many as there are queues and memory for; none is -errno. Service thread, as all here. */
int shunt_lanes_make(struct shunt_link *link, uint32_t count);
/* Those beyond `count` are given up. */
void shunt_lanes_keep(struct shunt_link *link, uint32_t count);
/* Fills the part of a HELLO that is about them; how many descriptors are to be sent with it, or -errno. */
int shunt_lanes_tell(struct shunt_link *link, struct shunt_hello *hello, int fds[2]);
/* Connects them with the peer's. 0 or -errno. */
int shunt_lanes_join(struct shunt_link *link, const struct shunt_hello *hello, const int *fds, int count);
/* The one that has the fewest streams. seats_lock held, and no lock right of streams_lock. */
struct shunt_lane *shunt_lanes_emptiest(struct shunt_link *link);

/* Bytes of the peer's segment that are mapped for them; 0: their device maps nothing. */
uint64_t shunt_lanes_mapped(const struct shunt_link *link);

/* The link has failed: none of them takes anything more. Any thread, any lock may be held. */
void shunt_lanes_condemn(struct shunt_link *link);
/* Ends the queue pairs: what they have delivered is applied, and they deliver no more. */
void shunt_lanes_stop(struct shunt_link *link);
/* Nothing that is queued will be posted any more. */
void shunt_lanes_abandon(struct shunt_link *link);
/* There is no lane any more, and nobody has one. */
void shunt_lanes_free(struct shunt_link *link);

#endif
