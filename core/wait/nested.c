/* SPDX-License-Identifier: MIT */
#include "core/engine.h"
#include "core/fd/thread.h"
#include "core/wait/companion.h"
#include "core/wait/epset.h"
#include "core/wait/nested.h"
#include "core/wait/watch.h"

void shunt_nested_add(struct shunt_engine *engine, struct shunt_epset *set)
{
	if (set->nested)
		return;
	set->nested = true;
	set->next_nested = engine->group.nested_sets;
	engine->group.nested_sets = set;
}

void shunt_nested_remove(struct shunt_engine *engine, struct shunt_epset *set)
{
	struct shunt_epset **p = &engine->group.nested_sets;

	while (*p && *p != set)
		p = &(*p)->next_nested;
	if (*p)
		*p = set->next_nested;
}

void shunt_nested_refresh(struct shunt_engine *engine)
{
	for (struct shunt_epset *set = engine->group.nested_sets; set; set = set->next_nested) {
		if (shunt_watch_any_ready(engine, set)) {
			shunt_companion_kick(engine, set);
		} else if (set->kicked && !set->sleeping) {
			shunt_waker_drain(engine, set->kick_fd);
			set->kicked = false;
		}
	}
}

void shunt_nested_show(struct shunt_engine *engine, struct shunt_epset *set)
{
	if (set->nested && set->first && shunt_watch_any_ready(engine, set))
		shunt_companion_kick(engine, set);
}
