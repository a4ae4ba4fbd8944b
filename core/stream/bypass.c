/* SPDX-License-Identifier: MIT */
#include "core/stream/bypass.h"
#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include "core/engine.h"
#include "core/stream/carried.h"
#include "core/stream/decision.h"
#include "core/stream/stream_end.h"

bool shunt_bypass_is_links_alone(const struct shunt_stream *stream)
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

int shunt_bypass_unread(const struct shunt_stream *stream)
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
	if (shunt_bypass_is_links_alone(stream))
		shunt_loop_change(&engine->loop, stream->fd, &stream->source, EPOLLIN | EPOLLET);
	errno = saved;
}

bool shunt_bypass_before_end(struct shunt_stream *stream)
{
	int bytes;

	shunt_assert_held(&stream->rx.lock);
	if (atomic_load(&stream->state) != SHUNT_LINKED)
		return false;
	if (atomic_load(&stream->seat->in.bypass) == SHUNT_BYPASS_ENDED)
		return shunt_end_error(&stream->end);
	if (!shunt_bypass_is_links_alone(stream) || stream->seat->lane->retains ||
	    (bytes = shunt_bypass_unread(stream)) <= 0)
		return false;
	shunt_group_poll_fully(stream->group); /* what announces them was posted before they were written */
	if (!shunt_bypass_is_links_alone(stream))
		return false;
	shunt_stream_engine(stream)->end_hooks->bypassed(stream, bytes);
	return true;
}

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
