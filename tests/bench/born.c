/* SPDX-License-Identifier: MIT */
/*
 * A connection for each request: connect, 64 bytes there and back, close.
 *
 * - born serve COUNT [first]: says "port N", answers so many connections with an epoll set, and says its CPU time in us.
 *   `first`: it closes behind its answer, and does not wait for the client's end.
 * - born ask PORT COUNT: so many, one after the other. Says the time and the CPU time of one, in us.
 *
 * With LEFT in the environment each says three times its KiB in memory, those of its own, and its descriptors: behind the
 * first thousand, behind all, and when nothing rests any more.
 */
#include <dirent.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>
#include "tests/plain.h"

#define BYTES 64
#define MOST 1024
#define FIRST 1000
#define REST 15 /* seconds */

static double cpu(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static bool tells; /* what it has in memory */

static void say_resident(void)
{
	long all = 0, shared = 0, kib = sysconf(_SC_PAGESIZE) / 1024;
	FILE *file = fopen("/proc/self/statm", "re");

	if (!file || fscanf(file, "%*d %ld %ld", &all, &shared) != 2)
		die("statm");
	fclose(file);
	printf("%ld %ld ", all * kib, (all - shared) * kib);
}

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = -3; /* itself, and the two that are no files */

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

static void tell(long done, long count)
{
	if (!tells || (done != FIRST && done != count))
		return;
	say_resident();
	printf("%d\n", descriptors());
}

/* A spare is given up when nobody has taken it for 10 seconds. */
static void tell_in_the_end(void)
{
	if (!tells)
		return;
	sleep(REST);
	tell(FIRST, FIRST);
}

static struct sockaddr_in at(const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };

	inet_pton(AF_INET, "127.0.0.1", &a.sin_addr);
	return a;
}

static void watch(int set, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (fd >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, fd, &event))
		die("watch");
}

static int take(int listening)
{
	struct sockaddr_storage from;
	socklen_t length = sizeof(from);

	return accept4(listening, (struct sockaddr *)&from, &length, SOCK_NONBLOCK);
}

/* False: it is over. */
static bool answer(int fd)
{
	char bytes[BYTES];
	ssize_t got = recv(fd, bytes, BYTES, 0);

	return got > 0 && send(fd, bytes, (size_t)got, MSG_NOSIGNAL) == got;
}

static int serve(long count, bool first)
{
	struct epoll_event events[64];
	int listening = listener(at("0"), SOCK_NONBLOCK, MOST), set = epoll_create1(0), n;
	long over = 0;

	watch(set, listening);
	while (over < count && (n = epoll_wait(set, events, 64, -1)) >= 0)
		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;

			if (fd == listening) {
				watch(set, take(listening));
			} else if (!answer(fd) || first) {
				close(fd);
				tell(++over, count);
			}
		}
	if (tells)
		close(listening);
	tell_in_the_end();
	printf("%.2f\n", cpu() / (double)count * 1e6);
	return 0;
}

static void ask_once(const struct sockaddr_in *server)
{
	char bytes[BYTES] = { 0 };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)server, sizeof(*server)))
		die("connect");
	if (send(fd, bytes, BYTES, MSG_NOSIGNAL) != BYTES ||
	    recv(fd, bytes, BYTES, MSG_WAITALL) != BYTES)
		die("ask");
	close(fd);
}

static int ask(const char *port, long count)
{
	struct sockaddr_in server = at(port);
	double begun = now();

	for (long i = 0; i < count; i++) {
		ask_once(&server);
		tell(i + 1, count);
	}
	tell_in_the_end();
	printf("%.2f %.2f\n", (now() - begun) / (double)count * 1e6, cpu() / (double)count * 1e6);
	return 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	tells = getenv("LEFT");
	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(atol(argv[2]), false);
	if (argc == 4 && !strcmp(argv[1], "serve") && !strcmp(argv[3], "first"))
		return serve(atol(argv[2]), true);
	if (argc == 4 && !strcmp(argv[1], "ask"))
		return ask(argv[2], atol(argv[3]));
	fprintf(stderr, "usage: born serve COUNT [first] | born ask PORT COUNT\n");
	return 2;
}
