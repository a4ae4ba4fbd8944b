/* SPDX-License-Identifier: MIT */
/* The first question to a server on another host: its ports and its machine. */
#include "tools/perf/end/perf_remote.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tools/ping/ping.h"
#include "tools/shunt.h"

#define WAIT_MS 5000

static int say(const char *where, const char *what, const char *advice)
{
	fprintf(stderr, "shunt perf: --to %s: %s; %s\n", where, what, advice);
	return -1;
}

/* 0, or an errno. */
static int ask(int fd, struct perf_hello *hello)
{
	const struct timeval limit = { .tv_sec = WAIT_MS / 1000 };
	const struct perf_sizes sizes = { .request = 1 };
	struct perf_greeting greeting;
	ssize_t got;

	perf_greeting_make(&greeting, &sizes);
	memcpy(greeting.magic, PERF_MAGIC_HELLO, sizeof(greeting.magic));
	if (fcntl(fd, F_SETFL, 0) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
	    send(fd, &greeting, sizeof(greeting), MSG_NOSIGNAL) != sizeof(greeting))
		return errno;
	got = recv(fd, hello, sizeof(*hello), MSG_WAITALL);
	if (got == sizeof(*hello))
		return 0;
	return got < 0 ? errno : ECONNRESET;
}

static bool is_hello(const struct perf_hello *hello)
{
	return !memcmp(hello->magic, PERF_MAGIC_HELLO, sizeof(hello->magic)) &&
	       hello->version == PERF_VERSION && hello->shunt_port && hello->shunt_port < 65536 &&
	       memchr(hello->machine, '\0', sizeof(hello->machine));
}

static void take_hello(struct perf_setup *setup, const struct ping_target *target,
		       const struct perf_hello *hello)
{
	ping_address_text(&target->address, setup->remote);
	setup->plain_port = ntohs(target->address.v4.sin_port);
	setup->shunt_port = (uint16_t)hello->shunt_port;
	memcpy(setup->remote_machine, hello->machine, sizeof(setup->remote_machine));
}

int perf_remote_ask(struct perf_setup *setup, const char *where)
{
	static const char start[] =
		"start `shunt perf --serve ADDRESS` there, and let both its ports "
		"through";
	struct perf_hello hello;
	struct ping_target target;
	int fd, error;

	if (ping_target_parse(&target, where))
		return say(where, "not HOST[:PORT]", "`shunt perf --help` says how");
	if (!target.given)
		target.port = PERF_PORT;
	ping_target_resolve(&target);
	if (target.why)
		return say(where, target.why, "give the address of the host");
	fd = ping_connect(&target.address, NULL, WAIT_MS);
	if (fd < 0)
		return say(where, strerror(-fd), start);
	error = ask(fd, &hello);
	close(fd);
	if (error)
		return say(where, error == EAGAIN ? "no answer" : strerror(error), start);
	if (!is_hello(&hello))
		return say(where, "no server of this version", start);
	take_hello(setup, &target, &hello);
	return 0;
}
