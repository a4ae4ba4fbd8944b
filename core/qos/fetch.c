/* SPDX-License-Identifier: MIT */
#include "core/qos/fetch.h"
#include "core/engine.h"
#include "core/lane/lane_serve.h"
#include "core/lane/wr.h"
#include "core/qos/throttle.h"

#define SOON 100000ull /* ns: an answer of the device, a slot of its queue */
#define PAUSE 1000000ull /* ns: an empty pool is asked again; each time that it is still empty twice as long, */
#define PAUSE_MOST 4000000ull
#define REPORT_EACH 1000000ull /* ns */
#define REPORT_STILL 10000000ull /* ns: the same where nothing has changed */

bool shunt_fetch_want(struct shunt_fetch *fetch)
{
	uint8_t state = SHUNT_FETCH_IDLE;

	return atomic_load_explicit(&fetch->state, memory_order_relaxed) == SHUNT_FETCH_IDLE &&
	       atomic_compare_exchange_strong(&fetch->state, &state, SHUNT_FETCH_WANTED);
}

void shunt_fetch_begin(struct shunt_fetch *fetch, uint32_t batch, uint64_t now)
{
	fetch->batch = batch;
	fetch->asked = false;
	fetch->pause = 0;
	if (atomic_load(&fetch->state) == SHUNT_FETCH_EMPTY)
		fetch->at = now;
}

static uint64_t *fetched_word(const struct shunt_link *link)
{
	return &((struct shunt_control *)link->arena_base)->word[SHUNT_CONTROL_FETCHED];
}

static bool post(struct shunt_throttle *throttle)
{
	struct shunt_fetch *fetch = &throttle->fetch;
	struct shunt_lane *lane = &throttle->link->lanes[0];
	struct ibv_sge to = { (uintptr_t)fetched_word(throttle->link), sizeof(uint64_t),
			      throttle->link->arena.lines->lkey };
	bool posted;

	shunt_lock_take(&lane->lock);
	posted = shunt_wr_fetch_add(lane, &to, -(uint64_t)fetch->batch, fetch->address, fetch->rkey,
				    &fetch->number);
	shunt_lane_leave(lane);
	return posted;
}

/* Nobody else may poll: an idle program does not. */
static bool is_complete(struct shunt_throttle *throttle, uint64_t number)
{
	struct shunt_lane *lane = &throttle->link->lanes[0];

	if (atomic_load(&lane->retired) >= number)
		return true;
	shunt_group_poll(&throttle->link->engine->group);
	return atomic_load(&lane->retired) >= number;
}

static void pause_until_more(struct shunt_fetch *fetch, uint64_t now)
{
	fetch->pause = fetch->pause ? fetch->pause * 2 : PAUSE;
	if (fetch->pause > PAUSE_MOST)
		fetch->pause = PAUSE_MOST;
	fetch->at = now + fetch->pause;
}

/* The state behind an answer. */
static enum shunt_fetch_state take_answer(struct shunt_throttle *throttle, uint64_t now)
{
	struct shunt_fetch *fetch = &throttle->fetch;
	uint64_t word = __atomic_load_n(fetched_word(throttle->link), __ATOMIC_ACQUIRE);

	switch (shunt_account_fetched(&throttle->account, word, fetch->batch)) {
	case SHUNT_FETCHED_SOME:
	case SHUNT_FETCHED_AHEAD:
		atomic_fetch_add(&fetch->fetches, 1);
		fetch->pause = 0;
		return SHUNT_FETCH_IDLE;
	default:
		pause_until_more(fetch, now);
		return SHUNT_FETCH_EMPTY;
	}
}

/* The state that follows without anything that has to be awaited; the same state: something has. */
static enum shunt_fetch_state fetch_next(struct shunt_throttle *throttle,
					 enum shunt_fetch_state state, uint64_t now)
{
	struct shunt_fetch *fetch = &throttle->fetch;

	switch (state) {
	case SHUNT_FETCH_WANTED:
		if (!fetch->reachable) {
			pause_until_more(fetch, now);
			return SHUNT_FETCH_EMPTY;
		}
		fetch->at = now + SOON;
		return post(throttle) ? SHUNT_FETCH_POSTED : SHUNT_FETCH_WANTED;
	case SHUNT_FETCH_POSTED:
		fetch->at = now + SOON;
		return is_complete(throttle, fetch->number) ? take_answer(throttle, now) :
							      SHUNT_FETCH_POSTED;
	case SHUNT_FETCH_EMPTY:
		if (now < fetch->at)
			return SHUNT_FETCH_EMPTY;
		return atomic_load(&throttle->wait) == SHUNT_THROTTLE_CLEAR ? SHUNT_FETCH_IDLE :
									      SHUNT_FETCH_WANTED;
	default:
		return SHUNT_FETCH_IDLE;
	}
}

/* --- reports --- */

static bool write_report(struct shunt_throttle *throttle, uint64_t report)
{
	struct shunt_lane *lane = &throttle->link->lanes[0];
	bool posted;

	if (!is_complete(throttle, throttle->fetch.report_number))
		return false;
	shunt_lock_take(&lane->lock);
	posted = shunt_wr_word(lane, report,
			       lane->peer_controls + offsetof(struct shunt_control, word) +
				       SHUNT_CONTROL_REPORT * sizeof(uint64_t),
			       lane->rkey, &throttle->fetch.report_number);
	shunt_lane_leave(lane);
	return posted;
}

static bool is_in_flight(const struct shunt_link *link)
{
	for (uint32_t i = 0; i < link->lane_count; i++)
		if (shunt_window_inflight(&link->lanes[i].window))
			return true;
	return false;
}

static bool link_waits(const struct shunt_link *link)
{
	for (uint32_t i = 0; i < link->lane_count; i++)
		if (atomic_load(&link->lanes[i].waiting))
			return true;
	return false;
}

/*
 * The client would send more if it could. A send waits for credit or tokens, or something was
 * posted since the last look and is not carried out. Of an idle one the last work requests stay in
 * flight, because none behind them is signaled.
 */
static bool is_backlogged(struct shunt_throttle *throttle)
{
	uint64_t posted = shunt_throttle_bytes(throttle);
	bool moved = posted != throttle->fetch.posted;

	throttle->fetch.posted = posted;
	return link_waits(throttle->link) || (moved && is_in_flight(throttle->link));
}

static void report(struct shunt_throttle *throttle, struct shunt_task *task, uint64_t now)
{
	struct shunt_fetch *fetch = &throttle->fetch;
	uint64_t word;

	if (!fetch->asked)
		return;
	if (now >= fetch->report_at) {
		word = shunt_account_report(&throttle->account, now, is_backlogged(throttle));
		fetch->report_at = now + (word == fetch->report ? REPORT_STILL : REPORT_EACH);
		if (word != fetch->report && write_report(throttle, word)) {
			fetch->report = word;
			atomic_fetch_add(&fetch->reports, 1);
		}
	}
	shunt_task_at(task, fetch->report_at);
}

void shunt_fetch_run(struct shunt_throttle *throttle, struct shunt_task *task, uint64_t now)
{
	struct shunt_fetch *fetch = &throttle->fetch;
	enum shunt_fetch_state first = atomic_load(&fetch->state), state = first, then;

	report(throttle, task, now);
	while ((then = fetch_next(throttle, state, now)) != state)
		state = then;
	if (state != first) /* which was not IDLE: that one is left to others */
		atomic_store(&fetch->state, state);
	if (state != SHUNT_FETCH_IDLE)
		shunt_task_at(task, fetch->at);
}
