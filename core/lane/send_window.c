/* SPDX-License-Identifier: MIT */
#include "core/lane/send_window.h"
#include <errno.h>
#include <stdlib.h>
#include "core/engine.h"
#include "core/lane/lane.h"
#include "core/lane/lane_serve.h"
#include "core/lane/send_buffer.h"

#define STREAMS 64 /* as wide as a stage may be, for the whole process */

static struct shunt_send_window *window_of(const struct shunt_seat *seat)
{
	return atomic_load(&seat->window);
}

struct shunt_send_window *shunt_send_window_make(void)
{
	struct shunt_send_window *window = calloc(1, sizeof(*window));

	for (int i = 0; window && i < SHUNT_SEND_WINDOW_MARKS; i++)
		atomic_init(&window->marks[i].wr, SHUNT_NEVER);
	if (window)
		atomic_init(&window->bytes, SHUNT_SEND_BUFFER_BYTES);
	return window;
}

/* The process counts what is above the small one. */
static void set_bytes(struct shunt_seat *seat, struct shunt_send_window *window, uint32_t bytes)
{
	int64_t more = (int64_t)bytes - atomic_load(&window->bytes);

	atomic_fetch_add(&seat->link->engine->wide_windows, (uint64_t)more);
	atomic_store(&window->bytes, bytes);
}

void shunt_send_window_leave(struct shunt_seat *seat)
{
	struct shunt_send_window *window = window_of(seat);

	if (window)
		set_bytes(seat, window, SHUNT_SEND_BUFFER_BYTES);
}

void shunt_send_window_begin(struct shunt_seat *seat)
{
	struct shunt_send_window *window = window_of(seat);

	if (!window)
		return;
	for (int i = 0; i < SHUNT_SEND_WINDOW_MARKS; i++)
		atomic_store(&window->marks[i].wr, SHUNT_NEVER);
	window->marked = atomic_load(&seat->out.staged);
	window->round_wr = window->shortest = window->quiet_at = window->quiet_since = 0;
	shunt_send_window_leave(seat);
}

/* --- what has arrived --- */

/* An old mark may be lost: what is newer says more. */
void shunt_send_window_mark(struct shunt_seat *seat, uint64_t number, uint64_t end)
{
	struct shunt_send_window *window = window_of(seat);
	struct shunt_send_mark *mark;

	if (!window || end - window->marked < atomic_load(&window->bytes) / SHUNT_SEND_WINDOW_MARKS)
		return;
	mark = &window->marks[window->next_mark++ % SHUNT_SEND_WINDOW_MARKS];
	atomic_store(&mark->wr, SHUNT_NEVER);
	atomic_store(&mark->end, end);
	atomic_store(&mark->wr, number);
	window->marked = end;
}

uint64_t shunt_send_window_arrived(const struct shunt_seat *seat)
{
	const struct shunt_send_window *window = window_of(seat);
	uint64_t retired = atomic_load_explicit(&seat->lane->retired, memory_order_acquire);
	uint64_t arrived = 0;

	for (int i = 0; window && i < SHUNT_SEND_WINDOW_MARKS; i++) {
		const struct shunt_send_mark *mark = &window->marks[i];
		uint64_t wr = atomic_load(&mark->wr), end = atomic_load(&mark->end);

		if (wr <= retired && end > arrived && atomic_load(&mark->wr) == wr)
			arrived = end;
	}
	return arrived;
}

/* --- how much may be under way --- */

/* Behind a gate each byte costs a token, and the peer counts on the small one (core/qos/holding.c). */
static bool has_gate(const struct shunt_seat *seat)
{
	return __atomic_load_n(&seat->lane->window.gate, __ATOMIC_RELAXED) != NULL;
}

uint32_t shunt_send_window(const struct shunt_seat *seat)
{
	const struct shunt_send_window *window = window_of(seat);

	return window && !has_gate(seat) ? atomic_load(&window->bytes) : SHUNT_SEND_BUFFER_BYTES;
}

/* The widest that the stream may have now. */
static uint64_t limit_of(const struct shunt_seat *seat, const struct shunt_send_window *window)
{
	const struct shunt_engine *engine = seat->link->engine;
	uint64_t most = shunt_config_live(&engine->config.stage_max);
	uint64_t others = atomic_load(&engine->wide_windows) + SHUNT_SEND_BUFFER_BYTES -
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
	struct shunt_lane *lane = seat->lane;
	int result;

	shunt_seat_assert_sends(seat);
	if (bytes > limit_of(seat, window) || !shunt_lock_try(&lane->lock))
		return false;
	result = atomic_load(&lane->failed) ? -EPIPE : shunt_send_buffer_widen(seat, bytes);
	shunt_lane_leave(lane);
	if (result || atomic_load(&seat->out.stage.size) < bytes)
		return false;
	set_bytes(seat, window, bytes);
	return true;
}

/* True: a round has ended, and the path bears more than the window has. */
static bool measure(struct shunt_seat *seat, struct shunt_send_window *window, uint64_t retired)
{
	uint64_t took = shunt_now(seat->link->engine) - window->round_since;

	if (!window->round_wr || retired < window->round_wr)
		return false;
	window->round_wr = 0;
	if (!window->shortest || took < window->shortest)
		window->shortest = took ? took : 1;
	return path_is_longer(window, shunt_send_buffer_arrived(seat) - window->round_from, took);
}

bool shunt_send_window_full(struct shunt_seat *seat)
{
	struct shunt_send_window *window = window_of(seat);
	struct shunt_seat_out *out = &seat->out;
	uint64_t retired = atomic_load(&seat->lane->retired),
		 kept = atomic_load(&out->stage.kept_wr);
	bool grown;

	if (!window || has_gate(seat) || retired >= kept)
		return false;
	/* A stage whose bytes wait for the lane says nothing about the path. */
	if (atomic_load(&out->staged) - atomic_load(&out->posted) > atomic_load(&window->bytes) / 4)
		return false;
	grown = measure(seat, window, retired) && grow(seat, window);
	if (!window->round_wr) {
		window->round_wr = kept;
		window->round_from = shunt_send_buffer_arrived(seat);
		window->round_since = shunt_now(seat->link->engine);
	}
	return grown;
}

bool shunt_send_window_is_quiet(struct shunt_seat *seat)
{
	struct shunt_send_window *window = window_of(seat);
	uint64_t now = shunt_now(seat->link->engine), staged = atomic_load(&seat->out.staged);

	if (!window || atomic_load(&window->bytes) == SHUNT_SEND_BUFFER_BYTES)
		return true;
	if (window->quiet_at != staged || !window->quiet_since) {
		window->quiet_at = staged;
		window->quiet_since = now;
		return false;
	}
	return now - window->quiet_since >= seat->link->engine->ring_quiet;
}
