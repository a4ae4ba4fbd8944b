/* Finding a shunted process: each has sockets of abstract Unix names, "shunt/SERVICE/PID". */
#include "tools/shunt.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static int has_library(pid_t pid)
{
	char path[64], *line = NULL;
	size_t room = 0;
	int found = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (!maps)
		return -errno;
	while (!found && getline(&line, &room, maps) > 0)
		found = strstr(line, "/libshunt.so") != NULL;
	free(line);
	fclose(maps);
	return found;
}

/* There is nobody at the socket: say which of the reasons it is. */
static const char *absence(pid_t pid)
{
	if (kill(pid, 0) && errno == ESRCH)
		return "there is no such process";
	switch (has_library(pid)) {
	case 0:
		return "the process runs without Shunt; start it with `shunt run`";
	case 1:
		return "Shunt is loaded, but no connection has needed its engine yet "
		       "(or the process is in another network namespace)";
	}
	return "the process may not be examined; only its user and root may ask";
}

static int connect_to(pid_t pid, const char *service, int type)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = 5 };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	int len = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "shunt/%s/%d", service, (int)pid);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
	int rc;

	if (fd < 0)
		return -errno;
	/* A stopped process accepts nothing: its backlog may fill up, and connect() waits too. */
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&address, size)) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

/* Any process may take any abstract name: the kernel says who listens. */
static int is_process(int fd, pid_t pid)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) &&
	       (peer.pid == pid || peer.pid == 0);
}

int shunt_process_connect(pid_t pid, const char *service, int type, char *why, size_t len)
{
	int fd = connect_to(pid, service, type);

	if (fd < 0) {
		snprintf(why, len, "%s", fd == -ECONNREFUSED ? absence(pid) : strerror(-fd));
		return -1;
	}
	if (!is_process(fd, pid)) {
		snprintf(why, len, "another process answers in its name");
		close(fd);
		return -1;
	}
	return fd;
}

pid_t shunt_process_id(const char *word)
{
	char *end;
	long pid = strtol(word, &end, 10);

	return *word >= '0' && *word <= '9' && !*end && pid > 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
}
