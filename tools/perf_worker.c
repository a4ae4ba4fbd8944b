/* SPDX-License-Identifier: MIT */
/* One thread of the client: its loop, and what a connection does when it may write or read. */
#include "tools/perf_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
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
	watch(worker, EPOLL_CTL_ADD, conn, conn->flow->reply ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

/* ---- requests ---- */

static void count(struct perf_worker *worker, struct perf_conn *conn, uint64_t operations)
{
	conn->tally->total += operations;
	if (worker->now >= worker->begin && worker->now < worker->end)
		conn->tally->measured += operations;
}

/* Even where there was hardly any time, each connection has made one request. */
static bool may_begin(const struct perf_worker *worker, const struct perf_conn *conn)
{
	const struct perf_flow *flow = conn->flow;

	if (worker->stopping && conn->sent)
		return false;
	return (!flow->reply || conn->sent - conn->done < flow->depth) && (!flow->burst || conn->left);
}

/* Whether the socket took all of it. */
static bool write_request(struct perf_conn *conn)
{
	uint32_t size = conn->flow->request;

	while (conn->written < size) {
		ssize_t sent = send(conn->fd, perf_pattern(conn->index, PERF_REQUESTS, conn->tx),
				    size - conn->written, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN)
			return false;
		if (sent < 0)
			perf_end_fail(PERF_END_PEER, "connection %u: send: %m", conn->index);
		conn->tx += (uint64_t)sent;
		conn->written += (uint32_t)sent;
	}
	conn->written = 0;
	conn->sent++;
	return true;
}

static void begin_request(struct perf_worker *worker, struct perf_conn *conn)
{
	if (conn->flow->burst)
		conn->left--;
	if (!conn->flow->reply)
		return;
	worker->now = perf_now();
	conn->stamps[conn->sent % conn->flow->depth] = worker->now;
}

/* Writes what may be written now. */
static void write_requests(struct perf_worker *worker, struct perf_conn *conn)
{
	bool one_way = !conn->flow->reply, blocked = false;
	uint64_t before = conn->sent, turn = conn->tx + TURN;

	while (!blocked && (conn->written || may_begin(worker, conn)) &&
	       !(one_way && conn->tx >= turn)) {
		if (!conn->written)
			begin_request(worker, conn);
		blocked = !write_request(conn);
	}
	if (one_way) {
		worker->now = perf_now();
		count(worker, conn, conn->sent - before);
	}
	want(worker, conn, blocked || one_way ? EPOLLIN | EPOLLOUT : EPOLLIN);
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
	conn->next_idle = NULL;
	*conn->tally->idle_tail = conn;
	conn->tally->idle_tail = &conn->next_idle;
}

/* Begins what is due, and returns when something is next. */
static uint64_t begin_due(struct perf_worker *worker)
{
	uint64_t next = worker->stopping ? UINT64_MAX : worker->end;

	for (size_t f = 0; f < worker->flow_count && !worker->stopping; f++) {
		struct perf_tally *tally = &worker->tallies[f];

		while (tally->idle && tally->idle->due <= worker->now) {
			struct perf_conn *conn = tally->idle;

			tally->idle = conn->next_idle;
			if (!tally->idle)
				tally->idle_tail = &tally->idle;
			begin_cluster(worker, conn);
		}
		if (tally->idle && tally->idle->due < next)
			next = tally->idle->due;
	}
	return next;
}

/* ---- replies ---- */

static void take_replies(struct perf_worker *worker, struct perf_conn *conn, size_t bytes)
{
	bool measured = worker->now >= worker->begin && worker->now < worker->end;
	uint64_t replies;

	perf_pattern_check(conn->index, PERF_REPLIES, conn->rx, worker->buffer, bytes);
	conn->rx += bytes;
	replies = conn->rx / conn->flow->reply - conn->done;
	for (uint64_t i = 0; i < replies && measured; i++)
		perf_samples_add(&conn->tally->samples, worker->now -
				 conn->stamps[(conn->done + i) % conn->flow->depth]);
	conn->done += replies;
	count(worker, conn, replies);
}

static void take_count(struct perf_conn *conn, const uint8_t *bytes, size_t count)
{
	if (!conn->ending || count > sizeof(conn->count) - conn->counted)
		perf_end_fail(PERF_END_FAILED, "connection %u: %zu bytes more than were asked for",
			      conn->index, count);
	memcpy(conn->count + conn->counted, bytes, count);
	conn->counted += count;
}

static void end_connection(struct perf_worker *worker, struct perf_conn *conn)
{
	uint64_t served;

	memcpy(&served, conn->count, sizeof(served));
	if (conn->counted < sizeof(conn->count))
		perf_end_fail(PERF_END_PEER, "connection %u: the server ended it after %llu requests",
			      conn->index, (unsigned long long)conn->sent);
	if (served != conn->sent)
		perf_end_fail(PERF_END_FAILED, "connection %u: sent %llu requests, the server had %llu",
			      conn->index, (unsigned long long)conn->sent, (unsigned long long)served);
	close(conn->fd);
	conn->fd = -1;
	worker->open--;
}

static void read_replies(struct perf_worker *worker, struct perf_conn *conn)
{
	ssize_t got = recv(conn->fd, worker->buffer, sizeof(worker->buffer), 0);
	uint64_t expected = conn->sent * conn->flow->reply - conn->rx;
	size_t replies;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got < 0)
		perf_end_fail(PERF_END_PEER, "connection %u: recv: %m", conn->index);
	if (got == 0) {
		end_connection(worker, conn);
		return;
	}
	worker->now = perf_now();
	replies = (uint64_t)got < expected ? (size_t)got : (size_t)expected;
	if (replies)
		take_replies(worker, conn, replies);
	if ((size_t)got > replies)
		take_count(conn, worker->buffer + replies, (size_t)got - replies);
	if (conn->ending || worker->stopping)
		return;
	if (conn->flow->burst && !conn->left && !conn->written && conn->done == conn->sent)
		end_cluster(worker, conn);
	else
		write_requests(worker, conn);
}

/* ---- the end ---- */

/* Once nothing is outstanding any more. */
static void end_requests(struct perf_worker *worker, struct perf_conn *conn)
{
	if (conn->fd < 0 || conn->ending || conn->written || !conn->sent ||
	    (conn->flow->reply && conn->done < conn->sent))
		return;
	if (shutdown(conn->fd, SHUT_WR))
		perf_end_fail(PERF_END_PEER, "connection %u: shutdown: %m", conn->index);
	conn->ending = true;
	want(worker, conn, EPOLLIN);
}

static void stop(struct perf_worker *worker)
{
	worker->stopping = true;
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
	count = epoll_pwait2(worker->epoll, events, EVENTS, until == UINT64_MAX ? NULL : &timeout, NULL);
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
		free(conn->stamps);
		free(conn);
	}
	for (size_t f = 0; f < worker->flow_count; f++)
		perf_samples_free(&worker->tallies[f].samples);
	close(worker->epoll);
}
