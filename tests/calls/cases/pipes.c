/* SPDX-License-Identifier: MIT */
/* sendfile, splice, tee, vmsplice and other ways that bytes take without a buffer of the program's. */
#include "cases.h"

#include <sys/mman.h>
#include <sys/sendfile.h>

static int file_of(struct end *e, const char *s)
{
	int fd = MUST(e, memfd_create("file", MFD_CLOEXEC));

	MUST(e, write(fd, s, strlen(s)));
	MUST(e, lseek(fd, 0, SEEK_SET));
	return fd;
}

static void make_pipe(struct end *e, int p[2])
{
	MUST(e, pipe2(p, O_CLOEXEC));
}

/* Some of everything, in order. */
static void mixed(struct end *e)
{
	int p[2], file = file_of(e, "<file>");
	struct iovec v = {.iov_base = "<memory>", .iov_len = 8};

	make_pipe(e, p);
	put(e, e->fd, "first ");
	TRY(e, sendfile(e->fd, file, NULL, 100));
	put(e, e->fd, " then ");
	TRY(e, write(p[1], "<pipe>", 6));
	TRY(e, splice(p[0], NULL, e->fd, NULL, 100, 0));
	TRY(e, vmsplice(p[1], &v, 1, 0));
	TRY(e, splice(p[0], NULL, e->fd, NULL, 100, SPLICE_F_MOVE));
	put(e, e->fd, " last");
	close_both(p);
	close(file);
	meet(e);
}

static void mixed_peer(struct end *e)
{
	show(e, e->fd, 37, MSG_WAITALL);
	meet(e);
	show(e, e->fd, 1, MSG_DONTWAIT);
}

/* tee leaves the bytes in its pipe, so they can go two ways. */
static void teed(struct end *e)
{
	int p[2], q[2];
	char buf[10];

	make_pipe(e, p);
	make_pipe(e, q);
	MUST(e, write(p[1], "abcdef", 6));
	TRY(e, tee(p[0], q[1], 4, 0));
	TRY(e, splice(q[0], NULL, e->fd, NULL, 100, 0));
	TRY(e, splice(p[0], NULL, e->fd, NULL, 100, 0));
	await(e);
	TRY(e, splice(e->fd, NULL, p[1], NULL, 3, 0));
	TRY(e, tee(p[0], q[1], 100, 0));
	text(e, "one", buf, read(p[0], buf, 10));
	text(e, "two", buf, read(q[0], buf, 10));
	show(e, e->fd, 100, 0);
	TRY(e, tee(e->fd, q[1], 1, 0));
	TRY(e, tee(p[0], e->fd, 1, 0));
	close_both(p);
	close_both(q);
	meet(e);
}

static void teed_peer(struct end *e)
{
	show(e, e->fd, 10, MSG_WAITALL);
	put(e, e->fd, "uvwxyz");
	tell(e);
	meet(e);
}

static void splice_job(struct job *j)
{
	int p[2];

	MUST(j->e, pipe2(p, O_CLOEXEC));
	j->result = splice(j->fd, NULL, p[1], NULL, 100, 0);
	j->err = errno;
	if (j->result > 0)
		j->result = read(p[0], j->buf, sizeof(j->buf));
	close_both(p);
}

/* splice waits for data, and for the end. */
static void splice_waits(struct end *e)
{
	struct job j;

	for (int i = 0; i < 2; i++) {
		job_sleeps(e, &j, splice_job, e->fd);
		tell(e);
		job_report(e, "splice", &j);
	}
}

static void splice_waits_peer(struct end *e)
{
	await(e);
	put(e, e->fd, "data");
	await(e);
	shutdown(e->fd, SHUT_WR);
}

static void splice_bad(struct end *e)
{
	int p[2], q[2], file = file_of(e, "x");
	loff_t off = 0;

	make_pipe(e, p);
	make_pipe(e, q);
	TRY(e, splice(e->fd, NULL, e->fd, NULL, 10, 0));
	TRY(e, splice(file, NULL, e->fd, NULL, 10, 0));
	TRY(e, splice(p[0], &off, e->fd, NULL, 10, 0));
	TRY(e, splice(p[0], NULL, e->fd, &off, 10, 0));
	TRY(e, splice(p[1], NULL, e->fd, NULL, 10, 0));
	TRY(e, splice(p[0], NULL, e->fd, NULL, 10, hidden(0x1000)));
	TRY(e, splice(p[0], NULL, e->fd, NULL, 0, 0));
	TRY(e, splice(-1, NULL, e->fd, NULL, 10, 0));
	TRY(e, splice(p[0], NULL, -1, NULL, 10, 0));
	TRY(e, splice(p[0], NULL, e->fd, NULL, 10, SPLICE_F_NONBLOCK));
	TRY(e, vmsplice(e->fd, &(struct iovec){.iov_base = "x", .iov_len = 1}, 1, 0));
	close_both(p);
	close_both(q);
	close(file);
	ask(e, e->fd);
	finish(e, e->fd);
}

static void splice_shut(struct end *e)
{
	int p[2];

	make_pipe(e, p);
	count_sigpipe(e);
	MUST(e, write(p[1], "abc", 3));
	TRY(e, shutdown(e->fd, SHUT_WR));
	TRY(e, splice(p[0], NULL, e->fd, NULL, 3, 0));
	say(e, "%d SIGPIPE", sigpipes());
	meet(e);
	ended(e, e->fd, POLLHUP);
	TRY(e, splice(e->fd, NULL, p[1], NULL, 3, 0));
	close_both(p);
}

static void splice_shut_peer(struct end *e)
{
	shutdown(e->fd, SHUT_WR);
	meet(e);
	show(e, e->fd, 1, 0);
}

/* From one connection to another without a buffer, as a proxy does it. */
static void relay(struct end *e)
{
	size_t sum = 0;
	int a = dial_warm(e), b = dial_warm(e), p[2];

	make_pipe(e, p);
	tell(e);
	while (sum < 100000) {
		ssize_t n = MUST(e, splice(a, NULL, p[1], NULL, 50000, 0));

		sum += n;
		while (n > 0)
			n -= MUST(e, splice(p[0], NULL, b, NULL, n, 0));
	}
	say(e, "%zu bytes", sum);
	await(e);
	close_both(p);
	close(a);
	close(b);
}

static void relay_peer(struct end *e)
{
	int a = pick_up_warm(e), b = pick_up_warm(e);

	await(e);
	send_pattern(e, a, 0, 100000, 9999);
	recv_pattern(e, b, 0, 100000, 9999);
	tell(e);
	show(e, a, 1, 0);
	show(e, b, 1, 0);
}

static void sendfile_sources(struct end *e)
{
	int p[2], dir = MUST(e, open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	int wo = MUST(e, open("/dev/null", O_WRONLY | O_CLOEXEC)), file = file_of(e, "abcdef");
	int zero = MUST(e, open("/dev/zero", O_RDONLY | O_CLOEXEC));
	off_t at = 100;

	make_pipe(e, p);
	MUST(e, write(p[1], "x", 1));
	TRY(e, sendfile(e->fd, p[0], NULL, 1));
	TRY(e, sendfile(e->fd, e->fd, NULL, 1));
	TRY(e, sendfile(e->fd, dir, NULL, 1));
	TRY(e, sendfile(e->fd, wo, NULL, 1));
	TRY(e, sendfile(e->fd, file, &at, 10));
	say(e, "offset %ld", (long)at);
	TRY(e, sendfile(e->fd, zero, NULL, 3));
	at = 4;
	TRY(e, sendfile(e->fd, file, &at, 10));
	say(e, "offset %ld, position %ld", (long)at, (long)lseek(file, 0, SEEK_CUR));
	TRY(e, sendfile(p[1], file, NULL, 2));
	TRY(e, sendfile(-1, file, NULL, 2));
	close_both(p);
	close(dir);
	close(wo);
	close(file);
	close(zero);
	shutdown(e->fd, SHUT_WR);
	meet(e);
}

static void sendfile_sources_peer(struct end *e)
{
	show(e, e->fd, 100, MSG_WAITALL);
	meet(e);
}

static void sendfile_shut(struct end *e)
{
	int file = file_of(e, "abcdef");

	count_sigpipe(e);
	TRY(e, shutdown(e->fd, SHUT_WR));
	TRY(e, sendfile(e->fd, file, NULL, 3));
	say(e, "%d SIGPIPE, position %ld", sigpipes(), (long)lseek(file, 0, SEEK_CUR));
	TRY(e, sendfile(e->fd, file, NULL, 0));
	close(file);
	meet(e);
}

/* A socket that is full takes a part, and the position says which. */
static void sendfile_full(struct end *e)
{
	size_t len = 16 << 20;
	int file = pattern_file(e, len);
	uint64_t sum = 0;
	off_t at = 0;
	ssize_t r;

	nonblock(e, e->fd, 1);
	do {
		while ((r = sendfile(e->fd, file, &at, len - sum)) > 0)
			sum += r;
	} while (sum < len && polled(e->fd, POLLOUT, 20));
	result(e, "sendfile in the end", r);
	say(e, "a part: %d, offset right: %d", sum > 0 && sum < len, (uint64_t)at == sum);
	pass(e, &sum, sizeof(sum));
	await(e);
	nonblock(e, e->fd, 0);
	TRY(e, sendfile(e->fd, file, &at, 100000));
	close(file);
	meet(e);
}

static void sendfile_full_peer(struct end *e)
{
	uint64_t sum;

	take(e, &sum, sizeof(sum));
	check_pattern(e, e->fd, 0, sum, 50000);
	tell(e);
	recv_pattern(e, e->fd, sum, 100000, 5000);
	meet(e);
}

/* Calls that sockets refuse. */
static void file_calls(struct end *e)
{
	char c = 0;
	int file = file_of(e, "x");
	loff_t off = 0;

	TRY(e, mmap(NULL, 4096, PROT_READ, MAP_SHARED, e->fd, 0) == MAP_FAILED ? -1 : 0);
	TRY(e, copy_file_range(file, &off, e->fd, NULL, 1, 0));
	TRY(e, copy_file_range(e->fd, NULL, file, &off, 1, 0));
	TRY(e, readahead(e->fd, 0, 10));
	TRY(e, fallocate(e->fd, 0, 0, 10));
	TRY(e, fdatasync(e->fd));
	TRY(e, lseek(e->fd, 1, SEEK_SET));
	TRY(e, pread(e->fd, &c, 1, 0));
	TRY(e, pwrite(e->fd, &c, 1, 0));
	TRY(e, fchdir(e->fd));
	TRY(e, lockf(e->fd, F_TEST, 0));
	say(e, "posix_fadvise %s", strerrorname_np(posix_fadvise(e->fd, 0, 0, POSIX_FADV_NORMAL)));
	close(file);
	ask(e, e->fd);
	finish(e, e->fd);
}

/* A socket cannot be opened by its name. */
static void by_name(struct end *e)
{
	char path[40], link[80] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", e->fd);
	TRY(e, open(path, O_RDWR));
	TRY(e, readlink(path, link, sizeof(link) - 1) > 0);
	say(e, "%.7s", link);
	snprintf(path, sizeof(path), "/dev/fd/%d", e->fd);
	TRY(e, open(path, O_RDONLY));
	ask(e, e->fd);
	finish(e, e->fd);
}

const struct test cases_pipes[] = {
	{"pipe_mixed", 0, mixed, mixed_peer},
	{"pipe_tee", 0, teed, teed_peer},
	{"pipe_splice_waits", 0, splice_waits, splice_waits_peer},
	{"pipe_splice_bad", 0, splice_bad, echo_peer},
	{"pipe_splice_shut", 0, splice_shut, splice_shut_peer},
	{"pipe_relay", RAW, relay, relay_peer},
	{"pipe_sendfile_sources", 0, sendfile_sources, sendfile_sources_peer},
	{"pipe_sendfile_shut", 0, sendfile_shut, meet_only},
	{"pipe_sendfile_full", 0, sendfile_full, sendfile_full_peer},
	{"pipe_file_calls", 0, file_calls, echo_peer},
	{"pipe_by_name", 0, by_name, echo_peer},
	{NULL, 0, NULL, NULL},
};
