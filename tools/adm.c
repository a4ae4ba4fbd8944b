/* SPDX-License-Identifier: MIT */
/* shunt adm: says one command to a process' control socket and shows the answer (core/admin/command.h). */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/admin/command.h"
#include "core/base/answer.h"
#include "tools/output.h"
#include "tools/shunt.h"

#define PATIENCE 5.0	/* seconds */

static const char help[] =
	"Usage: shunt adm PID COMMAND [ARGUMENT...]\n\n"
	"Tells a shunted process what to do; only its user and root may. `shunt adm PID help` lists the\n"
	"commands.\n\n"
	"Exit status: 0, 1 if the process refused or cannot be asked, 2 for wrong usage.\n";

/* The words as one line. Its length; more than a command may have: it has no room. */
static size_t join(int count, char **words, char line[SHUNT_COMMAND_MAX + 1])
{
	size_t length = 0;

	for (int i = 0; i < count; i++) {
		size_t bytes = strlen(words[i]);

		if (length + bytes + (i > 0) > SHUNT_COMMAND_MAX)
			return SHUNT_COMMAND_MAX + 1;
		if (i)
			line[length++] = ' ';
		memcpy(line + length, words[i], bytes);
		length += bytes;
	}
	return length;
}

static int complain(pid_t pid, const char *why)
{
	fprintf(stderr, "shunt adm: process %d: %s\n", (int)pid, why);
	return EXIT_FAILED;
}

/* One deadline for all of it: a process that has too many clients is tried again until then. */
static int connect_until(pid_t pid, double until, char *why, size_t len)
{
	static const struct timespec pause = { .tv_nsec = 10000000 };
	int fd;

	while ((fd = shunt_process_try(pid, "adm", SOCK_SEQPACKET, why, len)) == -EAGAIN && shunt_seconds() < until)
		nanosleep(&pause, NULL);
	return fd;
}

/* Bytes of the process's answer; -1: nothing before the deadline. */
static ssize_t ask(int fd, const char *line, size_t bytes, char answer[SHUNT_ANSWER_MAX + 1], double until)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };
	double left;

	if (send(fd, line, bytes, MSG_NOSIGNAL) < 0)
		return -1;
	while ((left = until - shunt_seconds()) > 0) {
		int rc = poll(&readable, 1, (int)(left * 1000) + 1);

		if (rc > 0)
			return recv(fd, answer, SHUNT_ANSWER_MAX + 1, MSG_DONTWAIT);
		if (rc < 0 && errno != EINTR)
			return -1;
	}
	return -1;
}

static int say(pid_t pid, const char *line, size_t bytes)
{
	char answer[SHUNT_ANSWER_MAX + 1], why[256];
	double until = shunt_seconds() + PATIENCE;
	int fd = connect_until(pid, until, why, sizeof(why));
	ssize_t got;

	if (fd < 0)
		return complain(pid, why);
	got = ask(fd, line, bytes, answer, until);
	close(fd);
	if (got <= 0 || (answer[0] != '+' && answer[0] != '-'))
		return complain(pid, "it gave no answer (stopped, or not yours?)");
	if (answer[0] == '+') {
		shunt_print_escaped(stdout, answer + 1, (size_t)got - 1);
		return 0;
	}
	fprintf(stderr, "shunt adm: process %d: ", (int)pid);
	shunt_print_escaped(stderr, answer + 1, (size_t)got - 1);
	return EXIT_FAILED;
}

int shunt_adm(int argc, char **argv)
{
	char line[SHUNT_COMMAND_MAX + 1];
	size_t bytes;
	pid_t pid;

	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		fputs(help, stdout);
		return 0;
	}
	pid = argc > 1 ? shunt_process_id(argv[1]) : 0;
	bytes = join(argc - 2, argv + 2, line);
	if (!pid || argc < 3 || !bytes || bytes > SHUNT_COMMAND_MAX) {
		fprintf(stderr, "shunt adm: it wants a process id and a command of at most %d bytes; `shunt adm --help` says how\n",
			SHUNT_COMMAND_MAX);
		return EXIT_USAGE;
	}
	return say(pid, line, bytes);
}
