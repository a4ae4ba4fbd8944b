/* SPDX-License-Identifier: MIT */
/* Transcripts of the cases, and waiting between their two ends. */
#include "cases.h"

#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>

void say(struct end *e, const char *fmt, ...)
{
	char line[600];
	va_list ap;
	int n = snprintf(line, sizeof(line), "%s: ", e->name);

	va_start(ap, fmt);
	n += vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (write(e->out, line, n) != n)
		_exit(3);
}

long result(struct end *e, const char *what, long r)
{
	int err = errno;

	if (r < 0)
		say(e, "%s = %ld %s", what, r, strerrorname_np(err));
	else
		say(e, "%s = %ld", what, r);
	errno = err;
	return r;
}

long must(struct end *e, const char *what, long r)
{
	if (r >= 0)
		return r;
	say(e, "FAILED: %s: %s", what, strerrorname_np(errno));
	exit(3);
}

void text(struct end *e, const char *what, const char *buf, long r)
{
	char shown[200];
	int n = 0;

	if (r <= 0) {
		result(e, what, r);
		return;
	}
	for (long i = 0; i < r && n < (int)sizeof(shown) - 5; i++)
		n += snprintf(shown + n, sizeof(shown) - n,
			      buf[i] >= ' ' && buf[i] < 127 ? "%c" : "\\x%02x",
			      (unsigned char)buf[i]);
	say(e, "%s = %ld \"%.*s\"", what, r, n, shown);
}

void bits(struct end *e, const char *what, unsigned events)
{
	static const struct { unsigned bit; const char *name; } names[] = {
		{POLLIN, "IN"}, {POLLPRI, "PRI"}, {POLLOUT, "OUT"}, {POLLERR, "ERR"},
		{POLLHUP, "HUP"}, {POLLNVAL, "NVAL"}, {POLLRDNORM, "RDNORM"},
		{POLLRDBAND, "RDBAND"}, {POLLWRNORM, "WRNORM"}, {POLLRDHUP, "RDHUP"},
	};
	char line[120] = "";

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!(events & names[i].bit))
			continue;
		if (*line)
			strcat(line, "|");
		strcat(line, names[i].name);
		events &= ~names[i].bit;
	}
	say(e, "%s: %s%s", what, *line ? line : "0", events ? " and more" : "");
}

void pass(struct end *e, const void *buf, size_t len)
{
	MUST(e, send(e->ctl, buf, len, MSG_NOSIGNAL) == (ssize_t)len ? 0 : -1);
}

void take(struct end *e, void *buf, size_t len)
{
	for (size_t n = 0; n < len;) {
		ssize_t r = read(e->ctl, (char *)buf + n, len - n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0) {
			say(e, "FAILED: the other end is gone");
			exit(3);
		}
		n += r;
	}
}

void tell(struct end *e)
{
	pass(e, "t", 1);
}

void await(struct end *e)
{
	char c;

	take(e, &c, 1);
}

void meet(struct end *e)
{
	tell(e);
	await(e);
}

void arrived(struct end *e, int fd, int n)
{
	int have = 0;

	for (;;) {
		MUST(e, ioctl(fd, FIONREAD, &have));
		if (have >= n)
			return;
		usleep(200);
	}
}

short polled(int fd, short events, int timeout)
{
	struct pollfd p = {.fd = fd, .events = events};

	return poll(&p, 1, timeout) > 0 ? p.revents : 0;
}

void ended(struct end *e, int fd, short event)
{
	while (!(polled(fd, event, -1) & event))
		MUST(e, usleep(200));
}

static char state_of(pid_t tid)
{
	char path[64], line[512];
	char *end;
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 'X';
	n = read(fd, line, sizeof(line) - 1);
	close(fd);
	if (n <= 0)
		return 'X';
	line[n] = 0;
	end = strrchr(line, ')');
	return end && end[1] ? end[2] : 'X';
}

/*
 * Asleep for good (or ended): twenty looks in a row, a millisecond apart, see it sleeping. Where waits never sleep
 * (TEST_BUSY), running for long is as much as can be seen.
 */
void asleep(struct end *e, pid_t tid)
{
	int busy = *(getenv("TEST_BUSY") ?: "");

	(void)e;
	for (int seen = 0; seen < (busy ? 200 : 20);) {
		char state = state_of(tid);

		if (state == 'X')
			return;
		seen = state == 'S' || (busy && state == 'R') ? seen + 1 : 0;
		usleep(1000);
	}
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

int settle(void)
{
	return 30;
}

long hidden(long n)
{
	volatile long v = n;

	return v;
}
