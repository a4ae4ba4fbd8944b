/* SPDX-License-Identifier: MIT */
/*
 * Descriptors of our own: near the top of the table, close-on-exec, and invisible to the program
 * (PF-48, PF-65).
 *
 * Our descriptors move to high numbers: from 1920 on, or from half the table where it is smaller. The kernel copies
 * its table up to the highest number at each fork, so they are no higher. They are above the numbers that select can
 * name. They are close-on-exec, and marked private in the files table. The program's calls on them give EBADF, and
 * close_range and closefrom go around them. Calls from Shunt's own code are told apart by their return address. RDMA
 * libraries call libc by name for descriptors that are ours. Their code is noted when they are loaded
 * (core/fd/file.h: helpers), and counts as our own at the boundary.
 *
 * No system call makes a socket or an eventfd at a high number: each has the lowest free one for an instant. A fork
 * waits meanwhile, and so do calls of the program that close or replace numbers which the table does not know. They
 * wait at most 20 ms, because a signal handler may close, too. A call on a number that the program has closed waits
 * for a second at most: it would reach what is being made. Closing one such number costs a load more for that.
 * Closing a range keeps makers away until it is done. A descriptor that socket, dup, fcntl or epoll_create makes for
 * the program in that instant is moved down when ours is gone (shunt_numbers_lowest). An accept begins when no thread
 * makes any. A program can still see that a file opened otherwise gets the number after.
 */
#ifndef SHUNT_CORE_FD_OWN_FDS_H
#define SHUNT_CORE_FD_OWN_FDS_H

#include "core/base/lock.h"
#include "core/base/sys.h"
#include "core/fd/file.h"
#include "core/fd/loading.h"

struct shunt_wakers {	/* of threads that do not sleep now */
	struct shunt_lock lock;
	int fd[64];
	int count;
};

/* The room's part of an engine. */
struct shunt_fds {
	const struct shunt_sys *sys;
	struct shunt_files *files;
	struct shunt_loading loading;
	struct shunt_wakers wakers;
};

/*
 * Around the making of descriptors. For an instant they have low numbers, or high ones that are not
 * marked yet, and a program that closes everything would close them too. May be nested.
 */
void shunt_own_fds_begin(struct shunt_fds *fds);
void shunt_own_fds_end(struct shunt_fds *fds);
/* Moves fd high, marks it private and close-on-exec. The new number, or -errno (fd is closed). */
int shunt_own_fds_adopt(struct shunt_fds *fds, int fd);
/* The descriptor is ours from now on, with the number that it has. -EMFILE: it cannot be marked. */
int shunt_own_fds_mark(struct shunt_fds *fds, int fd);
/* Makes one with the call and adopts it. */
#define shunt_own_fds_make(fds, call)			\
	({							\
		int made_;					\
								\
		shunt_own_fds_begin(fds);			\
		made_ = shunt_own_fds_adopt(fds, call);		\
		shunt_own_fds_end(fds);				\
		made_;						\
	})
/* Closes one, if fd is not negative. Any thread. */
void shunt_own_fds_close(struct shunt_fds *fds, int fd);
/* The number is no longer ours, and its file is closed elsewhere. */
void shunt_own_fds_forget(struct shunt_fds *fds, int fd);
/* A private duplicate of any descriptor. */
int shunt_own_fds_copy(struct shunt_fds *fds, int fd);
/* A copy and a close as libraries of ours call them back (core/device/cm/cm.h): the argument is a struct shunt_fds. */
int shunt_own_fds_keep(void *fds, int fd);
void shunt_own_fds_drop(void *fds, int fd);
/* In the child of any fork: closes what is left of its copies of our descriptors. Safe in a signal handler. */
void shunt_own_fds_abandon(struct shunt_fds *fds);

/* --- the program's numbers --- */

/*
 * For closing or replacing a number that the table does not know. Waits until no thread of Shunt is
 * about to make a descriptor of its own there.
 */
void shunt_numbers_await(struct shunt_fds *fds);
/*
 * Around a call that makes a descriptor: such a thread may have had the lowest number. The first call waits likewise,
 * and returns `before`. The second moves fd to the lowest number from `least` on, and returns that. errno is kept.
 */
unsigned int shunt_numbers_made(struct shunt_fds *fds);
int shunt_numbers_lowest(struct shunt_fds *fds, int fd, int least, unsigned int before);
/* As shunt_numbers_await() for closing many numbers, and keeps such threads away until it is done. */
void shunt_numbers_enter(struct shunt_fds *fds);
void shunt_numbers_leave(struct shunt_fds *fds);
/* A number has been closed: until the program has opened it again, calls on it say so. */
void shunt_numbers_closed(struct shunt_fds *fds, int fd);
/* Has the program closed it, and is what may be open there not what this very thread is making? */
bool shunt_numbers_gone(struct shunt_fds *fds, int fd);
/* The slot of a number, SHUNT_FILE_CLOSED only if it is still closed. errno is kept. */
struct shunt_file *shunt_numbers_look(struct shunt_fds *fds, int fd);

#endif
