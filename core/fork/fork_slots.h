/* SPDX-License-Identifier: MIT */
/*
 * Connections that a fork has given two owners. A page that all descendants see has a slot for each. It says the
 * first user, whether that has it on a link, and the number of holders. The first process to touch it owns it; once
 * two have touched it, it is the kernel's for ever.
 *
 * Behind a fork:
 *
 * - pthread_atfork handlers (preload/fork.c) hold the engine's locks across the fork.
 * - Links, rings and the service thread stay the parent's. The child closes its copies of all our descriptors
 *   (core/fd/own_fds.c). A copy that stayed open would keep a peer from seeing that the parent has ended. The
 *   mappings remain and are not used.
 * - Connections that both hold have a slot in shared memory (core/fork/fork_slots.c): a candidate that no process has
 *   used yet, and a linked stream. The first to touch a connection owns it; ambiguity goes back to the kernel. The
 *   first to use a candidate may move it to a link: so accept; fork; the child serves upgrades in the child. If
 *   another uses it before that, it is plain for all.
 * - A candidate that was in use before the fork is plain at both (in the parent not while its claim is under way).
 * - Listeners stay listeners. A child that accepts joins the owner of the rendezvous (core/peer/listener_worker.c),
 *   tells it what it has, and claimants are sent to the child (core/peer/redirect.c). When the owner ends, another
 *   takes its place. The same goes for processes that share a port by SO_REUSEPORT.
 * - Flags of the open file description and options of the socket are cached, and any holder may change them. Calls on
 *   a stream that was ever shared compare a count in the shared page, and no other stream does. epoll_wait does not,
 *   for a relative's SO_RCVLOWAT. A child that has no engine (_Fork, clone) counts nothing. SO_MAX_PACING_RATE takes
 *   a shared stream off the link.
 * - A child that closes what it has inherited touches no epoll registration: in a set that both have it is the
 *   parent's, too.
 */
#ifndef SHUNT_CORE_FORK_FORK_SLOTS_H
#define SHUNT_CORE_FORK_FORK_SLOTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct shunt_fork_family;
struct shunt_fork_slots;
struct shunt_sys;

#define SHUNT_FORK_SLOTS_BYTES (1 << 20)	/* mapped; backed on touch */

/* Of one connection; all of it is seen and written by relatives only. */
struct shunt_fork_slot {
	_Atomic uint64_t word;	/* who has it, and how many hold it: fork_slots.c */
	_Atomic uint64_t use;	/* whether its owner has used it since the last fork: fork_rest.c */
};

enum shunt_whose { SHUNT_OURS, SHUNT_KERNELS, SHUNT_ANOTHERS };

/* The room's part of an engine. */
struct shunt_forks {
	pid_t pid;			/* of this process */
	uint32_t doors;			/* names that the doors of this process have had (fork_door.h) */
	struct shunt_fork_slots *shared;	/* the page that relatives see, too; NULL: not needed yet */
};

/* How forks have left a connection. Bits. */
enum shunt_forked {
	SHUNT_FORK_LOST = 1 << 0,	/* there is a second owner, and there was no slot to count them */
	SHUNT_FORK_INHERITED = 1 << 1,	/* this process is not the first */
	SHUNT_FORK_COPIED = 1 << 2,	/* a socket that was not connected then, or a listener: another process may have a copy */
};

/* Other processes that hold a connection, since a fork. A part of its stream. */
struct shunt_holders {
	uint8_t forked;		/* enum shunt_forked */
	struct shunt_fork_slot *_Atomic slot;	/* what its holders know of each other; NULL: nobody else holds it */
	uint32_t generation;	/* of the slot; UINT32_MAX: this process is not counted there any more */
	uint64_t rest;		/* the slot's count of uses when it came to rest before the last fork; 0: it did not */
};

/*
 * A slot for a connection that has none, and this process holds it; `linked`: on a link of ours. There is a page.
 * streams_lock held. False: no slot is free.
 */
bool shunt_fork_slots_take(struct shunt_forks *forks, struct shunt_holders *holders, bool linked);
/* A child will hold it, too. Before a fork; streams_lock held. */
void shunt_fork_slots_add(struct shunt_holders *holders);
/* A word of the page with this value; NULL: there is none left. There is a page. */
_Atomic uint32_t *shunt_fork_slots_want(struct shunt_forks *forks, uint32_t value);
/* It is used for the first time by this process. A stream that nobody shares is ours. */
enum shunt_whose shunt_fork_slots_touch(struct shunt_forks *forks, struct shunt_holders *holders);
/* It moves to a link of ours. False: somebody else has touched it. */
bool shunt_fork_slots_commit(struct shunt_forks *forks, struct shunt_holders *holders);
/* It is to be the kernel's for all. False: it is on another process's link, who must be asked. */
bool shunt_fork_slots_settle(struct shunt_forks *forks, struct shunt_holders *holders);
/* We hold it no more; once. */
void shunt_fork_slots_leave(struct shunt_forks *forks, struct shunt_holders *holders);
/* Has it a slot that counts who holds it? */
bool shunt_fork_slots_counts(const struct shunt_holders *holders);
/* The process that has it on a link, and has not handed it over; 0: none, or the slot is not this stream's any more. */
pid_t shunt_fork_slots_owner(const struct shunt_holders *holders);
/* Does another process hold it, or has one taken it, as far as we know? */
bool shunt_fork_slots_held(const struct shunt_holders *holders);
/* This process has changed flags or options of the socket. How many changes there have been, of 16 bits. */
uint16_t shunt_fork_slots_change(struct shunt_forks *forks, const struct shunt_holders *holders);
/* How many there have been; without a slot 0. */
uint16_t shunt_fork_slots_changes(struct shunt_forks *forks, const struct shunt_holders *holders);

/*
 * It is on a relative's link, and is to be the kernel's. Only relatives see the page, so a mark
 * there is all that is asked: who could make it holds the socket. Its owner, to be woken now
 * (core/stream/handover.c); 0: nobody's link has it.
 */
struct shunt_question {
	struct shunt_fork_slot *slot;
	uint32_t generation;
};
enum shunt_told { SHUNT_TOLD_NOTHING, SHUNT_TOLD_YES, SHUNT_TOLD_NO };

pid_t shunt_fork_slots_ask(struct shunt_holders *holders, struct shunt_question *asked);
/* The owner's answer. Any time later, also when the stream is gone. */
enum shunt_told shunt_fork_slots_told(const struct shunt_question *asked);
/* The owner's side: does somebody ask? And the answer. */
bool shunt_fork_slots_is_asked(const struct shunt_holders *holders);
void shunt_fork_slots_tell(struct shunt_forks *forks, struct shunt_holders *holders, bool handed);
/* It has been: by a relative that has taken it from the owner (core/stream/rest.h). */
void shunt_fork_slots_tell_taken(struct shunt_holders *holders);
/* Without the page a child could not have back what is on a link. Before there is one. */
bool shunt_fork_slots_prepare(struct shunt_forks *forks, const struct shunt_sys *sys);
/* The makings of the names of relatives' doors; NULL: there is no page. */
struct shunt_fork_family *shunt_fork_slots_family(struct shunt_forks *forks);

#endif
