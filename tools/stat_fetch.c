/* Statistics come from the process itself, over an abstract Unix socket named after it. */
#include "tools/stat.h"

#include <errno.h>
#include <poll.h>
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

#define NAME "shunt/stat/"

/* Enough for some 100,000 streams; more than that is not an engine's answer. */
#define ANSWER_MAX (64U << 20)

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* A listening socket has the kernel's __SO_ACCEPTCON in the flags; accepted ones bear the name too. */
static pid_t listener_pid(const char *line)
{
	const char *name = strstr(line, " @" NAME);
	unsigned int flags;
	char *end;
	long pid;

	if (!name || sscanf(line, "%*s %*s %*s %x", &flags) != 1 || !(flags & (1 << 16)))
		return 0;
	pid = strtol(name + sizeof(" @" NAME) - 1, &end, 10);
	return *end == '\n' && pid > 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
}

ssize_t shunt_stat_list(pid_t **pids)
{
	FILE *sockets = fopen("/proc/net/unix", "re");
	size_t count = 0, room = 0, line_room = 0;
	char *line = NULL;

	*pids = NULL;
	if (!sockets) {
		perror("shunt stat: /proc/net/unix");
		return -1;
	}
	while (getline(&line, &line_room, sockets) > 0) {
		pid_t pid = listener_pid(line);

		if (!pid)
			continue;
		if (count == room) {
			room = room ? 2 * room : 64;
			*pids = realloc(*pids, room * sizeof(**pids));
			if (!*pids)
				abort();
		}
		(*pids)[count++] = pid;
	}
	free(line);
	fclose(sockets);
	if (count)
		qsort(*pids, count, sizeof(**pids), compare_pids);
	return (ssize_t)count;
}

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

static int connect_to(pid_t pid)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = 5 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int len = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, NAME "%d", (int)pid);
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

static char *read_all(int fd, size_t *len)
{
	size_t room = 1 << 16;
	char *text = malloc(room);
	ssize_t n;

	*len = 0;
	while (text && (n = read(fd, text + *len, room - *len)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || *len + (size_t)n > ANSWER_MAX) {
			free(text);
			return NULL;
		}
		*len += (size_t)n;
		if (*len == room) {
			char *more = realloc(text, room *= 2);

			if (!more)
				free(text);
			text = more;
		}
	}
	return text;
}

json_t *shunt_stat_fetch(pid_t pid, char why[SHUNT_STAT_WHY_MAX])
{
	json_t *process = NULL;
	json_error_t error;
	char *text;
	size_t len;
	int fd = connect_to(pid);

	if (fd < 0) {
		snprintf(why, SHUNT_STAT_WHY_MAX, "%s",
			 fd == -ECONNREFUSED ? absence(pid) : strerror(-fd));
		return NULL;
	}
	if (!is_process(fd, pid)) {
		snprintf(why, SHUNT_STAT_WHY_MAX, "another process answers in its name");
		close(fd);
		return NULL;
	}
	text = read_all(fd, &len);
	if (!text || !len)
		snprintf(why, SHUNT_STAT_WHY_MAX, "it gave no answer (stopped, or not yours?)");
	else if (!(process = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error)))
		snprintf(why, SHUNT_STAT_WHY_MAX, "its answer is not JSON: %s", error.text);
	else if (!json_is_object(process)) {
		snprintf(why, SHUNT_STAT_WHY_MAX, "its answer is not a JSON object");
		json_decref(process);
		process = NULL;
	}
	free(text);
	close(fd);
	return process;
}
