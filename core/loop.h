/*
 * The loop of the service thread: an epoll set whose sources carry their handlers, tasks that are due at
 * a time or at once, and a wake-up. It knows nothing of streams and links.
 *
 * Any thread may post a task or wake the loop, holding any lock. The rest is the service thread's.
 * Times are nanoseconds of the engine's clock. Errors are -errno.
 */
#ifndef SHUNT_CORE_LOOP_H
#define SHUNT_CORE_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

struct shunt_engine;

/* What epoll can report; a member of the object that owns the descriptor. `events` are epoll's. */
struct shunt_source {
	void (*ready)(struct shunt_source *source, uint32_t events);
};

/* The object whose member `part` is: a source or a task. */
#define shunt_loop_owner(part, type, member) ((type *)((char *)(part) - offsetof(type, member)))

struct shunt_loop {
	struct shunt_engine *engine;
	int epfd;
	int wake_fd;
	_Atomic bool open;
	_Atomic bool woken;		/* wake_fd has been written */
	struct shunt_source wake_source;
};

/* 0 or -errno; then the loop is closed. */
int shunt_loop_open(struct shunt_loop *loop, struct shunt_engine *engine);
/* Also in a fork's child, where the descriptors are copies of the parent's. */
void shunt_loop_close(struct shunt_loop *loop);

/* Registers a descriptor for `events`. 0 or -errno. */
int shunt_loop_add(struct shunt_loop *loop, int fd, struct shunt_source *source, uint32_t events);
/* A registered descriptor has other events, or another source. 0 or -errno. */
int shunt_loop_change(struct shunt_loop *loop, int fd, struct shunt_source *source, uint32_t events);
void shunt_loop_remove(struct shunt_loop *loop, int fd);

/* The next round begins at once. A closed loop is left alone. errno is kept. */
void shunt_loop_wake(struct shunt_loop *loop);
/* Waits at most `timeout_ms` (-1: for ever) for sources. How many there are, or -1. */
int shunt_loop_wait(struct shunt_loop *loop, struct epoll_event *events, int most, int timeout_ms);
/* Calls the handlers of what the wait has found. */
void shunt_loop_hear(struct epoll_event *events, int count);

#endif
