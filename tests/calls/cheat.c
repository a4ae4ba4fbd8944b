/* SPDX-License-Identifier: MIT */
/*
 * A client with an engine of its own whose clock goes 50 times as fast as the node's, so its buckets fill. Apart from that it is a
 * source of qos.sh: it sends to a port until a line comes in, and tells how much the server has got of how much.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/api.h"
#include "core/engine.h"
#include "tests/engine/kernel_sys.h"

#define FASTER 50
#define BLOCK 100000

static uint64_t fast_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return ((uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec) * FASTER;
}

static const struct shunt_sys sys = { .now = fast_clock,
				      .bind = bind,
				      .connect = connect,
				      KERNEL_SYS };

static struct shunt_engine *engine;

static _Noreturn void die(const char *what, ssize_t result)
{
	fprintf(stderr, "%s: %s\n", what, strerror(result < 0 ? (int)-result : errno));
	exit(1);
}

static int connect_to(uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	shunt_file_socket(engine, fd, false);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
		die("connect", -1);
	shunt_file_connected(engine, fd, 0, (struct sockaddr *)&to, sizeof(to));
	return fd;
}

static struct shunt_stream *stream_at(int fd)
{
	return (struct shunt_stream *)shunt_file(engine, fd);
}

static void send_block(int fd)
{
	static char block[BLOCK];
	struct iovec left = { block, BLOCK };

	while (left.iov_len) {
		ssize_t sent = shunt_stream_send(engine, fd, stream_at(fd), &left, 1, MSG_NOSIGNAL);

		if (sent <= 0)
			die("send", sent);
		left.iov_base = (char *)left.iov_base + sent;
		left.iov_len -= (size_t)sent;
	}
}

static void receive_line(int fd, char *line, size_t room)
{
	size_t have = 0;

	while (!have || line[have - 1] != '\n') {
		struct iovec to = { line + have, room - 1 - have };
		ssize_t got = shunt_stream_recv(engine, fd, stream_at(fd), &to, 1, 0);

		if (got <= 0)
			die("recv", got);
		have += (size_t)got;
	}
	line[have] = '\0';
}

int main(int argc, char **argv)
{
	struct pollfd told = { .fd = STDIN_FILENO, .events = POLLIN };
	struct shunt_config config;
	unsigned long sent = 0;
	char line[64];
	int fd;

	if (argc != 2)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	shunt_config_defaults(&config);
	config.brief = 0;
	config.keepalive_ms = 0;	/* by its clock a peer is silent after 40 ms, */
	config.dead_ms *= FASTER;	/* dead after 10 */
	config.claim_ms *= FASTER;	/* and does not answer a claim within 20 */
	engine = shunt_engine_create(&config, &sys);
	if (!engine)
		die("engine", -1);
	fd = connect_to((uint16_t)atoi(argv[1]));
	while (!poll(&told, 1, 0)) {
		send_block(fd);
		sent += BLOCK;
		if (sent == 30 * BLOCK)
			printf("begun\n");
	}
	shunt_stream_shutdown(engine, fd, stream_at(fd), SHUT_WR);
	receive_line(fd, line, sizeof(line));
	printf("sent %lu got %s", sent, line);
	shunt_file_closing(engine, fd);
	close(fd);
	shunt_engine_finish(engine);
	return 0;
}
