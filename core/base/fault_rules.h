/* SPDX-License-Identifier: MIT */
/* The text of rules: "ACTION:KEY=VALUE,KEY=VALUE;ACTION;seed=N". docs/dev/FAULTS.md. */
#ifndef SHUNT_CORE_BASE_FAULT_RULES_H
#define SHUNT_CORE_BASE_FAULT_RULES_H

#include <stddef.h>
#include <stdint.h>

#define SHUNT_FAULT_RULES 8
#define SHUNT_FAULT_ANY UINT32_MAX

enum shunt_fault_action {
	SHUNT_FAULT_DELAY,	/* completions are seen later */
	SHUNT_FAULT_STALL,	/* and those behind them, for a time or until the rules change */
	SHUNT_FAULT_DROP,	/* this WR and all behind it vanish; after dead_ms the QP fails */
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

/* 0, or -EINVAL and what is wrong in words. "" is no rule. `error` may be NULL. */
int shunt_fault_parse(const char *text, struct shunt_fault_plan *plan, char *error, size_t bytes);
const char *shunt_fault_name(enum shunt_fault_action action);

#endif
