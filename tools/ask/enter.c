/* SPDX-License-Identifier: MIT */
/*
 * Asking a process of another user namespace. To it the root of an outer namespace is the
 * overflow user, whom it refuses. A child of ours enters its user namespace, becomes root there,
 * connects, and hands us the connection.
 *
 * The owner of that namespace has all capabilities over the child, and may be hostile. So the
 * child is not dumpable before it enters: then only capabilities of our own namespace let anybody
 * trace it (ptrace(2)). The child says nothing but that it has connected, and ends.
 */
#include "tools/ask/door.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 1000	/* with the child, which the owner of the namespace may stop by a signal */
#define LINK_MAX_BYTES 64	/* "user:[4026531837]" and its like are shorter */

static bool read_link(const char *path, char text[LINK_MAX_BYTES])
{
	ssize_t got = readlink(path, text, LINK_MAX_BYTES - 1);

	text[got > 0 ? got : 0] = 0;
	return got > 0;
}

/*
 * Its user namespace, if it is not ours. -1: it is, or nobody can tell. The /proc may be of
 * another PID namespace.
 */
static int open_namespace(pid_t pid)
{
	char path[64], ours[LINK_MAX_BYTES], its[LINK_MAX_BYTES];

	if (!read_link("/proc/self", ours) || atoi(ours) != getpid())
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	if (!read_link(path, its) || !read_link("/proc/self/ns/user", ours) || !strcmp(ours, its))
		return -1;
	return open(path, O_RDONLY | O_CLOEXEC);
}

union rights {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
};

static bool send_descriptor(int to, int fd)
{
	union rights rights = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)),
					    .cmsg_level = SOL_SOCKET,
					    .cmsg_type = SCM_RIGHTS } };
	struct iovec byte = { "", 1 };
	struct msghdr message = { .msg_iov = &byte, .msg_iovlen = 1, .msg_control = rights.space,
				  .msg_controllen = sizeof(rights.space) };

	memcpy(CMSG_DATA(&rights.header), &fd, sizeof(fd));
	return sendmsg(to, &message, MSG_NOSIGNAL) == 1;
}

/* -1: the child has ended without one, or is held up. */
static int receive_descriptor(int from)
{
	struct pollfd readable = { .fd = from, .events = POLLIN };
	union rights rights;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = rights.space,
				  .msg_controllen = sizeof(rights.space) };
	struct cmsghdr *header;
	int fd = -1;

	if (poll(&readable, 1, PATIENCE_MS) <= 0 ||
	    recvmsg(from, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1)
		return -1;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

/* In the child. A namespace without a root of its own has nobody whom its processes would obey. */
static bool become_root_of(int namespace)
{
	int groups;

	if (prctl(PR_SET_DUMPABLE, 0) || setns(namespace, CLONE_NEWUSER))
		return false;
	groups = setgroups(0, NULL);
	groups |= setresgid(0, 0, 0);
	(void)groups;	/* it may have none: the user counts */
	return !setresuid(0, 0, 0);
}

static void ask_inside(int namespace, int report, const struct shunt_door *door,
		       const char *service, int type)
{
	struct shunt_door same = *door;
	char why[128];
	int fd;

	if (!become_root_of(namespace))
		_exit(1);
	fd = shunt_door_try(&same, service, type, why, sizeof(why));
	_exit(fd >= 0 && same.pid == door->pid && send_descriptor(report, fd) ? 0 : 1);
}

static void end_child(pid_t child)
{
	kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

int shunt_door_enter(struct shunt_door *door, const char *service, int type)
{
	int namespace = geteuid() || door->pid <= 0 ? -1 : open_namespace(door->pid), ends[2],
	    fd = -1;
	pid_t child = -1;

	if (namespace < 0)
		return -ENOENT;
	if (!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		child = fork();
		if (!child)
			ask_inside(namespace, ends[1], door, service, type);
		close(ends[1]);
		fd = child < 0 ? -1 : receive_descriptor(ends[0]);
		close(ends[0]);
		if (child > 0)
			end_child(child);
	}
	close(namespace);
	return fd < 0 ? -EACCES : fd;
}
