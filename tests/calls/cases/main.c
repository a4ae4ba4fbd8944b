/* SPDX-License-Identifier: MIT */
/*
 * cases list               every case with its variants
 * cases NAME [one] [swap]  runs a case and prints its transcript
 *
 * one: both ends in one process. swap: the tested end is the one that accepts.
 * TEST_SERVER_WRAP and TEST_CLIENT_WRAP are put before the command of the two ends.
 * TEST_BORN: the connection of a case is the second of its ends, which have closed the first. TEST_WARM: milliseconds of traffic before a case starts. TEST_LINK: how many it may last, until none of it goes by
 * TCP. TEST_LIMIT: seconds until SIGALRM.
 */
#include "cases.h"

#include <spawn.h>
#include <sys/wait.h>

#define LIMIT 240	/* seconds for a case: what hangs ends all the same */

extern char **environ;

static const struct test *const tables[] = {
#define X(file) cases_##file,
	FILES(X)
#undef X
};

static const struct test *find(const char *name)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct test *t = tables[i]; t->name; t++)
			if (!strcmp(t->name, name))
				return t;
	return NULL;
}

/* One line per way to run a case, as arguments of this program; then what wraps make sense. */
static void list(void)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		for (const struct test *t = tables[i]; t->name; t++) {
			const char *flip = t->flags & NOFLIP ? " noflip" : "";

			printf("%s%s%s\n", t->name, t->flags & ALONE ? " alone" : "", flip);
			if (!(t->flags & (RAW | ALONE)))
				printf("%s swap%s\n", t->name, flip);
			if (!(t->flags & (PROCS | ALONE)))
				printf("%s one%s\n", t->name, flip);
		}
	}
}

/* Both have closed the connection when the next is made, and it may be used on. No thread is in accept(). */
static void connect_anew(struct end *e)
{
	struct pollfd ready = { .fd = e->lfd, .events = POLLIN };
	int flags;

	if (e->client)
		close(e->fd);
	meet(e);
	if (!e->client) {
		flags = MUST(e, fcntl(e->lfd, F_GETFL));
		MUST(e, fcntl(e->lfd, F_SETFL, flags | O_NONBLOCK));
		close(e->fd);
		meet(e);
		MUST(e, poll(&ready, 1, -1));
		e->fd = pick_up(e);
		MUST(e, fcntl(e->lfd, F_SETFL, flags));
	} else {
		meet(e);
		e->fd = dial(e);
	}
}

int run_end(const struct test *t, struct end *e)
{
	int is_tested = !strcmp(e->name, "tested");

	if (!e->client) {
		e->lfd = make_listener(e, t->flags);
		pass(e, &e->addr, sizeof(e->addr));
		pass(e, &e->addrlen, sizeof(e->addrlen));
	} else if (!(t->flags & ALONE)) {
		take(e, &e->addr, sizeof(e->addr));
		take(e, &e->addrlen, sizeof(e->addrlen));
	}
	if (!(t->flags & (RAW | ALONE))) {
		e->fd = e->client ? dial(e) : pick_up(e);
		if (!(t->flags & NOWARM))
			warm(e, e->fd);
		if (getenv("TEST_BORN"))
			connect_anew(e);
		if (!is_tested)	/* what it sends shall come at once */
			MUST(e, setsockopt(e->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)));
		meet(e);
	}
	(is_tested ? t->tested : t->peer)(e);
	say(e, "end");
	if (!(t->flags & (PROCS | ALONE)))
		meet(e);
	return 0;
}

static void *peer_thread(void *arg)
{
	void **args = arg;

	run_end(args[0], args[1]);
	return NULL;
}

static int run_both(const struct test *t, int swap, int peer_out)
{
	struct end tested = {.name = "tested", .fd = -1, .lfd = -1, .out = 1, .client = !swap};
	struct end peer = {.name = "peer", .fd = -1, .lfd = -1, .out = peer_out, .client = swap};
	void *args[2] = {(void *)t, &peer};
	pthread_t thread;
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
		return 3;
	tested.ctl = sv[0];
	peer.ctl = sv[1];
	if (pthread_create(&thread, NULL, peer_thread, args))
		return 3;
	run_end(t, &tested);
	pthread_join(thread, NULL);
	return 0;
}

/* "end NAME tested|peer client|server" or "both NAME noswap|swap". */
static int child(char **argv)
{
	const struct test *t = find(argv[2]);
	struct end e = {.fd = -1, .lfd = -1, .ctl = 0, .out = 1};

	alarm(getenv("TEST_LIMIT") ? atoi(getenv("TEST_LIMIT")) : LIMIT);
	if (!strcmp(argv[1], "both"))
		return run_both(t, !strcmp(argv[3], "swap"), 0);
	e.name = argv[3];
	e.client = !strcmp(argv[4], "client");
	return run_end(t, &e);
}

/* in and out become descriptors 0 and 1 of the child. */
static pid_t spawn(const char *wrap, int in, int out, const char *const args[])
{
	char self[1024] = "", *copy = wrap ? strdup(wrap) : NULL;
	char *argv[40], *save = NULL;
	posix_spawn_file_actions_t actions;
	int n = 0;
	pid_t pid;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		exit(3);
	for (char *w = copy ? strtok_r(copy, " ", &save) : NULL; w && n < 30;
	     w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	argv[n++] = self;
	for (int i = 0; args[i]; i++)
		argv[n++] = (char *)args[i];
	argv[n] = NULL;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, 0);
	posix_spawn_file_actions_adddup2(&actions, out, 1);
	posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	errno = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	if (errno) {
		perror(argv[0]);
		exit(3);
	}
	free(copy);
	return pid;
}

/* Both transcripts, the tested end's first, and how the ends ended. */
static int collect(const char *name, int fd, pid_t pid)
{
	char buf[4096];
	ssize_t r;
	int status = 0;

	while ((r = read(fd, buf, sizeof(buf))) > 0) {
		fwrite(buf, 1, r, stdout);
		fflush(stdout);	/* who ends us shall see how far it came */
	}
	if (!pid)
		return 0;
	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status))
		printf("%s: died of SIG%s\n", name, sigabbrev_np(WTERMSIG(status)));
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return 0;	/* the case wanted it so */
	if (WIFSIGNALED(status))
		return status;
	if (WEXITSTATUS(status))
		printf("%s: exit status %d\n", name, WEXITSTATUS(status));
	return status;
}

static int run(const struct test *t, int one, int swap)
{
	const char *sw = getenv("TEST_SERVER_WRAP"), *cw = getenv("TEST_CLIENT_WRAP");
	const char *both[] = {"both", t->name, swap ? "swap" : "noswap", NULL};
	const char *tested[] = {"end", t->name, "tested", swap ? "server" : "client", NULL};
	const char *peer[] = {"end", t->name, "peer", swap ? "client" : "server", NULL};
	int sv[2], a[2], b[2], bad;
	pid_t pa, pb = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) || pipe2(a, O_CLOEXEC) ||
	    pipe2(b, O_CLOEXEC))
		return 3;
	if (one) {
		pa = spawn(sw, b[1], a[1], both);
	} else {
		pa = spawn(swap ? sw : cw, sv[0], a[1], tested);
		if (!(t->flags & ALONE))
			pb = spawn(swap ? cw : sw, sv[1], b[1], peer);
	}
	close(sv[0]);
	close(sv[1]);
	close(a[1]);
	close(b[1]);
	bad = collect("tested", a[0], pa);
	return collect("peer", b[0], pb) || bad;
}

int main(int argc, char **argv)
{
	const struct test *t;
	int one = 0, swap = 0;

	if (argc == 2 && !strcmp(argv[1], "list")) {
		list();
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "exec"))
		return cases_exec(atoi(argv[2]));
	if (argc >= 4 && (!strcmp(argv[1], "end") || !strcmp(argv[1], "both")))
		return child(argv);
	t = argc > 1 ? find(argv[1]) : NULL;
	if (!t) {
		fprintf(stderr, "usage: cases list | cases NAME [one] [swap]\n");
		return 2;
	}
	for (int i = 2; i < argc; i++) {
		one |= !strcmp(argv[i], "one");
		swap |= !strcmp(argv[i], "swap");
	}
	return run(t, one, swap) ? 1 : 0;
}
