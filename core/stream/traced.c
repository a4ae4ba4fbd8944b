/* SPDX-License-Identifier: MIT */
#include "core/stream/traced.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/engine.h"
#include "core/lane/lane_trace.h"
#include "core/loop/request.h"
#include "core/trace/followed.h"

#define STALE 1000000000ull /* ns after which the peer's clock is asked again */

/* --- on and off --- */

static struct shunt_trace_book *book_of(struct shunt_engine *engine)
{
	return atomic_load_explicit(&engine->lanes.book, memory_order_acquire);
}

int shunt_traced_begin(struct shunt_engine *engine, uint8_t traces)
{
	struct shunt_trace_book *book = book_of(engine), *none = NULL;

	if (!book) {
		book = shunt_trace_book_make();
		if (!book)
			return -ENOMEM;
		if (!atomic_compare_exchange_strong(&engine->lanes.book, &none, book))
			free(book);
	}
	atomic_fetch_or(&engine->traces, traces);
	return 0;
}

void shunt_traced_config(struct shunt_engine *engine)
{
	uint8_t word = (uint8_t)shunt_config_live(&engine->config.trace); /* off, 0, 1, … */

	atomic_fetch_and(&engine->traces, (uint8_t)~SHUNT_TRACES_OURS);
	if (word && shunt_traced_begin(engine, word))
		shunt_log(SHUNT_LOG_WARN, "no send is followed: out of memory");
}

/* --- sending; tx.lock held --- */

static uint64_t new_id(struct shunt_engine *engine, struct shunt_trace_book *book)
{
	uint32_t number = atomic_fetch_add_explicit(&book->ids, 1, memory_order_relaxed);

	return ((uint64_t)engine->forks.pid << 42 | (engine->born >> 20 & 0x3ff) << 32 | number) +
	       1;
}

void shunt_traced_rule(struct shunt_engine *engine, struct shunt_stream *stream, uint8_t word)
{
	if (!shunt_traced_begin(engine, SHUNT_TRACES_RULES))
		atomic_store(&stream->tx.trace.ruled, word);
}

/* Of this many sends one is followed; 0: none. */
static uint64_t one_in(struct shunt_tx *tx, uint8_t traces)
{
	uint8_t ruled = atomic_load_explicit(&tx->trace.ruled, memory_order_relaxed);
	uint8_t word = ruled ? ruled : traces & SHUNT_TRACES_OURS;

	return word ? 1ull << (word - 1) : 0;
}

/* Sends that have counted. Those since the last look are what is gone of its passes. */
static uint64_t sends_of(const struct shunt_tx *tx, struct shunt_pendings *pendings)
{
	return atomic_load_explicit(&pendings->sends, memory_order_relaxed) +
	       atomic_load_explicit(&pendings->granted, memory_order_relaxed) -
	       atomic_load_explicit(&tx->trace.passes, memory_order_relaxed);
}

/* So many sends pass before the next look: until the next one that is followed, or for ever where only answers are. */
static void grant_passes(struct shunt_tx *tx, struct shunt_pendings *pendings, uint64_t every)
{
	uint64_t sends = atomic_load_explicit(&pendings->sends, memory_order_relaxed);
	uint32_t passes = every ? (uint32_t)(every - 1 - (sends & (every - 1))) : 0;

	atomic_store_explicit(&tx->trace.passes, passes, memory_order_relaxed);
	atomic_store_explicit(&pendings->granted, passes, memory_order_relaxed);
}

/* Sends that the book does not have yet. Of two threads the second may take some back. */
static void tell_sends(struct shunt_trace_book *book, const struct shunt_tx *tx,
		       struct shunt_pendings *pendings)
{
	uint64_t sends = sends_of(tx, pendings);

	shunt_trace_count(book, SHUNT_TRACE_SENDS, sends - atomic_exchange(&pendings->told, sends));
}

/* The lane finds them there. */
static void show_lane(struct shunt_stream *stream)
{
	if (shunt_stream_is_seated(stream))
		stream->seat->pendings = stream->tx.trace.pendings;
}

void shunt_traced_call(struct shunt_engine *engine, struct shunt_stream *stream, uint8_t traces,
		       size_t bytes)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_pendings *pendings = stream->tx.trace.pendings;
	struct shunt_trace_book *book = book_of(engine);
	struct shunt_pending pending = { .end = tx->offset + bytes };
	uint64_t every = one_in(tx, traces);
	uint32_t dropped;

	if (pendings)
		pendings->open = false;
	if (!bytes || !(every || atomic_load_explicit(&stream->rx.answers, memory_order_relaxed)))
		return;
	if (!pendings)
		tx->trace.pendings = pendings = calloc(1, sizeof(*pendings));
	if (!pendings)
		return;
	show_lane(stream);
	shunt_lock_rank(&pendings->lock, SHUNT_RANK_PENDINGS);
	atomic_store_explicit(&pendings->sends, sends_of(tx, pendings), memory_order_relaxed);
	grant_passes(tx, pendings, every);
	tx->trace.of = traces;
	pendings->chosen = every && !tx->trace.passes;
	pendings->answers = atomic_exchange_explicit(&stream->rx.answers, 0, memory_order_relaxed);
	pendings->open = pendings->chosen || pendings->answers;
	if (!pendings->open)
		return;
	pending.called = shunt_now(engine);
	pending.id = pendings->answers ? pendings->answers : new_id(engine, book);
	pending.answer = pendings->answers != 0;
	pending.bytes = bytes < INT32_MAX ? (uint32_t)bytes : INT32_MAX;
	pendings->lost = !shunt_pendings_add(pendings, &pending, &dropped);
	shunt_trace_count(book, SHUNT_TRACE_ABANDONED, dropped);
}

/* The call that was looked at counts, and the next look is due. */
static void count_send(struct shunt_tx *tx, struct shunt_pendings *pendings)
{
	uint64_t sends = atomic_load_explicit(&pendings->sends, memory_order_relaxed);

	atomic_store_explicit(&pendings->sends, sends + 1, memory_order_relaxed);
	grant_passes(tx, pendings, one_in(tx, tx->trace.of));
}

void shunt_traced_abandon(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_pendings *pendings = stream->tx.trace.pendings;

	if (!pendings->open && shunt_pendings_any(pendings))
		shunt_trace_count(book_of(engine), SHUNT_TRACE_ABANDONED,
				  shunt_pendings_drop(pendings));
}

void shunt_traced_sent(struct shunt_engine *engine, struct shunt_stream *stream, ssize_t taken)
{
	struct shunt_pendings *pendings = stream->tx.trace.pendings;
	struct shunt_trace_book *book = book_of(engine);

	if (!pendings)
		return;
	if (taken > 0 && one_in(&stream->tx, stream->tx.trace.of))
		count_send(&stream->tx, pendings);
	if (!pendings->open)
		return;
	pendings->open = false;
	if (taken <= 0) {
		if (!pendings->lost)
			shunt_pendings_withdraw(pendings);
		atomic_store_explicit(&stream->rx.answers, pendings->answers, memory_order_relaxed);
		return;
	}
	shunt_trace_count(book, SHUNT_TRACE_CHOSEN, pendings->chosen);
	shunt_trace_count(book, SHUNT_TRACE_ANSWERS, pendings->answers != 0);
	shunt_trace_count(book, SHUNT_TRACE_LOST, pendings->lost);
	if (!shunt_heading_on_link(&stream->seat->out.heading))
		shunt_trace_count(book, SHUNT_TRACE_ABANDONED, shunt_pendings_drop(pendings));
	else if (!pendings->lost && shunt_pendings_any(pendings))
		shunt_pendings_accept(pendings, shunt_now(engine));
}

/* --- receiving --- */

/* The program has closed it, or reads it from TCP: nobody reads the link's bytes. */
static bool is_over(const struct shunt_stream *stream)
{
	return atomic_load(&stream->state) != SHUNT_LINKED || shunt_stream_is_released(stream) ||
	       shunt_intake_copied(&stream->seat->in.intake);
}

/*
 * Its last byte has not come. A record is seen as soon as it is written, before completions that were there earlier.
 * Those may be an UPGRADE, or a larger ring. So nothing is known of how far away its end may be.
 */
static bool is_sound(const struct shunt_stream *stream, const struct shunt_lane *lane,
		     const struct shunt_trace_record *record)
{
	return stream->seat->lane == lane && record->end > atomic_load(&stream->seat->in.tail) &&
	       record->end < SHUNT_NEVER;
}

/* followed->lock held. */
static void follow(struct shunt_followed *followed, struct shunt_lane *lane,
		   const struct shunt_trace_record *record, uint64_t now)
{
	struct shunt_stream *stream = shunt_streams_at(lane->link, record->stream);

	if (!stream || is_over(stream))
		shunt_trace_count(followed->book, SHUNT_TRACE_UNREAD, 1);
	else if (!is_sound(stream, lane, record))
		shunt_trace_count(followed->book, SHUNT_TRACE_REFUSED, 1);
	else
		shunt_followed_tell(followed, record, now);
}

void shunt_traced_arrive(struct shunt_engine *engine, struct shunt_lane *lane,
			 struct shunt_stream *stream, uint64_t tail)
{
	struct shunt_followed *followed = lane->followed;
	struct shunt_trace_record record;
	uint64_t now;

	now = shunt_now(engine);
	shunt_lock_take(&followed->lock);
	for (int i = 0; i < SHUNT_TRACE_SLOTS && shunt_followed_next(followed, &record); i++)
		follow(followed, lane, &record, now);
	atomic_store(&stream->seat->in.followed,
		     shunt_followed_see(followed, stream->seat->id, tail, now, lane->held_until));
	shunt_lock_leave(&followed->lock);
	if (followed->zone.at && now - followed->zone.at > STALE)
		shunt_request_trace(&engine->loop);
}

void shunt_traced_read(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t head)
{
	struct shunt_followed *followed = stream->seat->lane->followed;
	uint64_t now = shunt_now(engine), id = 0;

	if (!followed) {
		atomic_store(&stream->seat->in.followed, 0);
		return;
	}
	shunt_lock_take(&followed->lock);
	atomic_store(&stream->seat->in.followed,
		     shunt_followed_read(followed, stream->seat->id, head, stream->fd, now, &id));
	shunt_lock_leave(&followed->lock);
	if (id)
		atomic_store_explicit(&stream->rx.answers, id, memory_order_relaxed);
}

/* --- the end --- */

void shunt_traced_leave(struct shunt_stream *stream)
{
	struct shunt_lane *lane = stream->seat->lane;
	struct shunt_followed *followed = atomic_load(&lane->followed);
	struct shunt_trace_book *book = book_of(shunt_stream_engine(stream));

	if (!book)
		return;
	if (stream->tx.trace.pendings)
		shunt_trace_count(book, SHUNT_TRACE_ABANDONED,
				  shunt_pendings_drop(stream->tx.trace.pendings));
	shunt_lock_take(&lane->lock);
	shunt_lane_trace_forget(lane, stream->seat);
	stream->seat->pendings = NULL;
	shunt_lock_leave(&lane->lock);
	if (followed) {
		shunt_lock_take(&followed->lock);
		shunt_followed_forget(followed, stream->seat->id);
		shunt_lock_leave(&followed->lock);
	}
	atomic_store(&stream->seat->in.followed, 0);
}

void shunt_traced_free(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_trace_book *book = book_of(engine);

	if (book && stream->tx.trace.pendings)
		tell_sends(book, &stream->tx, stream->tx.trace.pendings);
	free(stream->tx.trace.pendings);
	stream->tx.trace.pendings = NULL;
	atomic_store(&stream->tx.trace.passes, 0);
	atomic_store(&stream->tx.trace.ruled, 0);
}

void shunt_traced_tell(struct shunt_stream *stream)
{
	struct shunt_pendings *pendings = stream->tx.trace.pendings;
	struct shunt_trace_book *book = book_of(shunt_stream_engine(stream));

	if (book && pendings)
		tell_sends(book, &stream->tx, pendings);
}

void shunt_traced_inherit(struct shunt_stream *stream)
{
	if (stream->tx.trace.pendings)
		memset(stream->tx.trace.pendings, 0, sizeof(*stream->tx.trace.pendings));
	atomic_store(&stream->tx.trace.passes, 0);
	atomic_store(&stream->rx.answers, 0);
	if (shunt_stream_is_seated(stream))
		atomic_store(&stream->seat->in.followed, 0);
}
