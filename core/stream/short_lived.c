/* SPDX-License-Identifier: MIT */
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include "core/engine.h"

static uint8_t place_of(const struct sockaddr *address, socklen_t length)
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

void shunt_short_lived_begins(struct shunt_stream *stream, const struct sockaddr *address, socklen_t length)
{
	stream->place = place_of(address, length);
}

void shunt_short_lived_ends(struct shunt_engine *engine, struct shunt_stream *stream)
{
	uint32_t limit = shunt_narrow_u32(shunt_config_live(&engine->config.brief));
	uint32_t count = atomic_load_explicit(&engine->brief[stream->place], memory_order_relaxed);
	bool brief = !stream->tx.bytes.link && !stream->rx.bytes.link;

	if (stream->role != SHUNT_CONNECTOR || !atomic_load(&stream->touched))
		return;
	/* Twice the limit, so that one that lasts does not change what most are. Who counts at the same time may be lost. */
	if (brief ? count < 2 * limit : count > 0)
		atomic_store_explicit(&engine->brief[stream->place], brief ? count + 1 : count - 1, memory_order_relaxed);
}

bool shunt_short_lived_expected(struct shunt_engine *engine, const struct shunt_stream *stream)
{
	uint64_t limit = shunt_config_live(&engine->config.brief);

	return limit &&
	       atomic_load_explicit(&engine->brief[stream->place], memory_order_relaxed) >= limit;
}
