/* SPDX-License-Identifier: MIT */
#include "core/link/seat.h"
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/lsan.h"

typedef uint64_t __attribute__((may_alias)) word_t;

/* All else is 0. */
const struct shunt_seat shunt_seat_none = {
	.out = {
		.ring = { .blocked_at = SHUNT_NEVER },
		.overflow = { .open_at = SHUNT_NEVER },
		.fin_later = { .fd = SHUNT_FIN_NOT_DUE },
		.flip_at = SHUNT_NEVER,
		.left_at = SHUNT_NEVER,
	},
	.in = {
		.boundary = SHUNT_NEVER,
		.next_from = SHUNT_NEVER,
		.second = SHUNT_NEVER,
		.proof = { .at = SHUNT_NEVER },
	},
};

#define KEPT offsetof(struct shunt_seat, link)

_Static_assert(KEPT % sizeof(word_t) == 0, "words are written whole");
_Static_assert(sizeof(struct shunt_seat) % sizeof(word_t) == 0, "words are written whole");

/*
 * Each word after the one before; what is read afterwards is read after all of them. The last word is that barrier, one
 * instead of a hundred: ThreadSanitizer does not follow fences.
 */
static void begin(struct shunt_seat *seat)
{
	const word_t *from = (const word_t *)&shunt_seat_none;
	word_t *to = (word_t *)seat;
	const size_t last = sizeof(*seat) / sizeof(word_t) - 1;

	for (size_t i = KEPT / sizeof(word_t); i < last; i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELEASE);
	__atomic_exchange_n(&to[last], from[last], __ATOMIC_SEQ_CST);
}

void shunt_seat_begin_anew(struct shunt_seat *seat)
{
	const word_t *from = (const word_t *)&shunt_seat_none;
	word_t *to = (word_t *)seat;
	struct shunt_peer_ring theirs = { .address = seat->out.ring.address, .rkey = seat->out.ring.rkey };
	uint32_t bytes = atomic_load(&seat->out.ring.bytes), own_bytes = seat->in.ring.bytes;
	uint8_t *own = seat->in.ring.at;

	for (size_t i = offsetof(struct shunt_seat, out) / sizeof(word_t);
	     i < sizeof(*seat) / sizeof(word_t); i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELEASE);
	seat->out.ring.address = theirs.address;
	seat->out.ring.rkey = theirs.rkey;
	atomic_store(&seat->out.ring.bytes, bytes);
	seat->in.link.ring = seat->in.ring.at = own;
	seat->in.link.bytes = own_bytes;
	__atomic_store_n(&seat->in.ring.bytes, own_bytes, __ATOMIC_RELAXED);
	memset(seat->control, 0, sizeof(*seat->control));
	seat->chain = 0;
	atomic_store(&seat->release,
		     atomic_load(&seat->release) & SHUNT_RELEASE_OVER ?
			     SHUNT_RELEASE_HEARD | SHUNT_RELEASED_BY_PEER :
			     0);
}

static bool add_slab(struct shunt_seat_pool *pool)
{
	struct shunt_seat **slabs, *slab;

	slabs = realloc(pool->slabs, (pool->slab_count + 1) * sizeof(*slabs));
	if (!slabs)
		return false;
	pool->slabs = slabs;
	slab = shunt_lsan_map(SHUNT_SLAB_SEATS * sizeof(*slab));
	if (!slab)
		return false;
	slabs[pool->slab_count++] = slab;
	for (int i = SHUNT_SLAB_SEATS - 1; i >= 0; i--) {
		slab[i].next = pool->free;
		pool->free = &slab[i];
	}
	return true;
}

struct shunt_seat *shunt_seat_make(struct shunt_seat_pool *pool)
{
	struct shunt_seat *seat;

	if (!pool->free && !add_slab(pool))
		return NULL;
	seat = pool->free;
	pool->free = seat->next;
	seat->next = NULL;
	begin(seat);
	return seat;
}

void shunt_seat_free(struct shunt_seat_pool *pool, struct shunt_seat *seat)
{
	seat->next = pool->free;
	pool->free = seat;
}
