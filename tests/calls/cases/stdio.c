/* SPDX-License-Identifier: MIT */
/* stdio on a connection. */
#include "cases.h"

static void line(struct end *e, FILE *f)
{
	char buf[100];

	say(e, "line: %s", fgets(buf, sizeof(buf), f) ? strtok(buf, "\n") ?: "" : "none");
}

/* One buffer each way, as POP and SMTP servers have it. */
static void two_files(struct end *e)
{
	FILE *in = fdopen(e->fd, "r"), *out = fdopen(MUST(e, dup(e->fd)), "w");

	for (int i = 0; i < 3; i++) {
		fprintf(out, "question %d\n", i);
		TRY(e, fflush(out));
		line(e, in);
	}
	TRY(e, fclose(out));
	TRY(e, shutdown(e->fd, SHUT_WR));
	line(e, in);
	TRY(e, feof(in) != 0);
	TRY(e, fclose(in));
	TRY(e, close(e->fd));
}

static void two_files_peer(struct end *e)
{
	char buf[20];

	for (int i = 0; i < 3; i++) {
		get(e, e->fd, buf, 11);
		text(e, "got", buf, 11);
		put(e, e->fd, "answer\n");
	}
	show(e, e->fd, 1, 0);
	close(e->fd);
}

static void pushed_back(struct end *e)
{
	FILE *f = fdopen(e->fd, "r");
	int c;

	c = fgetc(f);
	TRY(e, ungetc(c, f));
	TRY(e, ungetc('X', f));
	say(e, "%c%c", fgetc(f), fgetc(f));
	line(e, f);
	TRY(e, fgetc(f));
	TRY(e, feof(f) != 0);
	TRY(e, ferror(f));
	TRY(e, fseek(f, 0, SEEK_SET));
	TRY(e, ftell(f));
	TRY(e, fclose(f));
}

static void pushed_back_peer(struct end *e)
{
	put(e, e->fd, "abcdef\n");
	finish(e, e->fd);
}

/* Unbuffered, by lines, and with a buffer of our own. */
static void buffering(struct end *e)
{
	static char own[10];
	FILE *f = fdopen(e->fd, "w");

	SET(e->fd, IPPROTO_TCP, TCP_NODELAY, 1);
	TRY(e, setvbuf(f, NULL, _IONBF, 0));
	fputs("at once ", f);
	meet(e);
	meet(e);
	TRY(e, setvbuf(f, NULL, _IOLBF, 100));
	fputs("kept", f);
	meet(e);
	meet(e);
	fputs(" and a line\nrest", f);
	meet(e);
	TRY(e, setvbuf(f, own, _IOFBF, sizeof(own)));
	fputs("much more than ten bytes", f);
	TRY(e, fclose(f));
	meet(e);
}

static void buffering_peer(struct end *e)
{
	meet(e);
	show(e, e->fd, 8, MSG_WAITALL);
	meet(e);
	meet(e);
	show(e, e->fd, 100, MSG_DONTWAIT);
	meet(e);
	meet(e);
	show(e, e->fd, 16, MSG_WAITALL);
	show(e, e->fd, 100, MSG_WAITALL);
	meet(e);
}

static void fread_fwrite(struct end *e)
{
	FILE *f = fdopen(e->fd, "r+");
	unsigned char *buf = malloc(30000);

	pattern(buf, 30000, 0);
	TRY(e, fwrite(buf, 300, 100, f));
	TRY(e, fflush(f));
	memset(buf, 0, 30000);
	TRY(e, fread(buf, 100, 300, f));
	say(e, "right %d", mismatch(buf, 30000, 0) == 30000);
	TRY(e, fread(buf, 1, 10, f));
	TRY(e, fclose(f));
	free(buf);
}

static void fread_fwrite_peer(struct end *e)
{
	recv_pattern(e, e->fd, 0, 30000, 4000);
	send_pattern(e, e->fd, 0, 30000, 4000);
	finish(e, e->fd);
}

/* A non-blocking connection: what is there, then the error, then it goes on. */
static void would_block(struct end *e)
{
	FILE *f = fdopen(e->fd, "r");
	char buf[20];

	nonblock(e, e->fd, 1);
	errno = 0;
	TRY(e, fgetc(f));
	TRY(e, ferror(f) != 0);
	clearerr(f);
	have(e, 4);
	TRY(e, fread(buf, 1, 20, f));
	TRY(e, ferror(f) != 0);
	say(e, "%.4s", buf);
	meet(e);
	fclose(f);
}

static void would_block_peer(struct end *e)
{
	meet(e);
	put(e, e->fd, "abcd");
	meet(e);
}

/* The descriptor is used beside the stream. */
static void beside(struct end *e)
{
	FILE *f = fdopen(e->fd, "w");

	fputs("one ", f);
	fflush(f);
	TRY(e, send(fileno(f), "two ", 4, 0));
	fputs("three ", f);
	fflush(f);
	TRY(e, write(e->fd, "four", 4));
	TRY(e, shutdown(e->fd, SHUT_WR));
	show(e, e->fd, 10, 0);
	TRY(e, fclose(f));
}

static void beside_peer(struct end *e)
{
	show(e, e->fd, 100, MSG_WAITALL);
	put(e, e->fd, "fine");
}

static void broken(struct end *e)
{
	FILE *f = fdopen(e->fd, "w");

	count_sigpipe(e);
	TRY(e, shutdown(e->fd, SHUT_WR));
	fputs("for nobody", f);
	TRY(e, fflush(f));
	say(e, "%d SIGPIPE", sigpipes());
	TRY(e, ferror(f) != 0);
	TRY(e, fclose(f));
	meet(e);
}

static void modes(struct end *e)
{
	FILE *f;

	TRY(e, fdopen(e->fd, "nonsense") ? 0 : -1);
	TRY(e, fdopen(-1, "r") ? 0 : -1);
	f = fdopen(e->fd, "a+e");
	TRY(e, f ? 0 : -1);
	say(e, "FD_CLOEXEC %d, same %d", fcntl(e->fd, F_GETFD), fileno(f) == e->fd);
	fputs("echo", f);
	fflush(f);
	show(e, e->fd, 4, MSG_WAITALL);
	shutdown(e->fd, SHUT_WR);
	show(e, e->fd, 4, 0);
	fclose(f);
}

static void scanned(struct end *e)
{
	FILE *f = fdopen(e->fd, "r");
	char word[20], *all = NULL;
	size_t room = 0;
	int n = 0;

	TRY(e, fscanf(f, "%d %19s", &n, word));
	say(e, "%d %s", n, word);
	TRY(e, getline(&all, &room, f));
	TRY(e, getdelim(&all, &room, ';', f));
	say(e, "%s", all);
	TRY(e, getline(&all, &room, f));
	free(all);
	TRY(e, fclose(f));
}

static void scanned_peer(struct end *e)
{
	put(e, e->fd, "42 words\na;");
	finish(e, e->fd);
}

/* The three standard streams of a child are the connection. */
static void standard(struct end *e)
{
	char buf[50];
	pid_t pid;

	ask(e, e->fd);
	pid = MUST(e, fork());
	if (!pid) {
		become(e, "child");
		e->out = dup(1);
		dup2(e->fd, 0);
		dup2(e->fd, 1);
		printf("ques");
		fflush(stdout);
		say(e, "read %zu", fread(buf, 1, 4, stdin));
		say(e, "%.4s", buf);
		puts("bye");
		fflush(stdout);
		_exit(0);
	}
	reap(e, pid);
	show(e, e->fd, 4, MSG_WAITALL);
	ask(e, e->fd);
	close(e->fd);
}

static void freopened(struct end *e)
{
	FILE *f = fdopen(MUST(e, dup(e->fd)), "w");

	fputs("before", f);
	f = freopen("/dev/null", "w", f);
	TRY(e, f ? 0 : -1);
	fputs("into nothing", f);
	TRY(e, fclose(f));
	ask(e, e->fd);
	close(e->fd);
	meet(e);
}

static void freopened_peer(struct end *e)
{
	show(e, e->fd, 10, MSG_WAITALL);
	put(e, e->fd, "echo");
	show(e, e->fd, 10, 0);
	meet(e);
}

const struct test cases_stdio[] = {
	{"stdio_two_files", 0, two_files, two_files_peer},
	{"stdio_pushed_back", 0, pushed_back, pushed_back_peer},
	{"stdio_buffering", 0, buffering, buffering_peer},
	{"stdio_fread_fwrite", 0, fread_fwrite, fread_fwrite_peer},
	{"stdio_would_block", 0, would_block, would_block_peer},
	{"stdio_beside", 0, beside, beside_peer},
	{"stdio_broken", 0, broken, meet_only},
	{"stdio_modes", 0, modes, echo_peer},
	{"stdio_scanned", 0, scanned, scanned_peer},
	{"stdio_standard", PROCS, standard, echo_peer},
	{"stdio_freopened", 0, freopened, freopened_peer},
	{NULL, 0, NULL, NULL},
};
