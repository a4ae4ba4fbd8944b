/* SPDX-License-Identifier: MIT */
/*
 * The surroundings of an engine: every call through which core reaches the kernel's sockets, the clock, the scheduler
 * and chance. The library's boundary (preload/) fills it with the real libc calls, the simulator with a scripted TCP
 * under a virtual clock. Calls that fail return -1 and set errno, as libc's do.
 *
 * Only calls that may wait are cancellation points (cancel.h). They are ppoll, epoll_pwait and epoll_pwait2 with a
 * timeout that is not zero, and sendmsg and recvmsg without MSG_DONTWAIT.
 */
#ifndef SHUNT_CORE_BASE_SYS_H
#define SHUNT_CORE_BASE_SYS_H

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include "core/base/attach.h"

struct mmsghdr;
struct shunt_fds;
struct shunt_sole_socket;

#define SHUNT_ACCEPT_PLAIN INT_MIN

struct shunt_sys {
	uint64_t (*now)(void);	/* monotonic nanoseconds */

	ssize_t (*sendmsg)(int fd, const struct msghdr *message, int flags);
	/* A caller that looks at msg_flags gives room for control messages, if only of length 0: others need not be told. */
	ssize_t (*recvmsg)(int fd, struct msghdr *message, int flags);
	/* Without a timeout. */
	int (*recvmmsg)(int fd, struct mmsghdr *messages, unsigned int count, int flags);
	int (*getsockopt)(int fd, int level, int name, void *value, socklen_t *length);
	int (*setsockopt)(int fd, int level, int name, const void *value, socklen_t length);
	int (*getsockname)(int fd, struct sockaddr *address, socklen_t *length);
	int (*getpeername)(int fd, struct sockaddr *address, socklen_t *length);
	int (*shutdown)(int fd, int how);
	int (*ioctl)(int fd, unsigned long request, ...);
	int (*fcntl)(int fd, int command, ...);
	int (*dup3)(int from, int to, int flags);

	int (*socket)(int family, int type, int protocol);
	int (*bind)(int fd, const struct sockaddr *address, socklen_t length);
	int (*listen)(int fd, int backlog);
	int (*accept4)(int fd, struct sockaddr *address, socklen_t *length, int flags);
	/* At a listener of the program's, by the call that the program makes: SHUNT_ACCEPT_PLAIN in place of flags is accept(). */
	int (*accept)(int fd, struct sockaddr *address, socklen_t *length, int flags);
	int (*connect)(int fd, const struct sockaddr *address, socklen_t length);
	ssize_t (*read)(int fd, void *buffer, size_t bytes);
	ssize_t (*write)(int fd, const void *buffer, size_t bytes);
	int (*close)(int fd);

	int (*ppoll)(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		     const sigset_t *mask);
	int (*epoll_create1)(int flags);
	int (*epoll_ctl)(int epfd, int op, int fd, struct epoll_event *event);
	int (*epoll_pwait)(int epfd, struct epoll_event *events, int max, int timeout_ms,
			   const sigset_t *mask);
	int (*epoll_pwait2)(int epfd, struct epoll_event *events, int max,
			    const struct timespec *timeout, const sigset_t *mask);
	ssize_t (*getrandom)(void *buffer, size_t bytes, unsigned int flags);

	/*
	 * The credentials of this process, and the peer's as far as /proc shows them: trust.h.
	 * capget() is as in capget(2).
	 */
	int (*getresuid)(uid_t *real, uid_t *effective, uid_t *saved);
	int (*getresgid)(gid_t *real, gid_t *effective, gid_t *saved);
	int (*prctl)(int option, ...);
	int (*capget)(void *header, void *data);
	ssize_t (*readlink)(const char *path, char *buffer, size_t bytes);
	int (*attach)(pid_t pid); /* shunt_attach_ask() */
	enum shunt_yama (*yama)(void); /* shunt_attach_yama() */

	/* Which socket a number names, and who else holds it: core/fork/sole.h. */
	bool (*socket_ask)(int fd, struct shunt_sole_socket *socket);
	void (*socket_look)(struct shunt_fds *fds, struct shunt_sole_socket *sockets,
			    unsigned int count);

	int (*yield)(void);	/* sched_yield(): an endless poll gives others a turn; no lock is held */
};

#endif
