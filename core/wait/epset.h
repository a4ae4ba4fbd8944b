/* SPDX-License-Identifier: MIT */
/*
 * An epoll descriptor of the program, and what its kernel epoll cannot see.
 *
 * The program's epfd keeps its own registrations for everything that is not on a link. A stream that both ends have
 * agreed to carry is taken out of it and put on the set's list here. As long as a direction is still on TCP, its
 * kernel socket sits in a hidden companion epfd inside the program's. Readiness of streams is a list that
 * completions maintain: O(ready), never a scan. All of it is under the group lock.
 */
#ifndef SHUNT_CORE_WAIT_EPSET_H
#define SHUNT_CORE_WAIT_EPSET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include "core/fd/file.h"

struct shunt_engine;
struct shunt_group;
struct shunt_nesting;
struct shunt_stream;
struct shunt_watch;

struct shunt_epset {
	struct shunt_file file;
	int fd;
	_Atomic int companion;	/* -1 until the first stream on a link */
	int kick_fd;		/* eventfd in the companion: wakes the set's sleepers */
	bool kicked;		/* kick_fd is readable on purpose */
	bool news;		/* a stream has been listed since the kernel was told so: an edge for sets outside */
	uint32_t numbers;	/* descriptors that name it */
	uint32_t pollers;	/* threads asleep in a poll or select that asks for it */
	struct shunt_nesting *outers;	/* its registrations in other sets */
	struct shunt_nesting *inners;	/* other sets' in it */
	_Atomic uint32_t below;	/* of those the ones that are asked for EPOLLIN and concerned themselves; written under group.lock */
	_Atomic uint32_t linked;	/* watches whose home is not the set; written under group.lock */
	_Atomic uint32_t sleeping;	/* threads asleep in it, */
	_Atomic uint32_t plain;		/* and of them those that fell asleep while it was the kernel's alone */
	uint32_t ready;		/* entries of the list */
	uint32_t waiter;	/* the set's number (core/poll/waiter.h); 0: none */
	uint32_t waiter_of;	/* waiters.generation then */
	uint32_t named;		/* watches of streams that name it */
	bool unnumbered;	/* it must not have one: it is waited for from outside */
	struct shunt_watch *first, *last;
	struct shunt_watch *spare;	/* memory of one that was removed: programs remove one and add the next */
	struct shunt_epset *next_free;	/* streams_lock */
	uint32_t generation;	/* how often its memory has been a set */
	_Atomic uint32_t holds;		/* threads that wait in it, and one while it has a number; 0: free */
	_Atomic bool closed;		/* its last number; group.lock */
	_Atomic uint32_t begun;		/* waits in the kernel */
	_Atomic uint32_t drained;	/* the last of them that left nothing there to report */
	_Atomic uint32_t returns;		/* grows as a registration comes back to the program's epfd, before and after */
	uint64_t kernel_checked;	/* when the kernel's part was last looked at */
	uint64_t kernel_active;		/* when it last had something to report */
	bool streams_first;		/* the kernel's part alone has filled the last report */
	bool inherited;			/* by a fork's child, and not waited in since */
};

/* A completion can change what the set has to report: a stream in it is on a link, or in a set inside that it asks for. */
static inline bool shunt_epset_is_concerned(const struct shunt_epset *set)
{
	struct shunt_epset *this = (struct shunt_epset *)set;

	return atomic_load(&this->linked) || atomic_load(&this->below);
}

/* Its number is of the waiters that there are now. group.lock held. */
bool shunt_epset_is_numbered(const struct shunt_epset *set, const struct shunt_group *group);

/* All of it is the kernel's: no waiter in it need look at streams. Where one has been on a link, it may be so again. */
static inline bool shunt_epset_is_plain(const struct shunt_epset *set)
{
	return atomic_load(&((struct shunt_epset *)set)->companion) < 0 ||
	       !shunt_epset_is_concerned(set);
}

/*
 * Something changed on the stream; see shunt_sleep_notify(). With SHUNT_READY_TRACK its registrations move where they
 * belong first. group.lock held.
 */
void shunt_epset_notify(struct shunt_group *group, struct shunt_stream *stream, uint32_t what);
/* Makes sure that its registrations can move. 0 or -errno. Takes the group lock. */
int shunt_epset_prepare(struct shunt_engine *engine, struct shunt_stream *stream);
/* A number of the stream was closed: registrations made through it end with the last one (PF-44). */
void shunt_epset_drop_stream(struct shunt_engine *engine, struct shunt_stream *stream);
/*
 * The kernel's set has a registration of the stream, which the engine has not known of so far. 0 or -ENOMEM. Nothing happens
 * if the set is not that of this generation any more. Takes the group lock.
 */
int shunt_epset_adopt(struct shunt_engine *engine, struct shunt_epset *set, uint32_t generation,
		      struct shunt_stream *stream, uint32_t events, uint64_t data);
/*
 * The descriptor of `from` names the socket of `to` by now, which is on a link, and the kernel has forgotten the
 * registrations. They go on as those of `to`. shunt_epset_prepare() before. Takes the group lock.
 */
void shunt_epset_carry(struct shunt_engine *engine, struct shunt_stream *from,
		       struct shunt_stream *to);
/* The registration is forgotten, whatever the kernel knows of it. group.lock held. */
void shunt_epset_unwatch(struct shunt_watch *watch);
/* Before the first wait in such a set: its members on the parent's links must be the kernel's. */
void shunt_epset_ask(struct shunt_engine *engine, struct shunt_epset *set);

#endif
