/* SPDX-License-Identifier: MIT */
/* Finding a shunted process: each has sockets of abstract Unix names, "shunt/SERVICE/PID". */
#include "tools/shunt.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

double shunt_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Never waits: -EAGAIN where too many others have come. */
static int connect_to(pid_t pid, const char *service, int type)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int len = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "shunt/%s/%d", service,
			   (int)shunt_process_inner(pid));
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
	int rc;

	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, size)) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

/*
 * Any process may take any abstract name: the kernel says who listens. A process answers its own user and root, so what
 * another user's says to us is not an engine's.
 */
static const char *wrong_process(int fd, pid_t pid)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) || (peer.pid != pid && peer.pid != 0))
		return "another process answers in its name (one with its process id in another PID namespace?)";
	if (geteuid() && peer.uid && peer.uid != geteuid())
		return "it is another user's; only that user and root may ask";
	return NULL;
}

int shunt_process_try(pid_t pid, const char *service, int type, char *why, size_t len)
{
	int fd = connect_to(pid, service, type);
	const char *wrong;

	if (fd < 0) {
		snprintf(why, len, "%s", fd == -ECONNREFUSED ? shunt_process_absence(pid) : strerror(-fd));
		return fd;
	}
	wrong = wrong_process(fd, pid);
	if (!wrong)
		return fd;
	snprintf(why, len, "%s", wrong);
	close(fd);
	return -EPERM;
}

pid_t shunt_process_id(const char *word)
{
	char *end;
	long pid = strtol(word, &end, 10);

	return *word >= '0' && *word <= '9' && !*end && pid > 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
}
