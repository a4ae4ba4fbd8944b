/* SPDX-License-Identifier: MIT */
/*
 * Faults on purpose (SHUNT_FAULT; XR-37, SD-12), by rules and a seed: below the engine, in its
 * memory and at its peers. Nothing of this is in the way of anything while there is no rule.
 *
 *   fault_rules.c   the text of rules
 *   fault.c         whether a rule strikes; switching them on and off
 *   fault_device.c  the filter in front of a device: post_send and poll_cq
 *
 * docs/FAULTS.md has the language.
 */
#ifndef SHUNT_CORE_DEVICE_FAULT_H
#define SHUNT_CORE_DEVICE_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHUNT_FAULT_RULES 8
#define SHUNT_FAULT_ANY UINT32_MAX

struct shunt_device;
struct shunt_engine;
struct shunt_lane;

enum shunt_fault_action {
	SHUNT_FAULT_DELAY,	/* completions are seen later */
	SHUNT_FAULT_STALL,	/* and those behind them, for a time or until the rules change */
	SHUNT_FAULT_DROP,	/* this WR and all behind it vanish; after SHUNT_DEAD_MS the QP fails */
	SHUNT_FAULT_KILL,	/* the QP goes to the error state */
	SHUNT_FAULT_POST,	/* post_send does not take the WR */
	SHUNT_FAULT_CORRUPT,	/* of a message to the peer: what it must see to be wrong */
	SHUNT_FAULT_FREEZE,	/* the service thread stands still */
	SHUNT_FAULT_REFUSE,	/* a claim */
	SHUNT_FAULT_DENY,	/* memory, descriptors and threads to Shunt's own code */
	SHUNT_FAULT_ACTIONS
};

/* Variants of actions that have several. */
enum { SHUNT_CORRUPT_IMM, SHUNT_CORRUPT_WORD };
enum { SHUNT_DENY_MALLOC, SHUNT_DENY_MAP, SHUNT_DENY_FD, SHUNT_DENY_MR, SHUNT_DENY_THREAD };

struct shunt_fault_rule {
	uint32_t action;
	uint32_t what;		/* of the above, SHUNT_FAULT_ANY */
	uint32_t lane;		/* by the order in which the process made them, SHUNT_FAULT_ANY */
	uint64_t odds;		/* of 2^32 */
	uint64_t nth;		/* this opportunity alone; 0: any */
	uint64_t count;		/* at most so often; 0: no limit */
	uint64_t bytes;		/* not before the lane has carried so many */
	uint64_t ns;		/* how long; 0: for good */
	_Atomic uint64_t seen, struck;
};

struct shunt_fault_plan {
	uint64_t seed;
	uint32_t count;
	struct shunt_fault_rule rules[SHUNT_FAULT_RULES];
};

struct shunt_fault_held;
struct shunt_task;

/* Of an engine. */
struct shunt_fault {
	_Atomic(struct shunt_fault_plan *) plan;	/* NULL: no rules */
	struct shunt_fault_plan plans[2];	/* a reader may still be at the one that was in force before */
	_Atomic uint64_t struck;
	uint32_t lanes;				/* the number of the next; group.lock */
	_Atomic uint64_t due;			/* when something is to be looked at again; 0: never */
	struct shunt_fault_held *first, *last;	/* completions that are seen later; group.lock, as the rest */
	struct shunt_fault_held *pool, *spare;
	int room;				/* in the pool */
};

/* --- fault.c --- */

/*
 * From now on these rules are in force, and no others; "" ends all faults. At any time, from any thread that
 * holds no lock; one at a time. 0, or -EINVAL, words in `error`, and nothing has changed.
 */
int shunt_fault_set(struct shunt_engine *engine, const char *text, char *error, size_t bytes);
/* The rules of SHUNT_FAULT, except those about memory. */
void shunt_fault_begin(struct shunt_engine *engine);
/* The rules about memory alone, which belong to the process: they count from before there is an engine. */
void shunt_fault_set_memory(const char *text);

/* Does a rule strike? *ns is for how long. errno is kept. */
bool shunt_fault_strikes(struct shunt_fault *fault, enum shunt_fault_action action, uint32_t what,
			 const struct shunt_lane *lane, uint64_t *ns);

extern _Atomic(struct shunt_fault_plan *) shunt_fault_memory;	/* NULL: no rule about memory */
bool shunt_fault_denies_slow(uint32_t what);

/* Is it to be refused? Then errno says why. For Shunt's own code only. */
static inline bool shunt_fault_denies(uint32_t what)
{
	return __builtin_expect(atomic_load_explicit(&shunt_fault_memory, memory_order_relaxed) != NULL, 0) &&
	       shunt_fault_denies_slow(what);
}

/* Claims are refused where that is asked for. */
static inline bool shunt_fault_refuses(struct shunt_fault *fault)
{
	uint64_t ns;

	return atomic_load_explicit(&fault->plan, memory_order_relaxed) &&
	       shunt_fault_strikes(fault, SHUNT_FAULT_REFUSE, SHUNT_FAULT_ANY, NULL, &ns);
}

/* Faults that are due happen. */
void shunt_fault_run(struct shunt_task *task);

/*
 * For a caller that is about to believe the kernel: the kernel's word must not overtake the device's. Completions
 * that are held back may come now. False: none was held back.
 */
bool shunt_fault_hurries(struct shunt_engine *engine);

/* Something is to be looked at then. */
void shunt_fault_look_at(struct shunt_engine *engine, uint64_t when);

#endif
