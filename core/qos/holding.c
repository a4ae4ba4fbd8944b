/* SPDX-License-Identifier: MIT */
#include "core/qos/holding.h"
#include "core/engine.h"
#include "core/lane/lane_queue.h"
#include "core/lane/send_queue.h"
#include "core/stream/streams.h"
#include "core/qos/qos.h"
#include "core/qos/throttle.h"
#include "core/service.h"

#define MINUTE 60000000000ull /* ns: a client is named no more often */
#define PATIENCE 1000000000ull /* ns that it may be held in that time without being named */
/* rings: a stream may change its track while it is held, and begins in a ring anew */
#define TWICE 2

static struct shunt_throttle *throttle_of(struct shunt_arrivals *arrivals)
{
	return (struct shunt_throttle *)((char *)arrivals -
					 offsetof(struct shunt_throttle, holding.arrivals));
}

/*
 * Tokens that an honest client may be beyond: at its exit a send buffer of each connection goes out without any. The
 * connections end meanwhile, so the most that there were count until the meter has nothing to say. group.lock held.
 */
static uint64_t spare_of(struct shunt_holding *holding, const struct shunt_link *link, uint64_t now)
{
	uint64_t spare = (uint64_t)link->seated * (SHUNT_SEND_QUEUE_BYTES / SHUNT_TOKEN_BYTES);

	if (spare > holding->spare || !shunt_meter_is_beyond(&holding->meter, 0, now))
		holding->spare = spare;
	return holding->spare;
}

/* --- the transitions; group.lock held --- */

/* CREDIT of all streams stops. Bytes that have room without it. */
static uint64_t withhold(struct shunt_link *link)
{
	struct shunt_stream *stream;
	uint64_t room = 0;

	shunt_streams_seated(link, stream)
	{
		atomic_store(&stream->seat->in.withheld, SHUNT_WITHHELD);
		room += TWICE * ((uint64_t)stream->seat->in.link.bytes +
				 atomic_load(&stream->seat->in.ring.next_bytes));
	}
	return room;
}

static void count_lanes(struct shunt_link *link, bool metered)
{
	struct shunt_group *group = &link->engine->group;

	if (metered)
		group->polled.metered++;
	else
		group->polled.metered--;
	for (uint32_t i = 0; i < link->lane_count; i++)
		link->lanes[i].metered = metered;
}

static void begin_time(struct shunt_holding *holding, uint64_t now)
{
	holding->held_at = now;
	if (holding->window_at && now - holding->window_at < MINUTE)
		return;
	holding->window_at = now;
	holding->held_ns = 0;
	holding->named = false;
}

/*
 * LINK is left only by the service thread, which gives the streams their credit before that. Else an arrival of another
 * thread would withhold it anew, and what this thread gives would be in no room.
 */
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
		begin_time(holding, shunt_now(link->engine));
		shunt_loop_post(&link->engine->loop, &link->engine->service->tasks.qos);
	}
}

static const char *arrivals_count(struct shunt_arrivals *arrivals, uint32_t bytes)
{
	struct shunt_throttle *throttle = throttle_of(arrivals);
	struct shunt_holding *holding = &throttle->holding;
	struct shunt_engine *engine = throttle->link->engine;
	uint64_t emptied = engine->group.emptied_at, spare;

	spare = spare_of(holding, throttle->link, emptied);
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
static uint64_t read_of_link(const struct shunt_stream *stream)
{
	uint64_t head = atomic_load(&stream->rx.head), tail = atomic_load(&stream->seat->in.tail);

	return head < tail ? head : tail;
}

static void credit_give_back(struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;
	uint8_t kept;

	shunt_lock_take(&rx->lock);
	kept = atomic_exchange(&stream->seat->in.withheld, 0);
	if (kept)
		__atomic_store_n(&stream->seat->control->word[SHUNT_CONTROL_READ],
				 read_of_link(stream), __ATOMIC_RELEASE);
	shunt_lock_leave(&rx->lock);
	if (kept & SHUNT_WITHHELD_CREDIT)
		shunt_lane_enqueue(stream->seat->lane, stream->seat, SHUNT_WORK_CREDIT);
	if (kept & SHUNT_WITHHELD_RING)
		shunt_lane_enqueue(stream->seat->lane, stream->seat, SHUNT_WORK_RING);
}

static void credit_release(struct shunt_link *link)
{
	struct shunt_stream *stream;

	shunt_streams_seated(link, stream) credit_give_back(stream);
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

/* group.lock held. `rate` 0: any. */
static void holding_begin(struct shunt_throttle *throttle, uint64_t rate, uint64_t now)
{
	struct shunt_holding *holding = &throttle->holding;

	if (holding->state != SHUNT_HOLDS_OFF)
		return;
	holding->arrivals.count = arrivals_count;
	shunt_meter_begin(&holding->meter, is_fresh(throttle->link) ? rate : 0, now);
	become(throttle, SHUNT_HOLDS_COUNTS);
}

/* A client that is held may be within its right from now on. */
static void holding_look_again(struct shunt_throttle *throttle)
{
	struct shunt_engine *engine = throttle->link->engine;

	if (throttle->holding.state == SHUNT_HOLDS_LINK)
		shunt_loop_post(&engine->loop, &engine->service->tasks.qos);
}

/* True: nothing is to be counted any more, and the link was held. group.lock held. */
static bool end_if_idle(struct shunt_throttle *throttle)
{
	struct shunt_holding *holding = &throttle->holding;
	bool held = holding->state == SHUNT_HOLDS_LINK;

	if (holding->meter.told || holding->meter.grants) {
		holding_look_again(throttle);
		return false;
	}
	become(throttle, SHUNT_HOLDS_OFF);
	return held;
}

void shunt_holding_tell(struct shunt_throttle *throttle, uint64_t rate, uint64_t now)
{
	struct shunt_holding *holding = &throttle->holding;
	struct shunt_group *group = &throttle->link->engine->group;
	bool over;

	shunt_lock_take(&group->lock);
	if (rate)
		holding_begin(throttle, rate, now);
	shunt_meter_tell(&holding->meter, rate, now);
	over = end_if_idle(throttle);
	shunt_lock_leave(&group->lock);
	if (over)
		credit_release(throttle->link);
}

void shunt_holding_end_periods(struct shunt_throttle *throttle)
{
	struct shunt_group *group = &throttle->link->engine->group;
	bool over;

	shunt_lock_take(&group->lock);
	throttle->holding.meter.grants = false;
	over = end_if_idle(throttle);
	shunt_lock_leave(&group->lock);
	if (over)
		credit_release(throttle->link);
}

void shunt_holding_allow(struct shunt_throttle *throttle, uint64_t tokens, uint64_t now)
{
	struct shunt_group *group = &throttle->link->engine->group;

	shunt_lock_take(&group->lock);
	holding_begin(throttle, 0, now);
	shunt_meter_allow(&throttle->holding.meter, tokens, now);
	holding_look_again(throttle);
	shunt_lock_leave(&group->lock);
}

void shunt_holding_add(struct shunt_throttle *throttle, uint64_t tokens)
{
	struct shunt_group *group = &throttle->link->engine->group;

	shunt_lock_take(&group->lock);
	shunt_meter_add(&throttle->holding.meter, tokens);
	holding_look_again(throttle);
	shunt_lock_leave(&group->lock);
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

static void name(struct shunt_throttle *throttle, uint64_t excess)
{
	const struct shunt_link *link = throttle->link;
	uint64_t arrived = atomic_load(&throttle->holding.meter.arrived);

	shunt_log(
		SHUNT_LOG_WARN,
		"process %u%s breaks its limit: %llu tokens have arrived, %llu are allowed: it is held",
		link->peer_pid, shunt_link_where(link), (unsigned long long)arrived,
		(unsigned long long)(excess < arrived ? arrived - excess : 0));
}

/* True: the client is to be named now. *due: when to look again, at the latest. group.lock held. */
static bool client_judge(struct shunt_throttle *throttle, uint64_t now, uint64_t *due)
{
	struct shunt_holding *holding = &throttle->holding;
	struct shunt_qos *qos = throttle->link->engine->service->qos;
	uint64_t held = holding->held_ns + (now - holding->held_at);

	if (holding->named)
		return false;
	if (held < PATIENCE) {
		*due = now + PATIENCE - held < *due ? now + PATIENCE - held : *due;
		return false;
	}
	holding->named = true;
	if (qos && throttle->class != SHUNT_QOS_NO_CLASS)
		qos->classes[throttle->class].cheats++;
	return true;
}

/* `room` has no end by now. */
static void let_go(struct shunt_throttle *throttle)
{
	struct shunt_group *group = &throttle->link->engine->group;

	credit_release(throttle->link);
	shunt_lock_take(&group->lock);
	become(throttle, SHUNT_HOLDS_COUNTS);
	shunt_lock_leave(&group->lock);
}

void shunt_holding_serve(struct shunt_throttle *throttle, struct shunt_task *task, uint64_t now)
{
	struct shunt_holding *holding = &throttle->holding;
	struct shunt_group *group = &throttle->link->engine->group;
	uint64_t excess, due;
	bool named;

	if (holding->state != SHUNT_HOLDS_LINK)
		return; /* this thread alone ends it */
	shunt_lock_take(&group->lock);
	excess = shunt_meter_excess(&holding->meter, now);
	due = shunt_meter_due(&holding->meter, now);
	named = client_judge(throttle, now, &due);
	if (!excess) {
		holding->held_ns += now - holding->held_at;
		holding->room = UINT64_MAX;
	}
	shunt_lock_leave(&group->lock);
	if (named)
		name(throttle, excess);
	if (!excess)
		let_go(throttle);
	else if (due != SHUNT_METER_NEVER)
		shunt_task_at(task, due);
}
