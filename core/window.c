#include "core/window.h"
#include <errno.h>
#include <stdlib.h>
#include "core/config.h"

const char *const shunt_limit_names[SHUNT_LIMITS] = {
	[SHUNT_LIMIT_NONE] = "none",
	[SHUNT_LIMIT_RING] = "ring",
	[SHUNT_LIMIT_RECEIVES] = "receives",
	[SHUNT_LIMIT_SQ] = "send_queue",
	[SHUNT_LIMIT_BYTES] = "window_bytes",
	[SHUNT_LIMIT_WRS] = "window_requests",
	[SHUNT_LIMIT_DEVICE] = "device_window",
	[SHUNT_LIMIT_POLICY] = "policy",
};

/* --- the policies --- */

static uint64_t or_unlimited(uint64_t limit)
{
	return limit ? limit : UINT64_MAX;
}

static void static_start(struct shunt_window *window, const struct shunt_config *config)
{
	window->bytes = or_unlimited(config->window_bytes);
	window->wrs = or_unlimited(config->window_wrs);
}

static void none_start(struct shunt_window *window, const struct shunt_config *config)
{
	(void)config;
	window->bytes = window->wrs = UINT64_MAX;
}

/*
 * Additive increase by a fragment for each window that completed in time, a cut to 3/4 when a completion
 * took twice the shortest time seen, once for each window.
 */
static void aimd_start(struct shunt_window *window, const struct shunt_config *config)
{
	static_start(window, config);
	window->most = window->bytes;
	window->step = config->frag_bytes;
	window->bytes = window->most / 4 > window->step ? window->most / 4 : window->step;
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
		window->bytes = limit > window->step ? limit : window->step;
		window->cut_at = window->posted;
		window->cuts++;
	} else if (limit < window->most) {
		limit += window->step * bytes / limit + 1;
		window->bytes = limit < window->most ? limit : window->most;
	}
}

static const struct shunt_admission policies[] = {	/* in the order of SHUNT_ADMIT's words */
	{ .name = "static", .start = static_start },
	{ .name = "aimd", .start = aimd_start, .completed = aimd_completed },
	{ .name = "none", .start = none_start },
};

/* --- the window --- */

int shunt_window_init(struct shunt_window *window, const struct shunt_config *config, _Atomic uint64_t *device)
{
	window->marks = calloc(config->sq_depth, sizeof(*window->marks));
	if (!window->marks)
		return -ENOMEM;
	window->mask = config->sq_depth - 1;
	window->policy = &policies[config->admit];
	window->policy->start(window, config);
	if (config->window_device) {
		window->device = device;
		window->device_bytes = config->window_device;
	}
	return 0;
}

void shunt_window_fini(struct shunt_window *window)
{
	if (window->device)
		atomic_fetch_sub(window->device, shunt_window_inflight(window));
	window->posted = window->done;
	free(window->marks);
	window->marks = NULL;
}

/* What is alone on the device always may. */
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

enum shunt_limit shunt_window_admit(struct shunt_window *window, uint64_t inflight_wrs, uint32_t ahead_wrs,
				    uint64_t ahead, uint32_t bytes)
{
	uint64_t inflight = shunt_window_inflight(window) + ahead;
	uint64_t wrs = inflight_wrs + ahead_wrs;

	if (__builtin_expect(wrs && wrs >= window->wrs, 0))
		return SHUNT_LIMIT_WRS;
	if (__builtin_expect(inflight && inflight + bytes > window->bytes, 0))
		return SHUNT_LIMIT_BYTES;
	if (__builtin_expect(window->policy->admit != NULL, 0) && inflight &&
	    !window->policy->admit(window, bytes))
		return SHUNT_LIMIT_POLICY;
	if (__builtin_expect(!device_admits(window, bytes), 0))
		return SHUNT_LIMIT_DEVICE;
	return SHUNT_LIMIT_NONE;
}

void shunt_window_return(struct shunt_window *window, uint32_t bytes)
{
	if (window->device)
		atomic_fetch_sub(window->device, bytes);
}

/*
 * Half the window at the latest, so that it opens before it is used up; and always where the next fragment
 * might find it closed. A policy that judges completions sees all of them, and may close it at any time.
 */
bool shunt_window_signals(const struct shunt_window *window, uint64_t inflight_wrs, uint64_t ahead,
			  uint32_t bytes, uint32_t fragment)
{
	uint64_t limit = atomic_load_explicit(&((struct shunt_window *)window)->bytes, memory_order_relaxed);
	uint64_t inflight = shunt_window_inflight(window) + ahead + bytes;

	if (window->policy->admit || window->policy->completed || window->device)
		return true;
	return window->posted + ahead + bytes - window->marked >= limit / 2 ||
	       inflight_wrs + 2 >= window->wrs || inflight + fragment > limit;
}

void shunt_window_mark(struct shunt_window *window, uint64_t number, uint64_t posted, uint64_t now)
{
	window->marks[number & window->mask] = (struct shunt_mark) { posted, now };
	window->marked = posted;
}

bool shunt_window_completed(struct shunt_window *window, uint64_t number, uint64_t now)
{
	const struct shunt_mark *mark = &window->marks[number & window->mask];
	uint64_t bytes = mark->posted - window->done;

	atomic_store_explicit(&window->done, mark->posted, memory_order_release);
	if (window->policy->completed && bytes)
		window->policy->completed(window, bytes, now - mark->time);
	if (window->device && bytes)
		atomic_fetch_sub(window->device, bytes);
	return window->device && bytes;
}
