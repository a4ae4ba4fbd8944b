/* SPDX-License-Identifier: MIT */
/*
 * The loop of the service thread. It has an epoll set whose sources carry their handlers, tasks
 * that are due at a time or at once, and a wake-up. It knows nothing of streams and links.
 *
 * Any thread may post a task or wake the loop, holding any lock. The rest is the service thread's.
 * Times are nanoseconds of the engine's clock. Errors are -errno.
 *
 * Data never wakes the service thread. While a lane has work that waits for credit it sleeps on the completion
 * channel, too, because perhaps no other thread polls.
 */
#ifndef SHUNT_CORE_LOOP_LOOP_H
#define SHUNT_CORE_LOOP_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include "core/base/deadline.h"

struct shunt_fds;
struct shunt_porter;
struct shunt_steps;

/* A descriptor that epoll reports; a member of the object that owns the descriptor. `events` are epoll's. */
struct shunt_source {
	void (*ready)(struct shunt_source *source, uint32_t events);
};

/*
 * Something to do when it is due. A round runs due tasks in the order in which they were enlisted.
 * That order holds even if they became due in another.
 */
struct shunt_task {
	const char *name;	/* for `shunt trace slow` */
	void (*run)(struct shunt_task *task);
	_Atomic uint64_t when;		/* due from then on; 0: at once; SHUNT_NEVER: not. Cleared before it runs */
	uint64_t not_before;		/* it does not run before then, however it is posted; the loop's thread */
	bool each_round;		/* it runs in each round; `when` says until when there must be another one */
	struct shunt_task *next;
};

/* The object whose member `part` is: a source or a task. */
#define shunt_loop_owner(part, type, member) ((type *)((char *)(part) - offsetof(type, member)))

/* Any thread's requests to the service thread: request.h. All of it is new with each loop. */
struct shunt_requests {
	_Atomic bool watching;		/* a lane waits for credit */
	_Atomic bool resting;		/* it would not learn that a lane's QP takes nothing */
	_Atomic uint32_t refusing;	/* streams of which the program wants nothing more: see tx.c */
	struct shunt_task fork_owner;	/* the peer has shown its nonce: we are to show ours, or a child waits for that */
	struct shunt_task gather;	/* a stream holds bytes for more that was announced */
	struct shunt_task reclaim;	/* there may be memory to let go */
	struct shunt_task mock;		/* a device has WRs that it has not carried out */
	struct shunt_task trace;	/* peers are to be asked for rings, records to be completed, clocks compared */
};

struct shunt_loop {
	struct shunt_fds *fds;
	struct shunt_steps *steps;
	struct shunt_porter *porter;
	bool manual;			/* the simulator steps the service itself */
	_Atomic bool no_new_privs;	/* a thread of the program has set it, or is about to: so do our threads */
	struct shunt_requests requests;
	int epfd;
	int wake_fd;
	_Atomic bool open;
	_Atomic bool woken;		/* wake_fd has been written */
	struct shunt_source wake_source;
	struct shunt_task *first, **last;	/* in the order of a round */
};

/* 0 or -errno; then the loop is closed. */
int shunt_loop_open(struct shunt_loop *loop);
/* Also in a fork's child, where the descriptors are copies of the parent's. */
void shunt_loop_close(struct shunt_loop *loop);

/* Of two time-outs in ms; negative: none. */
static inline int shunt_loop_sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* Registers a descriptor for `events`, in place of what it was registered for. 0 or -errno. */
int shunt_loop_add(struct shunt_loop *loop, int fd, struct shunt_source *source, uint32_t events);
/* A registered descriptor has other events, or another source. 0 or -errno. */
int shunt_loop_change(struct shunt_loop *loop, int fd, struct shunt_source *source, uint32_t events);
void shunt_loop_remove(struct shunt_loop *loop, int fd);

/* The task is one of the loop from here on; not due. */
void shunt_loop_enlist(struct shunt_loop *loop, const char *name, struct shunt_task *task,
		       void (*run)(struct shunt_task *), bool each_round);
/* The task is due at once. Any thread. */
void shunt_loop_post(struct shunt_loop *loop, struct shunt_task *task);
/* The task is due at `when`, unless it is due anyway, be it later. Any thread. */
void shunt_loop_remind(struct shunt_loop *loop, struct shunt_task *task, uint64_t when);
/* The task is due at `when`, or before if it was. A task or a source's handler calls it. */
void shunt_task_at(struct shunt_task *task, uint64_t when);

/* It is due, be it later. */
static inline bool shunt_task_waits(struct shunt_task *task)
{
	return atomic_load_explicit(&task->when, memory_order_relaxed) != SHUNT_NEVER;
}

/* Runs what is due. Milliseconds until there is more, at most `timeout_ms` (-1: for ever). */
int shunt_loop_work(struct shunt_loop *loop, int timeout_ms);
/* The next round begins at once. A closed loop is left alone. errno is kept. */
void shunt_loop_wake(struct shunt_loop *loop);
/* Waits at most `timeout_ms` (-1: for ever) for sources. How many there are, or -1. */
int shunt_loop_wait(struct shunt_loop *loop, struct epoll_event *events, int most, int timeout_ms);
/* Calls the handlers of what the wait has found. */
void shunt_loop_hear(struct shunt_loop *loop, struct epoll_event *events, int count);

#endif
