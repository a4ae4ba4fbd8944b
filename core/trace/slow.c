/* SPDX-License-Identifier: MIT */
#include "core/trace/slow.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "core/base/address.h"
#include "core/base/json.h"
#include "core/base/lsan.h"

#define BUSY UINT64_MAX	/* a slot's state while it is written */
#define ADDRESSED (1u << 8)	/* beside the step */

static const struct {
	const char *name, *extra;
} texts[SHUNT_STEPS] = {
	[SHUNT_STEP_POLL] = { "poll", "completions" },
	[SHUNT_STEP_ROOM] = { "room", "staged" },
	[SHUNT_STEP_COMPLETION] = { "completion", "peer_pid" },
	[SHUNT_STEP_CLAIM] = { "claim", "peer_pid" },
	[SHUNT_STEP_RETIRE] = { "retire", NULL },
	[SHUNT_STEP_SERVICE] = { "service", "handler" },
	[SHUNT_STEP_REGISTER] = { "register", "bytes" },
	[SHUNT_STEP_FAILOVER] = { "failover", "peer_pid" },
};

const char *shunt_slow_text(enum shunt_step step, const char **extra)
{
	*extra = texts[step].extra;
	return texts[step].name;
}

/* --- noting --- */

/* A program's thread may be inside malloc(), interrupted by a handler that sends: so the ring is mapped. */
static struct shunt_slow_ring *ring_of(shunt_slow_log *log)
{
	struct shunt_slow_ring *ring = atomic_load(log), *fresh;
	int saved = errno;

	if (ring)
		return ring;
	fresh = shunt_lsan_map(sizeof(*fresh));
	if (fresh && !atomic_compare_exchange_strong(log, &ring, fresh)) {
		shunt_lsan_unmap(fresh, sizeof(*fresh));
		fresh = ring;
	}
	errno = saved;
	return fresh;
}

static void slow_count(struct shunt_slow_ring *ring, const struct shunt_slow_event *event)
{
	uint64_t longest = atomic_load(&ring->steps[event->step].longest);

	atomic_fetch_add(&ring->steps[event->step].count, 1);
	while (event->duration > longest &&
	       !atomic_compare_exchange_weak(&ring->steps[event->step].longest, &longest,
					     event->duration))
		;
}

static void pack(uint64_t word[SHUNT_SLOW_WORDS], const struct shunt_slow_event *event)
{
	word[0] = event->at;
	word[1] = event->duration;
	word[2] = event->extra;
	word[3] = (uint64_t)(uint32_t)event->fd << 32 | (event->addressed ? ADDRESSED : 0) |
		  (uint32_t)event->step;
	memset(&word[4], 0, 5 * sizeof(word[0]));
	if (event->addressed)
		memcpy(&word[4], &event->tuple, sizeof(event->tuple));
}

static void unpack(struct shunt_slow_event *event, const uint64_t word[SHUNT_SLOW_WORDS])
{
	event->at = word[0];
	event->duration = word[1];
	event->extra = word[2];
	event->step = (enum shunt_step)(word[3] & 0xff);
	event->addressed = word[3] & ADDRESSED;
	event->fd = (int)(uint32_t)(word[3] >> 32);
	memcpy(&event->tuple, &word[4], sizeof(event->tuple));
}

_Static_assert(sizeof(struct shunt_tuple) <= 5 * sizeof(uint64_t), "a tuple has its words");

/*
 * A slot belongs to one writer at a time. A writer that is overtaken by 1,024 others holds its slot
 * still: their event is lost, and no writer waits. In a fork's child such a slot stays unused.
 */
void shunt_slow_note(shunt_slow_log *log, const struct shunt_slow_event *event)
{
	struct shunt_slow_ring *ring = ring_of(log);
	struct shunt_slow_slot *slot;
	uint64_t number, before, word[SHUNT_SLOW_WORDS];

	if (!ring)
		return;
	slow_count(ring, event);
	pack(word, event);
	number = atomic_fetch_add(&ring->noted, 1) + 1;
	slot = &ring->slot[number % SHUNT_SLOW_KEPT];
	before = atomic_load(&slot->state);
	if (before == BUSY || before > number ||
	    !atomic_compare_exchange_strong(&slot->state, &before, BUSY)) {
		atomic_fetch_add(&ring->lost, 1);
		return;
	}
	for (int i = 0; i < SHUNT_SLOW_WORDS; i++)
		atomic_store(&slot->word[i], word[i]);
	atomic_store(&slot->state, number);
}

/* --- reading --- */

uint64_t shunt_slow_count(shunt_slow_log *log, enum shunt_step step)
{
	struct shunt_slow_ring *ring = atomic_load(log);

	return ring ? atomic_load(&ring->steps[step].count) : 0;
}

uint64_t shunt_slow_steps(shunt_slow_log *log)
{
	uint64_t sum = 0;

	for (int step = SHUNT_STEP_POLL + 1; step < SHUNT_STEPS; step++)
		sum += shunt_slow_count(log, (enum shunt_step)step);
	return sum;
}

bool shunt_slow_get(shunt_slow_log *log, uint64_t number, struct shunt_slow_event *event)
{
	struct shunt_slow_ring *ring = atomic_load(log);
	struct shunt_slow_slot *slot;
	uint64_t word[SHUNT_SLOW_WORDS];

	if (!ring || !number)
		return false;
	slot = &ring->slot[number % SHUNT_SLOW_KEPT];
	if (atomic_load(&slot->state) != number)
		return false;
	for (int i = 0; i < SHUNT_SLOW_WORDS; i++)
		word[i] = atomic_load(&slot->word[i]);
	if (atomic_load(&slot->state) != number)
		return false;
	event->number = number;
	unpack(event, word);
	return true;
}

/* --- showing --- */

static void put_steps(struct shunt_slow_ring *ring, struct shunt_json *json)
{
	shunt_json_put(json, "\"steps\":[");
	for (int step = 0; step < SHUNT_STEPS; step++)
		shunt_json_put(json, "%s{\"step\":\"%s\",\"count\":%llu,\"longest_ns\":%llu}",
			       step ? "," : "", texts[step].name,
			       ring ? (unsigned long long)atomic_load(&ring->steps[step].count) : 0,
			       ring ? (unsigned long long)atomic_load(&ring->steps[step].longest) :
				      0);
	shunt_json_put(json, "],");
}

static void put_tuple(const struct shunt_tuple *tuple, struct shunt_json *json)
{
	char local[SHUNT_ADDRESS_ROOM], peer[SHUNT_ADDRESS_ROOM];

	shunt_address_text(tuple->local, tuple->local_port, local);
	shunt_address_text(tuple->peer, tuple->peer_port, peer);
	shunt_json_put(json, ",\"local\":\"%s\",\"peer\":\"%s\"", local, peer);
}

static void put_event(const struct shunt_slow_event *event, struct shunt_json *json)
{
	const char *extra = texts[event->step].extra;

	shunt_json_put(json, "{\"number\":%llu,\"time_ns\":%llu,\"kind\":\"%s\",\"step\":\"%s\"",
		       (unsigned long long)event->number, (unsigned long long)event->at,
		       event->step == SHUNT_STEP_POLL ? "poll_gap" : "slow_step",
		       texts[event->step].name);
	shunt_json_put(json, ",\"duration_ns\":%llu", (unsigned long long)event->duration);
	if (event->fd >= 0)
		shunt_json_put(json, ",\"fd\":%d", event->fd);
	if (event->addressed)
		put_tuple(&event->tuple, json);
	if (event->step == SHUNT_STEP_SERVICE)
		shunt_json_put(json, ",\"%s\":\"%s\"", extra,
			       (const char *)(uintptr_t)event->extra);
	else if (extra)
		shunt_json_put(json, ",\"%s\":%llu", extra, (unsigned long long)event->extra);
	shunt_json_put(json, "}");
}

void shunt_slow_json(shunt_slow_log *log, uint64_t after, struct shunt_json *json)
{
	struct shunt_slow_ring *ring = atomic_load(log);
	uint64_t last = ring ? atomic_load(&ring->noted) : 0;
	uint64_t first = last > SHUNT_SLOW_KEPT ? last - SHUNT_SLOW_KEPT : 0;
	struct shunt_slow_event event;
	bool comma = false;

	shunt_json_put(json, "\"lost\":%llu,",
		       ring ? (unsigned long long)atomic_load(&ring->lost) : 0);
	put_steps(ring, json);
	shunt_json_put(json, "\"last\":%llu,\"events\":[", (unsigned long long)last);
	for (uint64_t number = (after > first ? after : first) + 1; number <= last; number++) {
		if (!shunt_slow_get(log, number, &event))
			continue;
		shunt_json_put(json, "%s", comma ? "," : "");
		put_event(&event, json);
		comma = true;
	}
	shunt_json_put(json, "]");
}
