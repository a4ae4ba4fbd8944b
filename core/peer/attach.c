/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stddef.h>
#include <linux/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include "core/peer/attach.h"
#include "core/engine.h"
#include "core/service.h"
#include "core/fork/fork_slots.h"
#include "core/lane/send_queue.h"
#include "core/peer/claim_state.h"
#include "core/peer/mock.h"
#include "core/stream/destroyed.h"
#include "core/stream/proof.h"
#include "core/stream/shutdown.h"
#include "core/stream/sleep.h"
#include "core/stream/spare.h"
#include "core/stream/track.h"
#include "core/stream/wait.h"
#include "core/wait/epset.h"

/*
 * The kernel's own count of what was written to and read from the socket; what we counted must
 * agree, or somebody else uses it too. The counters cannot be read at one instant: a difference
 * counts only if the queues stood still around them.
 */
static bool kernel_agrees(struct shunt_engine *engine, struct shunt_stream *stream)
{
	const struct shunt_sys *sys = engine->sys;
	struct tcp_info info = { 0 };
	socklen_t length = sizeof(info);
	int unsent[2] = { 0, 0 }, unread[2] = { 0, 0 };
	uint64_t written, read;

	if (sys->ioctl(stream->fd, SIOCINQ, &unread[0]) || sys->ioctl(stream->fd, SIOCOUTQ, &unsent[0]) ||
	    sys->getsockopt(stream->fd, IPPROTO_TCP, TCP_INFO, &info, &length) ||
	    sys->ioctl(stream->fd, SIOCINQ, &unread[1]) || sys->ioctl(stream->fd, SIOCOUTQ, &unsent[1]))
		return false;
	if (length < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received) ||
	    info.tcpi_state != 1 /* TCP_ESTABLISHED: in other states a FIN is counted too */)
		return true;
	written = info.tcpi_bytes_acked + unsent[0] - (stream->role == SHUNT_CONNECTOR);
	read = info.tcpi_bytes_received - unread[0];
	return (unsent[0] != unsent[1] ||
		written == stream->tx.bytes.tcp + stream->tx.backlog.written) &&
	       (unread[0] != unread[1] || read == stream->rx.bytes.tcp + stream->rx.nonce.aside);
}

/*
 * A fork holds streams_lock from its look at the streams until each has a slot or is lost. A fork that has seen a candidate
 * has given the child a socket of its own, so the stream must not go to a link.
 */
static bool becomes_linked(struct shunt_engine *engine, struct shunt_stream *stream)
{
	bool lost;

	shunt_lock_take(&engine->streams_lock);
	lost = stream->sharing.forked & SHUNT_FORK_LOST;
	if (!lost) {
		atomic_store(&stream->state, SHUNT_LINKED);
		engine->totals.linked++;
		if (stream->why.plain) /* it was put off (core/stream/doubt.h) */
			engine->causes[stream->why.plain]--;
		stream->why.plain = SHUNT_CAUSE_NONE;
	}
	shunt_lock_leave(&engine->streams_lock);
	return !lost;
}

/* Both locks held, seat taken. False: a fork's child may be using the socket by now. */
static bool attach_begin(struct shunt_engine *engine, struct shunt_stream *stream,
			 const struct shunt_place *peer)
{
	struct shunt_seat_out *out = &stream->seat->out;

	stream->seat->peer_id = peer->stream;
	out->ring.address = stream->seat->link->peer_arena + peer->ring_offset;
	out->ring.bytes = peer->ring_bytes;
	out->ring.rkey = peer->rkey;
	out->flip_at = SHUNT_NEVER;
	shunt_send_queue_begin(stream->seat, stream->tx.offset);
	shunt_mock_begin(stream);
	if (!becomes_linked(engine, stream))
		return false;
	shunt_reconnect_done(stream);
	shunt_spare_made(engine, stream);
	shunt_destroyed_watch(engine, stream);
	shunt_engine_paces(engine);	/* it may stay on TCP */
	shunt_tx_say_end(stream);	/* ended before: the link must say it too */
	return true;
}

/* FIN may have come by the lane before the answer came by the channel. */
static void count_early_fin(struct shunt_engine *engine, struct shunt_stream *stream)
{
	shunt_lock_take(&engine->group.lock);
	if (atomic_load(&stream->seat->in.proof.state) == SHUNT_PROVEN)
		shunt_end_learn(&stream->end, SHUNT_LEARN_PROOF, 0);
	shunt_lock_leave(&engine->group.lock);
}

int shunt_attach(struct shunt_engine *engine, struct shunt_stream *stream, const struct shunt_place *peer,
		       struct shunt_message *accept)
{
	int result;

	shunt_assert_service_thread(engine);
	shunt_assert_held(&engine->group.seats_lock);
	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	result = atomic_load(&stream->state) == SHUNT_CANDIDATE && stream->fd >= 0 ? 0 : -ENOTCONN;
	if (shunt_end_has(&stream->end, SHUNT_END_SHUT_WRITE) &&
	    shunt_end_has(&stream->end, SHUNT_END_SHUT_READ))
		result = -ENOTCONN;	/* the kernel knows how to refuse what still comes */
	if (shunt_end_has(&stream->end, SHUNT_END_TOLD))
		result = -ENOTCONN;	/* and has told how it ended, which a link would tell again */
	if (!result && !kernel_agrees(engine, stream))
		result = -EBUSY;
	if (!result)
		result = shunt_epset_prepare(engine, stream);
	if (!result &&
	    (!shunt_fork_slots_commit(&shunt_stream_engine(stream)->forks, &stream->sharing) ||
	     !attach_begin(engine, stream, peer)))
		result = -EBUSY;
	if (!result && accept) {
		accept->accept.tcp = shunt_mock_wants_tcp(stream);
		result = shunt_link_send(stream->seat->link, accept, NULL, 0);
	}
	shunt_lock_leave(&stream->tx.lock);
	if (!result) {
		count_early_fin(engine, stream);
		shunt_track_settle(stream);
		shunt_sleep_tell(stream, EPOLLIN | EPOLLOUT | SHUNT_READY_TRACK);
	}
	shunt_lock_leave(&stream->rx.lock);
	return result;
}

void shunt_attach_allow(struct shunt_engine *engine, struct shunt_stream *stream)
{
	shunt_assert_service_thread(engine);
	shunt_assert_held(&engine->group.seats_lock);
	shunt_lock_take(&stream->tx.lock);
	shunt_proof_say(stream);
	if (shunt_stream_stays(stream) &&
	    atomic_load(&stream->seat->leaving.asked) == SHUNT_NOT_ASKED) {
		atomic_store(&stream->seat->out.want_link, true);
		if (atomic_load(&stream->seat->leaving.retiring) == SHUNT_STAYING)	/* else its next use chooses */
			shunt_track_choose(engine, stream);
	}
	shunt_lock_leave(&stream->tx.lock);
}

bool shunt_attach_revert(struct shunt_engine *engine, struct shunt_stream *stream)
{
	bool unused;

	shunt_assert_service_thread(engine);
	shunt_assert_held(&engine->group.seats_lock);
	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	unused = !atomic_load(&stream->seat->out.announced) &&
		 !atomic_load(&stream->seat->in.announced) &&
		 !atomic_load(&stream->seat->out.want_link);
	if (unused && atomic_load(&stream->state) == SHUNT_LINKED)
		atomic_store(&stream->state, SHUNT_CANDIDATE);
	if (unused)
		shunt_lane_forget(stream->seat->lane, stream->seat);
	shunt_lock_leave(&stream->tx.lock);
	if (unused)
		shunt_sleep_tell(stream, EPOLLIN | EPOLLOUT | SHUNT_READY_TRACK);
	shunt_lock_leave(&stream->rx.lock);
	return unused;
}
