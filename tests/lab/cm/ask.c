/* SPDX-License-Identifier: MIT */
/* Asking and listening, waiting for what comes of it, and what must be right about it. */
#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tests/lab/cm/cm.h"

const char here[] = "10.77.0.1", there[] = "10.77.0.2";
const char here6[] = "fd77::1", there6[] = "fd77::2";
const char hole[] = "10.77.0.50";

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

union cm_address at(const char *text, uint16_t port)
{
	union cm_address address;

	memset(&address, 0, sizeof(address));
	if (inet_pton(AF_INET, text, &address.v4.sin_addr) == 1)
		address.any.sa_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &address.v6.sin6_addr) == 1)
		address.any.sa_family = AF_INET6;
	address.v4.sin_port = htons(port);
	return address;
}

int descriptors(bool low)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int count = -1;	/* the folder itself */

	while ((entry = readdir(dir)) != NULL)
		count += entry->d_name[0] != '.' && (!low || atoi(entry->d_name) < HIGH);
	closedir(dir);
	return count;
}

void step(struct cm *cm)
{
	cm_step(cm, now());
}

void run(int answers, double ms)
{
	double until = now() + ms;

	while (seen.answers < answers && now() < until) {
		struct pollfd fds[2] = { { .fd = cm_fd(&asker), .events = POLLIN },
					 { .fd = cm_fd(&listener), .events = POLLIN } };
		uint64_t due = cm_next_deadline(&asker);
		double left = due == CM_NEVER ? 100 : due + 1 - now();

		poll(fds, 2, left < 0 ? 0 : left < 100 ? (int)left + 1 : 100);
		step(&asker);
		step(&listener);
	}
}

void each_was_heard(int questions)
{
	assert_in_range(seen.questions, questions, seen.connects);
}

int ask_from(struct cm *cm, const char *from, const char *to, uint16_t port, double ms)
{
	union cm_address local = from ? at(from, 99) : at("0.0.0.0", 0), remote = at(to, port);

	return cm_ask(cm, from ? &local.any : NULL, &remote.any, "question", 8, now() + ms, &seen, NULL);
}

int ask(const char *from, const char *to, uint16_t port, double ms)
{
	int before = seen.answers, result = ask_from(&asker, from, to, port, ms);

	if (result)
		return result;
	run(before + 1, ms + PATIENCE);
	if (seen.status == -ETIMEDOUT && ms >= PATIENCE)
		print_message("# no answer from %s, %s\n", to, seen.routed ? "routed" : "not routed");
	assert_int_equal(seen.answers, before + 1);
	assert_ptr_equal(seen.ask_arg, &seen);
	return seen.status;
}

void answered(const char *from, const char *to, uint16_t port)
{
	assert_int_equal(ask(from, to, port, PATIENCE), 0);
	assert_int_equal(seen.bytes, 8);
	assert_memory_equal(seen.answer, "rvftujpo", 8);
	assert_int_equal(seen.asked_bytes, 8);
	assert_memory_equal(seen.question, "question", 8);
}

struct cm_listener *listening(struct cm *cm, const char *address, uint16_t port, bool only_v6)
{
	union cm_address where = at(address, port);
	struct cm_listener *made = NULL;
	int result = cm_listen(cm, &where.any, only_v6, &made, &made);

	if (result)
		print_error("%s port %d: %s\n", address, port, cm->error);
	assert_int_equal(result, 0);
	return made;
}

int listen_error(const char *address, uint16_t port, bool only_v6)
{
	union cm_address where = at(address, port);
	struct cm_listener *made;
	int result = cm_listen(&asker, &where.any, only_v6, NULL, &made);

	if (!result)
		cm_unlisten(&asker, made);
	return result;
}

static void same_address(const union cm_address *address, const char *expected)
{
	union cm_address wanted = at(expected, 0);

	assert_int_equal(address->any.sa_family, wanted.any.sa_family);
	if (wanted.any.sa_family == AF_INET)
		assert_int_equal(address->v4.sin_addr.s_addr, wanted.v4.sin_addr.s_addr);
	else
		assert_memory_equal(&address->v6.sin6_addr, &wanted.v6.sin6_addr, 16);
}

static void same_gid(const union ibv_gid *gid, const char *expected)
{
	union cm_address wanted = at(expected, 0);
	uint8_t mapped[16] = { [10] = 0xff, [11] = 0xff };

	memcpy(mapped + 12, &wanted.v4.sin_addr, 4);
	assert_memory_equal(gid->raw, wanted.any.sa_family == AF_INET ? mapped : wanted.v6.sin6_addr.s6_addr, 16);
}

void good_route(const struct cm_route *route, const char *device, const char *local, const char *peer)
{
	assert_string_equal(route->device, device);
	assert_int_equal(route->port, 1);
	assert_false(route->iwarp);
	same_address(&route->local, local);
	same_address(&route->peer, peer);
	same_gid(&route->sgid, local);
	same_gid(&route->dgid, peer);
	assert_in_range(route->mtu, IBV_MTU_256, IBV_MTU_4096);
	assert_int_equal(route->pkey, 0xffff);
	assert_int_not_equal(route->hop_limit, 0);
}
