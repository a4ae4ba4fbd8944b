/* SPDX-License-Identifier: MIT */
/* Steps that are timed while SHUNT_SLOW_US is set. Off, a step costs one branch. */
#ifndef SHUNT_CORE_TRACE_SLOW_STEP_H
#define SHUNT_CORE_TRACE_SLOW_STEP_H

#include "core/engine.h"

struct shunt_slow_about {	/* a step's event, beside its times */
	enum shunt_step step;
	int fd;				/* -1: of no stream */
	const struct shunt_tuple *tuple;	/* NULL: not known */
	uint64_t extra;
};

/* The step begins. 0: nobody wants to know how long it takes. */
static inline uint64_t shunt_slow_begin(struct shunt_engine *engine)
{
	uint64_t wanted = shunt_config_live(&engine->config.slow_us);

	return __builtin_expect(wanted != 0, 0) ? shunt_now(engine) : 0;
}

/* The step has taken so long, and is noted. Any lock may be held. */
void shunt_slow_took(struct shunt_engine *engine, uint64_t now, uint64_t ns,
		     const struct shunt_slow_about *about);
/* The step is over, and noted if it has taken SHUNT_SLOW_US. Any lock may be held. */
void shunt_slow_over(struct shunt_engine *engine, uint64_t begun,
		     const struct shunt_slow_about *about);

/* Ends a step whose begin may be 0; the arguments behind it are those of struct shunt_slow_about. */
#define shunt_slow_end(engine, begun, ...)                                                         \
	do {                                                                                       \
		if (__builtin_expect((begun) != 0, 0))                                             \
			shunt_slow_over(engine, begun,                                             \
					&(struct shunt_slow_about) { __VA_ARGS__ });               \
	} while (0)

#endif
