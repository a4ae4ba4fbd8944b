/* SPDX-License-Identifier: MIT */
#include "core/lane/send_queue.h"
#include "core/base/config.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "core/base/copy.h"
#include "core/base/sys.h"
#include "core/lane/lane.h"
#include "core/lane/lane_serve.h"
#include "core/lane/lanes.h"
#include "core/loop/request.h"

#define WIDEST (1u << 26)	/* that a stage may become */
#define ASSUMED (256u << 10)	/* that any path bears: 100 Gbit/s for 20 us */
#define STREAMS 64	/* as wide as a stage may be, for the whole process */

struct shunt_cuts {	/* where sends end that are not to be merged: offsets, oldest first */
	_Atomic uint32_t first, last;	/* lane.lock; tx.lock */
	_Atomic uint64_t at[SHUNT_SEND_QUEUE_CUTS];
};

/* --- its memory --- */

static struct shunt_send_window *window_of(const struct shunt_seat *seat)
{
	return atomic_load(&seat->window);
}

/* Small ones are many, and mapping is a system call. */
static uint8_t *map(uint64_t bytes)
{
	void *memory;

	if (bytes <= SHUNT_SEND_QUEUE_BYTES)
		return malloc(bytes);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	return memory;
}

static void unmap(const struct shunt_send_stage *stage)
{
	if (stage->size > SHUNT_SEND_QUEUE_BYTES)
		munmap(stage->bytes, stage->size);
	else
		free(stage->bytes);
}

static bool make_stage(struct shunt_seat *seat, struct shunt_send_stage *stage, uint32_t size)
{
	struct shunt_link *link = seat->link;
	const struct ibv_mr *mr;
	uint64_t place;

	if (!seat->lane->fetches) {
		stage->bytes = map(size);
	} else {
		place = shunt_arena_take(&link->arena, size, &mr);
		if (place == UINT64_MAX)
			return false;
		stage->bytes = link->arena_base + place;
		stage->lkey = mr->lkey;
	}
	stage->size = stage->bytes ? size : 0;
	return stage->bytes != NULL;
}

static void give(struct shunt_seat *seat, const uint8_t *bytes, uint32_t size)
{
	if (shunt_arena_give(&seat->link->arena, (uint64_t)(bytes - seat->link->arena_base), size))
		shunt_request_memory(seat->lane->group->loop);
}

static void drop_stage(struct shunt_seat *seat, struct shunt_send_stage *stage)
{
	if (seat->lane->fetches)
		give(seat, stage->bytes, stage->size);
	else
		unmap(stage);
	stage->bytes = NULL;
	stage->size = 0;
}

/* The device fetches nothing from the stage before any more. */
static bool former_is_free(const struct shunt_seat *seat, const struct shunt_send_window *window)
{
	return atomic_load(&window->former_wr) <= atomic_load(&seat->lane->retired);
}

static void drop_former(struct shunt_seat *seat, struct shunt_send_window *window)
{
	if (!atomic_load(&window->former_wr))
		return;
	give(seat, window->former, window->former_size);
	atomic_store(&window->former_wr, 0);
}

/* A device that fetches nothing has copied the bytes when they were posted. */
static void part_with(struct shunt_seat *seat, struct shunt_send_stage *stage, bool is_fetched)
{
	struct shunt_send_window *window = window_of(seat);

	if (!is_fetched || !seat->lane->fetches) {
		drop_stage(seat, stage);
		return;
	}
	window->former = stage->bytes;
	window->former_size = stage->size;
	atomic_store(&window->former_wr, atomic_load(&window->kept_wr));
}

/* The process counts what is above the small one. */
static void set_window(struct shunt_seat *seat, struct shunt_send_window *window, uint32_t bytes)
{
	int64_t more = (int64_t)bytes - atomic_load(&window->bytes);

	atomic_fetch_add(&seat->lane->group->common->wide_windows, (uint64_t)more);
	atomic_store(&window->bytes, bytes);
}

static void begin_marks(struct shunt_seat *seat, struct shunt_send_window *window)
{
	for (int i = 0; i < SHUNT_SEND_QUEUE_MARKS; i++)
		atomic_store(&window->marks[i].wr, SHUNT_NEVER);
	window->marked = atomic_load(&seat->out.staged);
}

bool shunt_send_queue_has_window(struct shunt_seat *seat)
{
	struct shunt_send_window *window = window_of(seat);

	if (window || !shunt_lane_keeps(seat->lane))
		return true;
	window = calloc(1, sizeof(*window));
	if (!window)
		return false;
	atomic_init(&window->bytes, SHUNT_SEND_QUEUE_BYTES);
	atomic_init(&window->reusable, atomic_load(&seat->out.posted));
	begin_marks(seat, window);
	atomic_store(&seat->window, window);
	return true;
}

bool shunt_send_queue_ready(struct shunt_seat *seat, bool apart)
{
	struct shunt_send_stage *stage = &seat->out.stage;

	if (!stage->bytes && !make_stage(seat, stage, SHUNT_SEND_QUEUE_BYTES))
		return false;
	if (__builtin_expect(!shunt_send_queue_has_window(seat), 0))
		return false;
	if (apart && !stage->cuts)
		stage->cuts = calloc(1, sizeof(*stage->cuts));
	return !apart || stage->cuts;
}

/* The window is small, and there is no former stage. */
static void give_window(struct shunt_seat *seat)
{
	struct shunt_send_window *window = window_of(seat);

	if (!window)
		return;
	drop_former(seat, window);
	set_window(seat, window, SHUNT_SEND_QUEUE_BYTES);
}

void shunt_send_queue_leave(struct shunt_seat *seat)
{
	give_window(seat);
	if (seat->out.stage.bytes && seat->lane->fetches)
		drop_stage(seat, &seat->out.stage);
}

void shunt_send_queue_free(struct shunt_send_stage *stage)
{
	unmap(stage);
	free(stage->cuts);
	stage->bytes = NULL;
	stage->size = 0;
	stage->cuts = NULL;
}

/* --- its beginning --- */

void shunt_send_queue_begin(struct shunt_seat *seat, uint64_t offset)
{
	struct shunt_send_window *window = window_of(seat);
	struct shunt_seat_out *out = &seat->out;

	atomic_store(&out->staged, offset);
	atomic_store(&out->posted, offset);
	atomic_store(&out->exposed, offset);
	if (!window)
		return;
	atomic_store(&window->kept_wr, 0);
	atomic_store(&window->pinned_wr, 0);
	atomic_store(&window->reusable, offset);
	begin_marks(seat, window);
	window->round_wr = window->shortest = window->quiet_at = window->quiet_since = 0;
	set_window(seat, window, SHUNT_SEND_QUEUE_BYTES);
}

/* --- what has arrived --- */

/* It never falls: what a program has been told of is still room when it sends. */
static uint64_t raise_reusable(struct shunt_send_window *window, uint64_t offset)
{
	uint64_t before = atomic_load(&window->reusable);

	while (before < offset)
		if (atomic_compare_exchange_weak(&window->reusable, &before, offset))
			return offset;
	return before;
}

/* An old mark may be lost: what is newer says more. */
static void mark(struct shunt_send_window *window, uint64_t number, uint64_t end)
{
	struct shunt_send_mark *mark;

	if (end - window->marked < atomic_load(&window->bytes) / SHUNT_SEND_QUEUE_MARKS)
		return;
	mark = &window->marks[window->next_mark++ % SHUNT_SEND_QUEUE_MARKS];
	atomic_store(&mark->wr, SHUNT_NEVER);
	atomic_store(&mark->end, end);
	atomic_store(&mark->wr, number);
	window->marked = end;
}

/* Up to where marks say that all has arrived; 0: they say nothing. */
static uint64_t marked(const struct shunt_seat *seat, const struct shunt_send_window *window)
{
	uint64_t retired = atomic_load_explicit(&seat->lane->retired, memory_order_acquire);
	uint64_t offset = 0;

	for (int i = 0; i < SHUNT_SEND_QUEUE_MARKS; i++) {
		const struct shunt_send_mark *mark = &window->marks[i];
		uint64_t wr = atomic_load(&mark->wr), end = atomic_load(&mark->end);

		if (wr <= retired && end > offset && atomic_load(&mark->wr) == wr)
			offset = end;
	}
	return offset;
}

/* The device may still need bytes of the stage. */
static bool is_kept(const struct shunt_seat *seat, const struct shunt_send_window *window)
{
	/* 0: no WR has been posted from it. */
	return window && atomic_load(&window->kept_wr) > atomic_load(&seat->lane->retired);
}

/*
 * Bytes that were posted are kept until the last of their WRs is complete. While a sender posts more that is never so,
 * and marks tell. Any thread may call this, one with the pointer of a stream that has gone, too; so it writes nothing.
 */
static uint64_t arrived(const struct shunt_seat *seat)
{
	/* `kept_wr` is set before `posted`: read afterwards it is not of an earlier WR. */
	uint64_t posted = atomic_load_explicit(&seat->out.posted, memory_order_acquire);
	const struct shunt_send_window *window = window_of(seat);
	uint64_t offset, reusable;

	if (__builtin_expect(!is_kept(seat, window), 1))
		return posted;
	offset = marked(seat, window);
	reusable = atomic_load(&window->reusable);
	return offset > reusable ? offset : reusable;
}

void shunt_send_queue_keep(struct shunt_seat *seat, uint64_t number, uint64_t end)
{
	struct shunt_send_window *window = window_of(seat);

	shunt_assert_held(&seat->lane->lock);
	/* While this WR is under way, and a mark is gone that it takes the place of, only `reusable` says so. */
	raise_reusable(window, arrived(seat));
	mark(window, number, end);
	atomic_store(&window->kept_wr, number);
}

uint64_t shunt_send_queue_arrived(struct shunt_seat *seat)
{
	struct shunt_send_window *window = window_of(seat);
	uint64_t offset = arrived(seat);

	return window ? raise_reusable(window, offset) : offset;
}

bool shunt_send_queue_is_needed(const struct shunt_seat *seat)
{
	return is_kept(seat, window_of(seat)) ||
	       shunt_send_queue_pinned_wr(seat) > atomic_load(&seat->lane->retired);
}

/* --- its room --- */

int64_t shunt_send_queue_used(const struct shunt_seat *seat)
{
	return (int64_t)(atomic_load(&seat->out.staged) - arrived(seat));
}

/* Behind a gate each byte costs a token, and the peer counts on the small one (core/qos/holding.c). */
static bool has_gate(const struct shunt_seat *seat)
{
	return __atomic_load_n(&seat->lane->window.gate, __ATOMIC_RELAXED) != NULL;
}

uint32_t shunt_send_queue_limit(const struct shunt_seat *seat)
{
	const struct shunt_send_window *window = window_of(seat);

	return window && !has_gate(seat) ? atomic_load(&window->bytes) : SHUNT_SEND_QUEUE_BYTES;
}

bool shunt_send_queue_roomy(const struct shunt_seat *seat)
{
	const struct shunt_cuts *cuts = seat->out.stage.cuts;

	return shunt_send_queue_used(seat) <= shunt_send_queue_limit(seat) / 2 &&
	       (!cuts ||
		atomic_load(&cuts->last) - atomic_load(&cuts->first) <= SHUNT_SEND_QUEUE_CUTS / 2);
}

/* Copies, wrapping. `past`: past the caches, because no core reads it. False: a fault, and *from is as it was. */
static bool copy(struct shunt_send_stage *stage, uint64_t offset, struct shunt_iov *from,
		 size_t bytes, bool past)
{
	struct shunt_iov begun = *from;
	struct iovec part;
	bool there = true;

	while (bytes && there) {
		void *at = shunt_send_queue_at(stage, offset);

		if (!shunt_iov_next(from, shunt_send_queue_span(stage, offset, offset + bytes), &part))
			return true;
		if (__builtin_expect(past && part.iov_len >= SHUNT_COPY_LARGE, 0))
			there = shunt_copy_past(at, part.iov_base, part.iov_len);
		else
			there = shunt_copy_plain(at, part.iov_base, part.iov_len);
		offset += part.iov_len;
		bytes -= part.iov_len;
	}
	if (__builtin_expect(!there, 0)) {
		*from = begun;
		from->bad = true;
	}
	return there;
}

/* Bytes that the stage has room for, until it holds `most`. */
static size_t free_of(struct shunt_seat *seat, uint64_t most, bool apart)
{
	struct shunt_seat_out *out = &seat->out;
	const struct shunt_cuts *cuts;
	uint64_t used;

	if (!shunt_send_queue_ready(seat, apart))
		return 0;
	cuts = out->stage.cuts;
	if (apart && cuts->last - atomic_load_explicit(&cuts->first, memory_order_acquire) == SHUNT_SEND_QUEUE_CUTS)
		return 0;
	used = atomic_load_explicit(&out->staged, memory_order_relaxed) -
	       shunt_send_queue_arrived(seat); /* also what went past it, inline */
	if (most > out->stage.size)
		most = out->stage.size;
	return used < most ? most - used : 0;
}

size_t shunt_send_queue_room(struct shunt_seat *seat, uint64_t most, bool apart, void **at)
{
	struct shunt_send_stage *stage = &seat->out.stage;
	uint64_t offset = atomic_load_explicit(&seat->out.staged, memory_order_relaxed);
	size_t room = free_of(seat, most, apart);

	if (!room)
		return 0;
	*at = shunt_send_queue_at(stage, offset);
	return shunt_send_queue_span(stage, offset, offset + room);
}

void shunt_send_queue_add(struct shunt_seat *seat, size_t bytes, bool apart)
{
	struct shunt_seat_out *out = &seat->out;
	uint64_t offset = atomic_load_explicit(&out->staged, memory_order_relaxed) + bytes;
	struct shunt_cuts *cuts = out->stage.cuts;

	if (apart) {
		atomic_store_explicit(&cuts->at[cuts->last & (SHUNT_SEND_QUEUE_CUTS - 1)], offset,
				      memory_order_relaxed);
		atomic_store_explicit(&cuts->last, cuts->last + 1, memory_order_release);
	}
	atomic_store_explicit(&out->staged, offset, memory_order_release);
}

size_t shunt_send_queue_take(struct shunt_seat *seat, struct shunt_iov *from, size_t bytes,
			      uint64_t most, bool apart)
{
	uint64_t offset = atomic_load_explicit(&seat->out.staged, memory_order_relaxed);
	size_t room = free_of(seat, most, apart);

	if (bytes > room)
		bytes = room;
	if (!bytes ||
	    !copy(&seat->out.stage, offset, from, bytes,
		  seat->lane->fetches &&
			  shunt_config_live(&seat->lane->group->config->copy) == SHUNT_COPY_NT))
		return 0;
	shunt_send_queue_add(seat, bytes, apart);
	return bytes;
}

/* --- copying out of it --- */

/* Bytes [from, to) of the stage. False: they may have been overwritten. */
static bool copy_staged(const struct shunt_seat *seat, uint8_t *out, uint64_t from, uint64_t to)
{
	const struct shunt_send_stage *stage = &seat->out.stage;
	const struct shunt_send_window *window = window_of(seat);
	uint64_t part;

	if (!stage->bytes || to - from > stage->size ||
	    (window && from < atomic_load(&window->reusable)))
		return false;
	for (; from < to; from += part, out += part) {
		part = shunt_send_queue_span(stage, from, to);
		memcpy(out, shunt_send_queue_at(stage, from), part);
	}
	return true;
}

bool shunt_send_queue_copy(struct shunt_seat *seat, uint8_t *out, uint64_t from, uint64_t to)
{
	const struct shunt_pin *pin = seat->out.pin;
	uint64_t part;
	bool there = true;

	shunt_seat_assert_sends(seat);
	for (; from < to && there; from += part, out += part) {
		if (pin && pin->from <= from && from < pin->to) {
			part = (to < pin->to ? to : pin->to) - from;
			there = shunt_copy_plain(out, pin->first + (from - pin->from), part);
		} else {
			part = (pin && from < pin->from && pin->from < to ? pin->from : to) - from;
			there = copy_staged(seat, out, from, from + part);
		}
	}
	return there;
}

/* --- the program's buffer --- */

void shunt_send_queue_pinned(struct shunt_seat *seat, uint64_t number, uint64_t offset,
			     const struct ibv_sge *sge, bool is_inline)
{
	struct shunt_pin *pin = seat->out.pin;

	if (pin->from == pin->to) {
		pin->from = offset;
		pin->first = (const char *)(uintptr_t)sge->addr;
	}
	pin->to = offset + sge->length;
	if (!is_inline || seat->lane->retains)
		atomic_store(&window_of(seat)->pinned_wr, number);
}

void shunt_send_queue_unpin(struct shunt_seat *seat)
{
	if (seat->lane->retains)	/* its last WR is known to be complete, and so are those before */
		raise_reusable(window_of(seat), seat->out.pin->to);
	atomic_store(&seat->out.pin, NULL);
}

/* --- a wider one --- */

/* The power of two that is at least as large, and that there can be. */
static uint32_t width(struct shunt_seat *seat, uint64_t bytes)
{
	uint64_t size = SHUNT_SEND_QUEUE_BYTES, most = WIDEST;

	if (seat->lane->fetches)
		most = shunt_arena_most(&seat->link->arena);

	while (size < bytes && size * 2 <= most)
		size *= 2;
	return (uint32_t)size;
}

bool shunt_send_queue_may_widen(const struct shunt_seat *seat)
{
	const struct shunt_send_window *window = window_of(seat);

	return __builtin_expect(!is_kept(seat, window), 1) || former_is_free(seat, window);
}

static bool is_wide(struct shunt_seat *seat, uint64_t bytes)
{
	const struct shunt_send_stage *stage = &seat->out.stage;

	return stage->bytes && stage->size >= width(seat, bytes);
}

/* Bytes [from, to) of the stage, into a wider one. */
static void move(const struct shunt_send_stage *stage, const struct shunt_send_stage *wide,
		 uint64_t from, uint64_t to)
{
	for (uint64_t part; from < to; from += part) {
		part = shunt_send_queue_span(stage, from, to);
		part = shunt_send_queue_span(wide, from, from + part);
		memcpy(shunt_send_queue_at(wide, from), shunt_send_queue_at(stage, from), part);
	}
}

/* The device may still fetch from the present one: it is kept beside the wider one then. Not two of them. */
static int may_part(struct shunt_seat *seat, uint64_t from)
{
	struct shunt_seat_out *out = &seat->out;
	struct shunt_send_window *window = window_of(seat);

	if (window && former_is_free(seat, window))
		drop_former(seat, window);
	if (!out->stage.bytes || from == atomic_load(&out->posted))
		return 0;
	if (!window || atomic_load(&window->former_wr) ||
	    atomic_load(&out->staged) - from > out->stage.size)
		return -EBUSY;
	return 0;
}

/* lane.lock and tx.lock held. */
static int widen(struct shunt_seat *seat, uint64_t bytes)
{
	struct shunt_seat_out *out = &seat->out;
	uint32_t size = width(seat, bytes);
	uint64_t from = shunt_send_queue_arrived(seat);
	struct shunt_send_stage wide = { .size = 0 };
	int result;

	shunt_assert_held(&seat->lane->lock);
	result = may_part(seat, from);
	if (result)
		return result;
	while (!make_stage(seat, &wide, size)) {
		size /= 2;
		atomic_store(&out->overflow.most, size);
		if (size <= out->stage.size)
			return 0;
		if (size < SHUNT_SEND_QUEUE_BYTES)
			return -ENOMEM;
	}
	if (out->stage.bytes) {
		move(&out->stage, &wide, from, atomic_load(&out->staged));
		part_with(seat, &out->stage, from != atomic_load(&out->posted));
	}
	out->stage.bytes = wide.bytes;
	out->stage.size = wide.size;
	out->stage.lkey = wide.lkey;
	if (size > SHUNT_SEND_QUEUE_BYTES)
		shunt_request_memory(seat->lane->group->loop);
	return 0;
}

int shunt_send_queue_widen(struct shunt_seat *seat, uint64_t bytes)
{
	struct shunt_lane *lane = seat->lane;
	int result;

	shunt_seat_assert_sends(seat);
	/* The lane may be held all the time by a thread that waits for its window: a program was told of this room. */
	if (is_wide(seat, bytes))
		return 0;
	if (!shunt_lock_try(&lane->lock))
		return -EBUSY;
	result = atomic_load(&lane->failed) ? -EPIPE : widen(seat, bytes);
	shunt_lane_leave(lane);
	return result;
}

/* The widest that the stream may have now. */
static uint64_t limit_of(const struct shunt_seat *seat, const struct shunt_send_window *window)
{
	const struct shunt_group *group = seat->lane->group;
	uint64_t most = shunt_config_live(&group->config->stage_max);
	uint64_t others = atomic_load(&group->common->wide_windows) + SHUNT_SEND_QUEUE_BYTES -
			  atomic_load(&window->bytes);

	if (others > (STREAMS - 1) * most)
		return 0;
	if (seat->lane->fetches && most > shunt_arena_most(&seat->link->arena))
		most = shunt_arena_most(&seat->link->arena);
	return most;
}

/* Twice as much has room on the way as arrives within the shortest round trip. Times in units of about a microsecond. */
static bool path_is_longer(const struct shunt_send_window *window, uint64_t arrived, uint64_t took)
{
	return 2 * arrived * ((window->shortest >> 10) + 1) >
	       (uint64_t)atomic_load(&window->bytes) * ((took >> 10) + 1);
}

static bool grow(struct shunt_seat *seat, struct shunt_send_window *window)
{
	uint32_t bytes = 2 * atomic_load(&window->bytes);

	if (bytes > limit_of(seat, window) || shunt_send_queue_widen(seat, bytes) ||
	    atomic_load(&seat->out.stage.size) < bytes)
		return false;
	set_window(seat, window, bytes);
	return true;
}

/* True: a round has ended, and the path bears more than the window has. */
static bool measure(struct shunt_seat *seat, struct shunt_send_window *window, uint64_t retired)
{
	uint64_t took = seat->lane->group->sys->now() - window->round_since;

	if (!window->round_wr || retired < window->round_wr)
		return false;
	window->round_wr = 0;
	if (!window->shortest || took < window->shortest)
		window->shortest = took ? took : 1;
	return path_is_longer(window, shunt_send_queue_arrived(seat) - window->round_from, took);
}

bool shunt_send_queue_full(struct shunt_seat *seat)
{
	struct shunt_send_window *window = window_of(seat);
	struct shunt_seat_out *out = &seat->out;
	uint64_t retired = atomic_load(&seat->lane->retired),
		 kept = window ? atomic_load(&window->kept_wr) : 0;
	bool grown;

	if (has_gate(seat) || retired >= kept)
		return false;
	/* A stage whose bytes wait for the lane says nothing about the path. */
	if (atomic_load(&out->staged) - atomic_load(&out->posted) > atomic_load(&window->bytes) / 4)
		return false;
	grown = (measure(seat, window, retired) || atomic_load(&window->bytes) < ASSUMED) &&
		grow(seat, window);
	if (!window->round_wr) {
		window->round_wr = kept;
		window->round_from = shunt_send_queue_arrived(seat);
		window->round_since = seat->lane->group->sys->now();
	}
	return grown;
}

/* Nothing has been sent for engine.ring_quiet, or the window never grew. */
static bool is_quiet(struct shunt_seat *seat)
{
	struct shunt_send_window *window = window_of(seat);
	uint64_t now = seat->lane->group->sys->now(), staged = atomic_load(&seat->out.staged);

	if (!window || atomic_load(&window->bytes) == SHUNT_SEND_QUEUE_BYTES)
		return true;
	if (window->quiet_at != staged || !window->quiet_since) {
		window->quiet_at = staged;
		window->quiet_since = now;
		return false;
	}
	return now - window->quiet_since >= seat->lane->group->common->ring_quiet;
}

bool shunt_send_queue_narrow(struct shunt_seat *seat)
{
	struct shunt_seat_out *out = &seat->out;
	struct shunt_lane *lane = seat->lane;
	bool empty;

	shunt_seat_assert_sends(seat);
	if (out->stage.size <= SHUNT_SEND_QUEUE_BYTES)
		return false;
	shunt_lock_take(&lane->lock);
	empty = atomic_load(&out->staged) == shunt_send_queue_arrived(seat) &&
		is_quiet(seat);
	if (empty) {
		give_window(seat);
		drop_stage(seat, &out->stage);
	}
	shunt_lock_leave(&lane->lock);
	shunt_lane_kick(lane);
	return !empty && !lane->hooks->broken(seat);
}

/* --- what lies in it --- */

/* The first end of a send behind `offset`, or `end`. */
static uint64_t next_cut(struct shunt_cuts *cuts, uint64_t offset, uint64_t end)
{
	uint32_t last = atomic_load_explicit(&cuts->last, memory_order_acquire);

	for (uint32_t i = cuts->first; i != last; i++) {
		uint64_t at = atomic_load_explicit(&cuts->at[i & (SHUNT_SEND_QUEUE_CUTS - 1)], memory_order_relaxed);

		if (at > offset)
			return at < end ? at : end;
	}
	return end;
}

uint32_t shunt_send_queue_piece(struct shunt_send_stage *stage, uint64_t offset, uint64_t end)
{
	if (stage->cuts)
		end = next_cut(stage->cuts, offset, end);
	return (uint32_t)shunt_send_queue_span(stage, offset, end);	/* at most its size */
}

void shunt_send_queue_posted(struct shunt_send_stage *stage, uint64_t offset)
{
	struct shunt_cuts *cuts = stage->cuts;
	uint32_t last;

	if (!cuts)
		return;
	last = atomic_load_explicit(&cuts->last, memory_order_acquire);
	while (cuts->first != last &&
	       atomic_load_explicit(&cuts->at[cuts->first & (SHUNT_SEND_QUEUE_CUTS - 1)], memory_order_relaxed) <= offset)
		atomic_store_explicit(&cuts->first, cuts->first + 1, memory_order_release);
}
