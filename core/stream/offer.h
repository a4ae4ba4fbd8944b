/* SPDX-License-Identifier: MIT */
/*
 * The program has used a connection: is it worth a link by now? If so the service thread claims it, or
 * sees whether it has been claimed. Any thread.
 */
#ifndef SHUNT_CORE_STREAM_OFFER_H
#define SHUNT_CORE_STREAM_OFFER_H

#include <stdbool.h>
#include <netinet/in.h>
#include "core/stream/work.h"

struct shunt_engine;
struct shunt_stream;

/* A number below 64 for a port in network order: ports of callers follow one another. */
static inline unsigned int shunt_offer_bit(uint16_t port)
{
	return (uint16_t)(ntohs(port) * 40503u) >> 10;
}

/* Does a claim wait that may be for a connection from this port (0: not known)? Now and then for another. Any thread. */
static inline bool shunt_offer_awaits(const struct shunt_stream_work *work, uint16_t caller)
{
	uint64_t awaited = atomic_load(&work->awaited);

	return awaited && (!caller || awaited >> shunt_offer_bit(caller) & 1);
}

/* A candidate is used, by the program's thread. */
void shunt_offer_used(struct shunt_engine *engine, struct shunt_stream *stream);
/*
 * The connection that the program has just made is to become a spare (core/stream/spare.h). Its first use is a claim, and
 * waits for that a moment.
 */
void shunt_offer_seed(struct shunt_engine *engine, int fd);
/* A call waits on a connector: calls that move many bytes are few. No lock of the stream held. */
void shunt_offer_goes_on(struct shunt_stream *stream);
/* A connector that was offered and has not proven that it lasts. No connection is early with SHUNT_TUNE=brief=0. */
bool shunt_offer_is_early(struct shunt_stream *stream);
/* It is offered again once it has lasted. Service thread. */
void shunt_offer_later(struct shunt_stream *stream);
/* Streams that have been offered, chained by next_inbox and held. Service thread. */
struct shunt_stream *shunt_offer_take(struct shunt_stream_work *work);
/* Nothing is to be made of it: the service thread has ended. */
void shunt_offer_release(struct shunt_stream_work *work);

#endif
