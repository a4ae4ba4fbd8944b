/* SPDX-License-Identifier: MIT */
#include "core/lane/send_buffer.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "core/base/copy.h"
#include "core/engine.h"
#include "core/lane/send_window.h"
#include "core/loop/request.h"

#define WIDEST (1u << 26)	/* that a stage may become */

struct shunt_cuts {	/* where sends end that are not to be merged: offsets, oldest first */
	_Atomic uint32_t first, last;	/* lane.lock; tx.lock */
	_Atomic uint64_t at[SHUNT_SEND_BUFFER_CUTS];
};

/* --- its memory --- */

/* Small ones are many, and mapping is a system call. */
static uint8_t *map(uint64_t bytes)
{
	void *memory;

	if (bytes <= SHUNT_SEND_BUFFER_BYTES)
		return malloc(bytes);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	return memory;
}

static void unmap(const struct shunt_send_buffer *stage)
{
	if (stage->size > SHUNT_SEND_BUFFER_BYTES)
		munmap(stage->bytes, stage->size);
	else
		free(stage->bytes);
}

static bool make_buffer(struct shunt_seat *seat, struct shunt_send_buffer *stage, uint32_t size)
{
	struct shunt_link *link = seat->link;
	const struct ibv_mr *mr;

	if (!seat->lane->fetches) {
		stage->bytes = map(size);
	} else {
		stage->place = shunt_arena_take(&link->arena, size, &mr);
		if (stage->place == UINT64_MAX)
			return false;
		stage->bytes = link->arena_base + stage->place;
		stage->lkey = mr->lkey;
	}
	stage->size = stage->bytes ? size : 0;
	return stage->bytes != NULL;
}

static void give(struct shunt_seat *seat, uint64_t place, uint32_t size)
{
	if (shunt_arena_give(&seat->link->arena, place, size))
		shunt_request_memory(seat->link->engine);
}

static void drop_buffer(struct shunt_seat *seat, struct shunt_send_buffer *stage)
{
	if (seat->lane->fetches)
		give(seat, stage->place, stage->size);
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
	give(seat, window->former_place, window->former_size);
	atomic_store(&window->former_wr, 0);
}

/* A device that fetches nothing has copied the bytes when they were posted. */
static void part_with(struct shunt_seat *seat, struct shunt_send_buffer *stage, bool is_fetched)
{
	struct shunt_send_window *window = seat->window;

	if (!is_fetched || !seat->lane->fetches) {
		drop_buffer(seat, stage);
		return;
	}
	window->former_place = stage->place;
	window->former_size = stage->size;
	atomic_store(&window->former_wr, atomic_load(&stage->kept_wr));
}

bool shunt_send_buffer_ready(struct shunt_seat *seat, bool apart)
{
	struct shunt_send_buffer *stage = &seat->out.stage;

	if (!stage->bytes && !make_buffer(seat, stage, SHUNT_SEND_BUFFER_BYTES))
		return false;
	if (__builtin_expect(shunt_lane_keeps(seat->lane) && !seat->window, 0))
		seat->window = shunt_send_window_make();
	if (apart && !stage->cuts)
		stage->cuts = calloc(1, sizeof(*stage->cuts));
	return !apart || stage->cuts;
}

void shunt_send_buffer_leave(struct shunt_seat *seat)
{
	if (seat->window)
		drop_former(seat, seat->window);
	shunt_send_window_leave(seat);
	if (seat->out.stage.bytes && seat->lane->fetches)
		drop_buffer(seat, &seat->out.stage);
}

void shunt_send_buffer_free(struct shunt_send_buffer *stage)
{
	unmap(stage);
	free(stage->cuts);
	stage->bytes = NULL;
	stage->size = 0;
	stage->cuts = NULL;
}

/* --- its room --- */

void shunt_send_buffer_begin(struct shunt_seat *seat, uint64_t offset)
{
	struct shunt_seat_out *out = &seat->out;

	atomic_store(&out->staged, offset);
	atomic_store(&out->posted, offset);
	atomic_store(&out->exposed, offset);
	atomic_store(&out->stage.kept_wr, 0);
	atomic_store(&out->stage.reusable, offset);
	shunt_send_window_begin(seat);
}

/* It never falls: what a program has been told of is still room when it sends. */
static uint64_t raise_reusable(struct shunt_send_buffer *stage, uint64_t offset)
{
	uint64_t before = atomic_load(&stage->reusable);

	while (before < offset)
		if (atomic_compare_exchange_weak(&stage->reusable, &before, offset))
			return offset;
	return before;
}

/*
 * Bytes that were posted are kept until the last of their WRs is complete. While a sender posts more that is never so,
 * and marks tell. Any thread may call this, one with the pointer of a stream that has gone, too; so it writes nothing.
 */
static uint64_t arrived(const struct shunt_seat *seat)
{
	const struct shunt_seat_out *out = &seat->out;
	uint64_t posted = atomic_load_explicit(&out->posted, memory_order_acquire);
	/* Set before `posted`: it is not of an earlier WR. */
	uint64_t kept = atomic_load(&out->stage.kept_wr), reusable, marked;

	if (__builtin_expect(kept == 0, 1) || atomic_load(&seat->lane->retired) >= kept)
		return posted;
	marked = shunt_send_window_arrived(seat);
	reusable = atomic_load(&out->stage.reusable);
	return marked > reusable ? marked : reusable;
}

void shunt_send_buffer_lacks(struct shunt_seat *seat, uint64_t offset)
{
	raise_reusable(&seat->out.stage, offset);
}

void shunt_send_buffer_keep(struct shunt_seat *seat, uint64_t number, uint64_t end)
{
	struct shunt_seat_out *out = &seat->out;

	shunt_assert_held(&seat->lane->lock);
	/* While this WR is under way, and a mark is gone that it takes the place of, only `reusable` says so. */
	raise_reusable(&out->stage, arrived(seat));
	shunt_send_window_mark(seat, number, end);
	atomic_store(&out->stage.kept_wr, number);
}

uint64_t shunt_send_buffer_arrived(struct shunt_seat *seat)
{
	uint64_t offset = arrived(seat);

	return shunt_lane_keeps(seat->lane) ? raise_reusable(&seat->out.stage, offset) : offset;
}

int64_t shunt_send_buffer_used(const struct shunt_seat *seat)
{
	return (int64_t)(atomic_load(&seat->out.staged) - arrived(seat));
}

bool shunt_send_buffer_roomy(const struct shunt_seat *seat)
{
	const struct shunt_cuts *cuts = seat->out.stage.cuts;

	return shunt_send_buffer_used(seat) <= shunt_send_window(seat) / 2 &&
	       (!cuts ||
		atomic_load(&cuts->last) - atomic_load(&cuts->first) <= SHUNT_SEND_BUFFER_CUTS / 2);
}

/* Copies, wrapping. `past`: past the caches, because no core reads it. False: a fault, and *from is as it was. */
static bool copy(struct shunt_send_buffer *stage, uint64_t offset, struct shunt_iov *from,
		 size_t bytes, bool past)
{
	struct shunt_iov begun = *from;
	struct iovec part;
	bool there = true;

	while (bytes && there) {
		size_t at = offset & (stage->size - 1), most = stage->size - at;

		if (!shunt_iov_next(from, bytes < most ? bytes : most, &part))
			return true;
		if (__builtin_expect(past && part.iov_len >= SHUNT_COPY_LARGE, 0))
			there = shunt_copy_past(stage->bytes + at, part.iov_base, part.iov_len);
		else
			there = shunt_copy_plain(stage->bytes + at, part.iov_base, part.iov_len);
		offset += part.iov_len;
		bytes -= part.iov_len;
	}
	if (__builtin_expect(!there, 0)) {
		*from = begun;
		from->bad = true;
	}
	return there;
}

size_t shunt_send_buffer_take(struct shunt_seat *seat, struct shunt_iov *from, size_t bytes,
			      uint64_t most, bool apart)
{
	struct shunt_seat_out *out = &seat->out;
	uint64_t offset = atomic_load_explicit(&out->staged, memory_order_relaxed), used;
	struct shunt_cuts *cuts;

	if (!shunt_send_buffer_ready(seat, apart))
		return 0;
	cuts = out->stage.cuts;
	if (apart && cuts->last - atomic_load_explicit(&cuts->first, memory_order_acquire) == SHUNT_SEND_BUFFER_CUTS)
		return 0;
	used = offset - shunt_send_buffer_arrived(seat); /* also what went past it, inline */
	if (most > out->stage.size)
		most = out->stage.size;
	if (used >= most || !bytes)
		return 0;
	if (bytes > most - used)
		bytes = most - used;
	if (!copy(&out->stage, offset, from, bytes,
		  seat->lane->fetches &&
			  shunt_config_live(&seat->link->engine->config.copy) == SHUNT_COPY_NT))
		return 0;
	offset += bytes;
	if (apart) {
		atomic_store_explicit(&cuts->at[cuts->last & (SHUNT_SEND_BUFFER_CUTS - 1)], offset,
				      memory_order_relaxed);
		atomic_store_explicit(&cuts->last, cuts->last + 1, memory_order_release);
	}
	atomic_store_explicit(&out->staged, offset, memory_order_release);
	return bytes;
}

bool shunt_send_buffer_copy(struct shunt_seat *seat, uint8_t *out, uint64_t from, uint64_t to)
{
	shunt_seat_assert_sends(seat);

	if (from >= to)
		return true;
	if (!seat->out.stage.bytes || to - from > seat->out.stage.size ||
	    from < atomic_load(&seat->out.stage.reusable))
		return false;
	while (from < to) {
		uint64_t part = seat->out.stage.size - (from & (seat->out.stage.size - 1));

		if (part > to - from)
			part = to - from;
		memcpy(out, shunt_send_buffer_at(&seat->out.stage, from), part);
		out += part;
		from += part;
	}
	return true;
}

/* --- a wider one --- */

/* The power of two that is at least as large, and that there can be. */
static uint32_t width(struct shunt_seat *seat, uint64_t bytes)
{
	uint64_t size = SHUNT_SEND_BUFFER_BYTES, most = WIDEST;

	if (seat->lane->fetches)
		most = shunt_arena_most(&seat->link->arena);

	while (size < bytes && size * 2 <= most)
		size *= 2;
	return (uint32_t)size;
}

bool shunt_send_buffer_may_widen(const struct shunt_seat *seat)
{
	const struct shunt_send_buffer *stage = &seat->out.stage;
	const struct shunt_send_window *window = seat->window;
	uint64_t kept = atomic_load(&stage->kept_wr);

	return __builtin_expect(!kept, 1) || atomic_load(&seat->lane->retired) >= kept ||
	       (window && former_is_free(seat, window));
}

bool shunt_send_buffer_is_wide(struct shunt_seat *seat, uint64_t bytes)
{
	const struct shunt_send_buffer *stage = &seat->out.stage;

	return stage->bytes && stage->size >= width(seat, bytes);
}

/* Bytes [from, to) of the stage, into a wider one. */
static void move(const struct shunt_send_buffer *stage, const struct shunt_send_buffer *wide,
		 uint64_t from, uint64_t to)
{
	for (uint64_t part; from < to; from += part) {
		part = shunt_send_buffer_span(stage, from, to);
		part = shunt_send_buffer_span(wide, from, from + part);
		memcpy(shunt_send_buffer_at(wide, from), shunt_send_buffer_at(stage, from), part);
	}
}

/* The device may still fetch from the present one: it is kept beside the wider one then. Not two of them. */
static int may_part(struct shunt_seat *seat, uint64_t from)
{
	struct shunt_seat_out *out = &seat->out;
	struct shunt_send_window *window = seat->window;

	if (window && former_is_free(seat, window))
		drop_former(seat, window);
	if (!out->stage.bytes || from == atomic_load(&out->posted))
		return 0;
	if (!window || atomic_load(&window->former_wr) ||
	    atomic_load(&out->staged) - from > out->stage.size)
		return -EBUSY;
	return 0;
}

int shunt_send_buffer_widen(struct shunt_seat *seat, uint64_t bytes)
{
	struct shunt_seat_out *out = &seat->out;
	uint32_t size = width(seat, bytes);
	uint64_t from = shunt_send_buffer_arrived(seat);
	struct shunt_send_buffer wide = { .size = 0 };
	int result;

	shunt_seat_assert_sends(seat);
	shunt_assert_held(&seat->lane->lock);
	if (shunt_send_buffer_is_wide(seat, bytes))
		return 0;
	result = may_part(seat, from);
	if (result)
		return result;
	while (!make_buffer(seat, &wide, size)) {
		size /= 2;
		atomic_store(&out->overflow.most, size);
		if (size <= out->stage.size)
			return 0;
		if (size < SHUNT_SEND_BUFFER_BYTES)
			return -ENOMEM;
	}
	if (out->stage.bytes) {
		move(&out->stage, &wide, from, atomic_load(&out->staged));
		part_with(seat, &out->stage, from != atomic_load(&out->posted));
	}
	out->stage.bytes = wide.bytes;
	out->stage.size = wide.size;
	out->stage.place = wide.place;
	out->stage.lkey = wide.lkey;
	if (size > SHUNT_SEND_BUFFER_BYTES)
		shunt_request_memory(seat->link->engine);
	return 0;
}

bool shunt_send_buffer_narrow(struct shunt_seat *seat)
{
	struct shunt_seat_out *out = &seat->out;
	struct shunt_lane *lane = seat->lane;
	bool empty;

	shunt_seat_assert_sends(seat);
	if (out->stage.size <= SHUNT_SEND_BUFFER_BYTES)
		return false;
	shunt_lock_take(&lane->lock);
	empty = atomic_load(&out->staged) == shunt_send_buffer_arrived(seat) &&
		shunt_send_window_is_quiet(seat);
	if (empty) {
		if (seat->window)
			drop_former(seat, seat->window);
		shunt_send_window_leave(seat);
		drop_buffer(seat, &out->stage);
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
		uint64_t at = atomic_load_explicit(&cuts->at[i & (SHUNT_SEND_BUFFER_CUTS - 1)], memory_order_relaxed);

		if (at > offset)
			return at < end ? at : end;
	}
	return end;
}

uint32_t shunt_send_buffer_piece(struct shunt_send_buffer *stage, uint64_t offset, uint64_t end)
{
	if (stage->cuts)
		end = next_cut(stage->cuts, offset, end);
	return (uint32_t)shunt_send_buffer_span(stage, offset, end);	/* at most its size */
}

void shunt_send_buffer_posted(struct shunt_send_buffer *stage, uint64_t offset)
{
	struct shunt_cuts *cuts = stage->cuts;
	uint32_t last;

	if (!cuts)
		return;
	last = atomic_load_explicit(&cuts->last, memory_order_acquire);
	while (cuts->first != last &&
	       atomic_load_explicit(&cuts->at[cuts->first & (SHUNT_SEND_BUFFER_CUTS - 1)], memory_order_relaxed) <= offset)
		atomic_store_explicit(&cuts->first, cuts->first + 1, memory_order_release);
}
