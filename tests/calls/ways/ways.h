/* SPDX-License-Identifier: MIT */
/* The two programs of this folder share this: the calls of a plug-in. */
#ifndef SHUNT_TESTS_CALLS_WAYS_WAYS_H
#define SHUNT_TESTS_CALLS_WAYS_WAYS_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* The calls that a road leads to, by name. */
#define WAYS_CALLS(X)                                                                               \
	X(ssize_t, read, (int, void *, size_t))                                                     \
	X(ssize_t, write, (int, const void *, size_t))                                              \
	X(ssize_t, readv, (int, const struct iovec *, int))                                         \
	X(ssize_t, writev, (int, const struct iovec *, int))                                        \
	X(ssize_t, preadv2, (int, const struct iovec *, int, off_t, int))                           \
	X(ssize_t, pwritev2, (int, const struct iovec *, int, off_t, int))                          \
	X(ssize_t, recv, (int, void *, size_t, int))                                                \
	X(ssize_t, send, (int, const void *, size_t, int))                                          \
	X(ssize_t, recvfrom, (int, void *, size_t, int, struct sockaddr *, socklen_t *))            \
	X(ssize_t, sendto, (int, const void *, size_t, int, const struct sockaddr *, socklen_t))    \
	X(ssize_t, recvmsg, (int, struct msghdr *, int))                                            \
	X(ssize_t, sendmsg, (int, const struct msghdr *, int))                                      \
	X(int, recvmmsg, (int, struct mmsghdr *, unsigned int, int, struct timespec *))             \
	X(int, sendmmsg, (int, struct mmsghdr *, unsigned int, int))                                \
	X(int, poll, (struct pollfd *, nfds_t, int))                                                \
	X(int, ppoll, (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *))         \
	X(int, select, (int, fd_set *, fd_set *, fd_set *, struct timeval *))                       \
	X(int, pselect, (int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *)) \
	X(int, epoll_create1, (int))                                                                \
	X(int, epoll_ctl, (int, int, int, struct epoll_event *))                                    \
	X(int, epoll_wait, (int, struct epoll_event *, int, int))                                   \
	X(int, epoll_pwait, (int, struct epoll_event *, int, int, const sigset_t *))                \
	X(int, ioctl, (int, unsigned long, ...))                                                    \
	X(int, fcntl, (int, int, ...))                                                              \
	X(int, dup, (int))                                                                          \
	X(int, dup2, (int, int))                                                                    \
	X(int, close, (int))                                                                        \
	X(int, shutdown, (int, int))                                                                \
	X(int, getsockopt, (int, int, int, void *, socklen_t *))                                    \
	X(long, syscall, (long, ...))

struct ways_calls {
#define X(type, name, parameters) type(*name) parameters;
	WAYS_CALLS(X)
#undef X
};

#endif
