/* SPDX-License-Identifier: MIT */
/* Ends of streams: shutdown in all its forms, and close when all has been read. */
#include "cases.h"

static void eof(struct end *e)
{
	show(e, e->fd, 100, MSG_WAITALL);
	show(e, e->fd, 100, 0);
	show(e, e->fd, 100, 0);
	ready(e, "poll", e->fd);
	meet(e);
}

static void eof_peer(struct end *e)
{
	put(e, e->fd, "data");
	TRY(e, shutdown(e->fd, SHUT_WR));
	meet(e);
}

/* The tested end stops sending first and goes on reading. */
static void half(struct end *e)
{
	put(e, e->fd, "question");
	TRY(e, shutdown(e->fd, SHUT_WR));
	bits(e, "poll", polled(e->fd, POLLOUT | POLLRDHUP, 0));
	count_sigpipe(e);
	TRY(e, send(e->fd, "x", 1, 0));
	TRY(e, write(e->fd, "x", 1));
	TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL));
	say(e, "%d SIGPIPE", sigpipes());
	meet(e);
	recv_pattern(e, e->fd, 0, 500000, 10000);
	show(e, e->fd, 1, 0);
	show(e, e->fd, 1, 0);
	ready(e, "poll", e->fd);
	TRY(e, shutdown(e->fd, SHUT_RDWR));
	TRY(e, shutdown(e->fd, SHUT_WR));
	TRY(e, close(e->fd));
}

static void half_peer(struct end *e)
{
	show(e, e->fd, 100, MSG_WAITALL);
	show(e, e->fd, 100, 0);
	ready(e, "poll", e->fd);
	meet(e);
	send_pattern(e, e->fd, 0, 500000, 12345);
	show(e, e->fd, 1, 0);
	TRY(e, close(e->fd));
}

/* Both stop at the same time with data under way. */
static void both(struct end *e)
{
	send_pattern(e, e->fd, 0, 60000, 60000);
	TRY(e, shutdown(e->fd, SHUT_WR));
	recv_pattern(e, e->fd, 0, 60000, 1000);
	show(e, e->fd, 1, 0);
	meet(e);
	ready(e, "poll", e->fd);
	TRY(e, shutdown(e->fd, SHUT_RD));
	TRY(e, close(e->fd));
}

static void twice(struct end *e)
{
	TRY(e, shutdown(e->fd, 77));
	TRY(e, shutdown(e->fd, -1));
	TRY(e, shutdown(e->fd, SHUT_WR));
	TRY(e, shutdown(e->fd, SHUT_WR));
	TRY(e, shutdown(e->fd, SHUT_RD));
	TRY(e, shutdown(e->fd, SHUT_RD));
	TRY(e, shutdown(e->fd, SHUT_RDWR));
	ready(e, "poll", e->fd);
	show(e, e->fd, 1, 0);
	meet(e);
}

static void twice_peer(struct end *e)
{
	show(e, e->fd, 1, 0);
	meet(e);
}

/* shutdown(RD) does not drop what is there or what comes later; recv only never waits again. */
static void read_side(struct end *e)
{
	have(e, 4);
	TRY(e, shutdown(e->fd, SHUT_RD));
	ready(e, "poll", e->fd);
	show(e, e->fd, 2, 0);
	show(e, e->fd, 100, 0);
	show(e, e->fd, 100, 0);
	meet(e);
	have(e, 5);
	show(e, e->fd, 100, 0);
	show(e, e->fd, 100, 0);
	put(e, e->fd, "still talking");
	meet(e);
}

static void read_side_peer(struct end *e)
{
	offer(e, "data");
	bits(e, "poll", polled(e->fd, POLLOUT | POLLRDHUP, 0));
	TRY(e, send(e->fd, "later", 5, 0));
	meet(e);
	show(e, e->fd, 13, MSG_WAITALL);
	meet(e);
}

static void wakes_reader(struct end *e, int how)
{
	struct job j;

	job_sleeps(e, &j, job_recv, e->fd);
	TRY(e, shutdown(e->fd, how));
	job_report(e, "recv", &j);
	ready(e, "poll", e->fd);
	meet(e);
	show(e, e->fd, 10, 0);
}

static void wakes_rd(struct end *e)
{
	wakes_reader(e, SHUT_RD);
}

static void wakes_rdwr(struct end *e)
{
	wakes_reader(e, SHUT_RDWR);
}

static void send_job(struct job *j)
{
	size_t len = 64 << 20;
	char *buf = calloc(1, len);

	j->result = send(j->fd, buf, len, MSG_NOSIGNAL);
	if (j->result > 0)	/* a part, which part is not said */
		j->result = send(j->fd, buf, 1, MSG_NOSIGNAL);
	j->err = errno;
	free(buf);
}

/* A blocked sender learns of its own shutdown. */
static void wakes_writer(struct end *e)
{
	struct job j;

	job_sleeps(e, &j, send_job, e->fd);
	TRY(e, shutdown(e->fd, SHUT_WR));
	job_report(e, "send", &j);
	meet(e);
}

/* The end comes to somebody who waits for it. */
static void wakes_peer(struct end *e)
{
	struct job j;

	job_sleeps(e, &j, job_recv, e->fd);
	tell(e);
	job_report(e, "recv", &j);
	tell(e);
	bits(e, "poll", polled(e->fd, POLLIN | POLLOUT | POLLRDHUP, -1));
	TRY(e, send(e->fd, "bye", 3, MSG_NOSIGNAL));
}

static void wakes_peer_peer(struct end *e)
{
	await(e);
	shutdown(e->fd, SHUT_WR);
	await(e);
	show(e, e->fd, 3, MSG_WAITALL);
}

static JOB(rdhup_job, polled(j->fd, POLLRDHUP, -1))

static void rdhup(struct end *e)
{
	struct job j;

	ready(e, "poll", e->fd);
	job_sleeps(e, &j, rdhup_job, e->fd);
	tell(e);
	job_join(e, &j);
	bits(e, "poll for RDHUP", j.result);
	ready(e, "poll", e->fd);
	bits(e, "poll for nothing", polled(e->fd, 0, 0));
	show(e, e->fd, 3, 0);
	show(e, e->fd, 3, 0);
	ready(e, "poll", e->fd);
	TRY(e, shutdown(e->fd, SHUT_WR));
	ready(e, "poll", e->fd);
	bits(e, "poll for nothing", polled(e->fd, 0, 0));
}

static void rdhup_peer(struct end *e)
{
	await(e);
	put(e, e->fd, "abc");
	shutdown(e->fd, SHUT_WR);
	show(e, e->fd, 3, 0);
}

/* close with everything sent: the other end gets it all although nobody is there any more. */
static void close_delivers(struct end *e)
{
	send_pattern(e, e->fd, 0, 70000, 5000);
	TRY(e, close(e->fd));
	meet(e);
}

static void close_delivers_peer(struct end *e)
{
	meet(e);
	recv_pattern(e, e->fd, 0, 70000, 3000);
	show(e, e->fd, 1, 0);
	show(e, e->fd, 1, 0);
}

static void lingering(struct end *e)
{
	struct linger l = {.l_onoff = 1, .l_linger = 20};
	socklen_t len = sizeof(l);

	TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	TRY(e, getsockopt(e->fd, SOL_SOCKET, SO_LINGER, &l, &len));
	say(e, "linger %d %d", l.l_onoff, l.l_linger);
	send_pattern(e, e->fd, 0, 70000, 5000);
	TRY(e, close(e->fd));
	meet(e);
}

const struct test cases_shut[] = {
	{"shut_eof", 0, eof, eof_peer},
	{"shut_half", 0, half, half_peer},
	{"shut_both", 0, both, both},
	{"shut_twice", 0, twice, twice_peer},
	{"shut_read_side", 0, read_side, read_side_peer},
	{"shut_wakes_rd", 0, wakes_rd, meet_only},
	{"shut_wakes_rdwr", 0, wakes_rdwr, meet_only},
	{"shut_wakes_writer", 0, wakes_writer, meet_only},
	{"shut_wakes_peer", 0, wakes_peer, wakes_peer_peer},
	{"shut_rdhup", 0, rdhup, rdhup_peer},
	{"shut_close_delivers", 0, close_delivers, close_delivers_peer},
	{"shut_lingering", 0, lingering, close_delivers_peer},
	{NULL, 0, NULL, NULL},
};
