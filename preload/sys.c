/* SPDX-License-Identifier: MIT */
/* The engine's surroundings: bare system calls, without cancellation points. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include "core/fork/sole.h"
#include "core/base/kernel_clock.h"
#include "core/device/fault.h"
#include "preload/process.h"

#define KERNEL_SIGSET (_NSIG / 8)	/* bytes of a signal mask, as the kernel knows it */

/*
 * The calls of libc's that are cancellation points, as bare system calls; libc's where they are waits (core/base/sys.h).
 */

/* The same call with fewer words for the kernel to copy. It does not tell msg_flags (core/base/sys.h). */
static bool is_one_piece(const struct msghdr *message)
{
	return message->msg_iovlen == 1 && !message->msg_name && !message->msg_control;
}

static ssize_t own_sendmsg(int fd, const struct msghdr *message, int flags)
{
	const struct iovec *piece = message->msg_iov;

	if (!(flags & MSG_DONTWAIT))
		return shunt_real.sendmsg(fd, message, flags);
	if (is_one_piece(message))
		return shunt_real.syscall(SYS_sendto, fd, piece->iov_base, piece->iov_len, flags, NULL, 0);
	return shunt_real.syscall(SYS_sendmsg, fd, message, flags);
}

static ssize_t own_recvmsg(int fd, struct msghdr *message, int flags)
{
	const struct iovec *piece = message->msg_iov;

	if (!(flags & MSG_DONTWAIT))
		return shunt_real.recvmsg(fd, message, flags);
	if (is_one_piece(message))
		return shunt_real.syscall(SYS_recvfrom, fd, piece->iov_base, piece->iov_len, flags, NULL, NULL);
	return shunt_real.syscall(SYS_recvmsg, fd, message, flags);
}

static int own_recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	return (int)shunt_real.syscall(SYS_recvmmsg, fd, messages, count, flags, NULL);
}

static ssize_t own_read(int fd, void *buffer, size_t bytes)
{
	return shunt_real.syscall(SYS_read, fd, buffer, bytes);
}

static ssize_t own_write(int fd, const void *buffer, size_t bytes)
{
	return shunt_real.syscall(SYS_write, fd, buffer, bytes);
}

static int own_close(int fd)
{
	return (int)shunt_real.syscall(SYS_close, fd);
}

static int own_connect(int fd, const struct sockaddr *address, socklen_t length)
{
	return (int)shunt_real.syscall(SYS_connect, fd, address, length);
}

static int own_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	struct timespec none = { 0, 0 };	/* the kernel writes there */

	return timeout && !timeout->tv_sec && !timeout->tv_nsec ?
	       (int)shunt_real.syscall(SYS_ppoll, fds, count, &none, mask, KERNEL_SIGSET) :
	       shunt_real.ppoll(fds, count, timeout, mask);
}

static int own_epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout_ms, const sigset_t *mask)
{
	return timeout_ms ? shunt_real.epoll_pwait(epfd, events, max, timeout_ms, mask) :
			    (int)shunt_real.syscall(SYS_epoll_pwait, epfd, events, max, 0, mask, KERNEL_SIGSET);
}

/* Kernels before 5.11 lack it, and so do the system-call filters of old containers: there it is milliseconds, rounded up. */
static int own_epoll_pwait2(int epfd, struct epoll_event *events, int max, const struct timespec *timeout,
			    const sigset_t *mask)
{
	static _Atomic bool lacking;
	int n, ms, saved = errno;

	if (!timeout)
		return shunt_real.epoll_pwait(epfd, events, max, -1, mask);
	if (!atomic_load_explicit(&lacking, memory_order_relaxed)) {
		n = shunt_real.epoll_pwait2(epfd, events, max, timeout, mask);
		if (n >= 0 || (errno != ENOSYS && errno != EPERM))
			return n;
		atomic_store(&lacking, true);
		errno = saved;
	}
	ms = timeout->tv_sec < INT_MAX / 1000 ?
	     (int)(timeout->tv_sec * 1000 + (timeout->tv_nsec + 999999) / 1000000) : INT_MAX;
	return shunt_real.epoll_pwait(epfd, events, max, ms, mask);
}

static ssize_t own_getrandom(void *buffer, size_t bytes, unsigned int flags)
{
	return shunt_real.syscall(SYS_getrandom, buffer, bytes, flags);
}

/* Of the calling thread: libc has no declaration of it. */
static int own_capget(void *header, void *data)
{
	return (int)shunt_real.syscall(SYS_capget, header, data);
}

static int own_prctl(int option, ...)
{
	va_list arguments;
	long value;

	va_start(arguments, option);
	value = va_arg(arguments, long);
	va_end(arguments);
	return (int)shunt_real.syscall(SYS_prctl, option, value, 0, 0, 0);
}

/* Descriptors of Shunt's own, which SHUNT_FAULT can refuse. */

static int own_socket(int family, int type, int protocol)
{
	return shunt_fault_denies(SHUNT_DENY_FD) ? -1 : shunt_real.socket(family, type, protocol);
}

static int own_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	return shunt_fault_denies(SHUNT_DENY_FD) ? -1 : (int)shunt_real.syscall(SYS_accept4, fd, address, length, flags);
}

/* A filter of the program's may allow only one of the two. */
static int program_accept(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	return (int)(flags == SHUNT_ACCEPT_PLAIN ?
			     shunt_real.syscall(SYS_accept, fd, address, length) :
			     shunt_real.syscall(SYS_accept4, fd, address, length, flags));
}

static int own_epoll_create1(int flags)
{
	return shunt_fault_denies(SHUNT_DENY_FD) ? -1 : shunt_real.epoll_create1(flags);
}

static int own_fcntl(int fd, int command, ...)
{
	va_list arguments;
	long argument;

	va_start(arguments, command);
	argument = va_arg(arguments, long);
	va_end(arguments);
	if (command == F_DUPFD_CLOEXEC && shunt_fault_denies(SHUNT_DENY_FD))
		return -1;
	return shunt_real.fcntl(fd, command, argument);
}

static int own_dup3(int from, int to, int flags)
{
	return (int)shunt_real.syscall(SYS_dup3, from, to, flags);
}

struct shunt_sys shunt_process_sys;

/* Calls that are not wrapped are simply libc's. */
void shunt_process_fill_sys(void)
{
	shunt_process_sys = (struct shunt_sys) {
		.now = shunt_kernel_clock_now,
		.sendmsg = own_sendmsg,
		.recvmsg = own_recvmsg,
		.recvmmsg = own_recvmmsg,
		.getsockopt = shunt_real.getsockopt,
		.setsockopt = shunt_real.setsockopt,
		.getsockname = getsockname,
		.getpeername = getpeername,
		.shutdown = shunt_real.shutdown,
		.ioctl = shunt_real.ioctl,
		.fcntl = own_fcntl,
		.dup3 = own_dup3,
		.socket = own_socket,
		.bind = bind,
		.listen = shunt_real.listen,
		.accept4 = own_accept4,
		.accept = program_accept,
		.connect = own_connect,
		.read = own_read,
		.write = own_write,
		.close = own_close,
		.ppoll = own_ppoll,
		.epoll_create1 = own_epoll_create1,
		.epoll_ctl = shunt_real.epoll_ctl,
		.epoll_pwait = own_epoll_pwait,
		.epoll_pwait2 = own_epoll_pwait2,
		.getrandom = own_getrandom,
		.getresuid = getresuid,
		.getresgid = getresgid,
		.prctl = own_prctl,
		.capget = own_capget,
		.readlink = readlink,
		.attach = shunt_attach_ask,
		.yama = shunt_attach_yama,
		.socket_ask = shunt_sole_ask,
		.socket_look = shunt_sole_look,
		.yield = sched_yield,
	};
}
