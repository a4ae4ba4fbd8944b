/* SPDX-License-Identifier: MIT */
/*
 * Processes that ask once and end.
 *
 * short serve PORT: says "port N" and answers 64 bytes with 64 bytes, one connection after the other.
 * short ask ADDRESS PORT: connects, asks, and says how many microseconds later the first byte of the answer came.
 * short turns COUNT LIBRARY ADDRESS PORT PLAIN: so many processes of each kind in turns. They ask at PORT with LIBRARY
 * preloaded, and at PLAIN without. A line for each: its kind, and the microseconds to the first byte and to its end.
 * short stay COUNT ADDRESS PORT...: asks on so many connections to each port, again and again until standard input ends.
 */
#include <poll.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/plain.h"

#define BYTES 64
#define ARGS 6
#define VARIABLES 512
#define MOST 1024 /* connections of `stay` */

static struct sockaddr_in at(const char *address, const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };

	if (inet_pton(AF_INET, address, &a.sin_addr) != 1)
		die("address");
	return a;
}

static bool read_all(int fd, char bytes[BYTES])
{
	return recv(fd, bytes, BYTES, MSG_WAITALL) == BYTES;
}

/* Connections that have come, one of which may close. */
static void serve_some(struct pollfd *fds, nfds_t *count)
{
	char bytes[BYTES];

	for (nfds_t i = *count - 1; i > 0; i--) {
		if (!fds[i].revents)
			continue;
		if (read_all(fds[i].fd, bytes) &&
		    send(fds[i].fd, bytes, BYTES, MSG_NOSIGNAL) == BYTES)
			continue;
		close(fds[i].fd);
		fds[i] = fds[--*count];
	}
}

static int serve(const char *port)
{
	static struct pollfd fds[2 * MOST];
	nfds_t count = 1;

	fds[0] = (struct pollfd) { listener(at("0.0.0.0", port), 0, MOST), POLLIN, 0 };
	for (;;) {
		if (poll(fds, count, -1) < 0)
			die("poll");
		serve_some(fds, &count);
		if (!fds[0].revents || count == 2 * MOST)
			continue;
		fds[count] = (struct pollfd) { accept(fds[0].fd, NULL, NULL), POLLIN, 0 };
		if (fds[count].fd < 0)
			die("accept");
		count++;
	}
}

static void ask_on(int fd)
{
	char bytes[BYTES] = { 0 };

	if (send(fd, bytes, BYTES, MSG_NOSIGNAL) != BYTES || !read_all(fd, bytes))
		die("ask");
}

static int ask(struct sockaddr_in server)
{
	char bytes[BYTES] = { 0 };
	double start = now(), first;
	int fd = dial(server);

	if (send(fd, bytes, BYTES, MSG_NOSIGNAL) != BYTES || recv(fd, bytes, 1, 0) != 1)
		die("ask");
	first = now() - start;
	if (recv(fd, bytes, BYTES - 1, MSG_WAITALL) != BYTES - 1)
		die("the rest");
	printf("%.1f", first * 1e6);
	return 0;
}

static int stay(int each, const char *address, char **ports, int servers)
{
	struct pollfd end = { .fd = 0, .events = POLLIN };
	int fds[MOST], count = each * servers;

	if (each < 1 || each > MOST / servers)
		return 2;
	for (int i = 0; i < count; i++)
		fds[i] = dial(at(address, ports[i % servers]));
	do
		for (int i = 0; i < count; i++)
			ask_on(fds[i]);
	while (!poll(&end, 1, 1));
	return 0;
}

/* The environment, with the library preloaded or with none. */
static char **environment(const char *library)
{
	static char *variables[VARIABLES];
	static char preload[4096];
	int count = 0;

	for (char **v = environ; *v && count < VARIABLES - 2; v++)
		if (strncmp(*v, "LD_PRELOAD=", 11) != 0)
			variables[count++] = *v;
	if (library) {
		snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", library);
		variables[count++] = preload;
	}
	variables[count] = NULL;
	return variables;
}

static void run(const char *kind, const char *library, char *address, char *port)
{
	char *args[ARGS] = { "short", "ask", address, port, NULL };
	posix_spawn_file_actions_t actions;
	char first[32] = "";
	double start;
	int ends[2], status;
	pid_t pid;

	if (pipe(ends) || posix_spawn_file_actions_init(&actions) ||
	    posix_spawn_file_actions_adddup2(&actions, ends[1], 1) ||
	    posix_spawn_file_actions_addclose(&actions, ends[0]))
		die("pipe");
	start = now();
	if (posix_spawn(&pid, "/proc/self/exe", &actions, NULL, args, environment(library)))
		die("spawn");
	close(ends[1]);
	if (read(ends[0], first, sizeof(first) - 1) <= 0 || waitpid(pid, &status, 0) != pid ||
	    status)
		die(kind);
	printf("%s %s %.1f\n", kind, first, (now() - start) * 1e6);
	close(ends[0]);
	posix_spawn_file_actions_destroy(&actions);
}

static int turns(int count, const char *library, char *address, char *port, char *plain)
{
	for (int i = 0; i < count; i++) {
		run("shunted", library, address, port);
		run("plain", NULL, address, plain);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";

	if (argc == 3 && !strcmp(word, "serve"))
		return serve(argv[2]);
	if (argc == 4 && !strcmp(word, "ask"))
		return ask(at(argv[2], argv[3]));
	if (argc >= 5 && !strcmp(word, "stay"))
		return stay(atoi(argv[2]), argv[3], argv + 4, argc - 4);
	if (argc == 7 && !strcmp(word, "turns"))
		return turns(atoi(argv[2]), argv[3], argv[4], argv[5], argv[6]);
	fprintf(stderr, "usage: short serve PORT | ask ADDRESS PORT | stay COUNT ADDRESS PORT... | "
			"turns COUNT LIBRARY ADDRESS PORT PLAIN\n");
	return 2;
}
