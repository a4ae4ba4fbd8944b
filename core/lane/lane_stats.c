/* SPDX-License-Identifier: MIT */
#include <sys/uio.h>
#include "core/lane/lane_stats.h"
#include "core/lane/lane.h"
#include "core/link/link.h"
#include "core/trace/probe.h"
#include "core/poll/group.h"

static void raise_to(uint64_t *most, uint64_t value)
{
	if (value > *most)
		*most = value;
}

void shunt_lane_stats_add(struct shunt_lane_stats *tally, const struct shunt_lane *lane)
{
	struct shunt_lane_counters *sum = &tally->counters;
	const struct shunt_lane_counters *c = &lane->counters;

	sum->doorbells += c->doorbells;
	sum->gathered += c->gathered;
	sum->signaled += c->signaled;
	sum->direct += c->direct;
	sum->merged += c->merged;
	sum->staged_sends += c->staged_sends;
	sum->control += c->control;
	sum->held += c->held;
	sum->copied_past += c->copied_past;
	sum->queue_stalls += c->queue_stalls;
	sum->post_failures += c->post_failures;
	for (int i = 0; i < SHUNT_LIMITS; i++)
		sum->stalls[i] += c->stalls[i];
	raise_to(&sum->chain_max, c->chain_max);
	tally->wrs += lane->sent;
	tally->bytes += lane->window.posted;
	tally->cuts += lane->window.cuts;
	shunt_histogram_merge(tally->link_ns, lane->link_ns, SHUNT_TIME_BUCKETS);
	raise_to(&tally->most_wrs, lane->window.most_wrs);
	raise_to(&tally->most_bytes, shunt_window_most(&lane->window));
}

/*
 * With a full window the link is behind, and the ring is full of what it has not delivered: the
 * window is the limit. Otherwise the reader is behind.
 */
void shunt_lane_no_room(struct shunt_lane *lane, int fd)
{
	enum shunt_limit limit = shunt_window_full(&lane->window) ? SHUNT_LIMIT_BYTES :
								    SHUNT_LIMIT_RING;

	__atomic_fetch_add(&lane->counters.stalls[limit], 1, __ATOMIC_RELAXED);
	SHUNT_PROBE4(stall, fd, lane->link->peer_pid, lane->number, shunt_limit_names[limit]);
}
