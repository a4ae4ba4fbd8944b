/* SPDX-License-Identifier: MIT */
/*
 * step server: prints its port and sends back what comes, on each connection, until it is killed.
 * step client PORT CONNECTIONS BYTES RATE FACTOR SECONDS: messages of BYTES at a constant RATE a
 * second, over all connections in turns. SECONDS at RATE, then at FACTOR times that rate, then at
 * RATE again. A line for each of the three:
 *	NAME messages-a-second p50 p99 p99.9 max	latencies in microseconds
 * A latency begins when the message was to be sent, whether it could be sent then or not (open loop).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "tests/plain.h"

#define EVENTS 64
#define CONNECTIONS 1024
#define BYTES 65536

static void watch(int set, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (fcntl(fd, F_SETFL, O_NONBLOCK) || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event))
		die("watch");
}

/* --- the server --- */

/* A message that has no room waits for it here: the client asks no more than buffers hold. */
static void send_back(int fd, const char *bytes, size_t length)
{
	while (length) {
		ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);

		if (sent < 0 && errno != EAGAIN)
			return;
		if (sent > 0) {
			bytes += sent;
			length -= (size_t)sent;
		}
	}
}

static _Noreturn void serve(void)
{
	static char buffer[BYTES];
	struct epoll_event events[EVENTS];
	int door = listener(loopback(0), 0, CONNECTIONS), set = epoll_create1(0);

	watch(set, door);
	for (;;) {
		int count = epoll_wait(set, events, EVENTS, -1);

		for (int i = 0; i < count; i++) {
			int fd = events[i].data.fd;
			ssize_t got;

			if (fd == door) {
				watch(set, accept(door, NULL, NULL));
				continue;
			}
			got = recv(fd, buffer, sizeof(buffer), 0);
			if (got > 0)
				send_back(fd, buffer, (size_t)got);
			else if (!got || errno != EAGAIN)
				close(fd);
		}
	}
}

/* --- the client --- */

struct connection {
	int fd;
	size_t bytes;	/* of the message that is coming */
	char message[BYTES];
};

static struct connection *connections;
static size_t connection_count, message_bytes;

struct phase {
	const char *name;
	double begin, rate, seconds;
	float *latencies;	/* microseconds, in the order in which the answers came */
	size_t count, room;
};

/* The message's number is in its first bytes, and its latency belongs to the phase in which it was due. */
struct due {
	uint32_t phase;
	double at;
};

static void connect_all(int port)
{
	connections = calloc(connection_count, sizeof(*connections));
	if (!connections)
		die("calloc");
	for (size_t i = 0; i < connection_count; i++)
		connections[i].fd = dial(loopback(port));
}

static void take(struct connection *connection, struct phase *phases)
{
	ssize_t got;

	while ((got = recv(connection->fd, connection->message + connection->bytes,
			   message_bytes - connection->bytes, MSG_DONTWAIT)) > 0) {
		struct due due;
		struct phase *phase;

		connection->bytes += (size_t)got;
		if (connection->bytes < message_bytes)
			continue;
		connection->bytes = 0;
		memcpy(&due, connection->message, sizeof(due));
		phase = &phases[due.phase];
		if (phase->count < phase->room)
			phase->latencies[phase->count++] = (float)((now() - due.at) * 1e6);
	}
	if (!got || errno != EAGAIN)
		die("recv");
}

/* Takes what comes until then. */
static void wait_until(int set, double then, struct phase *phases)
{
	struct epoll_event events[EVENTS];
	double left;

	do {
		struct timespec patience = { 0 };
		int count;

		left = then - now();
		if (left > 0)
			patience.tv_nsec = (long)((left < 0.5 ? left : 0.5) * 1e9);
		count = epoll_pwait2(set, events, EVENTS, &patience, NULL);
		for (int i = 0; i < count; i++)
			take(events[i].data.ptr, phases);
	} while (left > 0);
}

static void ask(size_t number, const struct due *due)
{
	static char message[BYTES];
	struct connection *connection = &connections[number % connection_count];

	memcpy(message, due, sizeof(*due));
	if (send(connection->fd, message, message_bytes, MSG_NOSIGNAL) != (ssize_t)message_bytes)
		die("send");
}

static int compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static void tell(struct phase *phase)
{
	float *sorted = phase->latencies;
	size_t count = phase->count;

	if (!count)
		die("no answer");
	qsort(sorted, count, sizeof(*sorted), compare);
	printf("%s %.0f %.1f %.1f %.1f %.1f\n", phase->name, (double)count / phase->seconds,
	       sorted[count / 2], sorted[count * 99 / 100], sorted[count * 999 / 1000],
	       sorted[count - 1]);
}

static void run(struct phase *phases, size_t count)
{
	int set = epoll_create1(0);
	size_t number = 0;

	prctl(PR_SET_TIMERSLACK, 1);
	for (size_t i = 0; i < connection_count; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.ptr = &connections[i] };

		if (epoll_ctl(set, EPOLL_CTL_ADD, connections[i].fd, &event))
			die("epoll_ctl");
	}
	for (uint32_t i = 0; i < count; i++) {
		struct phase *phase = &phases[i];
		size_t messages = (size_t)(phase->rate * phase->seconds);

		phase->begin = now();
		phase->room = messages;
		phase->latencies = calloc(messages, sizeof(float));
		if (!phase->latencies)
			die("calloc");
		for (size_t k = 0; k < messages; k++) {
			struct due due = { .phase = i, .at = phase->begin + (double)k / phase->rate };

			wait_until(set, due.at, phases);
			ask(number++, &due);
		}
	}
	wait_until(set, now() + 1, phases);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "server"))
		serve();
	if (argc != 8 || strcmp(argv[1], "client"))
		return 2;

	double rate = atof(argv[5]), seconds = atof(argv[7]);
	struct phase phases[] = {
		{ .name = "warm", .rate = rate, .seconds = 0.5 },
		{ .name = "before", .rate = rate, .seconds = seconds },
		{ .name = "during", .rate = rate * atof(argv[6]), .seconds = seconds },
		{ .name = "after", .rate = rate, .seconds = seconds },
	};

	connection_count = (size_t)atol(argv[3]);
	message_bytes = (size_t)atol(argv[4]);
	if (!connection_count || connection_count > CONNECTIONS ||
	    message_bytes < sizeof(struct due) || message_bytes > BYTES)
		return 2;
	connect_all(atoi(argv[2]));
	run(phases, 4);
	for (int i = 1; i < 4; i++)
		tell(&phases[i]);
	return 0;
}
