/* SPDX-License-Identifier: MIT */
#include "core/link/seat.h"
#include <stdatomic.h>
#include <stddef.h>

typedef uint64_t __attribute__((may_alias)) word_t;

/* All else is 0. */
static const struct shunt_seat beginning = {
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

/* Each word after the one before; what is read afterwards is read after all of them: one barrier instead of a hundred. */
void shunt_seat_begin(struct shunt_seat *seat)
{
	const word_t *from = (const word_t *)&beginning;
	word_t *to = (word_t *)seat;

	for (size_t i = KEPT / sizeof(word_t); i < sizeof(*seat) / sizeof(word_t); i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELEASE);
	atomic_thread_fence(memory_order_seq_cst);
}
