/* SPDX-License-Identifier: MIT */
#include "core/stream/bypass.h"
#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include "core/engine.h"
#include "core/stream/carried.h"
#include "core/stream/decision.h"
#include "core/stream/expire.h"
#include "core/stream/proof.h"
#include "core/stream/track.h"

#define PAUSE 100000000ull /* ns between two looks */
#define LOOKS 2 /* of a host's own: the thread may have been stopped before the first */
#define LOOKS_AFAR                                                                                 \
	50 /* a queue pair between hosts may be trying for seconds before it is known to be dead */

/* Nothing is announced that TCP would bring, and the peer's end is not being moved. rx.lock held. */
static bool is_links_alone(const struct shunt_stream *stream)
{
	struct shunt_seat_in *in = &stream->seat->in;

	return atomic_load(&stream->state) == SHUNT_LINKED && stream->fd >= 0 &&
	       shunt_intake_on_link(&in->intake) &&
	       !shunt_intake_is(&in->intake,
				SHUNT_INTAKE_FINAL | SHUNT_INTAKE_COPIED | SHUNT_INTAKE_REPEAT) &&
	       atomic_load(&in->boundary) == SHUNT_NEVER &&
	       atomic_load(&in->proof.state) == SHUNT_PROVEN &&
	       atomic_load(&stream->seat->leaving.retiring) == SHUNT_STAYING &&
	       atomic_load(&stream->seat->leaving.asked) == SHUNT_NOT_ASKED &&
	       atomic_load(&stream->seat->link->state) == SHUNT_LINK_UP &&
	       !atomic_load(&stream->seat->lane->failed) &&
	       !shunt_end_has(&stream->end, SHUNT_END_RESET | SHUNT_END_BROKEN | SHUNT_END_TOLD |
						    SHUNT_END_TCP_OVER | SHUNT_END_SHUT_READ);
}

static int unread(const struct shunt_stream *stream)
{
	int bytes = 0, saved = errno;

	if (stream->group->sys->ioctl(stream->fd, SIOCINQ, &bytes))
		bytes = 0;
	errno = saved;
	return bytes;
}

void shunt_bypass_watch(struct shunt_engine *engine, struct shunt_stream *stream)
{
	int saved = errno;

	shunt_assert_held(&stream->rx.lock);
	if (is_links_alone(stream))
		shunt_loop_change(&engine->loop, stream->fd, &stream->source, EPOLLIN | EPOLLET);
	errno = saved;
}

void shunt_bypass_heard(struct shunt_engine *engine, struct shunt_stream *stream)
{
	shunt_lock_take(&stream->rx.lock);
	shunt_group_poll_fully(&engine->group);
	if (!is_links_alone(stream)) {
		if (stream->fd >= 0 && !stream->spare)
			shunt_loop_change(&engine->loop, stream->fd, &stream->source, EPOLLET);
	} else if (unread(stream) > 0) {
		if (!atomic_load(&stream->seat->in.bypass))
			atomic_store(&stream->seat->in.bypass, 1);
		shunt_loop_remind(&engine->loop, &engine->work.tasks.bypass,
				  shunt_now(engine) + PAUSE);
	}
	shunt_lock_leave(&stream->rx.lock);
}

/* Both locks held. */
static void end(struct shunt_stream *stream, int bytes)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);

	atomic_fetch_add(&engine->bypassed, 1);
	shunt_decision_say(
		SHUNT_LOG_WARN, stream,
		"reset: %d bytes came over TCP while the link was the track. Process %u sends them past "
		"Shunt (SHUNT_GATE in shunt(1); a rule leaves its connections on TCP)",
		bytes, stream->seat->link->peer_pid);
	shunt_expire_end(stream, ECONNRESET);
}

bool shunt_bypass_before_end(struct shunt_stream *stream)
{
	int bytes;

	shunt_assert_held(&stream->rx.lock);
	if (atomic_load(&stream->state) != SHUNT_LINKED)
		return false;
	if (atomic_load(&stream->seat->in.bypass) == SHUNT_BYPASS_ENDED)
		return shunt_end_error(&stream->end);
	if (!is_links_alone(stream) || stream->seat->lane->retains || (bytes = unread(stream)) <= 0)
		return false;
	shunt_lock_take(&stream->tx.lock);
	atomic_store(&stream->seat->in.bypass, SHUNT_BYPASS_ENDED);
	end(stream, bytes);
	shunt_lock_leave(&stream->tx.lock);
	shunt_expire_tell(stream);
	return true;
}

/* --- looks of the service thread --- */

static bool is_noticed(struct shunt_stream *stream, void *unused)
{
	uint8_t looks = atomic_load(&shunt_stream_seat(stream)->in.bypass);

	(void)unused;
	return looks && looks != SHUNT_BYPASS_ENDED;
}

/* True: there is to be another look. */
static bool look_at(struct shunt_engine *engine, struct shunt_stream *stream)
{
	_Atomic uint8_t *looks;
	bool over = false, again;
	int bytes = 0;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	shunt_group_poll_fully(&engine->group);
	shunt_track_settle(stream);
	looks = &stream->seat->in.bypass;
	again = shunt_stream_is_seated(stream) && is_noticed(stream, NULL) &&
		is_links_alone(stream) && (bytes = unread(stream)) > 0;
	if (again)
		over = atomic_fetch_add(looks, 1) >=
		       (stream->seat->lane->retains ? LOOKS_AFAR : LOOKS);
	else if (shunt_stream_is_seated(stream) && is_noticed(stream, NULL))
		atomic_store(looks, 0);
	if (over) {
		atomic_store(looks, SHUNT_BYPASS_ENDED);
		end(stream, bytes);
	}
	shunt_lock_leave(&stream->tx.lock);
	if (over)
		shunt_expire_tell(stream);
	shunt_lock_leave(&stream->rx.lock);
	return again && !over;
}

void shunt_bypass_run(struct shunt_task *task)
{
	struct shunt_engine *engine = shunt_engine_of(task, work.tasks.bypass);
	struct shunt_sweep sweep = { .wants = is_noticed };
	struct shunt_stream *stream;
	bool again = false;

	while ((stream = shunt_streams_next(engine, &sweep)) != NULL)
		again |= look_at(engine, stream);
	if (again)
		shunt_task_at(task, shunt_now(engine) + PAUSE);
}

/* --- the sender --- */

void shunt_bypass_compare(struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	uint64_t bytes;

	if (atomic_load(&stream->state) != SHUNT_LINKED || stream->fd < 0 ||
	    !shunt_heading_on_link(&stream->seat->out.heading) ||
	    shunt_heading_unpassed(&stream->seat->out.heading) || shunt_stream_is_shared(stream) ||
	    atomic_load(&stream->seat->in.bypass) == SHUNT_BYPASS_ENDED)
		return;
	bytes = shunt_carried_past(stream);
	if (!bytes)
		return;
	atomic_store(&stream->seat->in.bypass, SHUNT_BYPASS_ENDED);
	if (!atomic_fetch_add(&engine->bypassing, 1))
		shunt_decision_say(
			SHUNT_LOG_WARN, stream,
			"reset: this program has sent %llu bytes past Shunt, over TCP, while the link was the "
			"track. Its next connections stay on TCP (SHUNT_GATE in shunt(1))",
			(unsigned long long)bytes);
}
