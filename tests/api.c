/* SPDX-License-Identifier: MIT */
/*
 * A program that asks Shunt about its connection, built as any program is: pkg-config finds the header. It says `bare` or
 * `shunted VERSION`, and ends with 1 where an answer is wrong. Both ends of the connection are its own.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <shunt/shunt.h>

#define ROUNDS 1000000	/* a watchdog: the link takes a few hundred */

static int client, server;
static volatile sig_atomic_t seen = -2;

#define expect(what)                                                                               \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			printf("line %d: not so: %s (errno %s)\n", __LINE__, #what,                \
			       strerror(errno));                                                   \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static void connect_both(void)
{
	struct sockaddr_in to;
	socklen_t length = sizeof(to);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	memset(&to, 0, sizeof(to));
	to.sin_family = AF_INET;
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	expect(!bind(listener, (struct sockaddr *)&to, length));
	expect(!listen(listener, 1));
	expect(!getsockname(listener, (struct sockaddr *)&to, &length));
	client = socket(AF_INET, SOCK_STREAM, 0);
	expect(!connect(client, (struct sockaddr *)&to, length));
	server = accept(listener, NULL, NULL);
	expect(server >= 0);
	errno = EPERM;
	expect(shunt_track(listener) == 0 && errno == EPERM);
	close(listener);
}

/* A byte there and one back, as often. */
static void talk(uint64_t rounds)
{
	char byte = 'x';

	while (rounds--) {
		expect(write(client, &byte, 1) == 1 && read(server, &byte, 1) == 1);
		expect(write(server, &byte, 1) == 1 && read(client, &byte, 1) == 1);
	}
}

static void ask_in_handler(int number)
{
	struct shunt_traffic traffic;

	seen = number == SIGUSR1 && !shunt_traffic(client, &traffic) ? shunt_track(client) : -1;
}

static uint64_t sent(const struct shunt_traffic *traffic)
{
	return traffic->sent_on_link + traffic->sent_on_tcp;
}

static uint64_t received(const struct shunt_traffic *traffic)
{
	return traffic->received_on_link + traffic->received_on_tcp;
}

static void is_bare(void)
{
	struct shunt_traffic traffic;

	talk(10);
	errno = EPERM;
	expect(shunt_track(client) == 0 && errno == EPERM);
	expect(shunt_traffic(client, &traffic) == -1 && errno == ENOSYS);
	puts("bare");
}

static void is_shunted(void)
{
	const int both = SHUNT_SENDS | SHUNT_RECEIVES;
	struct shunt_traffic before, after;
	uint64_t rounds = 10;

	talk(rounds);
	expect(!shunt_traffic(client, &before));
	expect(sent(&before) == rounds && received(&before) == rounds);
	while (rounds < ROUNDS && (shunt_track(client) != both || shunt_track(server) != both)) {
		talk(1);
		rounds++;
	}
	expect(shunt_track(client) == both && shunt_track(server) == both);
	expect(!shunt_traffic(client, &before));
	expect(sent(&before) == rounds && received(&before) == rounds);
	talk(100);
	errno = EPERM;
	expect(!shunt_traffic(client, &after) && errno == EPERM);
	expect(after.sent_on_link == before.sent_on_link + 100);
	expect(after.received_on_link == before.received_on_link + 100);
	expect(after.sent_on_tcp == before.sent_on_tcp);
	signal(SIGUSR1, ask_in_handler);
	raise(SIGUSR1);
	expect(seen == both);
	printf("shunted %s\n", shunt_version());
}

static void refuses(void)
{
	struct shunt_traffic traffic;
	int file = open("/dev/null", O_RDONLY);

	expect(shunt_track(file) == 0 && shunt_track(-1) == 0);
	expect(shunt_traffic(-1, &traffic) == -1 && errno == EBADF);
	expect(shunt_traffic(file, &traffic) == -1 && errno == ENOTCONN);
	close(file);
	file = socket(AF_INET, SOCK_STREAM, 0);
	expect(shunt_traffic(file, &traffic) == -1 && errno == ENOTCONN);
	close(file);
	errno = 0;
	expect(shunt_traffic(file, &traffic) == -1 && errno == EBADF);
}

int main(void)
{
	connect_both();
	if (!shunt_version()) {
		is_bare();
		return 0;
	}
	is_shunted();
	refuses();
	return 0;
}
