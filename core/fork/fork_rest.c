/* SPDX-License-Identifier: MIT */
#include "core/fork/fork_rest.h"
#include <errno.h>
#include <signal.h>
#include "core/fork/fork_slots.h"

/*
 * The word: who has taken it, a mark for that, a count. The count is odd while the stream is in use and even while it
 * rests, and never comes twice, not even for the next stream of the slot.
 */
#define TAKER_MASK ((1ull << 22) - 1) /* pids are below 2^22 */
#define TAKEN (1ull << 22)
#define COUNT_SHIFT 24

static uint64_t look(const struct shunt_fork_slot *slot)
{
	return atomic_load(&((struct shunt_fork_slot *)slot)->use);
}

static uint64_t count_of(uint64_t word)
{
	return word >> COUNT_SHIFT;
}

static uint64_t in_use(uint64_t word)
{
	return ((count_of(word) + 1) | 1) << COUNT_SHIFT;
}

/* --- the owner --- */

uint64_t shunt_fork_rest_next(const struct shunt_fork_slot *slot)
{
	uint64_t word = look(slot);

	return count_of(word) & 1 && !(word & TAKEN) ? count_of(word) + 1 : 0;
}

void shunt_fork_rest_begin(struct shunt_fork_slot *slot, uint64_t rest)
{
	atomic_store(&slot->use, rest << COUNT_SHIFT);
}

bool shunt_fork_rest_end(struct shunt_fork_slot *slot)
{
	uint64_t word = atomic_load(&slot->use);

	/* A reader and a sender may come at once: then the count is odd already. */
	while (!(word & TAKEN))
		if (count_of(word) & 1 ||
		    atomic_compare_exchange_strong(&slot->use, &word, in_use(word)))
			return true;
	return false;
}

void shunt_fork_rest_revoke(struct shunt_fork_slot *slot)
{
	uint64_t word = atomic_load(&slot->use);

	while (!atomic_compare_exchange_strong(&slot->use, &word, in_use(word)))
		;
}

bool shunt_fork_rest_is_taken(const struct shunt_fork_slot *slot)
{
	return slot && look(slot) & TAKEN;
}

/* --- a relative --- */

/* One that has been killed meanwhile had the same copy, and the peer hears of it as often as it is told. */
static bool is_abandoned(uint64_t word)
{
	pid_t taker = (pid_t)(word & TAKER_MASK);

	return word & TAKEN && kill(taker, 0) && errno == ESRCH;
}

bool shunt_fork_rest_take(struct shunt_fork_slot *slot, uint64_t rest, pid_t pid)
{
	uint64_t ours = rest << COUNT_SHIFT | TAKEN | (uint64_t)pid;
	uint64_t word = atomic_load(&slot->use);

	if (word == ours)
		return true;
	return (word == rest << COUNT_SHIFT || (count_of(word) == rest && is_abandoned(word))) &&
	       atomic_compare_exchange_strong(&slot->use, &word, ours);
}
