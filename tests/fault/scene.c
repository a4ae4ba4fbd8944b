/* SPDX-License-Identifier: MIT */
/*
 * One connection's whole life, a few times over, in two processes. `scene server` prints its port,
 * `scene client PORT` comes. socket, listen, connect, accept, epoll, poll, a transfer in both
 * directions, dup, fork, half-close, close. Every byte is checked, and every result that plain TCP
 * would not give ends the program with status 1. It knows nothing of Shunt.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define CONNECTIONS 3
#define BULK (600 << 10)
#define TALK_MS 15	/* of short messages, in which the connections may be upgraded; TEST_TALK: others */

static const char *role;

static void fail(const char *what)
{
	fprintf(stderr, "scene %s: %s: %s\n", role, what, errno ? strerror(errno) : "wrong");
	_exit(1);
}

static int must(int result, const char *what)
{
	if (result < 0)
		fail(what);
	return result;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Byte `at` of a direction that is named by `key`. */
static unsigned char byte_at(unsigned int key, size_t at)
{
	return (unsigned char)(at * 7 + (at >> 8) * 13 + key * 101);
}

static void fill(unsigned char *buffer, unsigned int key, size_t at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		buffer[i] = byte_at(key, at + i);
}

static void check(const unsigned char *buffer, unsigned int key, size_t at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (buffer[i] != byte_at(key, at + i)) {
			errno = 0;
			fail("a byte");
		}
	}
}

struct end {
	int fd;
	unsigned int key;	/* of what we send; the peer's is key ^ 128 */
	size_t sent, got;
};

static void send_all(struct end *end, size_t bytes)
{
	unsigned char buffer[16384];

	while (bytes) {
		size_t part = bytes < sizeof(buffer) ? bytes : sizeof(buffer);
		ssize_t done;

		fill(buffer, end->key, end->sent, part);
		done = send(end->fd, buffer, part, MSG_NOSIGNAL);
		if (done < 0 && errno == EAGAIN) {
			struct pollfd fd = { .fd = end->fd, .events = POLLOUT };

			must(poll(&fd, 1, -1), "poll");
			continue;
		}
		if (done < 0 && errno == ENOMEM)
			continue;	/* send(2) knows it, and recv(2): the kernel may be short of memory for a moment */
		must(done, "send");
		end->sent += done;
		bytes -= done;
	}
}

static void receive_all(struct end *end, size_t bytes)
{
	unsigned char buffer[16384];

	while (bytes) {
		size_t part = bytes < sizeof(buffer) ? bytes : sizeof(buffer);
		ssize_t done = recv(end->fd, buffer, part, 0);

		if (done < 0 && errno == EAGAIN) {
			struct pollfd fd = { .fd = end->fd, .events = POLLIN };

			must(poll(&fd, 1, -1), "poll");
			continue;
		}
		if (done < 0 && errno == ENOMEM)
			continue;
		must(done, "recv");
		if (!done) {
			errno = 0;
			fail("the end of the stream");
		}
		check(buffer, end->key ^ 128, end->got, done);
		end->got += done;
		bytes -= done;
	}
}

/* Short messages, and one byte that says whether there will be another. */
static void talk(struct end *end, int asks)
{
	uint64_t until = now_ms() + (getenv("TEST_TALK") ? atoi(getenv("TEST_TALK")) : TALK_MS);
	char more;

	do {
		more = now_ms() < until;
		if (asks) {
			must(send(end->fd, &more, 1, MSG_NOSIGNAL), "send");
			send_all(end, 100);
			receive_all(end, 100);
		} else {
			struct pollfd fd = { .fd = end->fd, .events = POLLIN };

			must(poll(&fd, 1, -1), "poll");
			must(recv(end->fd, &more, 1, 0), "recv");
			receive_all(end, 100);
			send_all(end, 100);
		}
	} while (more);
}

static void bulk(struct end *end, int first)
{
	if (first)
		send_all(end, BULK);
	receive_all(end, BULK);
	if (!first)
		send_all(end, BULK);
}

/* The same by epoll: edge-triggered and non-blocking, both directions at once. */
static void bulk_by_epoll(struct end *end)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET };
	size_t to_send = BULK, to_get = BULK;
	unsigned char buffer[8192];
	int set = must(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");

	must(fcntl(end->fd, F_SETFL, O_NONBLOCK), "fcntl");
	must(epoll_ctl(set, EPOLL_CTL_ADD, end->fd, &event), "epoll_ctl");
	while (to_send || to_get) {
		ssize_t sent = -1, got = -1;

		if (to_send) {
			size_t part = to_send < sizeof(buffer) ? to_send : sizeof(buffer);

			fill(buffer, end->key, end->sent, part);
			sent = send(end->fd, buffer, part, MSG_NOSIGNAL);
			if (sent < 0 && errno != EAGAIN)
				fail("send");
			end->sent += sent > 0 ? sent : 0;
			to_send -= sent > 0 ? sent : 0;
		}
		if (to_get) {
			got = recv(end->fd, buffer, to_get < sizeof(buffer) ? to_get : sizeof(buffer), 0);
			if (got < 0 && errno != EAGAIN)
				fail("recv");
			if (got > 0)
				check(buffer, end->key ^ 128, end->got, got);
			end->got += got > 0 ? got : 0;
			to_get -= got > 0 ? got : 0;
		}
		if (sent <= 0 && got <= 0 && (to_send || to_get))
			must(epoll_wait(set, &event, 1, -1), "epoll_wait");
	}
	must(epoll_ctl(set, EPOLL_CTL_DEL, end->fd, NULL), "epoll_ctl");
	must(fcntl(end->fd, F_SETFL, 0), "fcntl");
	must(close(set), "close");
}

/* A child sends a part. */
static void share(struct end *end)
{
	int status = 0;
	pid_t child = must(fork(), "fork");

	if (!child) {
		send_all(end, 1000);
		_exit(0);
	}
	must(waitpid(child, &status, 0), "waitpid");
	if (status)
		_exit(1);	/* the child has said why */
	end->sent += 1000;
	send_all(end, 1000);
}

static void end_it(struct end *end, int first)
{
	char byte;

	if (first)
		must(shutdown(end->fd, SHUT_WR), "shutdown");
	if (must(recv(end->fd, &byte, 1, 0), "recv at the end")) {
		errno = 0;
		fail("a byte behind the end");
	}
	must(close(end->fd), "close");
}

static void act(int fd, unsigned int number, int client)
{
	struct end end = { .fd = must(dup(fd), "dup"), .key = client ? number : number ^ 128 };
	int on = 1;

	must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), "setsockopt");
	must(close(fd), "close");
	talk(&end, client);
	if (number == 1)
		bulk_by_epoll(&end);
	else
		bulk(&end, client);
	if (number == 2 && client)
		share(&end);
	else if (number == 2)
		receive_all(&end, 2000);
	end_it(&end, client == (int)(number & 1));
}

static void serve(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int listener = must(socket(AF_INET, SOCK_STREAM, 0), "socket");

	must(bind(listener, (void *)&address, length), "bind");
	must(listen(listener, 16), "listen");
	must(getsockname(listener, (void *)&address, &length), "getsockname");
	printf("port %d\n", ntohs(address.sin_port));
	fflush(stdout);
	for (unsigned int i = 0; i < CONNECTIONS; i++)
		act(must(accept(listener, NULL, NULL), "accept"), i, 0);
	must(close(listener), "close");
}

static void visit(int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				       .sin_port = htons(port) };

	for (unsigned int i = 0; i < CONNECTIONS; i++) {
		int fd = must(socket(AF_INET, SOCK_STREAM, 0), "socket");

		must(connect(fd, (void *)&address, sizeof(address)), "connect");
		act(fd, i, 1);
	}
}

int main(int argc, char **argv)
{
	role = argc > 1 ? argv[1] : "";
	alarm(argc > 3 ? atoi(argv[3]) : 300);
	if (!strcmp(role, "server"))
		serve();
	else if (!strcmp(role, "client") && argc > 2)
		visit(atoi(argv[2]));
	else
		return 2;
	return 0;
}
