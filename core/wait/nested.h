/* SPDX-License-Identifier: MIT */
/*
 * Epoll sets inside others, and sets that a thread polls. The kernel sees a set's streams only by the eventfd in the
 * set's companion. That one is written for a sleeper that has asked for the set, and before a look.
 *
 * No wake-up is lost. A stream becomes ready under group.lock, and a set's thread falls asleep under it. It counts itself
 * and looks at the sets inside in one hold of the lock. A stream that is ready before is found by that look. The touch
 * of one that is ready later finds the sleeper. group.lock held throughout.
 *
 * - Sets in sets. core/wait/nested.c knows each registration of a set in another, and whether it asks for EPOLLIN.
 *   The kick eventfd of a set inside shows the kernel that the set is readable. It is written for a thread that
 *   sleeps outside and has asked, and before a look. A poll of a set counts as such a thread. A set concerns
 *   completions if one of its streams is on a link, or a set inside that it asks for does. A thread in another set
 *   sleeps in the kernel alone, and never leads.
 */
#ifndef SHUNT_CORE_WAIT_NESTED_H
#define SHUNT_CORE_WAIT_NESTED_H

#include <stdbool.h>
#include <stdint.h>

struct epoll_event;
struct shunt_engine;
struct shunt_epset;

struct shunt_nesting {	/* the registration of a set in another */
	struct shunt_epset *outer, *inner;
	int fd;			/* of the inner set */
	uint32_t events;	/* as the program gave them; without EPOLLIN no sleeper of `outer` hears of `inner` */
	struct shunt_nesting *next_of_outer, *next_of_inner;
};

/* epoll_ctl() of `inner` by its number `fd` in `outer`. 0 or -errno. */
int shunt_nested_control(struct shunt_engine *engine, struct shunt_epset *outer,
			 struct shunt_epset *inner, int op, int fd, struct epoll_event *event);
/* The set and those outside that ask for it can be told of streams on a link. 0 or -ENOMEM. */
int shunt_nested_prepare(struct shunt_engine *engine, struct shunt_epset *set);
/* The set ends, and its registrations with it. */
void shunt_nested_end(struct shunt_engine *engine, struct shunt_epset *set);
/* One more or one less of the set's watches is not the kernel's: `by` is 1 or -1. */
void shunt_nested_count(struct shunt_engine *engine, struct shunt_epset *set, int by);
/* The kernel is to see what is true of the sets inside, before a look at `set`. True: it has been told of one anew. */
bool shunt_nested_refresh(struct shunt_engine *engine, struct shunt_epset *set);
/* The kernel is to see that the set is readable, which it is, and if that is news, that it has become so. False: it sees it already. */
bool shunt_nested_tell(struct shunt_engine *engine, struct shunt_epset *set);
/* The kernel is to see that the set is readable, if it is and a sleeper outside has asked for that. */
void shunt_nested_show(struct shunt_engine *engine, struct shunt_epset *set);
/* Does a thread sleep in a poll of the set, or in a set outside that has asked for it? */
bool shunt_nested_is_awaited(const struct shunt_epset *set);

#endif
