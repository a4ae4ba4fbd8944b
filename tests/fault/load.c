/* SPDX-License-Identifier: MIT */
/*
 * The two ends of a run: plain programs that check every byte, note what they have sent, and tell how each connection
 * ended. `load server` (one thread a connection, until its standard input ends), `load client PORT SEED SLOT
 * CONNECTIONS BYTES`, `load redis PORT SEED SLOT CONNECTIONS ROUNDS`.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include "table.h"

#define PIECE 32768

struct table *table;

void table_map(void)
{
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, TABLE_FD, 0);
	if (table == MAP_FAILED)
		_exit(3);
}

void table_tell(struct end *end, enum outcome outcome, int error)
{
	uint64_t one = 1;

	atomic_store(&end->error, error);
	atomic_store(&end->outcome, outcome);
	if (write(EVENT_FD, &one, sizeof(one)) < 0)
		_exit(3);
}

struct connection {
	int fd;
	struct order order;
	struct end *mine;
	uint64_t key_out, key_in, out, in;	/* bytes still to come */
	uint64_t rng;
	unsigned char buffer[PIECE];
};

static void fill(unsigned char *buffer, uint64_t key, uint64_t at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		buffer[i] = mix(key + ((at + i) >> 3)) >> ((at + i) & 7) * 8;
}

static size_t piece(struct connection *c, uint64_t left)
{
	size_t most = 1ull << (c->rng = mix(c->rng + 0x9e3779b97f4a7c15ull)) % 16;

	return left < most ? left : most;
}

/* At most so many. 1: moved, 0: would block, -1: over, and told. */
static int send_some(struct connection *c, uint64_t most)
{
	uint64_t at = atomic_load(&c->mine->sent);
	size_t bytes = piece(c, most);
	ssize_t done;

	fill(c->buffer, c->key_out, at, bytes);
	done = send(c->fd, c->buffer, bytes, MSG_NOSIGNAL);
	if (done < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (done < 0) {
		table_tell(c->mine, BROKEN, errno);
		return -1;
	}
	c->out -= done;
	atomic_store(&c->mine->sent, at + done);
	if (!c->out && c->order.style != PINGPONG && shutdown(c->fd, SHUT_WR)) {
		table_tell(c->mine, BROKEN, errno);
		return -1;
	}
	return 1;
}

/* The same; 2: the end has come where it should. */
static int receive_some(struct connection *c)
{
	uint64_t at = atomic_load(&c->mine->got);
	unsigned char expected[PIECE];
	ssize_t done = recv(c->fd, c->buffer, c->in ? piece(c, c->in) : 1, 0);

	if (done < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (done > 0) {
		fill(expected, c->key_in, at, done);
		if ((uint64_t)done > c->in || memcmp(expected, c->buffer, done)) {
			table_tell(c->mine, WRONG, 0);
			return -1;
		}
		c->in -= done;
		atomic_store(&c->mine->got, at + done);
		return 1;
	}
	if (!done && !c->in)
		return 2;
	table_tell(c->mine, done ? BROKEN : EARLY, done ? errno : 0);
	return -1;
}

static int wait_for(struct connection *c, int set, short events)
{
	struct pollfd fd = { .fd = c->fd, .events = events };
	struct epoll_event event;

	if (set >= 0)
		return epoll_wait(set, &event, 1, -1);
	return poll(&fd, 1, -1);
}

/* Both directions at once. */
static int both(struct connection *c)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET };
	int set = c->order.style == EDGE ? epoll_create1(EPOLL_CLOEXEC) : -1;
	int sent = 1, got = 1;

	fcntl(c->fd, F_SETFL, O_NONBLOCK);
	while (set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, c->fd, &event)) {
		if (errno == ENOMEM)	/* epoll_ctl(2) knows it: memory was short for a moment */
			continue;
		table_tell(c->mine, BROKEN, errno);
		sent = -1;
		break;
	}
	while (sent >= 0 && got >= 0 && (c->out || got != 2)) {
		sent = c->out ? send_some(c, c->out) : 0;
		if (sent >= 0 && got != 2)
			got = receive_some(c);
		if (sent == 0 && (got == 0 || got == 2) && (c->out || got != 2))
			wait_for(c, set, (c->out ? POLLOUT : 0) | (got == 2 ? 0 : POLLIN));
	}
	if (set >= 0)
		close(set);
	return sent < 0 || got < 0 ? -1 : 0;
}

/* One direction, then the other. */
static int halves(struct connection *c, int first)
{
	int result = 1;

	for (int turn = 0; turn < 2; turn++) {
		int sending = turn != first;

		if (sending)
			while (c->out && result >= 0)
				result = send_some(c, c->out);
		else
			do
				result = receive_some(c);
			while (result == 0 || result == 1);
		if (result < 0)
			return -1;
	}
	return 0;
}

/* As much from one side as from the other, in turns; never more, for both would wait in send() if buffers are small. */
static int ping_pong(struct connection *c, int first)
{
	uint64_t turn = 1 + c->order.key % 300;
	int result = 1;

	while (c->out || c->in) {
		uint64_t out = c->out < turn ? 0 : c->out - turn, in = c->in < turn ? 0 : c->in - turn;

		for (int half = 0; half < 2; half++) {
			if (half == first)
				while (c->in > in && result >= 0)
					result = receive_some(c);
			else
				while (c->out > out && result >= 0)
					result = send_some(c, c->out - out);
			if (result < 0)
				return -1;
		}
	}
	if (shutdown(c->fd, SHUT_WR)) {
		table_tell(c->mine, BROKEN, errno);
		return -1;
	}
	do
		result = receive_some(c);
	while (result == 0);
	if (result == 1) {
		table_tell(c->mine, WRONG, 0);
		return -1;
	}
	return result < 0 ? -1 : 0;
}

static void run(struct connection *c, int server)
{
	int result;

	if (c->order.style == PINGPONG)
		result = ping_pong(c, server);
	else if (c->order.style == HALVES)
		result = halves(c, server ? 0 : 1);
	else
		result = both(c);
	close(c->fd);
	if (!result)
		table_tell(c->mine, COMPLETE, 0);
}

static struct connection *make(int fd, const struct order *order, int server)
{
	struct connection *c = calloc(1, sizeof(*c));
	int on = 1;

	if (!c)
		_exit(3);
	c->fd = fd;
	c->order = *order;
	c->mine = server ? &table->slots[order->slot].server : &table->slots[order->slot].client;
	c->key_out = mix(order->key + server);
	c->key_in = mix(order->key + !server);
	c->out = server ? order->down : order->up;
	c->in = server ? order->up : order->down;
	c->rng = mix(order->key + 77 + server);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return c;
}

/* --- the server --- */

static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	struct order order;
	struct connection *c;

	/* A client that is killed before it has said what it wants leaves no trace. */
	if (recv(fd, &order, sizeof(order), MSG_WAITALL) != sizeof(order) || order.slot >= SLOTS) {
		close(fd);
		return NULL;
	}
	usleep(order.pause);
	c = make(fd, &order, 1);
	atomic_store(&c->mine->pid, getpid());
	atomic_store(&c->mine->outcome, RUNNING);
	run(c, 1);
	free(c);
	return NULL;
}

static __attribute__((noreturn)) void server(int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				       .sin_port = htons(port) };
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	pthread_attr_t attr;
	pthread_t thread;

	setsockopt(listener, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	if (bind(listener, (void *)&address, length) || listen(listener, 64) ||
	    getsockname(listener, (void *)&address, &length))
		_exit(3);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	printf("%d\n", ntohs(address.sin_port));
	fflush(stdout);
	for (;;) {
		struct pollfd fds[2] = { { .fd = listener, .events = POLLIN }, { .fd = 0, .events = POLLIN } };
		int fd;

		if (poll(fds, 2, -1) < 0)
			_exit(3);
		if (fds[1].revents)
			exit(0);
		fd = accept(listener, NULL, NULL);
		if (fd >= 0 && pthread_create(&thread, &attr, serve, (void *)(intptr_t)fd))
			_exit(3);
	}
}

/* --- the client --- */

static int connect_to(int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				       .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd >= 0 && connect(fd, (void *)&address, sizeof(address))) {
		close(fd);
		return -1;
	}
	return fd;
}

struct visit {
	int port;
	struct order order;
	pthread_t thread;
};

static void *visit(void *arg)
{
	struct visit *v = arg;
	struct end *mine = &table->slots[v->order.slot].client;
	struct connection *c;
	int fd;

	atomic_store(&mine->pid, getpid());
	atomic_store(&mine->outcome, RUNNING);
	fd = connect_to(v->port);
	if (fd < 0 || send(fd, &v->order, sizeof(v->order), MSG_NOSIGNAL) != sizeof(v->order)) {
		table_tell(mine, BROKEN, errno);
		return NULL;
	}
	usleep(v->order.pause);
	c = make(fd, &v->order, 0);
	run(c, 0);
	free(c);
	return NULL;
}

static int client(int port, uint64_t seed, uint32_t slot, uint32_t connections, uint64_t bytes)
{
	struct visit visits[SLOTS];

	for (uint32_t i = 0; i < connections; i++) {
		uint64_t key = mix(seed + i * 0x9e3779b97f4a7c15ull);
		struct visit *v = &visits[i];

		*v = (struct visit) { .port = port };
		v->order = (struct order) { .key = key, .style = key % STYLES, .slot = slot + i,
					    .pause = mix(key + 4) % 4 ? mix(key + 5) % 8000 : 0,
					    .up = mix(key + 1) % (bytes + 1), .down = mix(key + 2) % (bytes + 1) };
		if (v->order.style == PINGPONG) {
			uint64_t turn = 1 + key % 300;

			v->order.up = v->order.down = turn * (1 + mix(key + 3) % 200);
		}
		if (!v->order.up)	/* nothing to send: the end is said with the last byte */
			v->order.up = 1;
		if (!v->order.down)
			v->order.down = 1;
		if (pthread_create(&v->thread, NULL, visit, v))
			return 3;
	}
	for (uint32_t i = 0; i < connections; i++)
		pthread_join(visits[i].thread, NULL);
	return 0;
}

int main(int argc, char **argv)
{
	table_map();
	if (argc >= 3 && !strcmp(argv[1], "server"))
		server(atoi(argv[2]));
	if (argc == 7 && !strcmp(argv[1], "client"))
		return client(atoi(argv[2]), strtoull(argv[3], NULL, 10), atoi(argv[4]), atoi(argv[5]),
			      strtoull(argv[6], NULL, 10));
	if (argc == 7 && !strcmp(argv[1], "redis")) {
		for (int i = 0; i < atoi(argv[5]); i++)
			redis_run(atoi(argv[2]), mix(strtoull(argv[3], NULL, 10) + i), atoi(argv[4]) + i, atoi(argv[6]));
		return 0;
	}
	return 2;
}
