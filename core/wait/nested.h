/* SPDX-License-Identifier: MIT */
/*
 * Epoll sets that the kernel watches on behalf of somebody: another set, or a poll. As long as something is on the list of
 * such a set it must be readable, by its companion's eventfd. group.lock held throughout.
 */
#ifndef SHUNT_CORE_WAIT_NESTED_H
#define SHUNT_CORE_WAIT_NESTED_H

struct shunt_engine;
struct shunt_epset;

/* From now on the kernel watches the set for somebody. */
void shunt_nested_add(struct shunt_engine *engine, struct shunt_epset *set);
/* The set ends. */
void shunt_nested_remove(struct shunt_engine *engine, struct shunt_epset *set);
/* Brings the state that watched sets show up to date, before a look. */
void shunt_nested_refresh(struct shunt_engine *engine);
/* The same for one set on which something is listed. */
void shunt_nested_show(struct shunt_engine *engine, struct shunt_epset *set);

#endif
