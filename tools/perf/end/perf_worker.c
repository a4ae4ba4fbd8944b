/* SPDX-License-Identifier: MIT */
/* One thread of the client: its loop, and what a connection does when it may write or read. */
#include "tools/perf/end/perf_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 64
#define TURN (64 << 10)	/* bytes of a one-way stream before the others' turn */

void perf_worker_init(struct perf_worker *worker, size_t flow_count, size_t samples)
{
	worker->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (worker->epoll < 0)
		perf_end_fail(PERF_END_FAILED, "epoll_create1: %m");
	worker->flow_count = flow_count;
	for (size_t f = 0; f < flow_count; f++) {
		worker->tallies[f].idle_tail = &worker->tallies[f].idle;
		if (perf_samples_init(&worker->tallies[f].samples, samples))
			perf_end_fail(PERF_END_FAILED, "out of memory");
	}
}

static void watch(struct perf_worker *worker, int op, struct perf_conn *conn, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = conn };

	if (epoll_ctl(worker->epoll, op, conn->fd, &event))
		perf_end_fail(PERF_END_FAILED, "epoll_ctl: %m");
	conn->events = events;
}

static void want(struct perf_worker *worker, struct perf_conn *conn, uint32_t events)
{
	if (conn->events != events)
		watch(worker, EPOLL_CTL_MOD, conn, events);
}

void perf_worker_add(struct perf_worker *worker, struct perf_conn *conn, size_t flow)
{
	conn->tally = &worker->tallies[flow];
	conn->left = conn->flow->burst;
	conn->next = worker->conns;
	worker->conns = conn;
	worker->open++;
	watch(worker, EPOLL_CTL_ADD, conn, conn->flow->sizes.reply ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

/* ---- requests ---- */

static bool is_measured(const struct perf_worker *worker)
{
	return worker->now >= worker->begin && worker->now < worker->end;
}

static void count(struct perf_worker *worker, struct perf_tally *tally, uint64_t operations)
{
	tally->total += operations;
	if (is_measured(worker))
		tally->measured += operations;
}

static bool has_room(const struct perf_conn *conn)
{
	return !perf_talk_sends(&conn->talk) &&
	       conn->talk.sent - conn->talk.received < conn->flow->depth;
}

/* Even where there was hardly any time, each connection of a closed loop has made one request. */
static bool may_begin(const struct perf_worker *worker, const struct perf_conn *conn)
{
	const struct perf_flow *flow = conn->flow;
	const struct perf_talk *talk = &conn->talk;

	if (worker->schedule.open)
		return !worker->stopping && has_room(conn) && worker->schedule.next <= worker->now;
	if (worker->stopping && talk->sent)
		return false;
	return (!flow->sizes.reply || talk->sent - talk->received < flow->depth) &&
	       (!flow->burst || conn->left);
}

/* A latency of an open loop counts from when the request was due. */
static uint64_t take_due(struct perf_worker *worker)
{
	struct perf_schedule *schedule = &worker->schedule;
	uint64_t due = schedule->next;

	if (due >= worker->begin && worker->now - due > PERF_LATE_NS)
		schedule->late++;
	perf_schedule_advance(schedule);
	return due;
}

static void begin_request(struct perf_worker *worker, struct perf_conn *conn)
{
	if (conn->flow->burst)
		conn->left--;
	if (conn->flow->sizes.reply) {
		worker->now = perf_now();
		conn->stamps[conn->talk.sent % conn->flow->depth] = worker->schedule.open ?
									    take_due(worker) :
									    worker->now;
	}
	perf_talk_begin(&conn->talk);
}

/* Whether the socket took all of the request under way. */
static bool write_request(struct perf_conn *conn)
{
	int rc = perf_talk_send(&conn->talk, conn->fd);

	if (rc && rc != -EAGAIN)
		perf_end_fail(PERF_END_PEER, "connection %u: send: %s", conn->talk.index,
			      strerror(-rc));
	return !rc;
}

/* Requests that the socket has taken. */
static uint64_t written(const struct perf_conn *conn)
{
	return conn->talk.sent - perf_talk_sends(&conn->talk);
}

static void queue(struct perf_conn *conn)
{
	conn->next_idle = NULL;
	*conn->tally->idle_tail = conn;
	conn->tally->idle_tail = &conn->next_idle;
}

/* Writes what may be written now. */
static void write_requests(struct perf_worker *worker, struct perf_conn *conn)
{
	bool one_way = !conn->flow->sizes.reply, blocked = false;
	uint64_t before = written(conn), turn = conn->talk.tx + TURN;

	while (!blocked && (perf_talk_sends(&conn->talk) || may_begin(worker, conn)) &&
	       !(one_way && conn->talk.tx >= turn)) {
		if (!perf_talk_sends(&conn->talk))
			begin_request(worker, conn);
		blocked = !write_request(conn);
	}
	if (one_way) {
		worker->now = perf_now();
		count(worker, conn->tally, written(conn) - before);
	}
	want(worker, conn, blocked || one_way ? EPOLLIN | EPOLLOUT : EPOLLIN);
	if (worker->schedule.open && !conn->queued && has_room(conn)) {
		conn->queued = true;
		queue(conn);
	}
}

/* ---- clusters ---- */

static void begin_cluster(struct perf_worker *worker, struct perf_conn *conn)
{
	conn->left = conn->flow->burst;
	write_requests(worker, conn);
}

static void end_cluster(struct perf_worker *worker, struct perf_conn *conn)
{
	if (!conn->flow->interval_us) {
		begin_cluster(worker, conn);
		return;
	}
	conn->due = worker->now + conn->flow->interval_us * 1000ULL;
	queue(conn);
}

/* The queue has one. */
static struct perf_conn *unqueue(struct perf_tally *tally)
{
	struct perf_conn *conn = tally->idle;

	tally->idle = conn->next_idle;
	if (!tally->idle)
		tally->idle_tail = &tally->idle;
	return conn;
}

/* Begins the clusters that are due, and returns when something is next. */
static uint64_t begin_due_clusters(struct perf_worker *worker)
{
	uint64_t next = worker->end;

	for (size_t f = 0; f < worker->flow_count; f++) {
		struct perf_tally *tally = &worker->tallies[f];

		while (tally->idle && tally->idle->due <= worker->now)
			begin_cluster(worker, unqueue(tally));
		if (tally->idle && tally->idle->due < next)
			next = tally->idle->due;
	}
	return next;
}

/* ---- the open loop ---- */

/* As above. All connections are of the first flow. Without room anywhere, a reply is what is next. */
static uint64_t begin_due_requests(struct perf_worker *worker)
{
	struct perf_tally *tally = &worker->tallies[0];

	while (tally->idle && worker->schedule.next <= worker->now) {
		struct perf_conn *conn = unqueue(tally);

		conn->queued = false;
		write_requests(worker, conn);
	}
	return tally->idle && worker->schedule.next < worker->end ? worker->schedule.next :
								    worker->end;
}

/* Their latencies are longer than what they count with. */
static void count_unsent(struct perf_worker *worker)
{
	struct perf_schedule *schedule = &worker->schedule;

	for (; schedule->next < worker->end; perf_schedule_advance(schedule)) {
		if (schedule->next < worker->begin)
			continue;
		schedule->unsent++;
		perf_samples_add(&worker->tallies[0].samples, worker->end - schedule->next);
	}
}

static uint64_t begin_due(struct perf_worker *worker)
{
	if (worker->stopping)
		return UINT64_MAX;
	return worker->schedule.open ? begin_due_requests(worker) : begin_due_clusters(worker);
}

/* ---- replies ---- */

/* An open loop has all that were due in the measured time, even if they came after it. */
static void take_latency(struct perf_worker *worker, struct perf_tally *tally, uint64_t stamp)
{
	if (worker->schedule.open ? stamp >= worker->begin && stamp < worker->end :
				    is_measured(worker))
		perf_samples_add(&tally->samples, worker->now - stamp);
}

/* Of the replies that have come since there were `before`. */
static void take_replies(struct perf_worker *worker, struct perf_conn *conn, uint64_t before)
{
	struct perf_talk *talk = &conn->talk;

	if (talk->received > talk->sent ||
	    (talk->received == talk->sent && !perf_talk_between(talk)))
		perf_end_fail(PERF_END_FAILED, "connection %u: more bytes than were asked for",
			      talk->index);
	for (uint64_t i = before; i < talk->received; i++) {
		struct perf_tally *tally = conn->tally + perf_is_write(&talk->sizes, i);

		count(worker, tally, 1);
		take_latency(worker, tally, conn->stamps[i % conn->flow->depth]);
	}
}

static void end_connection(struct perf_worker *worker, struct perf_conn *conn)
{
	const struct perf_talk *talk = &conn->talk;

	if (conn->counted < sizeof(conn->account))
		perf_end_fail(PERF_END_PEER,
			      "connection %u: the server ended it after %llu requests", talk->index,
			      (unsigned long long)talk->sent);
	if (conn->account.requests != talk->sent)
		perf_end_fail(PERF_END_FAILED,
			      "connection %u: sent %llu requests, the server had %llu", talk->index,
			      (unsigned long long)talk->sent,
			      (unsigned long long)conn->account.requests);
	close(conn->fd);
	conn->fd = -1;
	worker->open--;
}

static void check_received(const struct perf_conn *conn, ssize_t got)
{
	if (got == -EBADMSG)
		perf_end_fail(PERF_END_FAILED, "connection %u: %s", conn->talk.index,
			      conn->talk.why);
	if (got < 0)
		perf_end_fail(PERF_END_PEER, "connection %u: recv: %s", conn->talk.index,
			      strerror(-(int)got));
}

/* After our last request's reply. */
static void read_account(struct perf_worker *worker, struct perf_conn *conn)
{
	uint8_t more;
	size_t missing = sizeof(conn->account) - conn->counted;
	ssize_t got = recv(conn->fd, missing ? (uint8_t *)&conn->account + conn->counted : &more,
			   missing ? missing : sizeof(more), 0);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	check_received(conn, got < 0 ? -errno : got);
	if (!got)
		end_connection(worker, conn);
	else if (!missing)
		perf_end_fail(PERF_END_FAILED, "connection %u: more bytes than were asked for",
			      conn->talk.index);
	else
		conn->counted += (size_t)got;
}

static void read_replies(struct perf_worker *worker, struct perf_conn *conn)
{
	struct perf_talk *talk = &conn->talk;
	uint64_t before = talk->received;
	ssize_t got;

	if (conn->ending) {
		read_account(worker, conn);
		return;
	}
	got = perf_talk_receive(talk, conn->fd, worker->buffer, sizeof(worker->buffer));
	if (got == -EAGAIN || got == -EINTR)
		return;
	check_received(conn, got);
	if (got == 0) {
		end_connection(worker, conn);
		return;
	}
	worker->now = talk->at;
	take_replies(worker, conn, before);
	if (worker->stopping)
		return;
	if (conn->flow->burst && !conn->left && !perf_talk_sends(talk) &&
	    talk->received == talk->sent)
		end_cluster(worker, conn);
	else
		write_requests(worker, conn);
}

/* ---- the end ---- */

/* Once nothing is outstanding any more. */
static void end_requests(struct perf_worker *worker, struct perf_conn *conn)
{
	const struct perf_talk *talk = &conn->talk;

	if (conn->fd < 0 || conn->ending || perf_talk_sends(talk) ||
	    (!talk->sent && !worker->schedule.open) ||
	    (talk->sizes.reply && talk->received < talk->sent))
		return;
	if (shutdown(conn->fd, SHUT_WR))
		perf_end_fail(PERF_END_PEER, "connection %u: shutdown: %m", talk->index);
	conn->ending = true;
	want(worker, conn, EPOLLIN);
}

static void stop(struct perf_worker *worker)
{
	worker->stopping = true;
	if (worker->schedule.open)
		count_unsent(worker);
	for (struct perf_conn *conn = worker->conns; conn; conn = conn->next)
		end_requests(worker, conn);
}

static void handle(struct perf_worker *worker, struct perf_conn *conn, uint32_t events)
{
	if (events & ~(uint32_t)EPOLLOUT)
		read_replies(worker, conn);
	if ((events & EPOLLOUT) && conn->fd >= 0 && !conn->ending)
		write_requests(worker, conn);
	if (worker->stopping)
		end_requests(worker, conn);
}

static int wait_until(struct perf_worker *worker, struct epoll_event events[EVENTS], uint64_t until)
{
	struct timespec timeout = { 0 };
	int count;

	if (until > worker->now) {
		timeout.tv_sec = (time_t)((until - worker->now) / 1000000000);
		timeout.tv_nsec = (long)((until - worker->now) % 1000000000);
	}
	/* glibc 2.35 has a function. */
	count = (int)syscall(SYS_epoll_pwait2, worker->epoll, events, EVENTS,
			     until == UINT64_MAX ? NULL : &timeout, NULL, 0);
	if (count < 0 && errno != EINTR)
		perf_end_fail(PERF_END_FAILED, "epoll_pwait2: %m");
	worker->now = perf_now();
	return count;
}

void perf_worker_run(struct perf_worker *worker)
{
	struct epoll_event events[EVENTS];

	worker->now = perf_now();
	for (struct perf_conn *conn = worker->conns; conn; conn = conn->next)
		write_requests(worker, conn);
	while (worker->open) {
		int count = wait_until(worker, events, begin_due(worker));

		for (int i = 0; i < count; i++)
			handle(worker, events[i].data.ptr, events[i].events);
		if (!worker->stopping && worker->now >= worker->end)
			stop(worker);
	}
}

void perf_worker_free(struct perf_worker *worker)
{
	struct perf_conn *next;

	for (struct perf_conn *conn = worker->conns; conn; conn = next) {
		next = conn->next;
		perf_talk_free(&conn->talk);
		free(conn->stamps);
		free(conn);
	}
	for (size_t f = 0; f < worker->flow_count; f++)
		perf_samples_free(&worker->tallies[f].samples);
	close(worker->epoll);
}
