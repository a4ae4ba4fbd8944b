/* SPDX-License-Identifier: MIT */
#include "core/stream/rest.h"
#include "core/recovery/failover.h"
#include <errno.h>
#include <sys/epoll.h>
#include "core/fd/thread.h"
#include "core/lane/lanes.h"
#include "core/lane/send_queue.h"
#include "core/stream/pinned.h"
#include "core/leave.h"
#include "core/stream/sleep.h"
#include "core/stream/streams.h"
#include "core/service.h"
#include "core/stream/hand_back.h"
#include "core/stream/credit.h"
#include "core/stream/deferred_fin.h"
#include "core/stream/loss.h"
#include "core/stream/proof.h"
#include "core/stream/release.h"
#include "core/stream/retire.h"
#include "core/stream/track.h"
#include "core/stream/user_timeout.h"
#include "core/stream/wait.h"
#include "core/trace/probe.h"
#include "core/trace/slow_step.h"

#define FLUSH_NS 1000000000ull	/* that a device may take to give back the receives of a dead QP */

/* --- the queue pair --- */

/* Each posted receive is either delivered or given back: nothing will arrive after this. group.lock held. */
static bool is_flushed(const struct shunt_link *link)
{
	for (uint32_t i = 0; i < link->lane_count; i++)
		if (link->lanes[i].received + link->lanes[i].flushed < link->lanes[i].reposted)
			return false;
	return true;
}

static bool flush_is_over(struct shunt_group *group, void *link)
{
	struct shunt_engine *engine = shunt_engine_of(group, group);
	bool flushed;

	shunt_lock_take(&engine->group.lock);
	flushed = is_flushed(link);
	shunt_lock_leave(&engine->group.lock);
	return flushed;
}

static void await_flush(struct shunt_engine *engine, struct shunt_link *link)
{
	struct shunt_rest rest = {
		.over = flush_is_over, .arg = link, .fd = -1, .until = shunt_now(engine) + FLUSH_NS
	};

	if (link->device->gone)	/* it gives nothing back */
		return;
	while (!shunt_group_rest(&engine->group, &rest) && shunt_now(engine) < rest.until)
		;
}

/* --- telling the peer --- */

/* The reader takes what has been delivered, then TCP; the sender waits. Both locks held. */
static void halt(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_seat_out *out = &stream->seat->out;
	struct shunt_seat_in *in = &stream->seat->in;

	shunt_lock_take(&engine->group.lock);
	shunt_intake_turn(&in->intake, SHUNT_INTAKE_DIES);
	if (shunt_intake_on_link(&in->intake))
		atomic_store(&in->boundary, atomic_load(&in->tail));
	shunt_lock_leave(&engine->group.lock);
	if (shunt_heading_on_link(&out->heading))
		shunt_left_note(stream, SHUNT_LEFT_FAILED);
	atomic_store(&out->want_link, false);
	out->quick = false;
	out->flip_at = SHUNT_NEVER;
	atomic_store(&stream->seat->work, 0);
}

/*
 * The offset up to which the link should have brought the stream to the peer. To one that is not waited for, TCP brings
 * what is not posted. tx.lock held.
 */
static uint64_t sent_by_link(const struct shunt_stream *stream)
{
	const struct shunt_seat_out *out = &stream->seat->out;
	bool given = shunt_heading_on_link(&out->heading) || shunt_heading_unpassed(&out->heading);
	uint64_t posted = atomic_load(&out->posted), end;

	if (!given || shunt_stream_is_given(stream))
		return 0;
	end = shunt_heading_on_link(&out->heading) ? atomic_load(&out->staged) :
						     atomic_load(&out->handback_at);
	return stream->seat->link->silent && posted < end ? posted : end;
}

static void tell(struct shunt_link *link, struct shunt_stream *stream)
{
	struct shunt_engine *engine = link->engine;
	struct shunt_message message = { .type = SHUNT_MSG_LEAVE };
	uint64_t offset;
	uint8_t state;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	state = atomic_load(&stream->state);
	shunt_proof_withdraw(stream);	/* it is heard before what follows */
	offset = atomic_load(&stream->seat->in.tail);
	if (state == SHUNT_LINKED || state == SHUNT_CLOSED)
		shunt_loss_tell(stream);
	if (state == SHUNT_LINKED)
		halt(engine, stream);
	if (state == SHUNT_LINKED || state == SHUNT_CLOSED)
		shunt_heading_turn(&stream->seat->out.heading, SHUNT_HEADING_FAILS);
	if (state == SHUNT_LINKED && shunt_streams_owes(stream))	/* for so long the device has tried already */
		shunt_user_timeout_note(stream, engine->config.dead_ms * 1000000);
	if (state == SHUNT_CLOSED)
		shunt_streams_let_go(stream);
	message.stream = stream->seat->peer_id;
	message.leave = (struct shunt_leave) {
		.offset = offset,
		.announced = stream->seat->out.announced,
		.heard = atomic_load(&stream->seat->in.announced),
		.sent = sent_by_link(stream),
		.how = link->silent ? SHUNT_LEAVE_ALONE : SHUNT_LEAVE_DEAD,
	};
	shunt_lock_leave(&stream->tx.lock);
	shunt_track_settle(stream);
	shunt_sleep_tell(stream, EPOLLIN | SHUNT_READY_TRACK);
	shunt_lock_leave(&stream->rx.lock);
	/* A pinned buffer is what is kept of it: its call goes on when the peer has said what it lacks. */
	if (!shunt_heading_halted(&stream->seat->out.heading))
		shunt_pinned_tell(stream);
	if (state != SHUNT_CANDIDATE)
		shunt_link_send(link, &message, NULL, 0);
}

bool shunt_failover_begin(struct shunt_link *link, const char *why)
{
	struct shunt_engine *engine = link->engine;
	bool ours = atomic_load(&link->failed);

	shunt_assert_service_thread(link->engine);
	link->broke_at = shunt_slow_begin(&engine->steps);
	SHUNT_PROBE2(failover, link->peer_pid, why);
	atomic_fetch_add(&engine->breaking, 1);
	shunt_lanes_stop(link);
	await_flush(engine, link);
	shunt_lock_take(&engine->group.lock);
	atomic_store(&link->state, SHUNT_LINK_BROKEN);	/* what still came would not count */
	shunt_lock_leave(&engine->group.lock);
	if (atomic_load(&link->distrusted))	/* the last bytes did not count either: the peer believes they arrived */
		return false;
	/* A peer whose queue pair has failed says so itself; ours may be given up on purpose. */
	shunt_log(!ours || shunt_leave_is_due(engine) ? SHUNT_LOG_INFO : SHUNT_LOG_WARN,
		  "link to process %u%s: %s; its streams go on over TCP", link->peer_pid, shunt_link_where(link), why);
	atomic_fetch_add(&engine->failovers, 1);
	return true;
}

void shunt_failover_tell(struct shunt_link *link)
{
	struct shunt_message message = { .type = SHUNT_MSG_LEFT };
	struct shunt_stream *stream;

	shunt_streams_seated(link, stream) tell(link, stream);
	shunt_link_send(link, &message, NULL, 0);
}

int shunt_failover_all(struct shunt_engine *engine)
{
	int count = 0;

	for (struct shunt_link *link = engine->service->links; link; link = link->next) {
		if (atomic_load(&link->state) != SHUNT_LINK_UP || !link->lanes[0].retains || !link->peer_retains)
			continue;
		shunt_link_fail(link, "an operator has given up its queue pair");
		count++;
	}
	return count;
}

/* --- hearing of it --- */

/*
 * Our direction is TCP's from here on; the peer has the link's bytes before `from`, SHUNT_NEVER: all of them. 0, or -errno:
 * the rest cannot be had (shunt_hand_back_asked). Both locks held.
 */
static int resume(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t from)
{
	struct shunt_seat_out *out = &stream->seat->out;
	int result = 0;

	shunt_assert_held(&stream->tx.lock);
	if (from != SHUNT_NEVER)
		result = shunt_hand_back_asked(engine, stream, from, NULL);
	shunt_heading_turn(&out->heading, SHUNT_HEADING_SETTLES);
	atomic_store(&out->stuck_since, 0);
	if (!result)
		shunt_deferred_fin_resume(stream);
	return result;
}

static void done(struct shunt_engine *engine, struct shunt_stream *stream)
{
	shunt_rest_over(stream);
	shunt_pinned_tell(stream);
	shunt_sleep_tell(stream, EPOLLIN | EPOLLOUT | SHUNT_READY_TRACK);
	shunt_sleep_tell(stream, EPOLLIN | EPOLLOUT | SHUNT_READY_ANSWERED | SHUNT_READY_ARRIVED |
			 SHUNT_READY_SETTLED);
	shunt_retire_tell_relative(engine, stream);
}

/* The peer has not kept what the link has not brought, or does not send it again. */
static bool gone(struct shunt_link *link, struct shunt_stream *stream, const struct shunt_leave *leave)
{
	struct shunt_seat_in *in = &stream->seat->in;

	return (leave->how == SHUNT_LEAVE_ALONE || !link->peer_retains) && atomic_load(&in->proof.state) == SHUNT_PROVEN &&
	       atomic_load(&stream->state) == SHUNT_LINKED &&
	       !shunt_end_has(&stream->end, SHUNT_END_RESET) && !shunt_intake_copied(&in->intake) &&
	       leave->sent > atomic_load(&in->tail);
}

static void on_leave(struct shunt_link *link, struct shunt_stream *stream, const struct shunt_leave *leave)
{
	struct shunt_engine *engine = link->engine;
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;
	bool sound;
	int result = 0;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&tx->lock);
	sound = leave->how <= SHUNT_LEAVE_ALONE && leave->heard <= out->announced &&
		out->announced - leave->heard <= 2 && leave->offset != SHUNT_NEVER;
	if (sound && shunt_heading_halted(&out->heading))
		result = resume(engine, stream, leave->offset);
	if (sound && !shunt_intake_copied(&stream->seat->in.intake) &&
	    atomic_load(&stream->seat->in.proof.state) == SHUNT_PROVEN)
		stream->end.owed = leave->sent;	/* may not come, if the peer is killed while it sends it again */
	if (result || gone(link, stream, leave))
		shunt_loss_end(stream, 0);
	shunt_lock_leave(&tx->lock);
	shunt_lock_leave(&stream->rx.lock);
	if (!sound)
		shunt_link_distrust(link, "it leaves a dead link with more announcements than were sent");
	else if (result == -EPROTO)
		shunt_link_distrust(link, shunt_hand_back_wrong);
	else
		done(engine, stream);
}

/* The peer has told of all it has: of the others it never knew, or they are closed there. */
static void on_left(struct shunt_link *link)
{
	struct shunt_engine *engine = link->engine;
	struct shunt_stream *stream;

	link->resumed = true;
	shunt_streams_seated(link, stream)
	{
		if (!shunt_heading_halted(&stream->seat->out.heading))
			continue;
		shunt_lock_take(&stream->rx.lock);
		shunt_lock_take(&stream->tx.lock);
		resume(engine, stream, SHUNT_NEVER);
		shunt_lock_leave(&stream->tx.lock);
		shunt_lock_leave(&stream->rx.lock);
		done(engine, stream);
	}
	shunt_slow_end(&engine->steps, link->broke_at, .step = SHUNT_STEP_FAILOVER, .fd = -1,
		       .extra = link->peer_pid);
}

/* --- without hearing of it --- */

/* As if LEAVE had come from a peer that has taken all completions. Both locks held. 0 or -errno. */
static int resume_alone(struct shunt_engine *engine, struct shunt_stream *stream)
{
	uint64_t accepted;
	const struct shunt_seat_in *in = &stream->seat->in;
	bool linked = atomic_load(&stream->state) == SHUNT_LINKED;
	uint8_t proof = atomic_load(&in->proof.state);
	int result = 0;

	if (linked && proof == SHUNT_PROVEN && !shunt_intake_copied(&in->intake) &&
	    shunt_credit_word(stream, SHUNT_CONTROL_ACCEPTED, &accepted))
		stream->end.owed = accepted;	/* which the peer sends again, unless it is killed before */
	if (shunt_heading_halted(&stream->seat->out.heading))
		result = resume(engine, stream, atomic_load(&stream->seat->out.posted));
	return linked && proof == SHUNT_EXPECTED ? -ENODATA : result;	/* NO_NONCE would not be heard */
}

void shunt_failover_alone(struct shunt_link *link)
{
	struct shunt_engine *engine = link->engine;
	struct shunt_stream *stream;

	shunt_assert_service_thread(engine);
	shunt_streams_seated(link, stream)
	{
		shunt_lock_take(&stream->rx.lock);
		shunt_lock_take(&stream->tx.lock);
		if (resume_alone(engine, stream))
			shunt_loss_end(stream, 0);
		shunt_lock_leave(&stream->tx.lock);
		shunt_lock_leave(&stream->rx.lock);
		done(engine, stream);
	}
}

void shunt_failover_message(struct shunt_link *link, const struct shunt_message *message)
{
	struct shunt_stream *stream;

	shunt_assert_service_thread(link->engine);
	if (message->type == SHUNT_MSG_LEFT) {
		on_left(link);
		return;
	}
	stream = shunt_streams_hold_at(link, message->stream);
	if (!stream)
		return;
	on_leave(link, stream, &message->leave);
	shunt_streams_unhold(stream);
}

bool shunt_failover_over(struct shunt_link *link)
{
	shunt_assert_service_thread(link->engine);
	return atomic_load(&link->state) == SHUNT_LINK_BROKEN && link->resumed && !shunt_channel_waits(&link->channel);
}
