/* SPDX-License-Identifier: MIT */
#include "core/peer/given.h"
#include <errno.h>
#include <sys/epoll.h>
#include "core/fork/fork_slots.h"
#include "core/peer/claim_state.h"
#include "core/service.h"
#include "core/stream/decision.h"
#include "core/stream/doubt.h"
#include "core/stream/sleep.h"
#include "core/stream/streams.h"
#include "core/stream/track.h"
#include "core/stream/wait.h"

#define WAIT_LEAST 1000000ull
#define WAIT_MOST 256000000ull	/* ns between two looks */

enum givenness { BACK, WAITS, NEVER };

#define ENDS                                                                                       \
	(SHUNT_END_TCP_OVER | SHUNT_END_RESET | SHUNT_END_BROKEN | SHUNT_END_SHUT_READ |           \
	 SHUNT_END_SHUT_WRITE | SHUNT_END_SUSPECT)

static bool is_over(struct shunt_stream *stream)
{
	return stream->fd < 0 || stream->parting != SHUNT_PARTING_NONE ||
	       shunt_fork_slots_held(&stream->sharing) ||
	       shunt_end_has(&stream->end, ENDS) || shunt_end_error(&stream->end) ||
	       shunt_end_at(&stream->end) != SHUNT_NEVER;
}

/* Nothing of the link is to be read or sent. Both locks held. */
static bool is_on_tcp(struct shunt_stream *stream)
{
	const struct shunt_seat_out *out = &stream->seat->out;
	const struct shunt_seat_in *in = &stream->seat->in;

	return !shunt_heading_halted(&out->heading) && !shunt_heading_on_link(&out->heading) &&
	       !shunt_intake_on_link(&in->intake) && atomic_load(&in->boundary) == SHUNT_NEVER &&
	       atomic_load(&in->second) == SHUNT_NEVER &&
	       atomic_load(&in->proof.state) != SHUNT_EXPECTED &&
	       atomic_load(&stream->rx.nonce.fd) < 0 && !stream->tx.backlog.bytes &&
	       stream->tx.backlog.fd < 0 && !shunt_seat_fin_is_due(out) && !out->pin &&
	       stream->handing.fd < 0 && stream->end.owed <= atomic_load(&stream->rx.head) &&
	       !(atomic_load(&stream->seat->work) &
		 (SHUNT_WORK_UPGRADE | SHUNT_WORK_DATA | SHUNT_WORK_HANDBACK)) &&
	       !shunt_claim_is_pending(stream) && shunt_stream_stays(stream);
}

/* A stream on a live link leaves by RELEASE, and is reaped as a candidate. Both locks held. */
static enum givenness leave_seat(struct shunt_stream *stream)
{
	bool dead = atomic_load(&stream->seat->link->state) == SHUNT_LINK_DEAD;

	if (!dead && !shunt_stream_is_released(stream))
		return WAITS;
	atomic_store(&stream->doubt.why, SHUNT_DOUBT_GIVEN); /* nobody may claim it before it has its place */
	atomic_store(&stream->state, SHUNT_CANDIDATE);
	if (dead)
		shunt_streams_unseat(stream);
	else
		shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_RELEASE);
	return WAITS;
}

/* Its seat is free. Both locks held. */
static enum givenness take_place(struct shunt_engine *engine, struct shunt_stream *stream)
{
	uint8_t given = SHUNT_DOUBT_GIVEN;
	int result = shunt_doubt_take_place(engine, stream, true);

	if (result == -EAGAIN)
		return WAITS;
	if (result)
		return NEVER;
	shunt_claim_turn(stream, SHUNT_UNCLAIMED);
	stream->claim.line = 0; /* the process there is another one, */
	stream->proven_on = 0; /* which has shown nothing */
	/* A fork may have made a second holder meanwhile. */
	if (atomic_compare_exchange_strong(&stream->doubt.why, &given, SHUNT_CAUSE_NONE))
		shunt_doubt_return(stream);
	return BACK;
}

/* Both locks held. */
static enum givenness advance(struct shunt_engine *engine, struct shunt_stream *stream)
	SHUNT_REQUIRES(stream->rx.lock)
{
	uint8_t state = atomic_load(&stream->state);

	if (is_over(stream) || (state != SHUNT_LINKED && state != SHUNT_CANDIDATE))
		return NEVER;
	if (state == SHUNT_CANDIDATE)
		return shunt_stream_is_seated(stream) ? WAITS : take_place(engine, stream);
	shunt_track_settle(stream);
	return is_on_tcp(stream) ? leave_seat(stream) : WAITS;
}

static enum givenness look_at(struct shunt_engine *engine, struct shunt_stream *stream)
{
	enum givenness result;
	uint8_t before;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	before = atomic_load(&stream->state);
	result = advance(engine, stream);
	shunt_lock_leave(&stream->tx.lock);
	if (atomic_load(&stream->state) != before)
		shunt_sleep_tell(stream, EPOLLIN | EPOLLOUT | SHUNT_READY_TRACK);
	shunt_lock_leave(&stream->rx.lock);
	if (result == NEVER && before == SHUNT_CANDIDATE)
		shunt_streams_plain(engine, stream, SHUNT_CAUSE_CLOSED);
	if (result == BACK)
		shunt_decision_step(stream, "its peer has given it to another process");
	return result;
}

static bool is_given(struct shunt_stream *stream, void *unused)
{
	uint8_t state = atomic_load(&stream->state);

	(void)unused;
	return stream->fd >= 0 &&
	       ((state == SHUNT_LINKED &&
		 atomic_load(&stream->seat->leaving.asked) == SHUNT_GIVEN && !is_over(stream)) ||
		(state == SHUNT_CANDIDATE && atomic_load(&stream->doubt.why) == SHUNT_DOUBT_GIVEN));
}

void shunt_given_run(struct shunt_task *task)
{
	struct shunt_engine *engine = shunt_engine_of(task, work.tasks.given);
	struct shunt_sweep sweep = { .wants = is_given };
	uint64_t *wait = &engine->work.given_wait;
	struct shunt_stream *stream;
	bool more = false;

	if (atomic_load(&engine->service->leaving))
		return;
	while ((stream = shunt_streams_next(engine, &sweep)) != NULL)
		more |= look_at(engine, stream) == WAITS;
	*wait = *wait ? 2 * *wait : WAIT_LEAST;
	*wait = *wait > WAIT_MOST ? WAIT_MOST : *wait;
	if (more)
		shunt_task_at(task, shunt_now(engine) + *wait);
}
