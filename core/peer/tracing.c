/* SPDX-License-Identifier: MIT */
#include "core/peer/tracing.h"
#include <stdlib.h>
#include <string.h>
#include "core/engine.h"
#include "core/lane/lane_trace.h"
#include "core/service.h"
#include "core/stream/traced.h"
#include "core/trace/followed.h"

#define LOOK 1000000 /* ns between two looks at what devices have placed */
#define SOON 5000000ull /* ns between two of the first questions about the time, */
#define FIRST 8 /* which are so many, */
#define ENOUGH 4 /* and after so many the offset is known well enough to begin */
#define RENEW 250000000ull /* ns between two later ones, while records come, */
#define IDLE 10000000000ull /* and until none has come for so long */
#define TOLD_BY 1100000000ull /* ns after which a sender tells nothing more (lane_trace.c) */

static uint64_t ring_bytes(const struct shunt_link *link)
{
	uint64_t one = SHUNT_TRACE_SLOTS * sizeof(struct shunt_trace_record), bytes = one;

	while (bytes < one * link->lane_count)
		bytes *= 2;
	return bytes;
}

/* Records for all lanes, zeroed. NULL: the arena has no room. */
static struct shunt_trace_record *take_rings(struct shunt_link *link, const struct ibv_mr **mr)
{
	uint64_t bytes = ring_bytes(link), offset = shunt_arena_take(&link->arena, bytes, mr);

	if (offset == UINT64_MAX)
		return NULL;
	memset(link->arena_base + offset, 0, bytes);
	link->tracing.bytes += bytes;
	return (struct shunt_trace_record *)(link->arena_base + offset);
}

static void give_rings(struct shunt_link *link, struct shunt_trace_record *rings)
{
	link->tracing.bytes -= ring_bytes(link);
	shunt_link_give_ring(link, (uint8_t *)rings, shunt_narrow_u32(ring_bytes(link)));
}

static void tracing_ask_for_look(struct shunt_link *link, uint64_t in)
{
	shunt_task_at(&link->engine->loop.requests.trace, shunt_now(link->engine) + in);
}

/* --- TRACE --- */

static void rings_ask(struct shunt_link *link)
{
	struct shunt_message message = { .type = SHUNT_MSG_TRACE };

	if (link->tracing.asked)
		return;
	link->tracing.asked = true;
	shunt_link_send(link, &message, NULL, 0);
}

void shunt_tracing_introduce(struct shunt_link *link)
{
	if (atomic_load(&link->engine->traces) & (SHUNT_TRACES_OURS | SHUNT_TRACES_RULES))
		rings_ask(link);
}

static void free_followed(struct shunt_link *link, struct shunt_followed **made)
{
	for (uint32_t i = 0; i < link->lane_count; i++)
		free(made[i]);
}

/* One of each lane. False: there is no memory. */
static bool make_followed(struct shunt_link *link, struct shunt_trace_record *rings,
			  struct shunt_followed **made)
{
	struct shunt_trace_book *book = atomic_load(&link->engine->lanes.book);
	bool all = true;

	for (uint32_t i = 0; i < link->lane_count; i++) {
		made[i] = shunt_followed_make(book, rings + (uint64_t)i * SHUNT_TRACE_SLOTS,
					      link->peer_pid);
		all &= made[i] != NULL;
	}
	if (!all)
		free_followed(link, made);
	return all;
}

static void rings_offer(struct shunt_link *link)
{
	struct shunt_message message = { .type = SHUNT_MSG_TRACE, .rings.lanes = link->lane_count };
	struct shunt_followed *made[SHUNT_LANES_MAX];
	struct shunt_trace_record *rings;
	const struct ibv_mr *mr;

	link->tracing.offered = true;
	if (shunt_traced_begin(link->engine, SHUNT_TRACES_PEERS) ||
	    !(rings = take_rings(link, &mr)))
		return; /* the peer goes without */
	if (!make_followed(link, rings, made)) {
		give_rings(link, rings);
		return;
	}
	shunt_lock_take(&link->engine->group.lock);
	for (uint32_t i = 0; i < link->lane_count; i++)
		atomic_store(&link->lanes[i].followed, made[i]);
	shunt_lock_leave(&link->engine->group.lock);
	message.rings.offset = (uint64_t)((uint8_t *)rings - link->arena_base);
	message.rings.rkey = mr->rkey;
	shunt_link_send(link, &message, NULL, 0);
}

/* Between hosts the times of records mean something only once the clocks have been compared. */
static bool needs_clock(const struct shunt_link *link)
{
	return link->channel.kind == SHUNT_CHANNEL_TCP;
}

static const char *hear_question(struct shunt_link *link)
{
	if (link->tracing.wanted)
		return "a second TRACE that asks";
	link->tracing.wanted = true;
	if (needs_clock(link))
		tracing_ask_for_look(link, 0);
	else
		rings_offer(link);
	rings_ask(link); /* for answers to what is followed */
	return NULL;
}

static const char *hear_offer(struct shunt_link *link, const struct shunt_trace_rings *rings)
{
	struct shunt_lane_trace *made[SHUNT_LANES_MAX];
	struct shunt_trace_record *page;
	const struct ibv_mr *mr;

	if (!link->tracing.asked || link->tracing.taken || rings->lanes != link->lane_count)
		return "a TRACE that offers out of turn";
	if (!shunt_link_ring_is_sound(link, rings->offset, ring_bytes(link)))
		return "rings for TRACE outside the arena";
	link->tracing.taken = true;
	page = take_rings(link, &mr);
	for (uint32_t i = 0; page && i < link->lane_count; i++) {
		uint64_t first = (uint64_t)i * SHUNT_TRACE_SLOTS;

		made[i] = shunt_lane_trace_make(
			page + first, mr->lkey,
			link->peer_arena + rings->offset + first * sizeof(*page), rings->rkey);
		shunt_lock_take(&link->lanes[i].lock);
		link->lanes[i].trace = made[i];
		shunt_lock_leave(&link->lanes[i].lock);
		shunt_lane_kick(&link->lanes[i]);
	}
	return NULL;
}

/* --- CLOCK --- */

static void ask_time(struct shunt_link *link, uint64_t now)
{
	struct shunt_message message = { .type = SHUNT_MSG_CLOCK, .clock.asked = now };

	link->tracing.asked_at = now;
	link->tracing.questions++;
	shunt_link_send(link, &message, NULL, 0);
}

static void tell_time(struct shunt_link *link, const struct shunt_clock_word *word, uint64_t heard)
{
	struct shunt_message message = { .type = SHUNT_MSG_CLOCK,
					 .clock = { .asked = word->asked, .heard = heard } };

	message.clock.told = shunt_now(link->engine);
	shunt_link_send(link, &message, NULL, 0);
}

static void set_zone(struct shunt_link *link, uint64_t now)
{
	struct shunt_trace_zone zone = { .at = now };

	if (!shunt_clock_read(&link->tracing.clock, now, &zone.offset, &zone.error))
		return;
	for (uint32_t i = 0; i < link->lane_count; i++) {
		struct shunt_followed *followed = atomic_load(&link->lanes[i].followed);

		if (!followed)
			continue;
		shunt_lock_take(&followed->lock);
		followed->zone = zone;
		shunt_lock_leave(&followed->lock);
	}
}

static const char *hear_time(struct shunt_link *link, const struct shunt_clock_word *word)
{
	uint64_t now = shunt_now(link->engine);

	if (!needs_clock(link))
		return "a CLOCK within one host";
	if (!word->heard && !word->told) {
		tell_time(link, word, now);
		return NULL;
	}
	if (!link->tracing.asked_at || word->asked != link->tracing.asked_at)
		return "a CLOCK that was not asked for";
	if (!shunt_clock_sample(&link->tracing.clock, word->asked, word->heard, word->told, now))
		return "a CLOCK of times that cannot be";
	link->tracing.asked_at = 0;
	if (link->tracing.wanted && !link->tracing.offered && link->tracing.clock.count >= ENOUGH)
		rings_offer(link);
	set_zone(link, now);
	return NULL;
}

void shunt_tracing_hear(struct shunt_link *link, const struct shunt_message *message)
{
	const char *wrong;

	if (message->stream)
		wrong = "a TRACE of a stream";
	else if (message->type == SHUNT_MSG_CLOCK)
		wrong = hear_time(link, &message->clock);
	else if (message->rings.lanes)
		wrong = hear_offer(link, &message->rings);
	else
		wrong = message->rings.offset || message->rings.rkey ?
				"a TRACE that offers nothing" :
				hear_question(link);
	if (wrong)
		shunt_link_distrust(link, wrong);
}

/* --- what is due --- */

/* Any of the lanes. */
static bool records_come(struct shunt_link *link, uint64_t now)
{
	for (uint32_t i = 0; i < link->lane_count; i++) {
		struct shunt_followed *followed = atomic_load(&link->lanes[i].followed);

		if (followed && now - atomic_load(&followed->last_at) < IDLE)
			return true;
	}
	return false;
}

static void compare_clocks(struct shunt_link *link, uint64_t now)
{
	bool first = link->tracing.questions < FIRST;

	if (!needs_clock(link) || !link->tracing.wanted || !(first || records_come(link, now)))
		return;
	if (now >= link->tracing.ask_at) {
		link->tracing.ask_at = now + (first ? SOON : RENEW);
		if (!link->tracing
			     .asked_at) /* an answer is not lost, but the host may be silent for a while */
			ask_time(link, now);
	}
	shunt_task_at(&link->engine->loop.requests.trace, link->tracing.ask_at);
}

/* A lane that is in use is looked at the next time. */
static void complete_records(struct shunt_link *link)
{
	for (uint32_t i = 0; i < link->lane_count; i++) {
		struct shunt_lane *lane = &link->lanes[i];

		if (!shunt_lock_try(&lane->lock)) {
			tracing_ask_for_look(link, LOOK);
			continue;
		}
		if (lane->trace)
			shunt_lane_trace_look(lane);
		shunt_lock_leave(&lane->lock);
		shunt_lane_kick(lane);
	}
}

void shunt_tracing_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_engine_of(task, loop.requests.trace)->service;
	struct shunt_engine *engine = service->engine;
	uint64_t now = shunt_now(engine);

	for (struct shunt_link *link = service->links; link; link = link->next) {
		if (atomic_load(&link->state) != SHUNT_LINK_UP || atomic_load(&link->failed))
			continue;
		shunt_tracing_introduce(link);
		if (link->tracing.taken)
			complete_records(link);
		compare_clocks(link, now);
	}
}

void shunt_tracing_settle(struct shunt_engine *engine)
{
	uint64_t now = shunt_now(engine);

	for (struct shunt_link *link = engine->service->links; link; link = link->next) {
		for (uint32_t i = 0; i < link->lane_count; i++) {
			struct shunt_followed *followed = atomic_load(&link->lanes[i].followed);

			if (!followed)
				continue;
			shunt_lock_take(&followed->lock);
			shunt_followed_settle(followed, now - TOLD_BY);
			shunt_lock_leave(&followed->lock);
		}
	}
}
