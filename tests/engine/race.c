/* SPDX-License-Identifier: MIT */
/*
 * Real threads on two engines of one process over real TCP, in real time: what the simulator's one
 * thread cannot see. Built to run under ThreadSanitizer; without it a plain stress test.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/engine/pair.h"

#define BYTES (1 << 20)
#define PAIRS 2

struct worker {
	struct side *side;
	uint64_t bytes;
	uint8_t salt;
	pthread_t thread;
};

static uint8_t byte_at(uint64_t offset, uint8_t salt)
{
	return offset * 131 + (offset >> 8) + (offset >> 16) * 7 + salt;	/* of no power of two's period */
}

static void *sender(void *arg)
{
	struct worker *w = arg;
	uint8_t bytes[4096];
	uint64_t done = 0;

	while (done < w->bytes) {
		size_t count = 1 + (done * 2654435761u >> 7) % sizeof(bytes);
		ssize_t sent;

		if (count > w->bytes - done)
			count = w->bytes - done;
		for (size_t i = 0; i < count; i++)
			bytes[i] = byte_at(done + i, w->salt);
		sent = send_some(w->side, bytes, count, 0);
		if (sent <= 0)
			die("send");
		done += sent;
	}
	return NULL;
}

static void *receiver(void *arg)
{
	struct worker *w = arg;
	uint8_t bytes[8192];
	uint64_t done = 0;

	while (done < w->bytes) {
		ssize_t got = receive_some(w->side, bytes, sizeof(bytes), 0);

		if (got <= 0)
			die("receive");
		for (ssize_t i = 0; i < got; i++)
			if (bytes[i] != byte_at(done + i, w->salt)) {
				printf("not ok - byte %lu is wrong\n", (unsigned long)(done + i));
				exit(1);
			}
		done += got;
	}
	return NULL;
}

static void start(struct worker *w, void *(*run)(void *), struct side *side, uint64_t bytes, uint8_t salt)
{
	*w = (struct worker) { .side = side, .bytes = bytes, .salt = salt };
	if (pthread_create(&w->thread, NULL, run, w))
		die("pthread_create");
}

/* --- the tests --- */

/* Two streams of one lane, both directions at once: eight threads. */
static void test_lane(void)
{
	struct pair pair[PAIRS];
	struct worker w[PAIRS][4];

	for (int i = 0; i < PAIRS; i++) {
		connect_pair(&pair[i]);
		start(&w[i][0], sender, &pair[i].side[0], BYTES, i);
		start(&w[i][1], receiver, &pair[i].side[1], BYTES, i);
		start(&w[i][2], sender, &pair[i].side[1], BYTES, 100 + i);
		start(&w[i][3], receiver, &pair[i].side[0], BYTES, 100 + i);
	}
	for (int i = 0; i < PAIRS; i++)
		for (int j = 0; j < 4; j++)
			pthread_join(w[i][j].thread, NULL);
	for (int i = 0; i < PAIRS; i++) {
		close_side(&pair[i].side[0]);
		close_side(&pair[i].side[1]);
	}
	printf("ok 1 - two streams of one lane\n");
}

/* Whatever comes, until the end. */
static void *drain(void *arg)
{
	struct worker *w = arg;
	uint8_t bytes[8192];

	while (receive_some(w->side, bytes, sizeof(bytes), 0) > 0)
		;
	return NULL;
}

static void *closer(void *arg)
{
	struct worker *w = arg;

	usleep(1000 * w->salt);
	shunt_stream_shutdown(w->side->engine, w->side->fd, stream_of(w->side), SHUT_RDWR);
	return NULL;
}

static void *flood(void *arg)
{
	struct worker *w = arg;
	static const uint8_t bytes[3000];

	while (send_some(w->side, bytes, sizeof(bytes), 0) > 0)
		;
	return NULL;
}

/* A third thread ends a stream that two others are using. */
static void test_closer(void)
{
	for (int turn = 0; turn < 20; turn++) {
		struct worker w[5];
		struct pair pair;

		connect_pair(&pair);
		start(&w[0], flood, &pair.side[0], 0, 0);
		start(&w[1], drain, &pair.side[1], 0, 0);
		start(&w[2], flood, &pair.side[1], 0, 0);
		start(&w[3], drain, &pair.side[0], 0, 0);
		start(&w[4], closer, &pair.side[turn & 1], 0, turn);
		for (int i = 4; i > 0; i--)
			if (i != 2)
				pthread_join(w[i].thread, NULL);
		/* As the kernel has it: what nobody reads any more fills the window, and its sender waits. */
		for (int i = 0; i < 2; i++)
			shunt_stream_shutdown(pair.side[i].engine, pair.side[i].fd,
					      stream_of(&pair.side[i]), SHUT_WR);
		pthread_join(w[0].thread, NULL);
		pthread_join(w[2].thread, NULL);
		close_side(&pair.side[0]);
		close_side(&pair.side[1]);
	}
	printf("ok 2 - a stream is ended while it is used\n");
}

/* Bursts that make rings grow, and pauses in which they shrink again, or begin to. */
static void *bursts(void *arg)
{
	struct worker *w = arg;
	static uint8_t bytes[2][100000];
	uint64_t done = 0;

	while (done < w->bytes) {
		size_t count = 1 + (done * 2654435761u >> 7) % sizeof(bytes[0]);
		ssize_t sent;

		if (count > w->bytes - done)
			count = w->bytes - done;
		for (size_t i = 0; i < count; i++)
			bytes[w->salt][i] = byte_at(done + i, w->salt);
		sent = send_some(w->side, bytes[w->salt], count, 0);
		if (sent <= 0)
			die("send");
		done += sent;
		usleep(count % 8000);
	}
	return NULL;
}

static void test_bursts(void)
{
	struct worker w[4];
	struct pair pair;
	uint64_t shrinks;

	connect_pair(&pair);
	start(&w[0], bursts, &pair.side[0], 5 * BYTES, 0);
	start(&w[1], receiver, &pair.side[1], 5 * BYTES, 0);
	start(&w[2], bursts, &pair.side[1], 5 * BYTES, 1);
	start(&w[3], receiver, &pair.side[0], 5 * BYTES, 1);
	for (int i = 0; i < 4; i++)
		pthread_join(w[i].thread, NULL);
	close_side(&pair.side[0]);
	close_side(&pair.side[1]);
	shrinks = engines[0]->shrinks + engines[1]->shrinks;
	printf("%sok 3 - rings shrink between bursts # %lu times\n", shrinks ? "" : "not ", (unsigned long)shrinks);
}

/* Connections come and go on both engines from several threads. */
static void *churn(void *arg)
{
	struct worker *w = arg;

	for (int turn = 0; turn < 30; turn++) {
		struct worker inner[2];
		struct pair pair;
		static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

		pthread_mutex_lock(&one);
		connect_pair(&pair);
		pthread_mutex_unlock(&one);
		start(&inner[0], sender, &pair.side[turn & 1], 20000, w->salt);
		start(&inner[1], receiver, &pair.side[!(turn & 1)], 20000, w->salt);
		pthread_join(inner[0].thread, NULL);
		pthread_join(inner[1].thread, NULL);
		close_side(&pair.side[0]);
		close_side(&pair.side[1]);
	}
	return NULL;
}

static void test_churn(void)
{
	struct worker w[3];

	for (int i = 0; i < 3; i++)
		start(&w[i], churn, NULL, 0, i);
	for (int i = 0; i < 3; i++)
		pthread_join(w[i].thread, NULL);
	printf("ok 4 - connections come and go\n");
}

static void *closes(void *arg)
{
	close_side(arg);
	return NULL;
}

/*
 * A byte each, and both ends close at the same time: claims, links, ends and the seats that they leave meet in all orders.
 * In between is a longer one, for which a link is there in time.
 */
static void *brief(void *arg)
{
	for (int turn = 0; turn < 150; turn++) {
		static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
		struct pair pair;
		pthread_t other;
		char byte;

		pthread_mutex_lock(&one);
		connect_pair(&pair);
		pthread_mutex_unlock(&one);
		for (int i = 0; i < (turn % 8 ? 1 : 200); i++) {
			if (send_some(&pair.side[0], "x", 1, 0) != 1 || receive_some(&pair.side[1], &byte, 1, 0) != 1 ||
			    send_some(&pair.side[1], "y", 1, 0) != 1 || receive_some(&pair.side[0], &byte, 1, 0) != 1)
				die("a byte");
		}
		if (pthread_create(&other, NULL, closes, &pair.side[1]))
			die("pthread_create");
		close_side(&pair.side[0]);
		pthread_join(other, NULL);
	}
	return arg;
}

static void test_brief(void)
{
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, brief, NULL))
			die("pthread_create");
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	printf("ok 5 - connections of a byte\n");
}

/* A process that is out of descriptors cannot have what a set with a linked stream needs: it goes back to TCP. */
static void test_no_descriptors(bool linked, uint32_t mode)
{
	struct rlimit before, none;
	struct epoll_event event = { .events = EPOLLIN | mode };
	struct worker w[2];
	struct pair pair;
	int set, refused = 0;

	connect_pair(&pair);
	do {
		if (shunt_stream_is_plain(stream_of(&pair.side[1]))) {	/* the link was refused: another connection may have it */
			close_side(&pair.side[0]);
			close_side(&pair.side[1]);
			if (++refused == 100)
				die("no connection comes on the link");
			connect_pair(&pair);
		}
		start(&w[0], sender, &pair.side[0], 1000, 1);
		start(&w[1], receiver, &pair.side[1], 1000, 1);
		for (int i = 0; i < 2; i++)
			pthread_join(w[i].thread, NULL);
	} while (linked && stream_state(stream_of(&pair.side[1])) != SHUNT_LINKED);
	set = epoll_create1(0);
	shunt_file_epoll(engines[1], set);
	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = 3;
	setrlimit(RLIMIT_NOFILE, &none);
	if (shunt_epset_ctl(engines[1], set, EPOLL_CTL_ADD, pair.side[1].fd, &event))
		die("epoll_ctl");
	setrlimit(RLIMIT_NOFILE, &before);
	if (!shunt_stream_is_plain(stream_of(&pair.side[1])))
		die("the stream is still on the link");
	if (send_some(&pair.side[0], "x", 1, 0) != 1 || shunt_epset_wait(engines[1], set, &event, 1, NULL, NULL) != 1)
		die("epoll_wait");
	close_side(&pair.side[0]);
	close_side(&pair.side[1]);
	shunt_file_closing(engines[1], set);
	close(set);
}

static const char *given(const char *name, void *arg)
{
	(void)arg;
	return getenv(name);
}

int main(void)
{
	struct shunt_config config;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..7\n");
	shunt_config_load(&config, given, NULL, NULL, NULL);	/* poll and cqs of SHUNT_TUNE, … */
	config.brief = 0;
	config.arena_bytes = 16 << 20;
	config.ring_min = 4096;
	config.ring_max = 65536;
	config.rq_depth = config.sq_depth = 64;
	config.waiters = 1;
	make_engines(&config, false);
	for (int i = 0; i < 2; i++) {
		engines[i]->trim_every = 500000;
		engines[i]->lanes.ring_quiet = 1500000;
	}
	listen_here();
	test_lane();
	test_closer();
	test_bursts();
	test_churn();
	test_brief();
	test_no_descriptors(true, 0);
	test_no_descriptors(true, EPOLLONESHOT);
	test_no_descriptors(false, EPOLLONESHOT);
	printf("ok 6 - no descriptor for an epoll set\n");
	if (atomic_load(&engines[0]->nops) + atomic_load(&engines[1]->nops))
		die("a lane has starved");
	printf("ok 7 - no credit was asked for (XR-20)\n");
	shunt_engine_finish(engines[0]);
	shunt_engine_finish(engines[1]);
	return 0;
}
