/* SPDX-License-Identifier: MIT */
#include "core/stream/credit.h"
#include <sys/epoll.h>
#include "core/lane/remote_read.h"
#include "core/lane/lane_serve.h"
#include "core/lane/roster.h"
#include "core/link/link.h"
#include "core/poll/group.h"
#include "core/stream/sleep.h"
#include "core/stream/stream.h"

void shunt_credit_go_on(struct shunt_stream *stream)
{
	if (__builtin_expect(shunt_seat_rest(&stream->seat->out), 0)) {
		atomic_store(&stream->seat->out.stuck_since, 0);
		shunt_roster_kick(stream->group, stream->seat->lane);
	}
}

const char *shunt_credit_heard(struct shunt_stream *stream, uint64_t upto)
{
	struct shunt_seat_out *out = &stream->seat->out;

	if (upto > atomic_load_explicit(&out->exposed, memory_order_acquire))
		return "credit for bytes that were not sent";
	if (upto <= atomic_load_explicit(&out->ring.consumed, memory_order_relaxed))
		return NULL;	/* an earlier word that was overwritten before we looked */
	atomic_store(&out->ring.consumed, upto);
	shunt_credit_go_on(stream);
	if (shunt_seat_unstarve(out))
		shunt_sleep_notify(stream, EPOLLOUT);
	return NULL;
}

bool shunt_credit_word(struct shunt_stream *stream, uint32_t word, uint64_t *value)
{
	struct shunt_lane *lane = stream->seat->lane;
	const struct shunt_device_kind *kind = lane->link->device->kind;
	uint64_t at = word * sizeof(*value) + stream->seat->peer_id * sizeof(struct shunt_control);
	const uint64_t *seen = NULL;

	if (kind->peek)
		seen = kind->peek(lane->qp, lane->peer_controls + at, lane->rkey, sizeof(*seen));
	if (seen)
		*value = __atomic_load_n(seen, __ATOMIC_ACQUIRE);
	return seen != NULL;
}

static void heard(struct shunt_stream *stream, uint64_t read)
{
	const char *wrong;

	shunt_lock_take(&stream->group->lock);
	wrong = shunt_credit_heard(stream, read);
	shunt_lock_leave(&stream->group->lock);
	if (wrong)
		shunt_link_distrust(stream->seat->link, wrong);
}

void shunt_credit_look(struct shunt_stream *stream)
{
	uint64_t read;

	if (shunt_credit_word(stream, SHUNT_CONTROL_READ, &read))
		heard(stream, read);
}

void shunt_credit_fetch(struct shunt_stream *stream)
{
	struct shunt_lane *lane = stream->seat->lane;
	uint64_t read;
	bool seen;

	shunt_assert_held(&stream->tx.lock);
	seen = !lane->retains && shunt_credit_word(stream, SHUNT_CONTROL_READ, &read);
	if (!seen) {
		shunt_lock_take(&lane->lock);
		seen = shunt_remote_read_word(stream->seat, SHUNT_CONTROL_READ, &read);
		shunt_lane_leave(lane);
	}
	if (seen)
		heard(stream, read);
}
