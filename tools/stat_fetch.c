/* Statistics come from the process itself, over an abstract Unix socket named after it. */
#include "tools/stat.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/shunt.h"

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
	int fd = shunt_process_connect(pid, "stat", SOCK_STREAM, why, SHUNT_STAT_WHY_MAX);

	if (fd < 0)
		return NULL;
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
