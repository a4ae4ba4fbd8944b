#include "core/proof.h"
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include "core/engine.h"
#include "core/linger.h"

bool shunt_proof_demand(struct shunt_stream *stream, uint8_t nonce[SHUNT_NONCE_BYTES])
{
	struct shunt_rx *rx = &stream->rx;

	if (getrandom(rx->nonce, sizeof(rx->nonce), GRND_NONBLOCK) != sizeof(rx->nonce))
		return false;
	memcpy(nonce, rx->nonce, sizeof(rx->nonce));
	atomic_store(&rx->proof, SHUNT_UNPROVEN);
	return true;
}

void shunt_proof_owe(struct shunt_stream *stream, const uint8_t nonce[SHUNT_NONCE_BYTES])
{
	memcpy(stream->tx.nonce, nonce, sizeof(stream->tx.nonce));
	stream->tx.must_prove = true;
}

void shunt_proof_expect(struct shunt_stream *stream)
{
	struct shunt_message message = { .type = SHUNT_MSG_EXPECT, .stream = stream->peer_id };
	struct shunt_rx *rx = &stream->rx;

	if (atomic_load(&rx->proof) != SHUNT_UNPROVEN || atomic_load(&rx->boundary) == SHUNT_NEVER ||
	    atomic_load(&stream->lane->failed))
		return;
	if (!shunt_link_send(stream->link, &message, NULL, 0))
		atomic_store(&rx->proof, SHUNT_EXPECTED);
}

/* --- the reader --- */

static ssize_t receive(struct shunt_engine *engine, int fd, void *buffer, size_t bytes, int flags)
{
	struct iovec iov = { buffer, bytes };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	return engine->sys->recvmsg(fd, &message, flags | MSG_DONTWAIT);
}

static void proven(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;

	shunt_lock_take(&engine->group.lock);
	atomic_store(&rx->proof, SHUNT_PROVEN);
	atomic_store(&rx->fin, atomic_exchange(&rx->early_fin, SHUNT_NEVER));
	shunt_lock_leave(&engine->group.lock);
	/* The accepting end has waited for this with its own direction: the next send begins it. */
	if (atomic_load(&stream->agreed) && atomic_load(&stream->retiring) == SHUNT_STAYING)
		atomic_store(&stream->tx.want_link, true);
}

/* The claim was forged, or its link is gone: TCP goes on as if nothing had been. */
static void disprove(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;

	shunt_lock_take(&engine->group.lock);
	atomic_store(&rx->proof, SHUNT_PROVEN);
	atomic_store(&rx->early_fin, SHUNT_NEVER);
	rx->link_open = false;
	atomic_store(&rx->retired, true);	/* what the link still brings counts for nothing */
	atomic_store(&rx->tail, atomic_load(&rx->head));
	atomic_store(&rx->boundary, SHUNT_NEVER);
	atomic_store(&rx->second, SHUNT_NEVER);
	atomic_store(&rx->next_from, SHUNT_NEVER);
	shunt_lock_leave(&engine->group.lock);
	if (!rx->final)
		shunt_link_distrust(stream->link, "it claims a connection that is not its own");
}

int shunt_proof_read(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;
	uint8_t bytes[SHUNT_NONCE_BYTES];
	ssize_t got;

	if (atomic_load(&rx->proof) == SHUNT_UNPROVEN || stream->fd < 0)
		return 0;
	got = receive(engine, stream->fd, bytes, sizeof(bytes), MSG_PEEK);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (got == 0 || memcmp(bytes, rx->nonce, got)) {
		disprove(engine, stream);
		return -1;
	}
	if (got < (ssize_t)sizeof(bytes) || receive(engine, stream->fd, bytes, sizeof(bytes), 0) != sizeof(bytes))
		return 0;
	proven(engine, stream);
	return 1;
}

bool shunt_proof_drop(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;

	if (!shunt_proof_pending(rx))
		return false;
	rx->final = true;
	if (atomic_load(&rx->proof) == SHUNT_UNPROVEN || atomic_load(&rx->boundary) == SHUNT_NEVER) {
		disprove(engine, stream);
		return true;
	}
	shunt_lock_take(&engine->group.lock);
	atomic_store(&rx->tail, atomic_load(&rx->boundary));
	atomic_store(&rx->early_fin, SHUNT_NEVER);
	atomic_store(&rx->second, SHUNT_NEVER);
	atomic_store(&rx->next_from, SHUNT_NEVER);
	rx->link_open = false;
	shunt_lock_leave(&engine->group.lock);
	return true;
}

/* --- the writer --- */

void shunt_proof_write(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;

	uint8_t *room;

	shunt_lock_take(&tx->lock);
	room = shunt_proof_owed(tx) && (stream->fd >= 0 || tx->end_fd >= 0) ?
	       shunt_retire_add(tx, sizeof(tx->nonce)) : NULL;
	if (room) {
		memcpy(room, tx->nonce, sizeof(tx->nonce));
		tx->must_prove = false;
		if (shunt_retire_resend(engine, stream->fd >= 0 ? stream->fd : tx->end_fd, stream) == -EAGAIN)
			shunt_linger_resume(stream);
		else
			shunt_linger_proven(stream);
	}
	shunt_lock_leave(&tx->lock);
	shunt_group_tell(engine, stream, EPOLLOUT | SHUNT_READY_SETTLED);
}
