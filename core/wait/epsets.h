/* SPDX-License-Identifier: MIT */
/*
 * The registry of epoll sets: type-stable memory, who still waits in them, and how a set ends.
 *
 * The kernel keeps a set for as long as a thread waits in it, also when its number is closed meanwhile. So do we:
 * such a thread holds it, and only the last to let go gives back what wakes it.
 */
#ifndef SHUNT_CORE_WAIT_EPSETS_H
#define SHUNT_CORE_WAIT_EPSETS_H

#include <stdbool.h>

struct shunt_engine;
struct shunt_epset;

void shunt_epset_close(struct shunt_engine *engine, struct shunt_epset *set);
/* epsets.c: for a wait in the set that was found at epfd. False: it is there no more. Neither with a lock held. */
bool shunt_epset_hold(struct shunt_engine *engine, struct shunt_epset *set, int epfd);
void shunt_epset_let_go(struct shunt_engine *engine, struct shunt_epset *set);
/* In a fork's child, alone in its process: companions are the parent's. */
void shunt_epset_inherit(struct shunt_engine *engine);
struct shunt_epset *shunt_epset_create(struct shunt_engine *engine, int fd);
/* A number for it, if there is one, which its streams name (core/poll/waiter.h). No lock held, as the next. */
void shunt_epset_number(struct shunt_engine *engine, struct shunt_epset *set);
/* It is waited for from outside: never again. */
void shunt_epset_unnumber(struct shunt_engine *engine, struct shunt_epset *set);

#endif
