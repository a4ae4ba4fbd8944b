/* SPDX-License-Identifier: MIT */
/*
 * The doors of a process are its listening Unix sockets. Anybody may come to one. A stranger, who may not be linked
 * (trust.h), is hung up on before anything is received.
 *
 * That may take time. A socket's close() also closes the descriptors in its queue. A TCP socket there, with SO_LINGER
 * and unsent bytes, keeps the closing thread for as long as its sender likes. Since Linux 6.16 a door refuses
 * descriptors (SO_PASSRIGHTS), and so do the sockets that it accepts, until the stranger has proven a connection. A
 * stranger that could send some is let go of by a thread that has nothing else to do. It holds no lock, is made for
 * the first stranger, and ends with the last. A program that forbids itself new threads has it from then on. When too
 * many wait for it the doors are shut.
 */
#ifndef SHUNT_CORE_LOOP_PORTER_H
#define SHUNT_CORE_LOOP_PORTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "core/base/lock.h"
#include "core/loop/loop.h"

#define SHUNT_PORTER_MOST 64	/* strangers wait to be let go of: the doors are shut */
#define SHUNT_PORTER_CROWD 192	/* more than the backlog of a door */

struct shunt_porter {
	struct shunt_loop *loop;
	struct shunt_task emptied;	/* of the service thread: there may be room again, or descriptors (core/peer/deaf.h) */
	struct shunt_lock lock;		/* of the next six; an innermost one */
	int *waiting;			/* grows: links that were made before the doors were shut end, too */
	uint32_t count, room;
	bool at_work;			/* there is a thread, or is about to be */
	bool stays, rests;		/* it does not end with the last stranger; it waits for the next */
	_Atomic bool follows;		/* it has set no_new_privs */
	_Atomic uint32_t calls;		/* a futex; changed under lock */
	_Atomic pid_t tid;		/* its id, or that of the last one; 0: there was none */
	_Atomic bool unguarded;		/* the kernel lets strangers send descriptors */
	_Atomic bool shut;		/* the doors are, until there is room again */
};

/* Connections that waited at a door when it was closed. */
struct shunt_crowd {
	int fd[SHUNT_PORTER_CROWD];
	int count;
};

/* A door is made. */
void shunt_porter_guard(struct shunt_porter *porter, int door);
/* The peer that has come in there may be linked: it may send descriptors now. */
void shunt_porter_trust(struct shunt_porter *porter, int fd);
/*
 * A stranger's private descriptor goes, which no loop may still watch; the stranger hears of it at once. No lock held
 * but the service thread's.
 */
void shunt_porter_dismiss(struct shunt_porter *porter, int fd);
/* A stranger's that was allowed to send descriptors: what is in its queue may take long to close. The same. */
void shunt_porter_let_go(struct shunt_porter *porter, int fd);
/* A descriptor that a stranger has sent goes, which may take as long as the stranger likes. The same. */
void shunt_porter_close_later(struct shunt_porter *porter, int fd);
/* Fewer than that many wait to be closed. Any lock may be held. */
bool shunt_porter_has_room(struct shunt_porter *porter);
/* No more strangers can be taken. */
bool shunt_porter_is_full(struct shunt_porter *porter);

/* The program is about to forbid itself new threads, and strangers may come: the thread is made now, and stays. */
void shunt_porter_stay(struct shunt_porter *porter);

/*
 * The door's name is free when this returns. Any lock may be held; the crowd is added to, and
 * dismissed when none is.
 */
void shunt_porter_close(struct shunt_porter *porter, int door, struct shunt_crowd *crowd);
void shunt_porter_dismiss_all(struct shunt_porter *porter, struct shunt_crowd *crowd);

/* Ends the thread and waits for that, at most until `until` (ns). False: a stranger holds it up. */
bool shunt_porter_await(struct shunt_porter *porter, uint64_t until);
/* Waits until the thread has set no_new_privs as loop.no_new_privs says, or has ended. `until` and false: as above. */
bool shunt_porter_follows(struct shunt_porter *porter, uint64_t until);

#endif
