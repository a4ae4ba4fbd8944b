/* SPDX-License-Identifier: MIT */
/* Streams and files: sendfile, splice, stdio. */
#include "cases.h"

#include <sys/sendfile.h>

static void send_file(struct end *e)
{
	int file = pattern_file(e, 300000);
	off_t at = 1000;

	TRY(e, sendfile(e->fd, file, NULL, 1000));
	TRY(e, sendfile(e->fd, file, &at, 99000));
	say(e, "offset %ld, file position %ld", (long)at, (long)lseek(file, 0, SEEK_CUR));
	TRY(e, sendfile(e->fd, file, &at, 0));
	for (size_t left = 200000; left;)
		left -= MUST(e, sendfile(e->fd, file, &at, left));
	TRY(e, sendfile(e->fd, file, &at, 10));
	TRY(e, sendfile(file, e->fd, NULL, 10));
	TRY(e, sendfile(e->fd, -1, NULL, 10));
	close(file);
	meet(e);
}

/* Files without a position, directories, unreadable files; with and without an offset of the caller's. */
static void send_no_file(struct end *e)
{
	int p[2], folder = MUST(e, open("/", O_RDONLY | O_CLOEXEC)), wrong[5];
	off_t at = 0, behind = -1;

	MUST(e, pipe2(p, O_CLOEXEC));
	MUST(e, write(p[1], "in the pipe", 11));
	wrong[0] = p[0];
	wrong[1] = e->fd;
	wrong[2] = folder;
	wrong[3] = MUST(e, open("/dev/null", O_WRONLY | O_CLOEXEC));
	wrong[4] = -1;
	for (int i = 0; i < 5; i++) {
		TRY(e, sendfile(e->fd, wrong[i], &at, 10));
		TRY(e, sendfile(e->fd, wrong[i], &at, 0));
		TRY(e, sendfile(e->fd, wrong[i], &behind, 10));
		TRY(e, sendfile(e->fd, wrong[i], NULL, 10));
	}
	say(e, "offset %ld", (long)at);
	put(e, e->fd, "end");
	meet(e);
}

static void send_no_file_peer(struct end *e)
{
	show(e, e->fd, 3, MSG_WAITALL);
	meet(e);
}

static void send_file_peer(struct end *e)
{
	recv_pattern(e, e->fd, 0, 300000, 8000);
	meet(e);
}

/* A file into a pipe into the stream, and out of it again. */
static void splices(struct end *e)
{
	int p[2], file = pattern_file(e, 200000);
	loff_t at = 0;

	MUST(e, pipe2(p, O_CLOEXEC));
	while (at < 200000) {
		ssize_t n = MUST(e, splice(file, &at, p[1], NULL, 65536, 0));

		while (n)
			n -= MUST(e, splice(p[0], NULL, e->fd, NULL, n, SPLICE_F_MORE));
	}
	put(e, e->fd, "end");
	nonblock(e, e->fd, 1);
	TRY(e, splice(e->fd, NULL, p[1], NULL, 10, SPLICE_F_NONBLOCK));
	TRY(e, splice(e->fd, &at, p[1], NULL, 10, 0));
	meet(e);
	close_both(p);
	close(file);
}

static void splices_peer(struct end *e)
{
	unsigned char buf[65536];
	size_t sum = 0;
	int p[2];

	MUST(e, pipe2(p, O_CLOEXEC));
	while (sum < 200000) {
		size_t want = 200000 - sum < 30000 ? 200000 - sum : 30000;
		ssize_t n = MUST(e, splice(e->fd, NULL, p[1], NULL, want, 0));

		MUST(e, read(p[0], buf, n) == n ? 0 : -1);
		if (!n || mismatch(buf, n, sum) < (size_t)n) {
			say(e, "FAILED at %zu", sum);
			exit(3);
		}
		sum += n;
	}
	say(e, "all there");
	show(e, e->fd, 3, MSG_WAITALL);
	meet(e);
	close_both(p);
}

static void stdio(struct end *e)
{
	FILE *f = fdopen(e->fd, "r+");
	char line[100];

	if (!f)
		say(e, "FAILED: fdopen");
	for (int i = 0; i < 5; i++) {
		fprintf(f, "line %d\n", i);
		fflush(f);
		say(e, "%s", fgets(line, sizeof(line), f) ? "got" : "nothing");
		say(e, "%.*s", (int)strcspn(line, "\n"), line);
	}
	for (int i = 0; i < 10000; i++)
		fprintf(f, "%d ", i);
	fputc('\n', f);
	TRY(e, fflush(f));
	TRY(e, shutdown(e->fd, SHUT_WR));
	say(e, "%s", fgets(line, sizeof(line), f) ? line : "end of file");
	TRY(e, fclose(f));
	TRY(e, close(e->fd));
}

static void stdio_peer(struct end *e)
{
	char buf[4096];
	ssize_t r;
	size_t sum = 0;

	for (int i = 0; i < 5; i++) {
		show(e, e->fd, 7, MSG_WAITALL);
		put(e, e->fd, "answer\n");
	}
	while ((r = recv(e->fd, buf, sizeof(buf), 0)) > 0)
		sum += r;
	say(e, "%zu more bytes, then %zd", sum, r);
	TRY(e, close(e->fd));
}

static void printing(struct end *e)
{
	TRY(e, dprintf(e->fd, "%d %s\n", 42, "words"));
	show(e, e->fd, 10, 0);
}

static void printing_peer(struct end *e)
{
	show(e, e->fd, 9, MSG_WAITALL);
	TRY(e, dprintf(e->fd, "thanks"));
}

/* A buffered writer that is only flushed by fclose. */
static void late_flush(struct end *e)
{
	FILE *f = fdopen(MUST(e, dup(e->fd)), "w");

	fputs("kept back", f);
	put(e, e->fd, "first ");
	TRY(e, fclose(f));
	TRY(e, shutdown(e->fd, SHUT_WR));
	drain(e, e->fd);
}

static void late_flush_peer(struct end *e)
{
	show(e, e->fd, 100, MSG_WAITALL);
	show(e, e->fd, 100, 0);
	close(e->fd);
}

const struct test cases_files[] = {
	{"file_sendfile", 0, send_file, send_file_peer},
	{"file_sendfile_none", 0, send_no_file, send_no_file_peer},
	{"file_splice", 0, splices, splices_peer},
	{"file_stdio", 0, stdio, stdio_peer},
	{"file_dprintf", 0, printing, printing_peer},
	{"file_late_flush", 0, late_flush, late_flush_peer},
	{NULL, 0, NULL, NULL},
};
