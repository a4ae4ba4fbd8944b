/* SPDX-License-Identifier: MIT */
/* Steps that are timed while slow_us is set. Off, a step costs one branch. */
#ifndef SHUNT_CORE_TRACE_SLOW_STEP_H
#define SHUNT_CORE_TRACE_SLOW_STEP_H

#include "core/base/config.h"
#include "core/base/sys.h"
#include "core/trace/slow.h"

/* The room's part of an engine. */
struct shunt_steps {
	const struct shunt_sys *sys;
	const struct shunt_config *config;
	shunt_slow_log log;	/* what `shunt trace slow` shows */
};

struct shunt_slow_about {	/* a step's event, beside its times */
	enum shunt_step step;
	int fd;				/* -1: of no stream */
	const struct shunt_tuple *tuple;	/* NULL: not known */
	uint64_t extra;
};

/* The step begins. 0: nobody wants to know how long it takes. */
static inline uint64_t shunt_slow_begin(struct shunt_steps *steps)
{
	uint64_t wanted = shunt_config_live(&steps->config->slow_us);

	return __builtin_expect(wanted != 0, 0) ? steps->sys->now() : 0;
}

/* The step has taken so long, and is noted. Any lock may be held. */
void shunt_slow_took(struct shunt_steps *steps, uint64_t now, uint64_t ns,
		     const struct shunt_slow_about *about);
/* The step is over, and noted if it has taken slow_us. Any lock may be held. */
void shunt_slow_over(struct shunt_steps *steps, uint64_t begun,
		     const struct shunt_slow_about *about);

/* Ends a step whose begin may be 0; the arguments behind it are those of struct shunt_slow_about. */
#define shunt_slow_end(steps, begun, ...)                                                         \
	do {                                                                                       \
		if (__builtin_expect((begun) != 0, 0))                                             \
			shunt_slow_over(steps, begun,                                             \
					&(struct shunt_slow_about) { __VA_ARGS__ });               \
	} while (0)

#endif
