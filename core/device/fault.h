/* SPDX-License-Identifier: MIT */
/*
 * Faults on purpose (SHUNT_FAULT; XR-37, SD-12), by rules and a seed: below the engine, in its
 * memory and at its peers. Nothing of this is in the way of anything while there is no rule.
 *
 *   fault_rules.c   the text of rules
 *   fault.c         whether a rule strikes
 *   fault_device.c  the filter in front of a device: post_send and poll_cq; switching rules on and off
 *
 * docs/dev/FAULTS.md has the language.
 */
#ifndef SHUNT_CORE_DEVICE_FAULT_H
#define SHUNT_CORE_DEVICE_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/fault_rules.h"
#include "core/loop/loop.h"

struct shunt_device;
struct shunt_group;

struct shunt_fault_held;

struct shunt_fault_at {	/* where it strikes: a lane, so many bytes after it was made */
	uint32_t lane;
	uint64_t posted;
};

/* Of an engine. */
struct shunt_fault {
	struct shunt_group *group;
	struct shunt_task task;		/* of the service thread: shunt_fault_run() */
	_Atomic(struct shunt_fault_plan *) plan;	/* NULL: no rules */
	struct shunt_fault_plan plans[2];	/* a reader may still be at the one that was in force before */
	_Atomic uint64_t struck;
	uint32_t lanes;				/* the number of the next; group.lock */
	_Atomic uint64_t due;			/* when something is to be looked at again; 0: never */
	struct shunt_fault_held *first, *last;	/* completions that are seen later; group.lock, as the rest */
	struct shunt_fault_held *pool, *spare;
	int room;				/* in the pool */
};

/* The rules of SHUNT_FAULT, except those about memory. */
void shunt_fault_begin(struct shunt_fault *fault, const char *rules);
/* Its rules are in force, except those about memory. */
void shunt_fault_put_in_force(struct shunt_fault *fault, const struct shunt_fault_plan *plan);
/* The rules about memory alone, which belong to the process: they count from before there is an engine. */
void shunt_fault_set_memory(const char *text);

/* Does a rule strike? *ns is for how long. errno is kept. */
bool shunt_fault_strikes(struct shunt_fault *fault, enum shunt_fault_action action, uint32_t what,
			 const struct shunt_fault_at *at, uint64_t *ns);

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

#endif
