/* SPDX-License-Identifier: MIT */
/*
 * claims server: prints its port and accepts until it is killed. The answer to a byte is the time
 * of that connection's accept().
 * claims client PORT SINGLES CROWD PATIENCE: one connection, then SINGLES more, each after the one before, then CROWD at
 * once. One line, in microseconds:
 *	setup	from the call of connect() to the return of accept(), the median
 *	first	from accept() to the first answer that TCP has not carried, of the first connection
 *	single	the same of the others, the median: the processes have a link
 *	stall	the longest question of these connections
 *	open	from the call of the crowd's first connect() to its last accept()
 *	crowd	from the crowd's first accept() until TCP has carried no answer of any
 *	ask	asking the whole crowd once, afterwards: crowd has that in it, twice at least
 * A plain program: bare, and where nothing is carried within PATIENCE seconds, first, single and crowd are 0.
 * claims brief PORT COUNT: connect, ask, close; the median of one, in microseconds.
 */
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>
#include "tests/calls/carried.h"
#include "tests/plain.h"

#define CONNECTIONS 65536
#define EVENTS 64

/* --- the server --- */

static double accepted_at[CONNECTIONS];	/* by descriptor */

static void watch(int set, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event))
		die("epoll_ctl");
}

static void take(int set, int door)
{
	int fd = accept(door, NULL, NULL);

	if (fd < 0 || fd >= CONNECTIONS)
		die("accept");
	accepted_at[fd] = now();
	watch(set, fd);
}

static void answer(int fd)
{
	char c;

	if (recv(fd, &c, 1, 0) != 1)
		close(fd);
	else if (send(fd, &accepted_at[fd], sizeof(double), MSG_NOSIGNAL) != sizeof(double))
		die("answer");
}

static _Noreturn void serve(void)
{
	int door = listener(loopback(0), 0, 4096), set = epoll_create1(0);

	watch(set, door);
	for (;;) {
		struct epoll_event events[EVENTS];
		int count = epoll_wait(set, events, EVENTS, -1);

		for (int i = 0; i < count; i++) {
			int fd = events[i].data.fd;

			if (fd == door)
				take(set, door);
			else
				answer(fd);
		}
	}
}

/* --- the client --- */

static double patience;
static double longest;	/* of all questions so far */

/* When the server accepted it. */
static double ask(int fd)
{
	double at;

	double start = now();

	if (send(fd, "?", 1, MSG_NOSIGNAL) != 1 ||
	    recv(fd, &at, sizeof(at), MSG_WAITALL) != sizeof(at))
		die("ask");
	if (now() - start > longest)
		longest = now() - start;
	return at;
}

/* Asks until TCP carries none of it; `pause` (us) leaves the cores to others meanwhile. The time, or 0: too late. */
static double linked_at(int fd, useconds_t pause, double limit)
{
	uint64_t before, after = carried(fd);

	do {
		before = after;
		ask(fd);
		after = carried(fd);
		if (after == before)
			return now();
		if (pause)
			usleep(pause);
	} while (now() < limit);
	return 0;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), compare);
	return count ? values[count / 2] : 0;
}

/* Opens one that stays open. */
static double single(int port, double *setup)
{
	double start = now(), accepted, linked;
	int fd = dial(loopback(port));

	accepted = ask(fd);
	*setup = accepted - start;
	linked = linked_at(fd, 0, start + patience);
	return linked ? linked - accepted : 0;
}

/* A millisecond between questions, so that the asking is no load. Too late: 0. */
static double crowd(int port, int fds[], int count, double *opened)
{
	double start = now(), first = 0, accepted = 0, last = 0, limit;

	for (int i = 0; i < count; i++)
		fds[i] = dial(loopback(port));
	for (int i = 0; i < count; i++) {
		accepted = ask(fds[i]);
		first = first ? first : accepted;	/* connections are accepted in their order */
	}
	*opened = count ? accepted - start : 0;
	limit = now() + patience;
	for (int i = 0; i < count; i++) {
		last = linked_at(fds[i], 1000, limit);
		if (!last)
			return 0;
	}
	return last - first;
}

static double ask_all(const int fds[], int count)
{
	double start = now();

	for (int i = 0; i < count; i++)
		ask(fds[i]);
	return now() - start;
}

static int measure(int port, int singles, int many)
{
	double *setups = calloc((size_t)singles + 1, sizeof(*setups));
	double *times = calloc((size_t)singles + 1, sizeof(*times));
	int *fds = calloc((size_t)many + 1, sizeof(*fds));
	double first = single(port, &setups[singles]), opened = 0, stall, all;

	if (!first)
		patience = 0;	/* nothing is carried between these two */
	for (int i = 0; i < singles; i++)
		times[i] = single(port, &setups[i]);
	stall = longest;
	all = crowd(port, fds, many, &opened);
	printf("setup %.0f first %.0f single %.0f stall %.0f open %.0f crowd %.0f ask %.0f\n",
	       median(setups, singles) * 1e6, first * 1e6, median(times, singles) * 1e6,
	       stall * 1e6, opened * 1e6, all * 1e6, ask_all(fds, many) * 1e6);
	free(setups);
	free(times);
	free(fds);
	return 0;
}

static int brief(int port, int count)
{
	double *times = calloc((size_t)count + 1, sizeof(*times));

	for (int i = 0; i < count; i++) {
		double start = now();
		int fd = dial(loopback(port));

		ask(fd);
		close(fd);
		times[i] = now() - start;
	}
	printf("%.1f\n", median(times, count) * 1e6);
	free(times);
	return 0;
}

static void allow_descriptors(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
	allow_descriptors();
	if (argc == 2 && !strcmp(argv[1], "server"))
		serve();
	if (argc == 4 && !strcmp(argv[1], "brief"))
		return brief(atoi(argv[2]), atoi(argv[3]));
	if (argc == 6 && !strcmp(argv[1], "client")) {
		patience = atof(argv[5]);
		return measure(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
	}
	fprintf(stderr, "usage: claims server | client PORT SINGLES CROWD PATIENCE | "
			"brief PORT COUNT\n");
	return 2;
}
