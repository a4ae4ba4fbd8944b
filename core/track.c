/*
 * Moving a direction between its two tracks, at any byte (DESIGN 5.5).
 *
 * The sender decides. It says on the link from which offset the other track carries the stream,
 * and sends no second announcement before the receiver has passed the first. The receiver takes
 * bytes from the present track until it stands at the announced offset, then turns.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stddef.h>
#include <linux/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "core/engine.h"
#include "core/proof.h"
#include "core/epset.h"
#include "core/linger.h"
#include "core/overflow.h"
#include "core/shared.h"
#include "core/stage.h"

#define GROW_LOG 4	/* a ring that was too small is followed by one 16 times its size */

/* --- the sender's side; tx.lock held --- */

static void next_flip(struct shunt_engine *engine, struct shunt_tx *tx)
{
	uint32_t most = shunt_narrow_u32(engine->config.flip_bytes);

	if (most)
		tx->flip_at = tx->offset + 1 + shunt_engine_random(engine, most);
}

void shunt_track_announce(struct shunt_engine *engine, struct shunt_stream *stream,
			  enum shunt_track track)
{
	struct shunt_tx *tx = &stream->tx;

	if (track == SHUNT_TCP && shunt_overflow_to_tcp(stream, stream->fd))
		return;
	atomic_fetch_add(&tx->unpassed, 1);
	tx->announced++;
	tx->track = track;
	if (track == SHUNT_LINK) {
		shunt_overflow_begin(tx);
		atomic_store(&tx->upgrade_at, tx->offset);
		tx->ring_from = tx->offset;
		/* The peer may have answered what another thread of ours has just posted and is still to note. */
		shunt_lock_take(&stream->lane->lock);
		shunt_stage_begin(stream);
		shunt_lock_leave(&stream->lane->lock);
		atomic_fetch_add_explicit(&engine->upgrades, 1, memory_order_relaxed);
		shunt_lane_request(stream->lane, stream, SHUNT_WORK_UPGRADE);
	} else {
		atomic_store(&tx->handback_at, tx->offset);
		atomic_store(&tx->handed, false);
		atomic_fetch_add_explicit(&engine->handbacks, 1, memory_order_relaxed);
		shunt_lane_request(stream->lane, stream, SHUNT_WORK_HANDBACK | shunt_tx_rest(tx));
	}
	shunt_group_tell(engine, stream, SHUNT_READY_TRACK);
}

/*
 * Bytes without room in the ring go to TCP along with the direction. Where they cannot, it stays
 * on the link: HANDBACK would have to wait behind them.
 */
static void turn(struct shunt_engine *engine, struct shunt_stream *stream, enum shunt_track wanted)
{
	if (wanted == SHUNT_TCP && shunt_overflow_is_pending(&stream->tx))
		shunt_overflow_to_tcp(stream, stream->fd);
	else
		shunt_track_announce(engine, stream, wanted);
}

void shunt_track_choose(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	enum shunt_track wanted;

	if (atomic_load(&stream->state) != SHUNT_LINKED || tx->shut || atomic_load(&tx->dead))
		return;
	if (tx->flip_at == SHUNT_NEVER && atomic_load(&tx->want_link))
		next_flip(engine, tx);
	if (tx->offset >= tx->flip_at && !atomic_load(&tx->unpassed)) {
		atomic_store(&tx->want_link, tx->track == SHUNT_TCP);
		next_flip(engine, tx);
	}
	/* What the peer wants on TCP stays there, also when it proves itself afterwards. */
	wanted = atomic_load(&tx->want_link) && !atomic_load(&tx->held) && atomic_load(&stream->asked) == SHUNT_NOT_ASKED ?
		 SHUNT_LINK : SHUNT_TCP;
	if (wanted != tx->track && !atomic_load(&tx->unpassed) && !atomic_load(&stream->released) &&
	    !tx->resend) {
		if (wanted == SHUNT_TCP)
			shunt_left_choose(engine, stream);
		turn(engine, stream, wanted);
	}
	tx->quick = tx->track == SHUNT_LINK && tx->flip_at == SHUNT_NEVER && wanted == SHUNT_LINK;
}

void shunt_track_reconsider(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	uint8_t before = tx->track;

	tx->quick = false;
	if (atomic_load(&stream->retiring) == SHUNT_STAYING && !atomic_load(&tx->halted))
		shunt_track_choose(engine, stream);
	if (tx->track != before)
		shunt_group_tell(engine, stream, EPOLLOUT | SHUNT_READY_TRACK);	/* who waits for room waits on the other track */
}

/* --- the receiver's side; rx.lock held --- */

/* The ring that the sender is to use after the present one. False: there is no room for it. */
static bool prepare_ring(struct shunt_stream *stream, uint32_t bytes, struct shunt_place *place)
{
	struct shunt_link *link = stream->link;
	struct shunt_rx *rx = &stream->rx;
	const struct ibv_mr *mr;
	uint64_t offset = shunt_arena_take(&link->arena, bytes, &mr);

	if (offset == UINT64_MAX)
		return false;
	*place = (struct shunt_place) { .ring_offset = offset, .ring_bytes = bytes, .stream = stream->id, .rkey = mr->rkey };
	rx->next_ring = link->arena_base + offset;
	atomic_store(&rx->next_bytes, bytes);
	return true;
}

/*
 * A program that has set SO_RCVBUF has said how much may be on its way to it (SOCK_RCVBUF_LOCK, socket(7); asked for with
 * SO_BUF_LOCK since Linux 5.16). UINT64_MAX: it has not.
 */
static uint64_t allowed_by_program(struct shunt_stream *stream)
{
	const struct shunt_sys *sys = stream->engine->sys;
	int locks = 0, bytes = 0;
	socklen_t length = sizeof(locks);

	if (sys->getsockopt(stream->fd, SOL_SOCKET, SO_BUF_LOCK, &locks, &length) || !(locks & SOCK_RCVBUF_LOCK) ||
	    sys->getsockopt(stream->fd, SOL_SOCKET, SO_RCVBUF, &bytes, &length) || bytes < 0)
		return UINT64_MAX;
	return bytes;
}

static void offer_ring(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;
	struct shunt_arena *arena = &stream->link->arena;
	uint64_t bytes = (uint64_t)rx->ring_bytes << GROW_LOG;
	uint64_t allowed = allowed_by_program(stream);
	struct shunt_place place;

	while (bytes > rx->ring_bytes && bytes / 2 >= allowed)
		bytes /= 2;
	if (bytes > engine->config.ring_max)
		bytes = engine->config.ring_max;
	if (bytes > shunt_arena_most(arena))
		bytes = shunt_arena_most(arena);
	if (bytes <= rx->ring_bytes || !prepare_ring(stream, shunt_narrow_u32(bytes), &place))
		return;
	atomic_store(&rx->offered, shunt_ring_make(place.rkey, place.ring_offset, bytes));
	atomic_fetch_add(&engine->grows, 1);
	shunt_lane_request(stream->lane, stream, SHUNT_WORK_RING);
}

static void swap_ring(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;
	struct shunt_link *link = stream->link;
	uint8_t *old = rx->ring;
	uint32_t old_bytes = rx->ring_bytes;

	rx->ring = rx->next_ring;
	rx->ring_bytes = atomic_load(&rx->next_bytes);
	rx->ring_from = atomic_load(&rx->next_from);
	atomic_store(&rx->next_bytes, 0);
	atomic_store(&rx->next_from, SHUNT_NEVER);
	atomic_store(&rx->grown, rx->ring_bytes > engine->config.ring_min);
	if (rx->grown)
		shunt_trim_due(engine);
	shunt_link_give_ring(link, old, old_bytes);
	if (rx->asked_again) {
		rx->asked_again = false;
		offer_ring(engine, stream);
	}
}

/* The reader stands at the announced end of the present track. */
static void pass_boundary(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t head)
{
	struct shunt_rx *rx = &stream->rx;
	uint64_t next;

	shunt_lock_take(&engine->group.lock);
	rx->track = rx->track == SHUNT_TCP ? SHUNT_LINK : SHUNT_TCP;
	if (rx->credited < head)
		rx->credited = head;
	atomic_store(&rx->switched, head);
	next = atomic_exchange(&rx->second, SHUNT_NEVER);
	/* On a dead link the last track is TCP, behind all that was delivered. */
	if (rx->final && rx->track == SHUNT_LINK)
		next = atomic_load(&rx->tail);
	atomic_store(&rx->boundary, next);
	shunt_lock_leave(&engine->group.lock);
	if (!rx->final)
		shunt_lane_request(stream->lane, stream, SHUNT_WORK_SWITCHED);
	shunt_group_tell(engine, stream, EPOLLIN | SHUNT_READY_TRACK);
}

void shunt_track_settle(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;
	uint64_t head = atomic_load_explicit(&rx->head, memory_order_relaxed);

	if (atomic_load(&stream->state) != SHUNT_LINKED)
		return;
	if (shunt_proof_pending(rx))
		shunt_proof_expect(stream);
	/* Either may have been announced at the same byte, behind the other. */
	for (;;) {
		if (atomic_load(&rx->next_from) == head && rx->track == SHUNT_LINK)
			swap_ring(engine, stream);
		else if (atomic_load(&rx->boundary) == head &&
			 (!shunt_proof_pending(rx) || shunt_proof_read(engine, stream) > 0))
			pass_boundary(engine, stream, head);
		else
			break;
	}
}

/* There is no larger ring: whatever has been read of this one is room. */
static void give_all(struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;
	uint64_t head = atomic_load(&rx->head);

	if (rx->track != SHUNT_LINK || rx->final || rx->credited == head)
		return;
	rx->credited = head;
	shunt_lane_request(stream->lane, stream, SHUNT_WORK_CREDIT);
}

void shunt_track_grow(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;

	shunt_lock_take(&rx->lock);
	if (atomic_load(&stream->state) == SHUNT_LINKED) {
		if (atomic_load(&rx->next_bytes))
			rx->asked_again = true;	/* the sender is in the ring that our reader has not come to */
		else
			offer_ring(engine, stream);
		if (!atomic_load(&rx->next_bytes))
			give_all(stream);
	}
	shunt_lock_leave(&rx->lock);
}

/*
 * Said on the channel: a sender that has nothing to send need not poll, nor its program call anything. If it cannot
 * be said the offer stands all the same: a peer that guessed it may be using it already.
 */
void shunt_track_offer_small(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_message message = { .type = SHUNT_MSG_SHRINK, .stream = stream->peer_id };

	if (!prepare_ring(stream, shunt_narrow_u32(engine->config.ring_min), &message.shrink))
		return;
	atomic_fetch_add(&engine->shrinks, 1);
	shunt_link_send(stream->link, &message, NULL, 0);
}

bool shunt_track_change_ring(struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;

	return atomic_load(&stream->state) != SHUNT_LINKED || tx->track != SHUNT_LINK || tx->shut ||
	       shunt_lane_change_ring(stream->lane, stream);
}

/* As RING, but the sender has not asked for it and may have nothing to send. */
void shunt_track_shrink(struct shunt_link *link, struct shunt_stream *stream, const struct shunt_place *place)
{
	struct shunt_engine *engine = link->engine;
	struct shunt_tx *tx = &stream->tx;
	const char *wrong = NULL;

	if (!shunt_link_ring_is_sound(link, place->ring_offset, place->ring_bytes) ||
	    place->stream != stream->peer_id || atomic_load(&stream->state) == SHUNT_CANDIDATE) {
		shunt_link_distrust(link, "a SHRINK to no ring of this stream");
		return;
	}
	shunt_lock_take(&tx->lock);
	shunt_lock_take(&engine->group.lock);
	if (atomic_load(&tx->offer))
		wrong = "a second ring before the first was used";
	else
		atomic_store(&tx->offer, shunt_ring_make(place->rkey, place->ring_offset, place->ring_bytes));
	if (shunt_tx_unstarve(tx))
		shunt_group_notify(engine, stream, EPOLLOUT);
	shunt_lock_leave(&engine->group.lock);
	if (!wrong && !shunt_track_change_ring(stream))
		shunt_trim_due(engine);
	shunt_lock_leave(&tx->lock);
	if (wrong)
		shunt_link_distrust(link, wrong);
}

/* --- joining and leaving --- */

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
	return (unsent[0] != unsent[1] || written == stream->tx.bytes.tcp + stream->tx.resent) &&
	       (unread[0] != unread[1] || read == stream->rx.bytes.tcp + stream->rx.aside);
}

bool shunt_stream_tcp_closed(struct shunt_stream *stream)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof(info);

	return !stream->engine->sys->getsockopt(stream->fd, IPPROTO_TCP, TCP_INFO, &info, &length) &&
	       info.tcpi_state == 7 /* TCP_CLOSE */;
}

/* Both locks held, seat taken. */
static void begin(struct shunt_engine *engine, struct shunt_stream *stream,
		  const struct shunt_place *peer)
{
	struct shunt_tx *tx = &stream->tx;

	stream->peer_id = peer->stream;
	tx->ring_address = stream->link->peer_arena + peer->ring_offset;
	tx->ring_bytes = peer->ring_bytes;
	tx->ring_rkey = peer->rkey;
	tx->flip_at = SHUNT_NEVER;
	shunt_stage_begin(stream);
	shunt_mock_begin(stream);
	shunt_comeback_done(stream);
	atomic_store(&stream->state, SHUNT_LINKED);
	if (tx->shut) {	/* ended before: the link must say it too */
		atomic_store(&tx->fin, tx->offset);
		shunt_lane_request(stream->lane, stream, SHUNT_WORK_FIN);
	}
	shunt_lock_take(&engine->streams_lock);
	engine->totals.linked++;
	shunt_lock_leave(&engine->streams_lock);
}

int shunt_track_attach(struct shunt_engine *engine, struct shunt_stream *stream, const struct shunt_place *peer,
		       struct shunt_message *accept)
{
	int result;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	result = atomic_load(&stream->state) == SHUNT_CANDIDATE && stream->fd >= 0 ? 0 : -ENOTCONN;
	if (stream->tx.shut && stream->rx.shut)
		result = -ENOTCONN;	/* the kernel knows how to refuse what still comes */
	if (atomic_load(&stream->rx.told))
		result = -ENOTCONN;	/* and has told how it ended, which a link would tell again */
	if (stream->shared)
		result = -EBUSY;	/* a fork's child may be using it by now */
	if (!result && !kernel_agrees(engine, stream))
		result = -EBUSY;
	if (!result)
		result = shunt_epset_prepare(engine, stream);
	if (!result && !shunt_shared_commit(stream))
		result = -EBUSY;
	if (!result)
		begin(engine, stream, peer);
	if (!result && accept) {
		accept->accept.tcp = shunt_mock_wants_tcp(stream);
		result = shunt_link_send(stream->link, accept, NULL, 0);
	}
	shunt_lock_leave(&stream->tx.lock);
	if (!result) {
		shunt_track_settle(engine, stream);
		shunt_group_tell(engine, stream, EPOLLIN | EPOLLOUT | SHUNT_READY_TRACK);
	}
	shunt_lock_leave(&stream->rx.lock);
	return result;
}

void shunt_track_allow(struct shunt_engine *engine, struct shunt_stream *stream)
{
	shunt_lock_take(&stream->tx.lock);
	atomic_store(&stream->agreed, true);
	/* Who accepted writes nothing into TCP before the claimant has shown that it is the peer. */
	if (stream->role == SHUNT_ACCEPTOR && shunt_proof_pending(&stream->rx)) {
		shunt_lock_leave(&stream->tx.lock);
		return;
	}
	if (atomic_load(&stream->retiring) == SHUNT_STAYING && atomic_load(&stream->asked) == SHUNT_NOT_ASKED) {
		atomic_store(&stream->tx.want_link, true);
		shunt_track_choose(engine, stream);
	}
	shunt_lock_leave(&stream->tx.lock);
}

bool shunt_track_revert(struct shunt_engine *engine, struct shunt_stream *stream)
{
	bool unused;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	unused = !atomic_load(&stream->tx.announced) && !atomic_load(&stream->rx.announced) &&
		 !atomic_load(&stream->tx.want_link);
	if (unused && atomic_load(&stream->state) == SHUNT_LINKED)
		atomic_store(&stream->state, SHUNT_CANDIDATE);
	if (unused)
		shunt_lane_forget(stream->lane, stream);
	shunt_lock_leave(&stream->tx.lock);
	if (unused)
		shunt_group_tell(engine, stream, EPOLLIN | EPOLLOUT | SHUNT_READY_TRACK);
	shunt_lock_leave(&stream->rx.lock);
	return unused;
}

/* A word that the peer has written in its line of the stream. False: it cannot be seen. */
static bool peers_word(struct shunt_stream *stream, uint32_t word, uint64_t *value)
{
	struct shunt_lane *lane = stream->lane;
	const struct shunt_device_kind *kind = lane->link->device->kind;
	const uint64_t *seen = !kind->peek ? NULL :
			       kind->peek(lane->qp, lane->peer_controls + word * 8 +
					  stream->peer_id * sizeof(struct shunt_control), lane->rkey, sizeof(*seen));

	if (seen)
		*value = __atomic_load_n(seen, __ATOMIC_ACQUIRE);
	return seen != NULL;
}

void shunt_track_look(struct shunt_engine *engine, struct shunt_stream *stream)
{
	const char *wrong;
	uint64_t read;

	if (!peers_word(stream, SHUNT_CONTROL_READ, &read))
		return;
	shunt_lock_take(&engine->group.lock);
	wrong = shunt_arrival_credit(engine, stream, read);
	shunt_lock_leave(&engine->group.lock);
	if (wrong)
		shunt_link_distrust(stream->link, wrong);
}

/*
 * Bytes that the program has sent and the dead peer's has not read: the kernel would reset. Where we do not see how
 * far it has read, what has not arrived is lost for certain.
 */
bool shunt_track_lost(struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	uint64_t sent = atomic_load(&tx->staged), handed = atomic_load(&tx->posted), read;

	if (handed < sent)
		return true;
	/* TCP has the rest: overflow.c. */
	if (tx->track == SHUNT_TCP && handed > atomic_load(&tx->handback_at))
		handed = atomic_load(&tx->handback_at);
	if ((tx->track == SHUNT_TCP && !atomic_load(&tx->unpassed)) || atomic_load(&stream->asked) == SHUNT_GIVEN)
		return false;
	if (!peers_word(stream, SHUNT_CONTROL_READ, &read))
		return atomic_load(&stream->lane->retired) < tx->last_wr;
	return handed > atomic_load(&tx->upgrade_at) && read < handed;
}

/*
 * Bytes that the peer's program has sent for the link, and that it has not brought, perhaps not even the upgrade
 * before them; the kernel's FIN may be there already. What a retirement took back comes over TCP. Where we do not
 * see what it had accepted, only its own end says that there was nothing more.
 */
bool shunt_track_misses(struct shunt_stream *stream)
{
	const struct shunt_rx *rx = &stream->rx;
	uint64_t tail = atomic_load(&rx->tail), accepted;

	if (atomic_load(&rx->retired))
		return false;
	if (atomic_load(&stream->link->distrusted) && rx->link_open && atomic_load(&rx->fin) == SHUNT_NEVER)
		return true;	/* what came behind the message that was not believed has been dropped */
	if (atomic_load(&stream->link->distrusted) && atomic_load(&stream->retiring) == SHUNT_RETIRING)
		return true;	/* which of the two tracks has what is unread is not known */
	if (!peers_word(stream, SHUNT_CONTROL_ACCEPTED, &accepted))
		return rx->link_open && atomic_load(&rx->fin) == SHUNT_NEVER;
	return accepted > tail;
}

static bool has_unread(struct shunt_stream *stream)
{
	int unread = 0;

	return !stream->engine->sys->ioctl(stream->fd, SIOCINQ, &unread) && unread;
}

void shunt_track_tell_accepted(struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;

	if (tx->track == SHUNT_LINK && stream->control && tx->offset > atomic_load(&tx->upgrade_at))
		__atomic_store_n(&stream->control->word[SHUNT_CONTROL_ACCEPTED], tx->offset, __ATOMIC_RELEASE);
}

void shunt_track_lose(struct shunt_engine *engine, struct shunt_stream *stream, int error)
{
	struct shunt_rx *rx = &stream->rx;

	if (!error)
		error = atomic_load(&rx->fin) == SHUNT_NEVER ? ECONNRESET : EPIPE;
	atomic_store(&rx->error, error);
	atomic_store(&rx->reset, true);
	atomic_store(&stream->tx.dead, true);
	if (stream->fd >= 0 && rx->track == SHUNT_TCP && !rx->tcp_eof && has_unread(stream)) {
		engine->sys->shutdown(stream->fd, SHUT_RD);	/* a reset would take it away: rx.c does that behind it */
		rx->owes_reset = true;
		return;
	}
	if (shunt_linger_fd(stream) >= 0)
		shunt_streams_reset_tcp(engine, shunt_linger_fd(stream));
	rx->tcp_eof = true;
}

/*
 * What the link has delivered is read first; behind it TCP goes on, where the kernel says how the
 * connection ended.
 */
void shunt_track_detach(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_rx *rx = &stream->rx;
	bool unproven, ended;

	shunt_lock_take(&rx->lock);
	shunt_lock_take(&tx->lock);
	if (atomic_load(&stream->state) == SHUNT_LINKED) {
		rx->final = true;
		tx->must_prove = false;
		/* It says that nothing follows: where TCP ends there, too, that was all, though it has not shown its nonce. */
		ended = atomic_load(&rx->early_fin) != SHUNT_NEVER && atomic_load(&rx->early_fin) == atomic_load(&rx->boundary) &&
			atomic_load(&rx->tail) == atomic_load(&rx->boundary);
		unproven = shunt_proof_drop(engine, stream);
		rx->doubtful = (atomic_load(&stream->link->distrusted) && !atomic_load(&rx->retired) &&
				atomic_load(&rx->fin) == SHUNT_NEVER) ||
			       (unproven && !ended && shunt_track_misses(stream));
		if (!atomic_load(&rx->reset) && (shunt_track_lost(stream) || (!unproven && shunt_track_misses(stream))))
			shunt_track_lose(engine, stream, stream->link->lost);
		if (atomic_load(&stream->retiring) == SHUNT_RETIRING)
			atomic_store(&stream->retiring, SHUNT_CANNOT_RETIRE);
		if (rx->track == SHUNT_LINK)
			atomic_store(&rx->boundary, atomic_load(&rx->tail));
		if (tx->track == SHUNT_LINK && !atomic_load(&tx->halted))
			shunt_left_note(engine, stream, SHUNT_LEFT_FAILED);
		tx->track = SHUNT_TCP;
		tx->quick = false;
		atomic_store(&tx->want_link, false);
		atomic_store(&tx->unpassed, 0);
		tx->flip_at = SHUNT_NEVER;
		atomic_store(&tx->halted, false);
		shunt_track_settle(engine, stream);
	}
	shunt_lock_leave(&tx->lock);
	/* The kernel's edges may have been spent on calls that were refused before it was known that this track remains. */
	shunt_group_tell(engine, stream, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLERR | EPOLLHUP | SHUNT_READY_ARRIVED |
			 SHUNT_READY_SETTLED | SHUNT_READY_TRACK);
	shunt_lock_leave(&rx->lock);
}
