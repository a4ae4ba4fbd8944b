/* SPDX-License-Identifier: MIT */
/* splice() between connections and pipes: what it waits for, whose error comes first, and that no byte is lost. */
#include "cases.h"

#include <sys/stat.h>

#define MANY 300000

static int small_pipe(struct end *e, int p[2], int flags)
{
	MUST(e, pipe2(p, O_CLOEXEC | flags));
	return (int)MUST(e, fcntl(p[1], F_SETPIPE_SZ, 4096));
}

static void fill(struct end *e, const int p[2])
{
	char some[4096] = "";

	MUST(e, fcntl(p[1], F_SETFL, O_NONBLOCK));
	while (write(p[1], some, sizeof(some)) > 0)
		;
	MUST(e, fcntl(p[1], F_SETFL, 0));
}

static void left(struct end *e, const char *what, int fd)
{
	int bytes = -1;

	ioctl(fd, FIONREAD, &bytes);
	say(e, "%s has %d", what, bytes);
}

/* The pipe and the connection both have an error, and one of them is told. The connection has "abc" all the time. */
static void pipe_first(struct end *e)
{
	int p[2];

	count_sigpipe(e);
	small_pipe(e, p, 0);
	have(e, 3);
	fill(e, p);
	TRY(e, splice(e->fd, NULL, p[1], NULL, 10, SPLICE_F_NONBLOCK));
	MUST(e, fcntl(p[1], F_SETFL, O_NONBLOCK));
	TRY(e, splice(e->fd, NULL, p[1], NULL, 10, 0));
	TRY(e, splice(e->fd, NULL, p[0], NULL, 10, 0));
	TRY(e, splice(e->fd, NULL, e->fd, NULL, 10, 0));
	TRY(e, splice(e->fd, NULL, p[1], NULL, 10, hidden(0x1000)));
	TRY(e, splice(e->fd, NULL, p[1], NULL, 0, 0));
	close(p[0]);
	TRY(e, splice(e->fd, NULL, p[1], NULL, 10, 0));
	TRY(e, splice(e->fd, NULL, p[1], NULL, 10, SPLICE_F_NONBLOCK));
	say(e, "%d SIGPIPE", sigpipes());
	close(p[1]);
	left(e, "the connection", e->fd);
	show(e, e->fd, 10, 0);
	small_pipe(e, p, 0);
	nonblock(e, e->fd, 1);
	TRY(e, splice(e->fd, NULL, p[1], NULL, 10, 0));
	TRY(e, splice(e->fd, NULL, p[1], NULL, 10, SPLICE_F_NONBLOCK | SPLICE_F_MOVE));
	close_both(p);
	meet(e);
}

/* Into the connection. */
static void empty_first(struct end *e)
{
	int p[2];

	count_sigpipe(e);
	small_pipe(e, p, 0);
	TRY(e, splice(p[0], NULL, e->fd, NULL, 10, SPLICE_F_NONBLOCK));
	MUST(e, fcntl(p[0], F_SETFL, O_NONBLOCK));
	TRY(e, splice(p[0], NULL, e->fd, NULL, 10, 0));
	MUST(e, write(p[1], "abcdef", 6));
	MUST(e, fcntl(e->fd, F_SETFL, O_APPEND));
	TRY(e, splice(p[0], NULL, e->fd, NULL, 3, 0));
	MUST(e, fcntl(e->fd, F_SETFL, 0));
	TRY(e, splice(p[0], NULL, e->fd, NULL, hidden(-1), 0));
	TRY(e, splice(p[0], NULL, e->fd, NULL, 3, SPLICE_F_MORE | SPLICE_F_MOVE));
	TRY(e, splice(p[1], NULL, e->fd, NULL, 3, 0));
	left(e, "the pipe", p[0]);
	TRY(e, splice(p[0], NULL, e->fd, NULL, 10, SPLICE_F_NONBLOCK));
	close(p[1]);
	TRY(e, splice(p[0], NULL, e->fd, NULL, 10, 0));
	close(p[0]);
	small_pipe(e, p, 0);
	MUST(e, shutdown(e->fd, SHUT_WR));
	TRY(e, splice(p[0], NULL, e->fd, NULL, 10, SPLICE_F_NONBLOCK));
	MUST(e, write(p[1], "gh", 2));
	TRY(e, splice(p[0], NULL, e->fd, NULL, 10, SPLICE_F_NONBLOCK));
	say(e, "%d SIGPIPE", sigpipes());
	left(e, "the pipe", p[0]);
	close_both(p);
	meet(e);
}

static void empty_first_peer(struct end *e)
{
	show(e, e->fd, 6, MSG_WAITALL);
	show(e, e->fd, 1, 0);
	meet(e);
}

/* The pipe takes a part of what is there, and the rest stays. */
static void in_parts(struct end *e)
{
	static unsigned char got[8192];
	size_t sum = 0;
	int p[2];

	small_pipe(e, p, 0);
	nonblock(e, e->fd, 1);
	await(e);
	while (sum < MANY) {
		ssize_t n = splice(e->fd, NULL, p[1], NULL, MANY, SPLICE_F_NONBLOCK), there;

		if (n < 0 && errno == EAGAIN) {
			polled(e->fd, POLLIN, 1000);
			continue;
		}
		while (n > 0) {
			there = MUST(e, read(p[0], got, sizeof(got)));
			if (mismatch(got, there, sum) < (size_t)there)
				say(e, "other bytes at %zu", sum);
			sum += there;
			n -= there;
		}
	}
	say(e, "%zu bytes", sum);
	left(e, "the pipe", p[0]);
	left(e, "the connection", e->fd);
	tell(e);
	close_both(p);
	ended(e, e->fd, POLLRDHUP);
	nonblock(e, e->fd, 0);
	small_pipe(e, p, 0);
	TRY(e, splice(e->fd, NULL, p[1], NULL, 10, 0));
	TRY(e, splice(e->fd, NULL, p[1], NULL, 10, SPLICE_F_NONBLOCK));
	close_both(p);
	meet(e);
}

static void in_parts_peer(struct end *e)
{
	tell(e);
	send_pattern(e, e->fd, 0, MANY, 7777);
	await(e);
	shutdown(e->fd, SHUT_WR);
	meet(e);
}

/* The connection takes what it has room for: what is in the pipe and what the peer gets are all. */
static void until_full(struct end *e)
{
	static unsigned char some[65536];
	uint64_t written = 0, sum = 0;
	ssize_t n = 0;
	int p[2];

	MUST(e, pipe2(p, O_CLOEXEC | O_NONBLOCK));
	nonblock(e, e->fd, 1);
	do {
		do {
			pattern(some, sizeof(some), written);
			n = write(p[1], some, sizeof(some));
			written += n > 0 ? n : 0;
			n = splice(p[0], NULL, e->fd, NULL, 1 << 20, 0);
			sum += n > 0 ? n : 0;
		} while (n > 0 || (n < 0 && errno == EAGAIN && sum + 65536 > written &&
				   polled(e->fd, POLLOUT, 20)));
	} while (sum < 1 << 20 && polled(e->fd, POLLOUT, 20));
	result(e, "splice in the end", n);
	say(e, "some %d", sum > 0);
	pass(e, &sum, sizeof(sum));
	await(e);
	polled(e->fd, POLLOUT, 1000);
	nonblock(e, e->fd, 0);
	written -= sum;
	pass(e, &written, sizeof(written));
	while (written) {
		n = MUST(e, splice(p[0], NULL, e->fd, NULL, 1 << 20, 0));
		written -= n;
	}
	left(e, "the pipe", p[0]);
	close_both(p);
	meet(e);
}

static void until_full_peer(struct end *e)
{
	uint64_t sum, rest;

	take(e, &sum, sizeof(sum));
	check_pattern(e, e->fd, 0, sum, 50000);
	tell(e);
	take(e, &rest, sizeof(rest));
	check_pattern(e, e->fd, sum, rest, 50000);
	meet(e);
	nonblock(e, e->fd, 1);
	show(e, e->fd, 1, 0);
}

static int waits_for[2];	/* a pipe */

static void out_job(struct job *j)
{
	j->result = splice(j->fd, NULL, waits_for[1], NULL, 100, 0);
	j->err = errno;
}

static void in_job(struct job *j)
{
	j->result = splice(waits_for[0], NULL, j->fd, NULL, 100, 0);
	j->err = errno;
}

/* Signals end each wait, or let it go on: for bytes of the connection, for room in the pipe, for bytes of the pipe. */
static void interrupted(struct end *e)
{
	struct job j;
	char byte;

	for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
		catch_signal(e, flags);
		MUST(e, pipe2(waits_for, O_CLOEXEC));
		job_hit(e, &j, out_job, e->fd);
		asleep(e, j.tid);
		say(e, "done %d", j.done);
		if (!flags) {
			report_caught(e, "no bytes", &j);
		} else {
			tell(e);
			report_caught(e, "no bytes", &j);
			MUST(e, read(waits_for[0], &byte, 1));
		}
		job_hit(e, &j, in_job, e->fd);
		asleep(e, j.tid);
		say(e, "done %d", j.done);
		if (flags)
			MUST(e, write(waits_for[1], "x", 1));
		report_caught(e, "an empty pipe", &j);
		fill(e, waits_for);
		tell(e);
		arrived(e, e->fd, 1);
		job_hit(e, &j, out_job, e->fd);
		asleep(e, j.tid);
		say(e, "done %d", j.done);
		if (flags)
			while (!j.done)
				MUST(e, read(waits_for[0], &byte, 1));
		report_caught(e, "a full pipe", &j);
		if (!flags)
			show(e, e->fd, 1, 0);
		close_both(waits_for);
	}
	shutdown(e->fd, SHUT_WR);
	meet(e);
}

static void interrupted_peer(struct end *e)
{
	for (int i = 0; i < 3; i++) {
		await(e);
		put(e, e->fd, "y");
	}
	meet(e);
	show(e, e->fd, 10, 0);
}

/* Both directions of the connection at once, and another writer of the pipe. No byte is lost or comes twice. */
struct other {
	struct end *e;
	int fd;
};

static void *write_others(void *arg)
{
	struct other *other = arg;

	for (int i = 0; i < 100000; i++)
		MUST(other->e, write(other->fd, "", 1));
	return NULL;
}

struct count {
	struct end *e;
	int fd;
	size_t zeros, others;
};

static void *count_all(void *arg)
{
	struct count *count = arg;
	unsigned char got[5000];
	ssize_t n;

	while ((n = MUST(count->e, read(count->fd, got, sizeof(got)))) > 0)
		for (ssize_t i = 0; i < n; i++) {
			if (!got[i])
				count->zeros++;
			else if (got[i] == (unsigned char)(1 + count->others % 251))
				count->others++;
		}
	return NULL;
}

static void shared(struct end *e)
{
	struct count count = {.e = e};
	struct other other = {.e = e};
	pthread_t reader, writer;
	size_t sum = 0;
	ssize_t n;
	int p[2];

	small_pipe(e, p, 0);
	count.fd = p[0];
	other.fd = p[1];
	pthread_create(&reader, NULL, count_all, &count);
	pthread_create(&writer, NULL, write_others, &other);
	tell(e);
	while ((n = MUST(e, splice(e->fd, NULL, p[1], NULL, MANY, 0))) > 0)
		sum += n;
	pthread_join(writer, NULL);
	close(p[1]);
	pthread_join(reader, NULL);
	close(p[0]);
	say(e, "%zu spliced, %zu of them right, %zu of the other writer", sum, count.others,
	    count.zeros);
	meet(e);
}

static void shared_peer(struct end *e)
{
	static unsigned char all[MANY];

	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = 1 + i % 251;
	await(e);
	for (size_t at = 0; at < sizeof(all); at += 1000)
		MUST(e, send(e->fd, all + at, 1000, 0));
	shutdown(e->fd, SHUT_WR);
	meet(e);
}

/* The peer resets: told once, and then it is the end. */
static void reset(struct end *e)
{
	int p[2];

	count_sigpipe(e);
	MUST(e, pipe2(p, O_CLOEXEC));
	await(e);
	ended(e, e->fd, POLLHUP);
	TRY(e, splice(e->fd, NULL, p[1], NULL, 10, 0));
	TRY(e, splice(e->fd, NULL, p[1], NULL, 10, 0));
	MUST(e, write(p[1], "abc", 3));
	TRY(e, splice(p[0], NULL, e->fd, NULL, 10, 0));
	say(e, "%d SIGPIPE", sigpipes());
	left(e, "the pipe", p[0]);
	close_both(p);
}

static void reset_peer(struct end *e)
{
	reset_on_close(e, e->fd);
	close(e->fd);
	tell(e);
}

static void timeouts(struct end *e)
{
	struct timeval t = {.tv_usec = 20000};
	int p[2];

	MUST(e, pipe2(p, O_CLOEXEC));
	MUST(e, setsockopt(e->fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)));
	TRY(e, splice(e->fd, NULL, p[1], NULL, 10, 0));
	meet(e);
	have(e, 3);
	TRY(e, splice(e->fd, NULL, p[1], NULL, 10, 0));
	left(e, "the pipe", p[0]);
	close_both(p);
}

/* A pipe that has a name takes no call that says itself that it does not wait. */
static void named(struct end *e)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/shunt-cases.%d", (int)getpid());
	MUST(e, mkfifo(path, 0600));
	fd = MUST(e, open(path, O_RDWR | O_CLOEXEC));
	unlink(path);
	have(e, 3);
	TRY(e, splice(e->fd, NULL, fd, NULL, 10, 0));
	left(e, "the pipe", fd);
	TRY(e, splice(fd, NULL, e->fd, NULL, 10, 0));
	TRY(e, splice(fd, NULL, e->fd, NULL, 10, SPLICE_F_NONBLOCK));
	close(fd);
	shutdown(e->fd, SHUT_WR);
	meet(e);
}

static void named_peer(struct end *e)
{
	abc_peer(e);
	show(e, e->fd, 10, MSG_WAITALL);
}

const struct test cases_splice[] = {
	{"splice_pipe_first", 0, pipe_first, abc_peer},
	{"splice_empty_first", 0, empty_first, empty_first_peer},
	{"splice_in_parts", 0, in_parts, in_parts_peer},
	{"splice_until_full", 0, until_full, until_full_peer},
	{"splice_interrupted", 0, interrupted, interrupted_peer},
	{"splice_shared", 0, shared, shared_peer},
	{"splice_reset", 0, reset, reset_peer},
	{"splice_timeouts", 0, timeouts, abc_later_peer},
	{"splice_named", 0, named, named_peer},
	{NULL, 0, NULL, NULL},
};
