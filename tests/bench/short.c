/* SPDX-License-Identifier: MIT */
/*
 * Processes that ask once and end.
 *
 * - short serve PORT: says "port N" and answers 64 bytes with 64 bytes, one connection after the other.
 * - short ask ADDRESS PORT: connects, asks, and says how many microseconds after connect() the
 *   first byte of the answer came.
 * - short turns COUNT LIBRARY ADDRESS PORT PLAIN: so many processes of each kind in turns. They ask
 *   at PORT with LIBRARY preloaded, and at PLAIN without. A line for each: its kind, and the
 *   microseconds to the first byte and to its end.
 * - short stay COUNT ADDRESS PORT...: asks on so many connections to each port, again and again until
 *   standard input ends.
 * - short hold COUNT ADDRESS PORT...: the same, as often as each line of standard input says. Answers each with
 *   "held N": so many connections were on a link the last time, because TCP has carried nothing then.
 */
#include <poll.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/calls/carried.h"
#include "tests/plain.h"

#define BYTES 64
#define ARGS 6
#define VARIABLES 512
#define MOST 16384 /* connections of `stay` and `hold` */

static struct sockaddr_in at(const char *address, const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };

	if (inet_pton(AF_INET, address, &a.sin_addr) != 1)
		die("address");
	return a;
}

/* A question comes in one segment. */
static void answer(int fd)
{
	char bytes[BYTES];

	if (recv(fd, bytes, BYTES, 0) != BYTES || send(fd, bytes, BYTES, MSG_NOSIGNAL) != BYTES)
		close(fd);
}

static void watch(int set, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (fd < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event))
		die("watch");
}

static int take(int listener)
{
	struct sockaddr_storage from;
	socklen_t length = sizeof(from);

	return accept4(listener, (struct sockaddr *)&from, &length, SOCK_NONBLOCK);
}

/* As servers are that have many clients: an epoll set, and sockets that do not block. */
static int serve(const char *port)
{
	int first = listener(at("0.0.0.0", port), 0, MOST), set = epoll_create1(0), count;
	struct epoll_event events[64];

	watch(set, first);
	while ((count = epoll_wait(set, events, 64, -1)) >= 0)
		for (int i = 0; i < count; i++) {
			if (events[i].data.fd == first)
				watch(set, take(first));
			else
				answer(events[i].data.fd);
		}
	die("wait");
}

static void ask_on(int fd)
{
	char bytes[BYTES] = { 0 };

	if (send(fd, bytes, BYTES, MSG_NOSIGNAL) != BYTES ||
	    recv(fd, bytes, BYTES, MSG_WAITALL) != BYTES)
		die("ask");
}

static int ask(struct sockaddr_in server)
{
	char bytes[BYTES] = { 0 };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	double start = now(), first;

	if (fd < 0 || connect(fd, (struct sockaddr *)&server, sizeof(server)))
		die("connect");
	if (send(fd, bytes, BYTES, MSG_NOSIGNAL) != BYTES || recv(fd, bytes, 1, 0) != 1)
		die("ask");
	first = now() - start;
	if (recv(fd, bytes, BYTES - 1, MSG_WAITALL) != BYTES - 1)
		die("the rest");
	printf("%.1f", first * 1e6);
	return 0;
}

static int fds[MOST];

/* How many there are; 0: none. */
static int dial_all(int each, const char *address, char **ports, int servers)
{
	int count = each * servers;

	if (each < 1 || each > MOST / servers)
		return 0;
	for (int i = 0; i < count; i++)
		fds[i] = dial(at(address, ports[i % servers]));
	return count;
}

static void ask_all(int count)
{
	for (int i = 0; i < count; i++)
		ask_on(fds[i]);
}

static int linked(int count)
{
	int on_link = 0;

	for (int i = 0; i < count; i++) {
		uint64_t before = carried(fds[i]);

		ask_on(fds[i]);
		on_link += carried(fds[i]) == before;
	}
	return on_link;
}

static int stay(int each, const char *address, char **ports, int servers)
{
	struct pollfd end = { .fd = 0, .events = POLLIN };
	int count = dial_all(each, address, ports, servers);

	if (!count)
		return 2;
	do
		ask_all(count);
	while (!poll(&end, 1, 1));
	return 0;
}

static int hold(int each, const char *address, char **ports, int servers)
{
	int count = dial_all(each, address, ports, servers);
	char line[16];

	if (!count)
		return 2;
	while (fgets(line, sizeof(line), stdin)) {
		for (int i = atoi(line); i > 1; i--)
			ask_all(count);
		printf("held %d\n", linked(count));
		fflush(stdout);
	}
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
	if (argc >= 5 && !strcmp(word, "hold"))
		return hold(atoi(argv[2]), argv[3], argv + 4, argc - 4);
	if (argc == 7 && !strcmp(word, "turns"))
		return turns(atoi(argv[2]), argv[3], argv[4], argv[5], argv[6]);
	fprintf(stderr, "usage: short serve PORT | ask ADDRESS PORT | stay COUNT ADDRESS PORT... | "
			"hold COUNT ADDRESS PORT... | turns COUNT LIBRARY ADDRESS PORT PLAIN\n");
	return 2;
}
