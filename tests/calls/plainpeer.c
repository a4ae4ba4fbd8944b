/* SPDX-License-Identifier: MIT */
/*
 * Two plain programs for connections between a shunted and a plain process.
 *
 * plainpeer record listen|PORT N FILE	echoes N connections; every byte that came over TCP goes to
 *					FILE.INDEX, the index being what the first byte says
 * plainpeer talk listen|PORT N [FIRST]	N connections with indices from FIRST; says its piece with
 *					pauses, checks the echo byte by byte and that nothing follows
 * plainpeer expect INDEX		the bytes that a talker sends, to standard output
 *
 * Either of them can be the one that listens; that one prints "port N".
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/plain.h"

#define LINES 400

struct job {
	pthread_t thread;
	int fd, index;
	const char *file;
	int bad;
};

/* Line k of a talker: its index, then a length that depends on both. */
static size_t line(int index, int k, char *buf)
{
	size_t len = 1 + (k * 7919u + index * 104729u) % (k % 20 == 19 ? 9000 : 90);

	buf[0] = index;
	for (size_t i = 1; i < len; i++)
		buf[i] = 'a' + (i * 31 + k * 17 + index) % 26;
	return len;
}

static int recv_all(int fd, char *buf, size_t len)
{
	for (size_t n = 0; n < len;) {
		ssize_t r = recv(fd, buf + n, len - n, 0);

		if (r <= 0)
			return -1;
		n += r;
	}
	return 0;
}

/* Pauses are when an uninvited byte of somebody else's would go out. */
static void *talk(void *arg)
{
	static const int pauses[] = {0, 1, 50, 200, 399};
	struct job *j = arg;
	char out[9100], in[9100];

	for (int k = 0, p = 0; k < LINES; k++) {
		size_t len = line(j->index, k, out);

		if (p < 5 && k == pauses[p]) {
			usleep(100000);
			p++;
		}
		if (send(j->fd, out, len, MSG_NOSIGNAL) != (ssize_t)len ||
		    recv_all(j->fd, in, len) || memcmp(in, out, len))
			j->bad++;
	}
	usleep(100000);
	shutdown(j->fd, SHUT_WR);
	if (recv(j->fd, in, sizeof(in), 0) != 0)
		j->bad++;
	close(j->fd);
	return NULL;
}

static FILE *record_file(const char *prefix, int index)
{
	char path[1024];
	FILE *f;

	snprintf(path, sizeof(path), "%s.%d", prefix, index);
	f = fopen(path, "we");
	if (!f)
		die(path);
	return f;
}

static void *record(void *arg)
{
	struct job *j = arg;
	FILE *f = NULL;
	char buf[8192];
	ssize_t r;

	while ((r = recv(j->fd, buf, sizeof(buf), 0)) > 0) {
		if (!f)
			f = record_file(j->file, (unsigned char)buf[0]);
		fwrite(buf, 1, r, f);
		for (ssize_t n = 0, s; n < r; n += s) {
			s = send(j->fd, buf + n, r - n, MSG_NOSIGNAL);
			if (s <= 0)
				die("send");
		}
	}
	j->bad = r < 0;
	if (f)
		fclose(f);
	close(j->fd);
	return NULL;
}

static int expect(int index)
{
	char buf[9100];

	for (int k = 0; k < LINES; k++) {
		size_t bytes = line(index, k, buf);

		fwrite(buf, 1, bytes, stdout);
	}
	return 0;
}

static int run(int talking, const char *where, int n, const char *last)
{
	struct job *j = calloc(n, sizeof(*j));
	int l = strcmp(where, "listen") ? -1 : listener(loopback(0), 0, 100), bad = 0;

	for (int i = 0; i < n; i++) {
		j[i].index = (talking && last ? atoi(last) : 0) + i;
		j[i].file = last;
		j[i].fd = l < 0 ? dial(loopback(atoi(where))) : accept(l, NULL, NULL);
		if (j[i].fd < 0 ||
		    pthread_create(&j[i].thread, NULL, talking ? talk : record, &j[i]))
			die("accept");
	}
	for (int i = 0; i < n; i++) {
		pthread_join(j[i].thread, NULL);
		bad += j[i].bad;
	}
	printf("%d connections, %d bad\n", n, bad);
	return bad != 0;
}

int main(int argc, char **argv)
{
	alarm(getenv("TEST_LIMIT") ? atoi(getenv("TEST_LIMIT")) : 300);
	if (argc == 3 && !strcmp(argv[1], "expect"))
		return expect(atoi(argv[2]));
	if (argc >= 4 && !strcmp(argv[1], "talk"))
		return run(1, argv[2], atoi(argv[3]), argc > 4 ? argv[4] : NULL);
	if (argc == 5 && !strcmp(argv[1], "record"))
		return run(0, argv[2], atoi(argv[3]), argv[4]);
	fprintf(stderr, "usage: plainpeer record listen|PORT N FILE | talk listen|PORT N [FIRST] | "
			"expect INDEX\n");
	return 2;
}
