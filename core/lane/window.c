/* SPDX-License-Identifier: MIT */
#include "core/lane/window.h"
#include <errno.h>
#include <stdlib.h>
#include "core/base/config.h"

const char *const shunt_limit_names[SHUNT_LIMITS] = {
	[SHUNT_LIMIT_NONE] = "none",
	[SHUNT_LIMIT_RING] = "ring",
	[SHUNT_LIMIT_RECEIVES] = "receives",
	[SHUNT_LIMIT_SQ] = "send_queue",
	[SHUNT_LIMIT_BYTES] = "window_bytes",
	[SHUNT_LIMIT_WRS] = "window_requests",
	[SHUNT_LIMIT_DEVICE] = "device_window",
	[SHUNT_LIMIT_POLICY] = "policy",
	[SHUNT_LIMIT_GATE] = "tokens",
};

/* --- the policies --- */

static uint64_t or_unlimited(uint64_t limit)
{
	return limit ? limit : UINT64_MAX;
}

static void static_start(struct shunt_window *window, const struct shunt_config *config)
{
	bool usual = config->window_bytes == UINT64_MAX;

	window->bytes = usual ? window->usual : or_unlimited(config->window_bytes);
	window->wrs = or_unlimited(config->window_wrs);
}

static void none_start(struct shunt_window *window, const struct shunt_config *config)
{
	(void)config;
	window->bytes = window->wrs = UINT64_MAX;
}

/*
 * Additive increase by a fragment for each window that completed in time. A cut to 3/4, once for
 * each window, when a completion took twice the shortest time seen.
 */
static void aimd_start(struct shunt_window *window, const struct shunt_config *config)
{
	static_start(window, config);
	window->most = window->bytes;
	window->bytes = window->most / 4 > window->frag_bytes ? window->most / 4 : window->frag_bytes;
	window->fastest_ns = UINT64_MAX;
}

static void aimd_completed(struct shunt_window *window, uint64_t bytes, uint64_t ns)
{
	uint64_t limit = window->bytes;

	if (ns < window->fastest_ns)
		window->fastest_ns = ns;
	if (ns > 2 * window->fastest_ns) {
		if (window->done <= window->cut_at)
			return;
		limit -= limit / 4;
		window->bytes = limit > window->frag_bytes ? limit : window->frag_bytes;
		window->cut_at = window->posted;
		window->cuts++;
	} else if (limit < window->most) {
		limit += window->frag_bytes * bytes / limit + 1;
		window->bytes = limit < window->most ? limit : window->most;
	}
}

static const struct shunt_admission policies[] = {	/* in the order of `admit`'s words */
	{ .name = "static", .start = static_start },
	{ .name = "aimd", .start = aimd_start, .completed = aimd_completed },
	{ .name = "none", .start = none_start },
};

/* --- the window --- */

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* `done` or the limit has changed. */
static void move_edge(struct shunt_window *window)
{
	atomic_store_explicit(&window->edge, sum(window->done, window->bytes), memory_order_release);
}

/*
 * A signal half a window after the last one at the latest, so that the window opens before it is
 * used up. And one where the next fragment might find it closed.
 */
static void plan_signal(struct shunt_window *window, uint64_t marked)
{
	uint64_t half = sum(marked, window->bytes / 2);
	uint64_t last = window->edge > window->frag_bytes ? window->edge - window->frag_bytes : 0;

	window->signal_at = half < last ? half : last + 1;
}

void shunt_window_use(struct shunt_window *window, const struct shunt_admission *policy)
{
	window->policy = policy;
	window->signals = policy->admit || policy->completed || window->device;
	window->asked = window->signals || window->gate;
}

void shunt_window_set_gate(struct shunt_window *window, struct shunt_gate *gate)
{
	/* send_queue.c looks without the lock. */
	__atomic_store_n(&window->gate, gate, __ATOMIC_RELAXED);
	window->hand = (struct shunt_gate_hand) { 0 };
	window->asked = window->signals || gate;
}

int shunt_window_init(struct shunt_window *window, const struct shunt_config *config, uint32_t sq_depth,
		      _Atomic uint64_t *device)
{
	window->marks = calloc(sq_depth, sizeof(*window->marks));
	if (!window->marks)
		return -ENOMEM;
	window->mask = sq_depth - 1;
	window->frag_bytes = config->frag_bytes;
	if (config->window_device) {
		window->device = device;
		window->device_bytes = config->window_device;
	}
	shunt_window_use(window, &policies[config->admit]);
	window->policy->start(window, config);
	move_edge(window);
	plan_signal(window, 0);
	return 0;
}

/* Bytes in flight count from now on, or do not any more. */
static void change_device(struct shunt_window *window, uint64_t most, _Atomic uint64_t *device)
{
	if (most && !window->device)
		atomic_fetch_add(device, shunt_window_inflight(window));
	if (!most && window->device)
		atomic_fetch_sub(window->device, shunt_window_inflight(window));
	window->device = most ? device : NULL;
	window->device_bytes = most;
}

void shunt_window_change(struct shunt_window *window, const struct shunt_config *config,
			 _Atomic uint64_t *device)
{
	change_device(window, config->window_device, device);
	shunt_window_use(window, window->policy);
	window->policy->start(window, config);
	move_edge(window);
	plan_signal(window, window->posted);
}

void shunt_window_fini(struct shunt_window *window)
{
	if (window->device)
		atomic_fetch_sub(window->device, shunt_window_inflight(window));
	window->posted = window->done;
	free(window->marks);
	window->marks = NULL;
}

/* A WR that is alone on the device is always admitted. */
static bool device_admits(struct shunt_window *window, uint32_t bytes)
{
	uint64_t before;

	if (!window->device)
		return true;
	before = atomic_fetch_add(window->device, bytes);
	if (!before || before + bytes <= window->device_bytes)
		return true;
	atomic_fetch_sub(window->device, bytes);
	return false;
}

enum shunt_limit shunt_window_judge(struct shunt_window *window, uint64_t wrs, uint64_t ahead, uint32_t bytes)
{
	uint64_t inflight = shunt_window_inflight(window) + ahead;

	if (wrs && wrs >= window->wrs)
		return SHUNT_LIMIT_WRS;
	if (inflight && inflight + bytes > window->bytes)
		return SHUNT_LIMIT_BYTES;
	if (window->policy->admit && inflight && !window->policy->admit(window, bytes))
		return SHUNT_LIMIT_POLICY;
	if (!device_admits(window, bytes))
		return SHUNT_LIMIT_DEVICE;
	if (!window->gate || window->gate->admit(window->gate, &window->hand, bytes))
		return SHUNT_LIMIT_NONE;
	if (window->device)
		atomic_fetch_sub(window->device, bytes);
	return SHUNT_LIMIT_GATE;
}

void shunt_window_shorten(struct shunt_window *window, uint32_t admitted, uint32_t posted)
{
	if (window->device)
		atomic_fetch_sub(window->device, admitted - posted);
	if (window->gate)
		window->gate->shorten(window->gate, &window->hand, admitted, posted);
}

void shunt_window_mark(struct shunt_window *window, uint64_t number, uint64_t posted, uint64_t now)
{
	window->marks[number & window->mask] = (struct shunt_mark) { posted, now };
	plan_signal(window, posted);
}

bool shunt_window_completed(struct shunt_window *window, uint64_t number, uint64_t now)
{
	const struct shunt_mark *mark = &window->marks[number & window->mask];
	uint64_t bytes = mark->posted - window->done;
	uint64_t inflight = shunt_window_inflight(window);

	if (inflight > window->most_bytes)	/* it grew until now */
		window->most_bytes = inflight;
	atomic_store_explicit(&window->done, mark->posted, memory_order_release);
	if (window->policy->completed && bytes)
		window->policy->completed(window, bytes, now - mark->time);
	move_edge(window);
	if (window->device && bytes)
		atomic_fetch_sub(window->device, bytes);
	return window->device && bytes;
}
