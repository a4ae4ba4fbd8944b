/* SPDX-License-Identifier: MIT */
#include "tests/engine/pair.h"
#include "tests/engine/kernel_sys.h"
#include "tests/sim/names.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIDS 4194304	/* no process has a higher number */
#define MANY 256	/* engines until a number is used again: it fits into a pid_t */

struct shunt_engine *engines[2];
uint64_t pair_skew;
void (*pair_looked)(void);
static uint64_t frozen_at;	/* ns; 0: the clock runs */

static int listener;
static struct sockaddr_in address;

void die(const char *what)
{
	printf("not ok - %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	if (pair_looked)
		pair_looked();
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (frozen_at ? frozen_at : (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec) + pair_skew;
}

void freeze_clock(bool frozen)
{
	frozen_at = 0;
	frozen_at = frozen ? now() - pair_skew : 0;
}

static const struct shunt_sys sys = { .now = now,
				      .bind = sim_names_bind,
				      .connect = sim_names_connect,
				      KERNEL_SYS };

void make_engines(const struct shunt_config *config, bool manual)
{
	static int made;

	for (int i = 0; i < 2; i++) {
		engines[i] = shunt_engine_create(config, &sys);
		if (!engines[i])
			die("engine");
		engines[i]->forks.pid += PIDS * (made++ % MANY);	/* as if each were a process */
		engines[i]->loop.manual = manual;
	}
}

void listen_here(void)
{
	socklen_t length = sizeof(address);

	address = (struct sockaddr_in) { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 128) ||
	    getsockname(listener, (struct sockaddr *)&address, &length))
		die("listen");
	shunt_file_socket(engines[1], listener, false);
	shunt_file_listening(engines[1], listener);
}

static void connect_from(struct pair *pair, int a)
{
	int b;

	if (connect(a, (struct sockaddr *)&address, sizeof(address)))
		die("connect");
	shunt_file_connected(engines[0], a, 0, (struct sockaddr *)&address, sizeof(address));
	b = accept(listener, NULL, NULL);
	if (b < 0)
		die("accept");
	shunt_file_accepted(engines[1], listener, b, false, 0);
	pair->side[0] = (struct side) { engines[0], a };
	pair->side[1] = (struct side) { engines[1], b };
}

void connect_pair(struct pair *pair)
{
	int a = socket(AF_INET, SOCK_STREAM, 0);

	shunt_file_socket(engines[0], a, false);
	connect_from(pair, a);
}

void connect_again(struct pair *pair)
{
	connect_from(pair, pair->side[0].fd);
}

void close_side(struct side *side)
{
	shunt_file_closing(side->engine, side->fd);
	close(side->fd);
}

struct shunt_stream *stream_of(struct side *side)
{
	return (struct shunt_stream *)shunt_file(side->engine, side->fd);
}

ssize_t send_some(struct side *side, const void *bytes, size_t count, int flags)
{
	struct iovec iov = { (void *)bytes, count };
	struct shunt_stream *stream;
	ssize_t sent = -ERESTART;

	while (sent == -ERESTART) {
		stream = stream_of(side);
		if (!stream || shunt_stream_is_plain(stream))
			return send(side->fd, bytes, count, flags | MSG_NOSIGNAL);
		sent = shunt_stream_send(side->engine, side->fd, stream, &iov, 1,
					 flags | MSG_NOSIGNAL);
	}
	return sent;
}

ssize_t receive_some(struct side *side, void *bytes, size_t count, int flags)
{
	struct iovec iov = { bytes, count };
	struct shunt_stream *stream;
	ssize_t got = -ERESTART;

	while (got == -ERESTART) {
		stream = stream_of(side);
		if (!stream || shunt_stream_is_plain(stream))
			return recv(side->fd, bytes, count, flags);
		got = shunt_stream_recv(side->engine, side->fd, stream, &iov, 1, flags);
	}
	return got;
}
