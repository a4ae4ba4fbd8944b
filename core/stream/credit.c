/* SPDX-License-Identifier: MIT */
#include "core/stream/credit.h"
#include <sys/epoll.h>
#include "core/engine.h"
#include "core/lane/roster.h"

void shunt_credit_go_on(struct shunt_engine *engine, struct shunt_stream *stream)
{
	if (__builtin_expect(shunt_tx_rest(&stream->tx), 0)) {
		atomic_store(&stream->tx.stuck_since, 0);
		shunt_roster_kick(engine, stream->lane);
	}
}

const char *shunt_credit_heard(struct shunt_engine *engine, struct shunt_stream *stream,
			       uint64_t upto)
{
	struct shunt_tx *tx = &stream->tx;

	if (upto > atomic_load_explicit(&tx->exposed, memory_order_acquire))
		return "credit for bytes that were not sent";
	if (upto <= atomic_load_explicit(&tx->ring.consumed, memory_order_relaxed))
		return NULL;	/* an earlier word that was overwritten before we looked */
	atomic_store(&tx->ring.consumed, upto);
	shunt_credit_go_on(engine, stream);
	if (shunt_tx_unstarve(tx))
		shunt_group_notify(engine, stream, EPOLLOUT);
	return NULL;
}
