/* SPDX-License-Identifier: MIT */
#include "core/trace/followed.h"
#include <stdlib.h>
#include "core/trace/clock.h"
#include "core/trace/slots.h"

#define TIME_MAX (1ull << 62) /* ns; no clock has come so far */
/* ns after which a last byte is not waited for, because each poll would look for it. */
#define PATIENCE 60000000000ull
#define NUMBER_MAX (1ull << 62) /* no lane has so many records */

struct shunt_followed *shunt_followed_make(struct shunt_trace_book *book,
					   const struct shunt_trace_record *ring, uint32_t peer)
{
	struct shunt_followed *followed = calloc(1, sizeof(*followed));

	if (!followed)
		return NULL;
	shunt_lock_rank(&followed->lock, SHUNT_RANK_FOLLOWED);
	followed->book = book;
	followed->ring = ring;
	followed->peer = peer;
	followed->next = 1;
	return followed;
}

/* A word that the peer may be writing. */
static uint64_t peek(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* Where the peer writes slowly over what it has just written, the two numbers differ. */
static bool record_copy(const struct shunt_trace_record *from, struct shunt_trace_record *to)
{
	uint64_t words[2];

	to->number = peek(&from->number);
	to->id = peek(&from->id);
	to->end = peek(&from->end);
	words[0] = peek((const uint64_t *)&from->stream);
	to->stream = (uint32_t)words[0];
	to->bytes = (uint32_t)(words[0] >> 32);
	to->called = peek(&from->called);
	to->accepted = peek(&from->accepted);
	to->posted = peek(&from->posted);
	to->placed = peek(&from->placed);
	words[1] = peek(&from->number);
	return to->number == words[1];
}

/* Of a slot that has a later record than the one that is due: those before the last SHUNT_TRACE_SLOTS were replaced. */
static void skip(struct shunt_followed *followed, uint64_t later)
{
	uint64_t next = followed->next + 1;

	if (later < NUMBER_MAX && later > next + (SHUNT_TRACE_SLOTS - 1))
		next = later - (SHUNT_TRACE_SLOTS - 1);
	shunt_trace_count(followed->book, SHUNT_TRACE_MISSED, next - followed->next);
	followed->next = next;
}

bool shunt_followed_next(struct shunt_followed *followed, struct shunt_trace_record *record)
{
	for (int i = 0; i < SHUNT_TRACE_SLOTS; i++) {
		const struct shunt_trace_record *slot =
			&followed->ring[followed->next % SHUNT_TRACE_SLOTS];

		if (peek(&slot->number) < followed->next)
			return false;
		if (record_copy(slot, record) && record->number == followed->next) {
			followed->next++;
			return true;
		}
		if (record->number > followed->next)
			skip(followed, record->number);
	}
	return false;
}

static uint64_t to_ours(uint64_t theirs, int64_t offset)
{
	return theirs + (uint64_t)offset;
}

/* Of the sender's time and what must have been before it. */
static bool is_sound(const struct shunt_trace_record *record, const struct shunt_trace_zone *zone,
		     uint64_t error, uint64_t now)
{
	if (record->called > record->posted || record->posted >= TIME_MAX ||
	    record->accepted > record->posted ||
	    (record->accepted && record->accepted < record->called) || !record->called ||
	    !record->id)
		return false;
	return to_ours(record->called, zone->offset) < TIME_MAX &&
	       to_ours(record->posted, zone->offset) <= now + error;
}

static uint64_t slots_told(const struct shunt_followed *followed)
{
	return atomic_load_explicit(&followed->told, memory_order_relaxed);
}

static void set_told(struct shunt_followed *followed, uint64_t slots)
{
	atomic_store_explicit(&followed->told, slots, memory_order_relaxed);
}

static void leave_slot(struct shunt_followed *followed, uint32_t at)
{
	set_told(followed, slots_told(followed) & ~shunt_slot_bit(at));
	followed->seen &= ~shunt_slot_bit(at);
	followed->read &= ~shunt_slot_bit(at);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Each stage ends no later than it began to be known to have ended. A completion that came behind the reader's poll says
 * nothing of when the bytes were placed; `latest`: it is one.
 */
static void write_down(struct shunt_followed *followed, uint32_t at, uint64_t posted,
		       uint64_t placed, bool latest)
{
	struct shunt_followed_slot *slot = &followed->slots[at];
	struct shunt_trace *trace = &slot->trace;

	if (posted >= trace->called && posted < TIME_MAX)
		trace->posted = posted;
	trace->placed = placed < TIME_MAX && !(latest && placed >= trace->seen) ? placed : 0;
	if ((trace->placed || latest) && trace->placed < slot->late)
		trace->placed = slot->late;
	trace->posted = least(trace->posted, trace->seen);
	if (trace->placed)
		trace->placed = least(trace->placed, trace->seen);
	if (trace->placed && trace->placed < trace->posted)
		trace->placed = trace->posted;
	trace->called = least(trace->called, trace->posted);
	if (trace->accepted)
		trace->accepted = least(trace->accepted, trace->posted);
	shunt_trace_book_add(followed->book, trace);
	leave_slot(followed, at);
}

/* The two words that the sender writes again; 0 in *placed: it has not, or the slot has another record by now. */
static void slot_look_again(const struct shunt_followed *followed, uint32_t at, uint64_t *posted,
			    uint64_t *placed, bool *latest)
{
	const struct shunt_trace_record *from = &followed->ring[at];
	int64_t offset = followed->slots[at].offset;

	*posted = peek(&from->posted);
	*placed = peek(&from->placed);
	*latest = *placed & SHUNT_TRACE_LATEST;
	if (peek(&from->number) != followed->slots[at].number || !*placed) {
		*posted = *placed = 0;
		return;
	}
	*posted = to_ours(*posted, offset);
	*placed = to_ours(*placed & ~SHUNT_TRACE_LATEST, offset);
}

void shunt_followed_settle(struct shunt_followed *followed, uint64_t before)
{
	uint64_t posted, placed, left = followed->read;
	bool latest;
	uint32_t i;

	while (shunt_slot_take(&left, &i)) {
		slot_look_again(followed, i, &posted, &placed, &latest);
		if (placed || followed->slots[i].trace.read < before)
			write_down(followed, i, posted, placed, latest);
	}
}

/* The record that was there before has not become an entry yet. */
static void vacate(struct shunt_followed *followed, uint32_t at)
{
	if (followed->read & shunt_slot_bit(at)) {
		write_down(followed, at, 0, 0, false);
	} else if ((slots_told(followed) | followed->seen) & shunt_slot_bit(at)) {
		shunt_trace_count(followed->book, SHUNT_TRACE_UNREAD, 1);
		leave_slot(followed, at);
	}
}

void shunt_followed_tell(struct shunt_followed *followed, const struct shunt_trace_record *record,
			 uint64_t now)
{
	const struct shunt_trace_zone *zone = &followed->zone;
	uint64_t error = zone->at ? zone->error + (now - zone->at) / SHUNT_CLOCK_DRIFT : 0;
	uint32_t at = record->number % SHUNT_TRACE_SLOTS;
	struct shunt_followed_slot *slot = &followed->slots[at];

	atomic_store(&followed->last_at, now);
	shunt_followed_settle(followed, 0);
	vacate(followed, at);
	if (!is_sound(record, zone, error, now)) {
		shunt_trace_count(followed->book, SHUNT_TRACE_REFUSED, 1);
		return;
	}
	slot->number = record->number;
	slot->offset = zone->offset;
	slot->late = 0;
	slot->trace = (struct shunt_trace) {
		.id = record->id,
		.end = record->end,
		.stream = record->stream,
		.peer = followed->peer,
		.fd = -1,
		.bytes = record->bytes & ~SHUNT_TRACE_ANSWER,
		.answer = record->bytes & SHUNT_TRACE_ANSWER,
		.called = to_ours(record->called, zone->offset),
		.accepted = record->accepted ? to_ours(record->accepted, zone->offset) : 0,
		.posted = to_ours(record->posted, zone->offset),
		.error = error,
	};
	set_told(followed, slots_told(followed) | shunt_slot_bit(at));
}

/* The least end of a seen send; 0: none. */
static uint64_t next_end(const struct shunt_followed *followed, uint32_t stream)
{
	uint64_t end = 0, left = followed->seen;
	uint32_t i;

	while (shunt_slot_take(&left, &i)) {
		const struct shunt_trace *trace = &followed->slots[i].trace;

		if (trace->stream == stream && (!end || trace->end < end))
			end = trace->end;
	}
	return end;
}

uint64_t shunt_followed_see(struct shunt_followed *followed, uint32_t stream, uint64_t tail,
			    uint64_t now, uint64_t late)
{
	uint64_t left = slots_told(followed);
	uint32_t i;

	while (shunt_slot_take(&left, &i)) {
		struct shunt_followed_slot *slot = &followed->slots[i];

		if (slot->trace.stream != stream || slot->trace.end > tail) {
			if (now > slot->trace.posted + PATIENCE)
				vacate(followed, i);
			continue;
		}
		slot->trace.seen = now;
		slot->late = late <= now ? late : now;
		leave_slot(followed, i);
		followed->seen |= shunt_slot_bit(i);
	}
	return next_end(followed, stream);
}

uint64_t shunt_followed_read(struct shunt_followed *followed, uint32_t stream, uint64_t head,
			     int fd, uint64_t now, uint64_t *id)
{
	uint64_t last = 0, left = followed->seen;
	uint32_t i;

	*id = 0;
	while (shunt_slot_take(&left, &i)) {
		struct shunt_trace *trace = &followed->slots[i].trace;

		if (trace->stream != stream || trace->end > head)
			continue;
		trace->read = now;
		trace->fd = fd;
		leave_slot(followed, i);
		followed->read |= shunt_slot_bit(i);
		if (!trace->answer && trace->end > last) {
			last = trace->end;
			*id = trace->id;
		}
	}
	shunt_followed_settle(followed, 0);
	return next_end(followed, stream);
}

void shunt_followed_forget(struct shunt_followed *followed, uint32_t stream)
{
	uint64_t left = slots_told(followed) | followed->seen;
	uint32_t i;

	while (shunt_slot_take(&left, &i))
		if (followed->slots[i].trace.stream == stream)
			vacate(followed, i);
}
