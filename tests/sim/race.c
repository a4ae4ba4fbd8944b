/*
 * Real threads on two engines of one process over real TCP, in real time: what the simulator's one
 * thread cannot see. Built to run under ThreadSanitizer; without it a plain stress test.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "core/engine.h"

#define BYTES (1 << 20)
#define PAIRS 2

struct side {
	struct shunt_engine *engine;
	int fd;
};

struct pair {
	struct side side[2];	/* connected, accepted */
};

struct worker {
	struct side *side;
	uint64_t bytes;
	uint8_t salt;
	pthread_t thread;
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static const struct shunt_sys sys = {
	.now = now, .sendmsg = sendmsg, .recvmsg = recvmsg, .getsockopt = getsockopt,
	.setsockopt = setsockopt, .getsockname = getsockname, .getpeername = getpeername,
	.shutdown = shutdown, .ioctl = ioctl, .fcntl = fcntl, .socket = socket, .bind = bind,
	.listen = listen, .accept4 = accept4, .connect = connect, .read = read, .write = write,
	.close = close, .ppoll = ppoll, .epoll_create1 = epoll_create1, .epoll_ctl = epoll_ctl, .epoll_pwait = epoll_pwait,
	.epoll_pwait2 = epoll_pwait2,
};

static struct shunt_engine *engines[2];
static int listener;
static struct sockaddr_in address = { .sin_family = AF_INET };

static void die(const char *what)
{
	printf("not ok - %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct shunt_stream *stream_of(struct side *side)
{
	return (struct shunt_stream *)shunt_file(side->engine, side->fd);
}

/* --- two processes' worth of connections --- */

static void listen_here(void)
{
	socklen_t length = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 16) ||
	    getsockname(listener, (struct sockaddr *)&address, &length))
		die("listen");
	shunt_file_socket(engines[1], listener, false);
	shunt_file_listening(engines[1], listener);
}

static void connect_pair(struct pair *pair)
{
	int a = socket(AF_INET, SOCK_STREAM, 0), b;

	shunt_file_socket(engines[0], a, false);
	if (connect(a, (struct sockaddr *)&address, sizeof(address)))
		die("connect");
	shunt_file_connected(engines[0], a, 0);
	b = accept(listener, NULL, NULL);
	if (b < 0)
		die("accept");
	shunt_file_accepted(engines[1], b, false);
	pair->side[0] = (struct side) { engines[0], a };
	pair->side[1] = (struct side) { engines[1], b };
}

static void close_side(struct side *side)
{
	shunt_file_closing(side->engine, side->fd);
	close(side->fd);
}

/* --- sending and receiving; a stream that is the kernel's is served by it --- */

static ssize_t send_some(struct side *side, const void *bytes, size_t count)
{
	struct iovec iov = { (void *)bytes, count };
	struct shunt_stream *stream = stream_of(side);

	if (!stream || shunt_stream_is_plain(stream))
		return send(side->fd, bytes, count, MSG_NOSIGNAL);
	return shunt_stream_send(side->engine, side->fd, stream, &iov, 1, MSG_NOSIGNAL);
}

static ssize_t receive_some(struct side *side, void *bytes, size_t count)
{
	struct iovec iov = { bytes, count };
	struct shunt_stream *stream = stream_of(side);

	if (!stream || shunt_stream_is_plain(stream))
		return recv(side->fd, bytes, count, 0);
	return shunt_stream_recv(side->engine, side->fd, stream, &iov, 1, 0);
}

static uint8_t byte_at(uint64_t offset, uint8_t salt)
{
	return offset * 131 + (offset >> 8) + salt;
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
		sent = send_some(w->side, bytes, count);
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
		ssize_t got = receive_some(w->side, bytes, sizeof(bytes));

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

	while (receive_some(w->side, bytes, sizeof(bytes)) > 0)
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

	while (send_some(w->side, bytes, sizeof(bytes)) > 0)
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
		for (int i = 0; i < 5; i++)
			pthread_join(w[i].thread, NULL);
		close_side(&pair.side[0]);
		close_side(&pair.side[1]);
	}
	printf("ok 2 - a stream is ended while it is used\n");
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
	printf("ok 3 - connections come and go\n");
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
	printf("1..3\n");
	shunt_config_load(&config, given, NULL, NULL, NULL);	/* SHUNT_POLL, SHUNT_CQS, … */
	config.arena_bytes = 16 << 20;
	config.ring_min = 4096;
	config.ring_max = 65536;
	config.rq_depth = config.sq_depth = 64;
	for (int i = 0; i < 2; i++)
		if (!(engines[i] = shunt_engine_create(&config, &sys)))
			die("engine");
	listen_here();
	test_lane();
	test_closer();
	test_churn();
	shunt_engine_finish(engines[0]);
	shunt_engine_finish(engines[1]);
	return 0;
}
