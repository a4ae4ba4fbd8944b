/* SPDX-License-Identifier: MIT */
/* epoll: what is in a set, under which number, and in which order it is told. */
#include "cases.h"

#include <sys/epoll.h>
#include <sys/wait.h>

/* Several connections: e->fd and n - 1 more, each with three bytes. */
static void several(struct end *e, int *fd, int n)
{
	fd[0] = e->fd;
	for (int i = 1; i < n; i++) {
		fd[i] = e->client ? dial(e) : pick_up(e);
		meet(e);
	}
	meet(e);
	for (int i = 0; i < n; i++)
		arrived(e, fd[i], 3);
}

static void several_peer(struct end *e, int n)
{
	int fd[10] = {e->fd};

	for (int i = 1; i < n; i++) {
		fd[i] = e->client ? dial(e) : pick_up(e);
		meet(e);
	}
	for (int i = 0; i < n; i++)
		put(e, fd[i], "abc");
	meet(e);
	meet(e);
	for (int i = 1; i < n; i++)
		close(fd[i]);
}

static void five_peer(struct end *e)
{
	several_peer(e, 5);
}

/* One event a time: everybody gets a turn. */
static void turns(struct end *e)
{
	int fd[5], ep = MUST(e, epoll_create1(EPOLL_CLOEXEC)), seen[5] = {0}, least = 0;
	struct epoll_event ev;

	several(e, fd, 5);
	for (int i = 0; i < 5; i++)
		add(e, ep, fd[i], EPOLLIN, i);
	for (int i = 0; i < 1000000 && least < 5; i++) {
		MUST(e, epoll_wait(ep, &ev, 1, -1) - 1);
		seen[ev.data.u64]++;
		least = seen[0];
		for (int k = 1; k < 5; k++)
			least = seen[k] < least ? seen[k] : least;
	}
	for (int i = 0; i < 5; i++)
		say(e, "%d had its turns: %d", i, seen[i] >= 5);
	for (int i = 1; i < 5; i++)
		close(fd[i]);
	close(ep);
	meet(e);
}

/* Room for some of them: the rest comes with the next call, edge or not. */
static void in_parts(struct end *e)
{
	for (int round = 0; round < 2; round++) {
		unsigned edge = round ? EPOLLET : 0;
		int fd[5], ep = MUST(e, epoll_create1(EPOLL_CLOEXEC)), seen[5] = {0};
		struct epoll_event ev[2];
		long r;

		several(e, fd, 5);
		for (int i = 0; i < 5; i++)
			add(e, ep, fd[i], EPOLLIN | edge, i);
		for (int i = 0; i < 3; i++) {
			r = MUST(e, epoll_wait(ep, ev, 2, 0));
			for (int k = 0; k < r; k++)
				seen[ev[k].data.u64]++;
		}
		for (int i = 0; i < 5; i++)
			say(e, "%d seen %d", i, seen[i] >= 1);
		for (int i = 0; i < 5; i++)
			show(e, fd[i], 3, 0);
		wait_on(e, ep, 0);
		for (int i = 1; i < 5; i++)
			close(fd[i]);
		close(ep);
		meet(e);
	}
}

static void in_parts_peer(struct end *e)
{
	five_peer(e);
	five_peer(e);
}

/* The same set under two numbers, and after the first has been closed. */
static void dup_of_set(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLIN), other = MUST(e, dup(ep));

	have(e, 3);
	wait_on(e, ep, -1);
	wait_on(e, other, -1);
	close(ep);
	wait_on(e, other, -1);
	modify(e, other, e->fd, EPOLLOUT);
	wait_on(e, other, -1);
	TRY(e, epoll_ctl(other, EPOLL_CTL_DEL, e->fd, NULL));
	wait_on(e, other, 0);
	close(other);
	meet(e);
}

/* A member under two numbers is two members; closing one number does not take it out. */
static void dup_of_member(struct end *e)
{
	int other = MUST(e, dup(e->fd)), ep = MUST(e, epoll_create1(EPOLL_CLOEXEC));
	struct epoll_event ev[4];
	long r;

	add(e, ep, e->fd, EPOLLIN, 1);
	add(e, ep, other, EPOLLIN | EPOLLOUT, 2);
	have(e, 3);
	r = TRY(e, epoll_wait(ep, ev, 4, -1));
	for (long i = 0; i < r; i++)
		if (ev[i].data.u64 == 2)
			bits(e, "the second", ev[i].events);
	TRY(e, epoll_ctl(ep, EPOLL_CTL_DEL, e->fd, NULL));
	wait_on(e, ep, -1);
	show(e, other, 3, 0);
	wait_on(e, ep, -1);
	TRY(e, epoll_ctl(ep, EPOLL_CTL_DEL, other, NULL));
	wait_on(e, ep, 0);
	close(other);
	close(ep);
	meet(e);
}

/* Closed under one number while the other keeps it open: it is still told of. */
static void closed_member(struct end *e)
{
	int other = MUST(e, dup(e->fd)), ep = set_of(e, other, EPOLLIN);

	have(e, 3);
	wait_on(e, ep, -1);
	close(other);
	wait_on(e, ep, -1);
	show(e, e->fd, 3, 0);
	wait_on(e, ep, 0);
	close(e->fd);
	wait_on(e, ep, 0);
	close(ep);
	meet(e);
}

static void errors(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLIN), other = MUST(e, epoll_create1(0)), p[2];
	struct epoll_event ev = {.events = EPOLLIN}, exclusive = {.events = EPOLLIN | EPOLLEXCLUSIVE};
	int file = MUST(e, open("/dev/null", O_RDONLY | O_CLOEXEC));

	MUST(e, pipe2(p, O_CLOEXEC));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_ADD, e->fd, &ev));
	TRY(e, epoll_ctl(other, EPOLL_CTL_MOD, e->fd, &ev));
	TRY(e, epoll_ctl(other, EPOLL_CTL_DEL, e->fd, &ev));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_ADD, ep, &ev));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_ADD, file, &ev));
	TRY(e, epoll_ctl(ep, 77, e->fd, &ev));
	TRY(e, epoll_ctl(p[0], EPOLL_CTL_ADD, e->fd, &ev));
	TRY(e, epoll_ctl(e->fd, EPOLL_CTL_ADD, p[0], &ev));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_MOD, e->fd, &exclusive));
	TRY(e, epoll_ctl(other, EPOLL_CTL_ADD, e->fd, &exclusive));
	TRY(e, epoll_ctl(other, EPOLL_CTL_MOD, e->fd, &ev));
	TRY(e, epoll_ctl(other, EPOLL_CTL_MOD, e->fd, &exclusive));
	exclusive.events |= EPOLLONESHOT;
	TRY(e, epoll_ctl(other, EPOLL_CTL_DEL, e->fd, NULL));
	TRY(e, epoll_ctl(other, EPOLL_CTL_ADD, e->fd, &exclusive));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_ADD, other, &ev));
	TRY(e, epoll_ctl(other, EPOLL_CTL_ADD, ep, &ev));
	TRY(e, epoll_wait(e->fd, &ev, 1, 0));
	TRY(e, epoll_wait(file, &ev, 1, 0));
	TRY(e, epoll_create1(12345));
	TRY(e, epoll_create((int)hidden(0)));
	have(e, 3);
	wait_on(e, ep, -1);
	close(ep);
	close(other);
	close_both(p);
	close(file);
	meet(e);
}

/* Changed while ready: what is told is what is asked for now. */
static void changed(struct end *e)
{
	int ep = set_of(e, e->fd, 0);
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = 42};

	have(e, 3);
	wait_on(e, ep, 0);
	modify(e, ep, e->fd, EPOLLIN);
	wait_on(e, ep, 0);
	modify(e, ep, e->fd, EPOLLPRI);
	wait_on(e, ep, 0);
	modify(e, ep, e->fd, EPOLLOUT | EPOLLWRNORM | EPOLLRDNORM);
	wait_on(e, ep, 0);
	TRY(e, epoll_ctl(ep, EPOLL_CTL_MOD, e->fd, &ev));
	memset(&ev, 0, sizeof(ev));
	TRY(e, epoll_wait(ep, &ev, 1, 0));
	say(e, "data %llu", (unsigned long long)ev.data.u64);
	close(ep);
	meet(e);
}

/* Told once until it is armed again, by several threads too. */
static void wait_job(struct job *j)
{
	struct epoll_event ev;

	j->result = epoll_wait(j->fd, &ev, 1, 100);
	j->err = errno;
}

static void oneshot_threads(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLIN | EPOLLONESHOT), sum = 0;
	struct job j[3];

	for (int i = 0; i < 3; i++)
		job_start(e, &j[i], wait_job, ep);
	have(e, 3);
	for (int i = 0; i < 3; i++) {
		job_join(e, &j[i]);
		sum += j[i].result;
	}
	say(e, "%d of three", sum);
	wait_on(e, ep, 0);
	modify(e, ep, e->fd, EPOLLIN | EPOLLONESHOT);
	wait_on(e, ep, -1);
	wait_on(e, ep, 0);
	close(ep);
	meet(e);
}

/* A part is read: an edge stays silent, a level does not; more bytes are a new edge. */
static void part_read(struct end *e)
{
	int edge = set_of(e, e->fd, EPOLLIN | EPOLLET), level = set_of(e, e->fd, EPOLLIN);

	have(e, 3);
	wait_on(e, edge, -1);
	wait_on(e, level, -1);
	show(e, e->fd, 1, 0);
	wait_on(e, level, -1);
	meet(e);
	have(e, 5);
	wait_on(e, edge, -1);
	show(e, e->fd, 5, 0);
	wait_on(e, level, 0);
	close(edge);
	close(level);
	meet(e);
}

static void part_read_peer(struct end *e)
{
	abc_peer(e);
	offer(e, "def");
}

static void masked(struct end *e)
{
	struct timespec t = {.tv_nsec = 20000000};
	struct epoll_event ev;
	int ep = set_of(e, e->fd, EPOLLIN);
	sigset_t blocked, open;

	catch_signal(e, 0);
	block_signal(&blocked, &open);
	raise(SIGUSR1);
	TRY(e, epoll_pwait(ep, &ev, 1, 20, &blocked));
	say(e, "%d", (int)caught);
	TRY(e, epoll_pwait(ep, &ev, 1, -1, &open));
	say(e, "%d", (int)caught);
	raise(SIGUSR1);
	TRY(e, epoll_pwait2(ep, &ev, 1, &t, &blocked));
	TRY(e, epoll_pwait2(ep, &ev, 1, NULL, &open));
	say(e, "%d", (int)caught);
	have(e, 3);
	TRY(e, epoll_pwait(ep, &ev, 1, -1, &open));
	TRY(e, epoll_pwait2(ep, &ev, 1, NULL, &open));
	t.tv_nsec = 1000000000;
	TRY(e, epoll_pwait2(ep, &ev, 1, &t, NULL));
	close(ep);
	meet(e);
}

/* The set goes along into a child, which sees the same. */
static void in_child(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLIN);
	pid_t pid;

	have(e, 3);
	wait_on(e, ep, -1);
	pid = MUST(e, fork());
	if (!pid) {
		become(e, "child");
		wait_on(e, ep, -1);
		show(e, e->fd, 3, 0);
		wait_on(e, ep, 0);
		_exit(0);
	}
	reap(e, pid);
	wait_on(e, ep, 0);
	ask(e, e->fd);
	wait_on(e, ep, 0);
	finish(e, e->fd);
	wait_on(e, ep, -1);
	close(ep);
}

static void in_child_peer(struct end *e)
{
	put(e, e->fd, "abc");
	meet(e);
	echo_peer(e);
}

/* A set that is emptied and filled again while a thread waits in it. */
static void changed_while_waiting(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLIN);
	struct epoll_event ev = {.events = EPOLLIN};
	struct job j;

	job_sleeps(e, &j, job_wait, ep);
	TRY(e, epoll_ctl(ep, EPOLL_CTL_DEL, e->fd, NULL));
	have(e, 3);
	asleep(e, j.tid);
	say(e, "done %d", j.done);
	TRY(e, epoll_ctl(ep, EPOLL_CTL_ADD, e->fd, &ev));
	job_join(e, &j);
	say(e, "got %ld", j.result);
	close(ep);
	meet(e);
}

/* Not connected yet, refused, listening. */
static void other_states(struct end *e)
{
	int l = make_listener(e, 0), fd = MUST(e, socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)), c;
	int ep = set_of(e, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP);

	wait_on(e, ep, 0);
	TRY(e, connect(fd, (struct sockaddr *)&e->addr, e->addrlen) == 0 || errno == EINPROGRESS);
	wait_on(e, ep, -1);
	add(e, ep, l, EPOLLIN, 5);
	ended(e, l, POLLIN);
	modify(e, ep, fd, EPOLLIN);
	wait_on(e, ep, -1);
	c = MUST(e, accept(l, NULL, NULL));
	wait_on(e, ep, 0);
	put(e, c, "x");
	wait_on(e, ep, -1);
	show(e, fd, 1, 0);
	close(c);
	wait_on(e, ep, -1);
	close(fd);
	close(l);
	fd = MUST(e, socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
	add(e, ep, fd, EPOLLIN | EPOLLOUT, 6);
	TRY(e, connect(fd, (struct sockaddr *)&e->addr, e->addrlen));
	wait_on(e, ep, -1);
	so_error(e, fd);
	close(fd);
	close(ep);
}

/* Nothing is asked for: that both directions have ended is told all the same. */
static void nothing_asked(struct end *e)
{
	int ep = set_of(e, e->fd, 0);

	wait_on(e, ep, 0);
	TRY(e, shutdown(e->fd, SHUT_WR));
	wait_on(e, ep, 0);
	meet(e);
	wait_on(e, ep, -1);
	ended(e, e->fd, POLLHUP);
	wait_on(e, ep, 0);
	close(ep);
}

static void nothing_asked_peer(struct end *e)
{
	meet(e);
	put(e, e->fd, "abc");
	TRY(e, shutdown(e->fd, SHUT_WR));
}

const struct test cases_epoll_more[] = {
	{"epoll_turns", 0, turns, five_peer},
	{"epoll_in_parts", 0, in_parts, in_parts_peer},
	{"epoll_dup_of_set", 0, dup_of_set, abc_peer},
	{"epoll_dup_of_member", 0, dup_of_member, abc_peer},
	{"epoll_closed_member", 0, closed_member, abc_peer},
	{"epoll_errors", 0, errors, abc_peer},
	{"epoll_changed", 0, changed, abc_peer},
	{"epoll_oneshot_threads", 0, oneshot_threads, abc_peer},
	{"epoll_part_read", 0, part_read, part_read_peer},
	{"epoll_masked", 0, masked, abc_later_peer},
	{"epoll_in_child", PROCS, in_child, in_child_peer},
	{"epoll_changed_waiting", 0, changed_while_waiting, abc_later_peer},
	{"epoll_nothing_asked", 0, nothing_asked, nothing_asked_peer},
	{"epoll_other_states", ALONE, other_states, NULL},
	{NULL, 0, NULL, NULL},
};
