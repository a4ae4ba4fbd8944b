#include "core/linger.h"
#include <sys/socket.h>
#include "core/engine.h"
#include "core/owed.h"
#include "core/proof.h"

bool shunt_linger_keep(struct shunt_stream *stream, int fd)
{
	struct shunt_tx *tx = &stream->tx;

	if (atomic_load(&stream->state) != SHUNT_LINKED || !stream->lane->retains)
		return false;
	if (tx->end_fd >= 0)
		return true;
	/* Its bytes are the kernel's, or the end has been said before, or nobody wants to hear it. */
	if ((tx->track == SHUNT_TCP && !atomic_load(&tx->unpassed) && !atomic_load(&tx->halted)) ||
	    tx->shut || atomic_load(&stream->released) || atomic_load(&stream->rx.reset))
		return false;
	tx->end_fd = shunt_private_copy(stream->engine, fd);
	return tx->end_fd >= 0;
}

static void leave(struct shunt_stream *stream)
{
	shunt_private_close(stream->engine, stream->tx.end_fd);
	stream->tx.end_fd = -1;
}

/* lane.lock held, or nobody posts any more. */
static void end(struct shunt_stream *stream)
{
	if (!stream->rx.owes_reset)	/* that is the end then, behind what is unread */
		stream->engine->sys->shutdown(stream->tx.end_fd, SHUT_WR);
	leave(stream);
}

int shunt_linger_fd(const struct shunt_stream *stream)
{
	return stream->fd >= 0 ? stream->fd : stream->tx.end_fd;
}

bool shunt_linger_must_prove(const struct shunt_stream *stream)
{
	return shunt_proof_owed(stream) && stream->tx.offset > atomic_load(&((struct shunt_stream *)stream)->tx.upgrade_at);
}

bool shunt_linger_look(struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;

	if (__builtin_expect(tx->end_fd < 0, 1))
		return false;
	if (tx->resend || !tx->fin_wr || atomic_load(&stream->lane->retired) < tx->fin_wr || shunt_linger_must_prove(stream))
		return true;
	/* The program has ended reading, too: the kernel would answer the nonce that we have asked for with a reset. */
	if (atomic_load(&stream->rx.shut) && atomic_load(&stream->rx.proof) == SHUNT_EXPECTED)
		return true;
	end(stream);
	return false;
}

void shunt_linger_proven(struct shunt_stream *stream)
{
	if (stream->tx.end_fd >= 0)
		shunt_lane_request(stream->lane, stream, SHUNT_WORK_DONE);
}

void shunt_linger_resume(struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;

	if (tx->end_fd < 0) {
		if (tx->resend && stream->fd >= 0)
			shunt_owed_await(stream->engine, stream);
		return;
	}
	if (!tx->resend || stream->rx.owes_reset) {
		/* The program has ended reading, too: the kernel would answer the nonce that is on its way with a reset. */
		if (!stream->rx.owes_reset && shunt_proof_end_writing(stream))
			leave(stream);
		else
			end(stream);
		return;
	}
	tx->resend_fin = true;
	if (stream->awaited)	/* the nonce, before what has been added now */
		shunt_private_close(stream->engine, tx->end_fd);
	else
		stream->resend_fd = tx->end_fd;
	tx->end_fd = -1;
	shunt_owed_await(stream->engine, stream);
}

void shunt_linger_dead(struct shunt_stream *stream)
{
	if (stream->tx.end_fd >= 0 && shunt_track_lost(stream))
		shunt_streams_reset_tcp(stream->engine, stream->tx.end_fd);
	shunt_linger_resume(stream);
}
