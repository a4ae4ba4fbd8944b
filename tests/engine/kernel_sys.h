/* SPDX-License-Identifier: MIT */
/* The calls of `struct shunt_sys` that are libc's in each program with an engine of its own over real TCP. */
#ifndef TESTS_ENGINE_KERNEL_SYS_H
#define TESTS_ENGINE_KERNEL_SYS_H

#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>
#include "core/base/sys.h"
#include "core/fork/sole.h"

int capget(void *header, void *data);	/* libc's, which has no declaration of it */

static inline int kernel_recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	return recvmmsg(fd, messages, count, flags, NULL);
}

/* All but the clock, and the two that take addresses. */
#define KERNEL_SYS                                                                                 \
	.sendmsg = sendmsg, .recvmsg = recvmsg, .recvmmsg = kernel_recvmmsg,                       \
	.getsockopt = getsockopt,                                                                  \
	.setsockopt = setsockopt, .getsockname = getsockname, .getpeername = getpeername,          \
	.shutdown = shutdown, .ioctl = ioctl, .fcntl = fcntl, .dup3 = dup3, .socket = socket,      \
	.listen = listen, .accept4 = accept4, .read = read, .write = write, .close = close,        \
	.ppoll = ppoll, .epoll_create1 = epoll_create1, .epoll_ctl = epoll_ctl,                    \
	.epoll_pwait = epoll_pwait, .epoll_pwait2 = epoll_pwait2, .getrandom = getrandom,          \
	.yield = sched_yield, .getresuid = getresuid, .getresgid = getresgid, .prctl = prctl,      \
	.capget = capget, .readlink = readlink, .attach = shunt_attach_ask,                        \
	.yama = shunt_attach_yama, .socket_ask = shunt_sole_ask, .socket_look = shunt_sole_look

#endif
