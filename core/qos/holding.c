/* SPDX-License-Identifier: MIT */
#include "core/qos/holding.h"
#include "core/engine.h"
#include "core/lane/lane_queue.h"
#include "core/lane/send_buffer.h"
#include "core/link/seats.h"
#include "core/qos/qos.h"
#include "core/qos/throttle.h"
#include "core/service.h"

#define OFTEN 60000000000ull /* ns: a client is named in the log no more often */
/* rings: a stream may change its track while it is held, and begins in a ring anew */
#define TWICE 2

static struct shunt_throttle *throttle_of(struct shunt_arrivals *arrivals)
{
	return (struct shunt_throttle *)((char *)arrivals -
					 offsetof(struct shunt_throttle, holding.arrivals));
}

/* Tokens that an honest client may be beyond: at its exit a send buffer of each connection goes out without any. */
static uint64_t spare_of(const struct shunt_link *link)
{
	return (uint64_t)link->seated * (SHUNT_SEND_BUFFER_BYTES / SHUNT_TOKEN_BYTES);
}

/* --- the transitions; group.lock held --- */

/* CREDIT of all streams stops. Bytes that have room without it. */
static uint64_t withhold(struct shunt_link *link)
{
	uint64_t room = 0;

	for (uint32_t id = 1; id < link->top; id++) {
		struct shunt_stream *stream = shunt_link_stream(link, id);

		if (!stream)
			continue;
		atomic_store(&stream->rx.withheld, SHUNT_WITHHELD);
		room += TWICE *
			((uint64_t)stream->rx.link_bytes + atomic_load(&stream->rx.next_bytes));
	}
	return room;
}

static void count_lanes(struct shunt_link *link, bool metered)
{
	struct shunt_group *group = &link->engine->group;

	if (metered)
		group->metered++;
	else
		group->metered--;
	for (uint32_t i = 0; i < link->lane_count; i++)
		link->lanes[i].metered = metered;
}

/* LINK is left only by the service thread, which gives the streams their credit after that. */
static void become(struct shunt_throttle *throttle, enum shunt_holds next)
{
	struct shunt_holding *holding = &throttle->holding;
	struct shunt_link *link = throttle->link;
	uint8_t former = holding->state;

	holding->state = next;
	if (former == SHUNT_HOLDS_OFF && next == SHUNT_HOLDS_COUNTS) {
		link->arrivals = &holding->arrivals;
		count_lanes(link, true);
	} else if (next == SHUNT_HOLDS_OFF && former != next) {
		count_lanes(link, false);
	} else if (next == SHUNT_HOLDS_LINK) {
		holding->room = withhold(link);
		holding->times++;
		holding->unsaid = true;
		shunt_loop_post(&link->engine->loop, &link->engine->service->tasks.qos);
	}
}

static const char *count(struct shunt_arrivals *arrivals, uint32_t bytes)
{
	struct shunt_throttle *throttle = throttle_of(arrivals);
	struct shunt_holding *holding = &throttle->holding;
	struct shunt_engine *engine = throttle->link->engine;
	uint64_t emptied = engine->emptied_at, spare = spare_of(throttle->link);

	shunt_meter_take(&holding->meter, bytes, emptied);
	if (holding->state == SHUNT_HOLDS_LINK) {
		if (bytes > holding->room)
			return "bytes without credit, beyond its limit";
		holding->room -= bytes;
	} else if (shunt_meter_is_beyond(&holding->meter, spare, emptied) &&
		   shunt_meter_is_beyond(&holding->meter, spare, shunt_now(engine))) {
		become(throttle, SHUNT_HOLDS_LINK);
	}
	return NULL;
}

/* --- the service thread --- */

/* Bytes of the link alone: those of TCP are no room. */
static uint64_t read_of_link(const struct shunt_rx *rx)
{
	uint64_t head = atomic_load(&rx->head), tail = atomic_load(&rx->tail);

	return head < tail ? head : tail;
}

static void give_back(struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;
	uint8_t kept;

	shunt_lock_take(&rx->lock);
	kept = atomic_exchange(&rx->withheld, 0);
	if (kept)
		__atomic_store_n(&stream->control->word[SHUNT_CONTROL_READ], read_of_link(rx),
				 __ATOMIC_RELEASE);
	shunt_lock_leave(&rx->lock);
	if (kept & SHUNT_WITHHELD_CREDIT)
		shunt_lane_enqueue(stream->lane, stream, SHUNT_WORK_CREDIT);
	if (kept & SHUNT_WITHHELD_RING)
		shunt_lane_enqueue(stream->lane, stream, SHUNT_WORK_RING);
}

static void release(struct shunt_link *link)
{
	struct shunt_stream *stream;

	shunt_seats_each(link, stream) give_back(stream);
	for (uint32_t i = 0; i < link->lane_count; i++)
		shunt_lane_kick(&link->lanes[i]);
}

/* It may have been told while it was sending: then it must have heard of that first. */
static bool is_fresh(const struct shunt_link *link)
{
	uint64_t received = 0;

	for (uint32_t i = 0; i < link->lane_count; i++)
		received += link->lanes[i].received;
	return !received;
}

void shunt_holding_tell(struct shunt_throttle *throttle, uint64_t rate, uint64_t now)
{
	struct shunt_holding *holding = &throttle->holding;
	struct shunt_group *group = &throttle->link->engine->group;
	bool held;

	shunt_lock_take(&group->lock);
	held = holding->state == SHUNT_HOLDS_LINK;
	holding->arrivals.count = count;
	if (holding->state == SHUNT_HOLDS_OFF && rate) {
		shunt_meter_begin(&holding->meter, is_fresh(throttle->link) ? rate : 0, now);
		become(throttle, SHUNT_HOLDS_COUNTS);
	}
	if (holding->state != SHUNT_HOLDS_OFF)
		shunt_meter_tell(&holding->meter, rate, now);
	if (!rate && !holding->meter.grants)
		become(throttle, SHUNT_HOLDS_OFF);
	else if (rate)
		shunt_loop_post(&throttle->link->engine->loop,
				&throttle->link->engine->service->tasks.qos);
	held &= holding->state == SHUNT_HOLDS_OFF;
	shunt_lock_leave(&group->lock);
	if (held)
		release(throttle->link);
}

void shunt_holding_end(struct shunt_throttle *throttle)
{
	struct shunt_group *group = &throttle->link->engine->group;

	shunt_lock_take(&group->lock);
	become(throttle, SHUNT_HOLDS_OFF);
	throttle->link->arrivals = NULL;
	shunt_lock_leave(&group->lock);
}

bool shunt_holding_is_held(const struct shunt_link *link)
{
	return link->throttle && link->throttle->holding.state == SHUNT_HOLDS_LINK;
}

/* In the log once a minute, in the statistics each time. */
static void name(struct shunt_throttle *throttle, uint64_t excess, uint64_t now)
{
	struct shunt_holding *holding = &throttle->holding;
	const struct shunt_link *link = throttle->link;
	unsigned long long arrived = atomic_load(&holding->meter.arrived);

	if (holding->said_at && now - holding->said_at < OFTEN)
		return;
	holding->said_at = now;
	shunt_log(
		SHUNT_LOG_WARN,
		"process %u%s breaks its limit: %llu tokens have arrived, %llu are allowed: it is held",
		link->peer_pid, shunt_link_where(link), arrived,
		excess < arrived ? arrived - (unsigned long long)excess : 0);
}

static void count_cheat(struct shunt_throttle *throttle)
{
	struct shunt_qos *qos = throttle->link->engine->service->qos;

	if (qos && throttle->class != SHUNT_QOS_NO_CLASS)
		qos->classes[throttle->class].cheats++;
}

void shunt_holding_serve(struct shunt_throttle *throttle, struct shunt_task *task, uint64_t now)
{
	struct shunt_holding *holding = &throttle->holding;
	struct shunt_group *group = &throttle->link->engine->group;
	bool unsaid, released = false;
	uint64_t excess, due = SHUNT_METER_NEVER;

	if (holding->state == SHUNT_HOLDS_OFF)
		return;
	shunt_lock_take(&group->lock);
	excess = shunt_meter_excess(&holding->meter, now);
	unsaid = holding->unsaid;
	holding->unsaid = false;
	if (unsaid)
		count_cheat(throttle);
	if (holding->state == SHUNT_HOLDS_LINK && !excess) {
		become(throttle, SHUNT_HOLDS_COUNTS);
		released = true;
	} else if (holding->state == SHUNT_HOLDS_LINK) {
		due = shunt_meter_due(&holding->meter, now);
	}
	shunt_lock_leave(&group->lock);
	if (released)
		release(throttle->link);
	if (due != SHUNT_METER_NEVER)
		shunt_task_at(task, due);
	if (unsaid)
		name(throttle, excess, now);
}
