/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include "core/fork/fork_door.h"
#include "core/fork/fork_rest.h"
#include "core/fork/fork_slots.h"

/*
 * A slot's first word: owner, three marks, how many hold it, generation. Given up, it has the next generation: to
 * whoever still names the old one, the connection is the kernel's. So a slot may be taken back at any time. A process
 * that was killed, and has given up nothing, costs a slot and makes closing slower, no more.
 */
#define OWNER_BITS 22			/* pids are below 2^22 */
#define OWNER_MASK ((1ull << OWNER_BITS) - 1)
#define ON_LINK (1ull << OWNER_BITS)
#define ASKED (ON_LINK << 1)		/* a relative wants the owner to hand it back to the kernel */
#define HANDED (ON_LINK << 2)		/* it has */
#define HOLDER (ON_LINK << 3)
#define HOLDERS_MAX 0x7fff
#define GENERATION_SHIFT 40

#define WANTED 64
#define SLOTS (SHUNT_FORK_SLOTS_BYTES / (sizeof(struct shunt_fork_slot) + sizeof(uint16_t)) - WANTED)

struct shunt_fork_slots {			/* all of it is seen and written by relatives only */
	_Atomic uint32_t hint;		/* where a free slot may be */
	_Atomic uint32_t wanted_count;
	_Atomic uint32_t wanted[WANTED - 2];	/* what rendezvous point at */
	struct shunt_fork_family family;
	struct shunt_fork_slot slot[SLOTS];
	_Atomic uint16_t changes[SLOTS];	/* of flags and options, by any holder; never set back */
};

_Static_assert(sizeof(struct shunt_fork_slots) <= SHUNT_FORK_SLOTS_BYTES, "a slot too many");

static uint32_t generation_of(uint64_t word)
{
	return (uint32_t)(word >> GENERATION_SHIFT);	/* no more than is left of it */
}

static uint32_t holders_of(uint64_t word)
{
	return word / HOLDER & HOLDERS_MAX;
}

static pid_t owner_of(uint64_t word)
{
	return word & OWNER_MASK;
}

static uint64_t given_up(uint64_t word)
{
	return (uint64_t)(generation_of(word) + 1) << GENERATION_SHIFT;
}

/* The slot's word while it is this stream's. */
static bool slot_look(const struct shunt_holders *holders, uint64_t *word)
{
	if (!holders->slot)
		return false;
	*word = atomic_load(&holders->slot->word);
	return generation_of(*word) == holders->generation;
}

/* --- slots --- */

bool shunt_fork_slots_prepare(struct shunt_forks *forks, const struct shunt_sys *sys)
{
	void *made;

	if (forks->shared)
		return true;
	made = mmap(NULL, SHUNT_FORK_SLOTS_BYTES, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (made == MAP_FAILED)
		return false;
	if (!shunt_fork_door_begin(sys, &((struct shunt_fork_slots *)made)->family)) {
		munmap(made, SHUNT_FORK_SLOTS_BYTES);
		return false;
	}
	forks->shared = made;
	return true;
}

struct shunt_fork_family *shunt_fork_slots_family(struct shunt_forks *forks)
{
	return forks->shared ? &forks->shared->family : NULL;
}

/* Its owner has been killed: what others hold of it is the kernel's. */
static bool is_orphan(uint64_t word)
{
	return owner_of(word) && kill(owner_of(word), 0) && errno == ESRCH;
}

static bool slot_take(struct shunt_holders *holders, struct shunt_fork_slot *slot, uint64_t owner,
		      bool orphans)
{
	uint64_t word = atomic_load(&slot->word), taken;

	if (holders_of(word) && !(orphans && is_orphan(word)))
		return false;
	taken = given_up(word) | HOLDER | owner;
	if (!atomic_compare_exchange_strong(&slot->word, &word, taken))
		return false;
	shunt_fork_rest_revoke(slot);
	holders->generation = generation_of(taken);
	holders->slot = slot;
	return true;
}

bool shunt_fork_slots_take(struct shunt_forks *forks, struct shunt_holders *holders, bool linked)
{
	uint64_t owner = linked ? ON_LINK | (uint64_t)forks->pid : 0;
	struct shunt_fork_slots *shared = forks->shared;

	for (int orphans = 0; orphans < 2; orphans++) {
		for (uint32_t i = 0; i < SLOTS; i++) {
			uint32_t at = atomic_fetch_add_explicit(&shared->hint, 1, memory_order_relaxed) % SLOTS;

			if (slot_take(holders, &shared->slot[at], owner, orphans))
				return true;
		}
	}
	return false;
}

/* --- who has it --- */

enum shunt_whose shunt_fork_slots_touch(struct shunt_forks *forks, struct shunt_holders *holders)
{
	pid_t pid = forks->pid;
	uint64_t word;

	if (!holders->slot)
		return SHUNT_OURS;
	while (slot_look(holders, &word)) {
		if (owner_of(word) == pid)
			return SHUNT_OURS;
		if (word & ON_LINK)
			return SHUNT_ANOTHERS;
		if (!owner_of(word) &&
		    atomic_compare_exchange_strong(&holders->slot->word, &word, word | pid))
			return SHUNT_OURS;
		if (owner_of(word) && owner_of(word) != pid)
			shunt_fork_slots_settle(forks, holders);	/* two have touched it */
	}
	return SHUNT_KERNELS;
}

bool shunt_fork_slots_commit(struct shunt_forks *forks, struct shunt_holders *holders)
{
	pid_t pid = forks->pid;
	uint64_t word;

	if (!holders->slot)
		return true;
	while (slot_look(holders, &word) && owner_of(word) == pid)
		if (atomic_compare_exchange_strong(&holders->slot->word, &word,
						   word | ON_LINK))
			return true;
	return false;
}

bool shunt_fork_slots_settle(struct shunt_forks *forks, struct shunt_holders *holders)
{
	pid_t pid = forks->pid;
	uint64_t word;

	while (slot_look(holders, &word)) {
		if (word & ON_LINK && owner_of(word) != pid)
			return false;
		if (atomic_compare_exchange_strong(&holders->slot->word, &word,
						   given_up(word)))
			break;
	}
	return true;
}

void shunt_fork_slots_leave(struct shunt_forks *forks, struct shunt_holders *holders)
{
	pid_t pid = forks->pid;
	uint64_t word, left;

	while (slot_look(holders, &word)) {
		if (owner_of(word) == pid || holders_of(word) <= 1)
			left = given_up(word);
		else
			left = holders_of(word) == HOLDERS_MAX ? word : word - HOLDER;
		if (atomic_compare_exchange_strong(&holders->slot->word, &word, left))
			break;
	}
	holders->generation = UINT32_MAX;
}

bool shunt_fork_slots_held(const struct shunt_holders *holders)
{
	uint64_t word;

	return holders->forked & SHUNT_FORK_LOST ||
	       (slot_look(holders, &word) &&
		(holders_of(word) > 1 || shunt_fork_rest_is_taken(holders->slot)));
}

bool shunt_fork_slots_counts(const struct shunt_holders *holders)
{
	uint64_t word;

	return slot_look(holders, &word);
}

/* Where the slot is another stream's by now, its holders look once too often. */
static _Atomic uint16_t *changes_of(struct shunt_forks *forks, const struct shunt_holders *holders)
{
	struct shunt_fork_slots *shared = forks->shared;
	const struct shunt_fork_slot *slot = holders->slot;

	return slot ? &shared->changes[slot - shared->slot] : NULL;
}

uint16_t shunt_fork_slots_change(struct shunt_forks *forks, const struct shunt_holders *holders)
{
	_Atomic uint16_t *changes = changes_of(forks, holders);

	return changes ? (uint16_t)(atomic_fetch_add(changes, 1) + 1) : 0;
}

uint16_t shunt_fork_slots_changes(struct shunt_forks *forks, const struct shunt_holders *holders)
{
	_Atomic uint16_t *changes = changes_of(forks, holders);

	return changes ? atomic_load(changes) : 0;
}

pid_t shunt_fork_slots_owner(const struct shunt_holders *holders)
{
	uint64_t word;

	if (!slot_look(holders, &word) || (word & (ON_LINK | HANDED)) != ON_LINK)
		return 0;
	return owner_of(word);
}

/* --- it is asked for --- */

pid_t shunt_fork_slots_ask(struct shunt_holders *holders, struct shunt_question *asked)
{
	uint64_t word;

	*asked = (struct shunt_question) { holders->slot, holders->generation };
	while (slot_look(holders, &word) && word & ON_LINK && !(word & HANDED))
		if (word & ASKED || atomic_compare_exchange_strong(&holders->slot->word,
								   &word, word | ASKED))
			return owner_of(word);
	return 0;
}

enum shunt_told shunt_fork_slots_told(const struct shunt_question *asked)
{
	uint64_t word = atomic_load(&asked->slot->word);

	if (generation_of(word) != asked->generation || word & HANDED || !(word & ON_LINK))
		return SHUNT_TOLD_YES;
	return word & ASKED ? SHUNT_TOLD_NOTHING : SHUNT_TOLD_NO;
}

bool shunt_fork_slots_is_asked(const struct shunt_holders *holders)
{
	uint64_t word;

	return slot_look(holders, &word) && word & ASKED;
}

void shunt_fork_slots_tell(struct shunt_forks *forks, struct shunt_holders *holders, bool handed)
{
	uint64_t word;

	while (slot_look(holders, &word) && owner_of(word) == forks->pid)
		if (atomic_compare_exchange_strong(&holders->slot->word, &word,
						   (word & ~ASKED) | (handed ? HANDED : 0)))
			break;
}

void shunt_fork_slots_tell_taken(struct shunt_holders *holders)
{
	uint64_t word;

	while (slot_look(holders, &word))
		if (atomic_compare_exchange_strong(&holders->slot->word, &word,
						   (word & ~ASKED) | HANDED))
			break;
}

/* --- before a fork --- */

/* A count of HOLDERS_MAX stays. */
void shunt_fork_slots_add(struct shunt_holders *holders)
{
	uint64_t word;

	while (slot_look(holders, &word) && holders_of(word) < HOLDERS_MAX)
		if (atomic_compare_exchange_strong(&holders->slot->word, &word,
						   word + HOLDER))
			return;
}

_Atomic uint32_t *shunt_fork_slots_want(struct shunt_forks *forks, uint32_t value)
{
	struct shunt_fork_slots *shared = forks->shared;
	uint32_t at = atomic_fetch_add(&shared->wanted_count, 1);

	if (at >= WANTED - 2)
		return NULL;
	shared->wanted[at] = value;
	return &shared->wanted[at];
}
