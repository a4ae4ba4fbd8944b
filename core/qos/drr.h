/* SPDX-License-Identifier: MIT */
/*
 * Deficit round robin over classes that wait for tokens: classes with demand share by weight, an idle class saves
 * nothing. One thread, or the caller's lock.
 */
#ifndef SHUNT_CORE_QOS_DRR_H
#define SHUNT_CORE_QOS_DRR_H

#include <stdbool.h>
#include <stdint.h>

#define SHUNT_DRR_CLASSES 17u
#define SHUNT_DRR_NONE UINT32_MAX

struct shunt_drr {
	uint32_t count, at; /* classes; whose turn it is */
	bool visited; /* the class has got its share of this turn */
	uint64_t share[SHUNT_DRR_CLASSES]; /* a turn, in 1/65536 tokens */
	uint64_t deficit[SHUNT_DRR_CLASSES];
};

/* `count`: 1 to SHUNT_DRR_CLASSES. A weight of 0 counts as 1. The largest weight has 16 tokens a turn. */
void shunt_drr_begin(struct shunt_drr *drr, const uint32_t weights[], uint32_t count);
/*
 * The class that gets the next tokens, all that it wants; they are charged. `wanted`: for each class the tokens that
 * the head of its queue wants, 0: idle. SHUNT_DRR_NONE: `*tokens` are more than `available`, and the class whose turn
 * it is waits for them, so that small requests do not starve it. Or all classes are idle, and `*tokens` is 0.
 */
uint32_t shunt_drr_next(struct shunt_drr *drr, const uint32_t wanted[], uint64_t available,
			uint32_t *tokens);

#endif
