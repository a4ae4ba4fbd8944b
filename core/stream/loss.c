/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include "core/stream/kernel_tcp.h"
#include "core/stream/left.h"
#include "core/base/sys.h"
#include "core/stream/rest.h"
#include "core/stream/deferred_fin.h"
#include "core/stream/credit.h"
#include "core/stream/loss.h"
#include "core/stream/proof.h"
#include "core/stream/sleep.h"
#include "core/stream/track.h"
#include "core/stream/wait.h"

/*
 * Bytes that the program has sent and the dead peer's has not read: the kernel would reset. Where we do not see how
 * far it has read, what has not arrived is lost for certain.
 */
static bool is_ours_lost(struct shunt_stream *stream)
{
	struct shunt_seat_out *out = &stream->seat->out;
	uint64_t sent = atomic_load(&out->staged), handed = atomic_load(&out->posted), read;

	if (handed < sent)
		return true;
	/* TCP has the rest: hand_back.c. */
	if (!shunt_heading_on_link(&out->heading) && handed > atomic_load(&out->handback_at))
		handed = atomic_load(&out->handback_at);
	if ((!shunt_heading_on_link(&out->heading) && !shunt_heading_unpassed(&out->heading)) ||
	    shunt_stream_is_given(stream))
		return false;
	if (!shunt_credit_word(stream, SHUNT_CONTROL_READ, &read))
		return atomic_load(&stream->seat->lane->retired) < out->last_wr;
	return handed > atomic_load(&out->upgrade_at) && read < handed;
}

/*
 * The peer's program has sent bytes for the link that have not arrived, perhaps not even the upgrade before them. The
 * kernel's FIN may be there already. Bytes that a retirement took back come over TCP. Where we do not see what it had
 * accepted, only its own end says that there was nothing more.
 */
static bool is_theirs_lost(struct shunt_stream *stream)
{
	const struct shunt_seat_in *in = &stream->seat->in;
	uint64_t tail = atomic_load(&in->tail), accepted;

	if (shunt_intake_copied(&in->intake))
		return false;
	if (atomic_load(&stream->seat->link->distrusted) && shunt_intake_open(&in->intake) &&
	    shunt_end_at(&stream->end) == SHUNT_NEVER)
		return true;	/* what came behind the message that was not believed has been dropped */
	if (atomic_load(&stream->seat->link->distrusted) &&
	    atomic_load(&stream->seat->leaving.retiring) == SHUNT_RETIRING)
		return true;	/* which of the two tracks has what is unread is not known */
	if (!shunt_credit_word(stream, SHUNT_CONTROL_ACCEPTED, &accepted))
		return shunt_intake_open(&in->intake) && shunt_end_at(&stream->end) == SHUNT_NEVER;
	return accepted > tail;
}

static bool has_unread(struct shunt_stream *stream)
{
	int unread = 0;

	return !stream->group->sys->ioctl(stream->fd, SIOCINQ, &unread) && unread;
}

void shunt_loss_tell(struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;

	if (shunt_heading_on_link(&out->heading) && stream->seat->control &&
	    tx->offset > atomic_load(&out->upgrade_at))
		__atomic_store_n(&stream->seat->control->word[SHUNT_CONTROL_ACCEPTED], tx->offset,
				 __ATOMIC_RELEASE);
}

void shunt_loss_end(struct shunt_stream *stream, int error)
{
	struct shunt_seat_in *in = &stream->seat->in;

	if (!error)
		error = shunt_end_at(&stream->end) == SHUNT_NEVER ? ECONNRESET : EPIPE;
	shunt_end_learn(&stream->end, SHUNT_LEARN_LOSS, error);
	if (stream->fd >= 0 && !shunt_intake_on_link(&in->intake) &&
	    !shunt_end_has(&stream->end, SHUNT_END_TCP_OVER) && has_unread(stream)) {
		stream->group->sys->shutdown(stream->fd, SHUT_RD);	/* a reset would take it away: rx.c does that behind it */
		shunt_end_learn(&stream->end, SHUNT_LEARN_RESET_OWED, 0);
		return;
	}
	if (shunt_deferred_fin_fd(stream) >= 0)
		shunt_streams_reset_tcp(stream->group->sys, shunt_deferred_fin_fd(stream));
	shunt_end_learn(&stream->end, SHUNT_LEARN_EOF, 0);
}

/*
 * Bytes that the link has delivered are read first. TCP goes on behind them, and the kernel says how the connection
 * ended.
 */
void shunt_loss_detach(struct shunt_stream *stream)
{
	struct shunt_seat_out *out = &stream->seat->out;
	struct shunt_seat_in *in = &stream->seat->in;
	bool proven;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	if (atomic_load(&stream->state) == SHUNT_LINKED) {
		shunt_intake_turn(&in->intake, SHUNT_INTAKE_DIES);
		shunt_proof_withdraw(stream);
		proven = atomic_load(&in->proof.state) == SHUNT_PROVEN;	/* else the link has brought nothing */
		if (proven && atomic_load(&stream->seat->link->distrusted) &&
		    !shunt_intake_copied(&in->intake) && shunt_end_at(&stream->end) == SHUNT_NEVER)
			shunt_end_learn(&stream->end, SHUNT_LEARN_SUSPICION, 0);
		if (!shunt_end_has(&stream->end, SHUNT_END_RESET) &&
		    (is_ours_lost(stream) || (proven && is_theirs_lost(stream))))
			shunt_loss_end(stream, stream->seat->link->lost);
		shunt_rest_over(stream);
		if (shunt_intake_on_link(&in->intake))
			atomic_store(&in->boundary, atomic_load(&in->tail));
		if (shunt_heading_on_link(&out->heading) && !shunt_heading_halted(&out->heading))
			shunt_left_note(stream, SHUNT_LEFT_FAILED);
		shunt_heading_turn(&out->heading, SHUNT_HEADING_SETTLES);
		out->quick = false;
		atomic_store(&out->want_link, false);
		out->flip_at = SHUNT_NEVER;
		shunt_track_settle(stream);
	}
	shunt_lock_leave(&stream->tx.lock);
	/* The kernel's edges may have been spent on calls that were refused before it was known that this track remains. */
	shunt_sleep_tell(stream,
			 EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLERR | EPOLLHUP |
				 SHUNT_READY_ARRIVED | SHUNT_READY_SETTLED | SHUNT_READY_TRACK);
	shunt_lock_leave(&stream->rx.lock);
}

void shunt_loss_closed(struct shunt_stream *stream)
{
	if (shunt_seat_fin_is_due(&stream->seat->out) && is_ours_lost(stream))
		shunt_streams_reset_tcp(stream->group->sys, shunt_deferred_fin_fd(stream));
	shunt_deferred_fin_resume(stream);
}
