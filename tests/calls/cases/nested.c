/* SPDX-License-Identifier: MIT */
/* epoll: sets in sets, and what threads asleep in them are woken for. */
#include "cases.h"

#include <sys/epoll.h>

static void job_wait_a_while(struct job *j)
{
	j->result = epoll_wait(j->fd, &(struct epoll_event){0}, 1, 300);
	j->err = errno;
}

static void say_woken(struct end *e, struct job *j)
{
	job_join(e, j);
	say(e, "woken: %ld", j->result);
}

/* A byte of the peer's wakes who sleeps in the set, which reports it then. So many are unread with it. */
static void woken_by_byte(struct end *e, int out, int unread)
{
	struct job j;

	job_sleeps(e, &j, job_wait, out);
	tell(e);
	say_woken(e, &j);
	await(e);
	arrived(e, e->fd, unread);
	wait_on(e, out, 0);
}

/* A set inside that is asked for nothing, then for what is there already, while a thread sleeps in the outer one. */
static void asked_late(struct end *e)
{
	int in = set_of(e, e->fd, EPOLLIN), out = set_of(e, in, 0);
	struct job j;

	for (int i = 0; i < 2; i++) {
		job_sleeps(e, &j, job_wait, out);
		tell(e);
		await(e);
		arrived(e, e->fd, 1);
		asleep(e, j.tid);
		modify(e, out, in, EPOLLIN | (i ? EPOLLET : 0));
		say_woken(e, &j);
		show(e, e->fd, 10, 0);
		wait_on(e, out, 0);
		modify(e, out, in, 0);
	}
	/* Asked for before the byte comes. */
	job_sleeps(e, &j, job_wait, out);
	modify(e, out, in, EPOLLIN);
	asleep(e, j.tid);
	tell(e);
	say_woken(e, &j);
	await(e);
	arrived(e, e->fd, 1);
	wait_on(e, out, 0);
	/* Not any more. */
	modify(e, out, in, 0);
	wait_on(e, out, 0);
	TRY(e, epoll_ctl(out, EPOLL_CTL_DEL, in, NULL));
	TRY(e, epoll_ctl(out, EPOLL_CTL_MOD, in, &(struct epoll_event){.events = EPOLLIN}));
	TRY(e, epoll_ctl(out, EPOLL_CTL_DEL, in, NULL));
	job_start(e, &j, job_wait_a_while, out);
	add(e, out, in, EPOLLIN, 1);
	say_woken(e, &j);
	show(e, e->fd, 10, 0);
	TRY(e, epoll_ctl(out, EPOLL_CTL_ADD, in, &(struct epoll_event){.events = EPOLLIN}));
	TRY(e, epoll_ctl(in, EPOLL_CTL_ADD, out, &(struct epoll_event){.events = EPOLLIN}));
	close(in);
	wait_on(e, out, 0);
	close(out);
}

/* Each arrival is an edge of the set inside, also where the outer one alone is looked at. */
static void edges_within(struct end *e)
{
	int in = set_of(e, e->fd, EPOLLIN), out = set_of(e, in, EPOLLIN | EPOLLET);

	for (int i = 0; i < 4; i++) {
		woken_by_byte(e, out, i == 3 ? 1 : i + 1);
		if (i == 2)
			show(e, e->fd, 10, 0);
	}
	wait_on(e, in, 0);
	close(in);
	close(out);
}

/* An edge of the stream's, told of by the set inside once, whoever looks. */
static void edge_inside(struct end *e)
{
	int in = set_of(e, e->fd, EPOLLIN | EPOLLET), out = set_of(e, in, EPOLLIN);

	for (int i = 0; i < 2; i++) {
		woken_by_byte(e, out, 1);
		wait_on(e, in, 0);
		wait_on(e, out, 0);
		wait_on(e, in, 0);
		show(e, e->fd, 10, 0);
	}
	tell(e);
	await(e);
	close(in);
	close(out);
}

/* Three sets deep; a thread sleeps in the outermost, another polls it. */
static void deep(struct end *e)
{
	int in = set_of(e, e->fd, EPOLLIN), middle = set_of(e, in, EPOLLIN),
	    out = set_of(e, middle, EPOLLIN);
	struct job j[3];

	for (int i = 0; i < 3; i++) {
		job_sleeps(e, &j[0], job_wait, out);
		job_sleeps(e, &j[1], job_polled, out);
		job_sleeps(e, &j[2], job_select, middle);
		tell(e);
		for (int k = 0; k < 3; k++) {
			job_join(e, &j[k]);
			say(e, "sleeper %d: %ld", k, j[k].result);
		}
		await(e);
		arrived(e, e->fd, 1);
		bits(e, "poll of the outermost", polled(out, POLLIN | POLLRDNORM | POLLOUT, 0));
		wait_on(e, in, 0);
		wait_on(e, out, 0);
		show(e, e->fd, 10, 0);
		wait_on(e, out, 0);
		bits(e, "poll of the outermost", polled(out, POLLIN, 0));
	}
	close(middle);
	close(in);
	close(out);
}

/* A set inside that reports once. */
static void once_within(struct end *e)
{
	int in = set_of(e, e->fd, EPOLLIN), out = set_of(e, in, EPOLLIN | EPOLLONESHOT);

	for (int i = 0; i < 2; i++) {
		woken_by_byte(e, out, 1);
		modify(e, out, in, EPOLLIN | EPOLLONESHOT);
		wait_on(e, out, 0);
		show(e, e->fd, 10, 0);
		modify(e, out, in, EPOLLIN | EPOLLONESHOT);
		wait_on(e, out, 0);
	}
	tell(e);
	await(e);
	close(in);
	close(out);
}

/* One-shot, armed again while a thread sleeps: with something to read it wakes, with nothing it sleeps on. */
static void armed_again(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLIN | EPOLLONESHOT);
	struct job j;

	for (int i = 0; i < 3; i++) {
		job_sleeps(e, &j, job_wait, ep);
		modify(e, ep, e->fd, EPOLLIN | EPOLLONESHOT);
		asleep(e, j.tid);
		say(e, "woken by nothing: %d", j.done);
		tell(e);
		say_woken(e, &j);
		await(e);
		arrived(e, e->fd, 1);
		job_sleeps(e, &j, job_wait, ep);
		modify(e, ep, e->fd, EPOLLRDHUP | EPOLLONESHOT);
		asleep(e, j.tid);
		modify(e, ep, e->fd, EPOLLIN | EPOLLONESHOT | (i == 2 ? EPOLLET : 0));
		say_woken(e, &j);
		job_sleeps(e, &j, job_wait, ep);
		modify(e, ep, e->fd, EPOLLOUT | EPOLLONESHOT);
		say_woken(e, &j);
		show(e, e->fd, 10, 0);
		modify(e, ep, e->fd, EPOLLIN | EPOLLONESHOT);
	}
	close(ep);
}

/* It has used the connection before the threads there are told of anything. */
static void early_peer(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLIN);

	meet(e);
	wait_on(e, ep, settle());
	one_byte_peer(e);
	one_byte_peer(e);
	close(ep);
}

/* An edge wakes one of two threads, the next edge the other: also where both slept before the connection got to a link. */
static void two_edges(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLIN | EPOLLET);
	struct job j[2];

	job_sleeps(e, &j[0], job_wait, ep);
	job_sleeps(e, &j[1], job_wait, ep);
	meet(e);
	for (int i = 0; i < 2; i++) {
		tell(e);
		while (j[0].done + j[1].done <= i)
			usleep(100);
		await(e);
		arrived(e, e->fd, 1);
		say(e, "%d have been woken", j[0].done + j[1].done);
		show(e, e->fd, 10, 0);
	}
	job_join(e, &j[0]);
	job_join(e, &j[1]);
	close(ep);
}

/* A thread waits for a set from before anything of it is on a link. */
static void early(struct end *e, void (*work)(struct job *j), int outer)
{
	int ep = MUST(e, epoll_create1(0)), out = outer ? set_of(e, ep, EPOLLIN) : -1;
	struct job j;

	job_sleeps(e, &j, work, outer ? out : ep);
	add(e, ep, e->fd, EPOLLIN, 1);
	meet(e);
	asleep(e, j.tid);
	tell(e);
	say_woken(e, &j);
	await(e);
	show(e, e->fd, 10, 0);
	tell(e);
	await(e);
	if (outer)
		close(out);
	close(ep);
}

static void polled_early(struct end *e)
{
	early(e, job_polled, 0);
}

static void selected_early(struct end *e)
{
	early(e, job_select, 0);
}

static void outer_early(struct end *e)
{
	early(e, job_wait, 1);
}

/* Several sets have it, exclusively and not: threads asleep in the others wake, and one of the exclusive ones at least. */
static void exclusive_sets(struct end *e)
{
	int ep[4];
	struct job j[4];
	int woken;

	for (int i = 0; i < 4; i++)
		ep[i] = set_of(e, e->fd, i < 2 ? EPOLLIN : EPOLLIN | EPOLLEXCLUSIVE);
	for (int i = 0; i < 4; i++)
		job_sleeps(e, &j[i], job_wait, ep[i]);
	tell(e);
	job_join(e, &j[0]);
	job_join(e, &j[1]);
	while (!j[2].done && !j[3].done)
		usleep(100);
	await(e);
	woken = j[2].done;
	job_join(e, &j[woken ? 2 : 3]);
	/* The byte is unread; the sleeper that is left wakes with the next. */
	tell(e);
	job_join(e, &j[woken ? 3 : 2]);
	await(e);
	arrived(e, e->fd, 2);
	show(e, e->fd, 10, 0);
	for (int i = 0; i < 4; i++) {
		say(e, "sleeper %d: %ld", i, j[i].result);
		close(ep[i]);
	}
}

static void two_bytes_peer(struct end *e)
{
	one_byte_peer(e);
	one_byte_peer(e);
}

static void three_bytes_peer(struct end *e)
{
	two_bytes_peer(e);
	one_byte_peer(e);
}

static void four_bytes_peer(struct end *e)
{
	three_bytes_peer(e);
	one_byte_peer(e);
}

const struct test cases_nested[] = {
	{"epoll_asked_late", 0, asked_late, three_bytes_peer},
	{"epoll_edges_within", 0, edges_within, four_bytes_peer},
	{"epoll_edge_inside", 0, edge_inside, three_bytes_peer},
	{"epoll_deep", 0, deep, three_bytes_peer},
	{"epoll_once_within", 0, once_within, three_bytes_peer},
	{"epoll_armed_again", 0, armed_again, three_bytes_peer},
	{"epoll_two_edges", 0, two_edges, early_peer},
	{"epoll_polled_early", 0, polled_early, early_peer},
	{"epoll_selected_early", 0, selected_early, early_peer},
	{"epoll_outer_early", 0, outer_early, early_peer},
	{"epoll_exclusive_sets", 0, exclusive_sets, two_bytes_peer},
	{NULL, 0, NULL, NULL},
};
