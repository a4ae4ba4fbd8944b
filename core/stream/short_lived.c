/* SPDX-License-Identifier: MIT */
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include "core/engine.h"

#define LASTING_USES 16 /* of a connection, after which it is expected to last */
#define LASTING_BYTES 65536 /* and the same in bytes */
#define RESTED_USES 2 /* and one more of so many, when it is so old: a question, an answer, and a second question */
#define RESTED_NS 1000000000ull
#define LONG_TIMES 4 /* as many transfers of an acceptor as uses of its peer */

uint8_t shunt_short_lived_place(const struct sockaddr *address, socklen_t length)
{
	uint8_t bytes[sizeof(struct sockaddr_in6)];
	uint32_t hash = 2166136261u;	/* FNV-1a, of port and address */
	size_t from = offsetof(struct sockaddr_in, sin_port), end;

	end = address->sa_family == AF_INET ? offsetof(struct sockaddr_in, sin_zero) : offsetof(struct sockaddr_in6, sin6_scope_id);
	end = end < length ? end : length;
	memcpy(bytes, address, end);
	for (size_t i = from; i < end; i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return (uint8_t)((hash ^ hash >> 8 ^ hash >> 16) % SHUNT_SHORT_LIVED_PLACES);
}

void shunt_short_lived_config(struct shunt_engine *engine)
{
	uint32_t limit = shunt_narrow_u32(engine->config.brief);

	if (!engine->config.brief_first || !limit)
		return;
	for (int role = 0; role < SHUNT_LISTENER; role++)
		for (int i = 0; i < SHUNT_SHORT_LIVED_PLACES; i++)
			atomic_store(&engine->brief[role][i], limit);
	atomic_store(&engine->brief_ones, true);
}

/* A count that another thread makes at the same time may be lost. */
void shunt_short_lived_count(struct shunt_engine *engine, uint8_t role, uint8_t place, bool brief)
{
	uint32_t limit = shunt_narrow_u32(shunt_config_live(&engine->config.brief));
	_Atomic uint32_t *counter = &engine->brief[role][place];
	uint32_t count = atomic_load_explicit(counter, memory_order_relaxed);

	/* Twice the limit, so that one that lasts does not change what most are. */
	if (brief ? count >= 2 * limit : !count)
		return;
	count = brief ? count + 1 : count - 1;
	atomic_store_explicit(counter, count, memory_order_relaxed);
	if (brief && count >= limit &&
	    !atomic_load_explicit(&engine->brief_ones, memory_order_relaxed))
		atomic_store(&engine->brief_ones, true);
}

static bool is_old(struct shunt_engine *engine, uint64_t born)
{
	return shunt_now(engine) - born >=
	       shunt_config_live(&engine->config.claim_ms) * 1000000 / 4;
}

/* A link may have brought its answer, and yet have cost more than it saved. */
static bool was_brief(struct shunt_engine *engine, const struct shunt_stream *stream)
{
	uint64_t carried = stream->tx.bytes.link + stream->rx.bytes.link;

	return !carried ||
	       (carried < LASTING_BYTES && atomic_load(&stream->lasting) != SHUNT_LASTING_PROVEN &&
		!is_old(engine, stream->born));
}

void shunt_short_lived_ends(struct shunt_engine *engine, struct shunt_stream *stream)
{
	uint8_t role = stream->role;

	if (role < SHUNT_LISTENER && atomic_load(&stream->usage) && !stream->spare)
		shunt_short_lived_count(engine, role, stream->place, was_brief(engine, stream));
}

bool shunt_short_lived_expected(struct shunt_engine *engine, uint8_t role, uint8_t place)
{
	uint64_t limit = shunt_config_live(&engine->config.brief);

	return limit &&
	       atomic_load_explicit(&engine->brief[role][place], memory_order_relaxed) >= limit;
}

bool shunt_short_lived_is_used(uint32_t uses, uint64_t bytes)
{
	return uses >= LASTING_USES || bytes >= LASTING_BYTES;
}

bool shunt_short_lived_lasts(struct shunt_engine *engine, uint32_t uses, uint64_t bytes,
			     uint64_t born)
{
	return shunt_short_lived_is_used(uses, bytes) ||
	       (uses >= SHUNT_SHORT_LIVED_USES && is_old(engine, born)) ||
	       (uses >= RESTED_USES && born && shunt_now(engine) - born >= RESTED_NS);
}

bool shunt_short_lived_is_long(uint32_t transfers)
{
	return transfers >= LONG_TIMES * LASTING_USES;
}
