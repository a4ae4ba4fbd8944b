/* SPDX-License-Identifier: MIT */
/*
 * Statistics come from the process itself, over an abstract Unix socket named after it. Anybody may take such a name
 * and say nothing, or a byte now and then: all are asked at the same time, and there is one deadline.
 */
#include "tools/stat.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/output.h"
#include "tools/shunt.h"

#define NAME "shunt/stat/"
#define PATIENCE 5.0	/* seconds */
#define AGAIN_MS 10	/* between attempts to connect to one that has too many clients */

/* Enough for some 100,000 streams; more than that is not an engine's answer. */
#define ANSWER_MAX (64U << 20)
#define FIRST_ROOM (16U << 10)

/* ---- who there is ---- */

static int compare_pids(const void *a, const void *b)
{
	pid_t x = ((const struct shunt_stat *)a)->pid, y = ((const struct shunt_stat *)b)->pid;

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

int shunt_look_list(struct shunt_look *look)
{
	FILE *sockets = fopen("/proc/net/unix", "re");
	size_t room = 0, line_room = 0;
	char *line = NULL;

	*look = (struct shunt_look){ 0 };
	if (!sockets) {
		perror("shunt stat: /proc/net/unix");
		return -1;
	}
	while (getline(&line, &line_room, sockets) > 0) {
		pid_t pid = listener_pid(line);

		if (!pid)
			continue;
		if (look->count == room) {
			room = room ? 2 * room : 64;
			look->processes = reallocarray(look->processes, room, sizeof(*look->processes));
			if (!look->processes)
				abort();
		}
		look->processes[look->count++] = (struct shunt_stat){ .pid = pid };
	}
	free(line);
	fclose(sockets);
	if (look->count)
		qsort(look->processes, look->count, sizeof(*look->processes), compare_pids);
	return 0;
}

void shunt_look_free(struct shunt_look *look)
{
	for (size_t i = 0; i < look->count; i++)
		json_decref(look->processes[i].process);
	free(look->processes);
	*look = (struct shunt_look){ 0 };
}

/* ---- one question ---- */

enum state { WAITING, READING, OVER };

struct question {
	struct shunt_stat *stat;
	enum state state;
	int fd;
	char *text;
	size_t length, room;
};

static void finish(struct question *question)
{
	if (question->fd >= 0)
		close(question->fd);
	free(question->text);
	question->fd = -1;
	question->text = NULL;
	question->state = OVER;
}

static void fail(struct question *question, const char *why)
{
	snprintf(question->stat->why, sizeof(question->stat->why), "%s", why);
	finish(question);
}

/* Too many descriptors here, or clients there: later. */
static void ask(struct question *question)
{
	struct shunt_stat *stat = question->stat;

	question->fd = shunt_process_try(stat->pid, "stat", SOCK_STREAM, stat->why, sizeof(stat->why));
	if (question->fd >= 0)
		question->state = READING;
	else if (question->fd != -EAGAIN && question->fd != -EMFILE)
		finish(question);
}

static void parse(struct question *question)
{
	struct shunt_stat *stat = question->stat;
	char said[JSON_ERROR_TEXT_LENGTH];
	json_error_t error;

	if (!question->length) {
		fail(question, "it gave no answer (stopped, or not yours?)");
		return;
	}
	stat->process = json_loadb(question->text, question->length, JSON_REJECT_DUPLICATES, &error);
	if (stat->process && !json_is_object(stat->process)) {
		json_decref(stat->process);
		stat->process = NULL;
		snprintf(error.text, sizeof(error.text), "no object");
	}
	if (!stat->process)
		snprintf(stat->why, sizeof(stat->why), "its answer is not that of an engine: %s",
			 shunt_escape(error.text, said, sizeof(said)));
	stat->at = shunt_seconds();
	finish(question);
}

static int grow(struct question *question)
{
	size_t room = question->room ? 2 * question->room : FIRST_ROOM;
	char *text;

	if (question->length < question->room)
		return 0;
	text = room > ANSWER_MAX ? NULL : realloc(question->text, room);
	if (!text)
		return -1;
	question->text = text;
	question->room = room;
	return 0;
}

/* What is there now. */
static void hear(struct question *question)
{
	ssize_t got;

	if (grow(question)) {
		fail(question, "its answer is too long");
		return;
	}
	got = recv(question->fd, question->text + question->length, question->room - question->length, MSG_DONTWAIT);
	if (got > 0)
		question->length += (size_t)got;
	else if (!got)
		parse(question);
	else if (errno != EAGAIN && errno != EINTR)
		fail(question, strerror(errno));
}

/* ---- all of them ---- */

/* Asks who has not been asked and lists who is answering; how many. */
static size_t prepare(struct question *questions, size_t count, struct pollfd *fds, size_t *open)
{
	size_t waiting = 0;

	*open = 0;
	for (size_t i = 0; i < count; i++) {
		if (questions[i].state == WAITING)
			ask(&questions[i]);
		waiting += questions[i].state == WAITING;
		fds[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
		if (questions[i].state == READING) {
			fds[i].fd = questions[i].fd;
			(*open)++;
		}
	}
	return waiting;
}

static void ask_all(struct question *questions, size_t count, struct pollfd *fds)
{
	double until = shunt_seconds() + PATIENCE, left;

	while ((left = until - shunt_seconds()) > 0) {
		size_t open, waiting = prepare(questions, count, fds, &open);
		int ms = (int)(left * 1000) + 1;

		if (!open && !waiting)
			return;
		if (poll(fds, count, waiting && ms > AGAIN_MS ? AGAIN_MS : ms) < 0 && errno != EINTR)
			return;
		for (size_t i = 0; i < count; i++)
			if (questions[i].state == READING && fds[i].revents)
				hear(&questions[i]);
	}
}

/* A descriptor for each, as far as that is allowed. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

void shunt_look_ask(struct shunt_look *look)
{
	struct question *questions = calloc(look->count + 1, sizeof(*questions));
	struct pollfd *fds = calloc(look->count + 1, sizeof(*fds));

	if (!questions || !fds)
		abort();
	raise_limit();
	for (size_t i = 0; i < look->count; i++)
		questions[i] = (struct question){ .stat = &look->processes[i], .fd = -1 };
	ask_all(questions, look->count, fds);
	for (size_t i = 0; i < look->count; i++) {
		if (questions[i].state == OVER)
			continue;
		look->processes[i].late = true;
		fail(&questions[i], questions[i].length ? "its answer did not come to an end in time" :
			"it gave no answer (stopped, or not yours?)");
	}
	free(questions);
	free(fds);
}
