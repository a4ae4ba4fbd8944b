/* SPDX-License-Identifier: MIT */
/* The answer to `log`: slow steps and gaps between polls (core/trace/slow.h) as one JSON object. */
#ifndef SHUNT_CORE_ADMIN_EVENTS_H
#define SHUNT_CORE_ADMIN_EVENTS_H

struct shunt_answer;
struct shunt_engine;

/* words[0], if it is there: the number behind which events are wanted. 0, or -1: no number. Service thread. */
int shunt_events_command(struct shunt_engine *engine, int count, char **words,
		      struct shunt_answer *answer);

#endif
