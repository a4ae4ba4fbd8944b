/* SPDX-License-Identifier: MIT */
#include "tools/ask/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif
#define KEPT_MOST 256

static bool unguarded; /* the kernel has no SO_PASSRIGHTS */
static int kept[KEPT_MOST]; /* sockets that may have descriptors in their queues */
static int kept_count;

int shunt_guard_socket(int type)
{
	const int off = 0;
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off)))
		unguarded = true;
	return fd;
}

/* MSG_CTRUNC: the message has descriptors, for which there is no room. A look at them closes none. */
ssize_t shunt_guard_recv(int fd, void *to, size_t room, int flags)
{
	struct iovec iov = { to, room };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t got;

	if (!unguarded)
		return recv(fd, to, room, flags | MSG_DONTWAIT);
	got = recvmsg(fd, &message, flags | MSG_PEEK | MSG_DONTWAIT);
	if (got >= 0 && message.msg_flags & MSG_CTRUNC) {
		errno = EBADMSG;
		return -1;
	}
	/* The look ends before a message that has descriptors, so only bytes that it has shown are taken. */
	return got > 0 ?
		       recv(fd, to, (size_t)got < room ? (size_t)got : room, flags | MSG_DONTWAIT) :
		       got;
}

const char *shunt_guard_reason(int error)
{
	return error == EBADMSG ? "it sends descriptors, as no engine does" : strerror(error);
}

/*
 * Nothing can be added any more. With SO_PASSCRED each packet has something for which there is no room, also an empty
 * one.
 */
static bool has_packets(int fd)
{
	const int on = 1;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	return setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) ||
	       recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT) > 0 || message.msg_flags & MSG_CTRUNC;
}

void shunt_guard_close(int fd)
{
	int saved = errno;

	if (unguarded)
		shutdown(fd, SHUT_RDWR);
	if (!unguarded || !has_packets(fd)) {
		close(fd);
	} else {
		if (kept_count == KEPT_MOST)
			shunt_guard_settle();
		if (kept_count < KEPT_MOST) /* or it stays open until this process ends */
			kept[kept_count++] = fd;
	}
	errno = saved;
}

/* Has copies of the sockets until nobody else has. It is init's child, so that nobody waits for its end. */
static void __attribute__((noreturn)) keep(const int held[2])
{
	pid_t child = fork();
	char byte;

	if (child)
		_exit(child < 0 ? 1 : 0);
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		close(fd);
	close(held[1]);
	while (read(held[0], &byte, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

/* False: nobody has copies, so the sockets have to stay open. */
static bool copy(int held[2])
{
	int status = 1;
	pid_t child = fork();

	if (!child)
		keep(held);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return !status;
}

void shunt_guard_settle(void)
{
	int held[2], saved = errno;

	if (kept_count && !pipe2(held, O_CLOEXEC)) {
		bool copied = copy(held);

		while (copied && kept_count)
			close(kept[--kept_count]);
		close(held[0]);
		close(held[1]);
	}
	errno = saved;
}
