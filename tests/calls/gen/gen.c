/* SPDX-License-Identifier: MIT */
/*
 * gen SEED CALLS [KEEP...]: a random sequence of calls, and what each returned.
 *
 * Two processes hold the two ends of some TCP connections. The first knows the sequence and a model
 * of every connection. Each call is made alone, here or in the other process, in the main thread or
 * in a second one. The model lets only such calls be made whose result does not depend on time, so
 * the transcript of a seed is always the same. Call number i depends on SEED and i alone. With
 * KEEP, only calls with these numbers are made, to find the shortest sequence that shows a fault.
 *
 * GEN_CAREFUL: no descriptor is shared while it has unread bytes, for streams that move all the time.
 * GEN_WRAP is put before the command of the other process. Nothing here knows of Shunt.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "gen.h"

static const char *const names[] = {
	"send",
	"write",
	"writev",
	"sendmsg",
	"sendmmsg",
	"sendfile",
	"send MORE",
	"send corked",
	"send fault",
	"send nothing",
	"send in a child",
	"recv",
	"read",
	"readv",
	"recvmsg",
	"recvfrom",
	"recvmmsg",
	"recv PEEK",
	"recv TRUNC",
	"recv WAITALL",
	"recv DONTWAIT",
	"recv fault",
	"recv nothing",
	"poll",
	"ppoll",
	"select",
	"FIONREAD",
	"SO_ERROR",
	"NODELAY",
	"O_NONBLOCK",
	"FIONBIO",
	"SO_RCVLOWAT",
	"epoll add",
	"epoll mod",
	"epoll del",
	"epoll_wait",
	"epoll_pwait",
	"shutdown RD",
	"shutdown WR",
	"dup",
	"dup2",
	"close dup",
	"pass",
	"reconnect",
	"waiting poll",
	"waiting select",
	"waiting epoll_wait",
	"waiting recv",
	"names",
	"exec",
};

static int to_other, made;
static struct sockaddr_in address[2];

static void on_side(int side, struct cmd *c, struct reply *r)
{
	if (!side) {
		here(c, r);
		return;
	}
	all(to_other, c, sizeof(*c), 1);
	all(to_other, r, sizeof(*r), 0);
}

static void plain(int side, int kind, int conn, int n, unsigned events)
{
	struct cmd c = {.kind = kind, .conn = conn, .n = n, .events = events, .addr = address[!side],
			.dup = kind == CLOSE && model[conn][side].dup};
	struct reply r;

	on_side(side, &c, &r);
	if (kind == LISTEN)
		address[side] = r.addr;
	if (r.r < 0 || *r.text)
		printf("  then on %d.%d: %d %s %s\n", conn, side, r.r, r.err ? strerrorname_np(r.err) : "", r.text);
}

static void settle(int conn, int side)
{
	struct half *h = &model[conn][side];

	plain(side, ARRIVED, conn, h->unread, 0);
	if (h->ended)
		plain(side, ENDED, conn, 0, h->shut_w ? POLLHUP : POLLRDHUP);
}

static void reconnect(int conn, int first)
{
	int side = conn & 1;

	if (!first) {
		for (int s = 0; s < 2; s++)	/* nobody closes over unread bytes: that would be a reset */
			if (model[conn][s].unread) {
				struct cmd c = {.kind = RECV, .conn = conn, .n = model[conn][s].unread, .at = model[conn][s].got};
				struct reply r;

				on_side(s, &c, &r);
			}
		plain(0, CLOSE, conn, 0, 0);
		plain(1, CLOSE, conn, 0, 0);
	}
	memset(model[conn], 0, sizeof(model[conn]));
	model[conn][0].sent = model[conn][1].sent = 0;
	plain(side, CONNECT, conn, 0, 0);
	plain(!side, ACCEPT, conn, 0, 0);
}

/* The other process runs its program anew, which has the descriptors and no epoll set. */
static void execute(int i)
{
	struct cmd c = {.kind = EXEC};
	struct reply r;

	for (int conn = 0; conn < CONNS; conn++)
		if (is_kept_back(&model[conn][1], &model[conn][0]))
			return;
	on_side(1, &c, &r);
	for (int conn = 0; conn < CONNS; conn++) {
		model[conn][1].given = 1;
		memset(model[conn][1].events, 0, sizeof(model[conn][1].events));
	}
	printf("%d: exec = %d\n", i, r.r);
	made++;
}

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static void say(int i, const struct cmd *c, int side, const struct reply *r)
{
	printf("%d: %s %d.%d%s%s", i, names[c->kind], c->conn, side, c->dup ? " dup" : "", c->thread ? " thread" : "");
	if (c->kind <= RECV_NOTHING || c->kind == WAIT_RECV)
		printf(" %d", c->n);
	if (c->kind >= EP_ADD && c->kind <= EP_PWAIT)
		printf(" set %d %x", c->set, c->events);
	printf(" = %d%s%s%s%s\n", r->r, r->err ? " " : "", r->err ? strerrorname_np(r->err) : "", *r->text ? " " : "", r->text);
}

/* A thread waits, and the other side sends what it waits for. */
static void wait_and_send(int i, struct cmd *c, int side)
{
	struct half *h = &model[c->conn][side], *peer = &model[c->conn][!side];
	struct cmd s = {.kind = SEND, .conn = c->conn, .n = c->n, .at = peer->sent}, join = {.kind = JOIN};
	struct reply r;

	c->thread = c->start = 1;
	on_side(side, c, &r);
	if (i & 1)
		usleep(1000);	/* asleep, or on its way to sleep */
	on_side(!side, &s, &r);
	account(&s, &r, peer, h);
	on_side(side, &join, &r);
	account(c, &r, h, peer);
	say(i, c, side, &r);
	settle(c->conn, side);
	made += 2;
}

static void one(uint64_t seed, int i)
{
	uint64_t x = mix(mix(seed) + i), y = mix(x);
	int side = x >> 8 & 1, rare = (x >> 40) % 16;
	struct cmd c = {.kind = (x >> 16) % KINDS, .conn = (x >> 10) % CONNS, .n = 1 + (y & 15 ? y >> 8 & 255 : (y >> 8) % 5000),
			.thread = (y >> 30 & 3) == 0, .set = y >> 33 & 1};
	static const unsigned asked[] = {EPOLLIN, EPOLLIN | EPOLLOUT, EPOLLIN | EPOLLRDHUP, EPOLLOUT, 0};
	struct half *h = &model[c.conn][side], *peer = &model[c.conn][!side];
	struct reply r;

	c.events = asked[(y >> 34) % 5];
	if ((c.kind == SHUT_R || c.kind == SHUT_W || c.kind == SEND_CHILD || c.kind == PASS || c.kind == SENDFILE) && rare)
		return;
	if (c.kind == RECONNECT) {
		if (rare > 3)
			return;
		reconnect(c.conn, 0);
		printf("%d: reconnect %d\n", i, c.conn);
		made += 4;
		return;
	}
	c.dup = h->dup && y >> 32 & 1;
	c.at = is_send(c.kind) ? h->sent : h->got;
	if (c.kind == EXEC) {
		if (rare <= 3)
			execute(i);
		return;
	}
	if (!certain(&c, h, peer))
		return;
	if (is_wait(c.kind)) {
		wait_and_send(i, &c, side);
		return;
	}
	if (c.kind == SEND_CHILD)
		c.thread = 0;
	on_side(side, &c, &r);
	account(&c, &r, h, peer);
	say(i, &c, side, &r);
	made++;
	if (is_send(c.kind) || c.kind == SHUT_W)
		settle(c.conn, !side);
	if (c.kind == SHUT_W && h->ended)
		settle(c.conn, side);
}

static void start_other(void)
{
	char self[500] = "", *wrap = getenv("GEN_WRAP"), line[800];
	int sv[2];

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
		exit(3);
	to_other = sv[0];
	if (fork())
		return;
	dup2(sv[1], 0);
	snprintf(line, sizeof(line), "exec %s %s other", wrap ? wrap : "", self);
	execl("/bin/sh", "sh", "-c", line, (char *)NULL);
	_exit(3);
}

int main(int argc, char **argv)
{
	struct cmd quit = {.kind = QUIT};

	alarm(getenv("GEN_LIMIT") ? atoi(getenv("GEN_LIMIT")) : 300);
	signal(SIGPIPE, SIG_IGN);
	if (argc >= 2 && !strcmp(argv[1], "other"))
		return other(argv + 2);
	if (argc < 3) {
		fprintf(stderr, "usage: gen SEED CALLS [KEEP...]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	start_other();
	start_second();
	plain(0, LISTEN, 0, 0, 0);
	plain(1, LISTEN, 0, 0, 0);
	for (int i = 0; i < CONNS; i++)
		reconnect(i, 1);
	if (argc > 3)
		for (int i = 3; i < argc; i++)
			one(strtoull(argv[1], NULL, 10), atoi(argv[i]));
	else
		for (int i = 0; made < atoi(argv[2]); i++)
			one(strtoull(argv[1], NULL, 10), i);
	all(to_other, &quit, sizeof(quit), 1);
	wait(NULL);
	printf("end\n");
	return 0;
}
