/*
 * The connection manager as a rendezvous, between the two devices of the lab (guest/cm.sh). Each end is a
 * struct cm of its own, in this process or in a child.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "core/cm/inside.h"

#define PORT 7000
#define HIGH 500	/* where kept descriptors go */
#define SOON 3000	/* ms that nothing here should need, emulated as the guest is */

static const char *here = "10.77.0.1", *there = "10.77.0.2";	/* rxe0, rxe1 */
static const char *here6 = "fd77::1", *there6 = "fd77::2";
static const char *third = "10.78.0.1";				/* rxe2 */
static const char *nobody = "10.77.0.99";			/* no such host */
static const char *hole = "10.77.0.50";				/* its neighbour entry leads nowhere */

static struct cm asker, listener;
static struct {
	int questions, answers, losts;	/* calls back */
	int rejected;			/* answers with EPROTO */
	int status, bytes;		/* of the last answer */
	bool routed;
	uint8_t answer[CM_ANSWER_MAX], question[CM_QUESTION_MAX];
	int asked_bytes, refuse, again;
	struct cm_listener *leave;	/* within its callback */
	struct cm_route route, asked_route;
	void *listener_arg, *ask_arg;
	double slowest;			/* ms in one call of the library */
	const char *slowest_call;
} seen;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

/* --- how long the library keeps us: each call that might is timed --- */

static struct cm_calls real;

static int took(double since, const char *name, int result)
{
	int saved = errno;
	double ms = now() - since;

	if (ms > seen.slowest) {
		seen.slowest = ms;
		seen.slowest_call = name;
	}
	errno = saved;
	return result;
}

static int timed_create(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
			enum rdma_port_space space)
{
	double since = now();

	return took(since, "create_id", real.create_id(channel, id, context, space));
}

static int timed_destroy(struct rdma_cm_id *id)
{
	double since = now();

	return took(since, "destroy_id", real.destroy_id(id));
}

static int timed_listen(struct rdma_cm_id *id, int backlog)
{
	double since = now();

	return took(since, "listen", real.listen(id, backlog));
}

static int timed_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int ms)
{
	double since = now();

	return took(since, "resolve_addr", real.resolve_addr(id, from, to, ms));
}

static int timed_resolve_route(struct rdma_cm_id *id, int ms)
{
	double since = now();

	return took(since, "resolve_route", real.resolve_route(id, ms));
}

static int timed_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	double since = now();

	return took(since, "connect", real.connect(id, param));
}

static int timed_reject(struct rdma_cm_id *id, const void *data, uint8_t bytes)
{
	double since = now();

	return took(since, "reject", real.reject(id, data, bytes));
}

static int timed_get_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	double since = now();

	return took(since, "get_cm_event", real.get_cm_event(channel, event));
}

static void time_calls(struct cm *cm)
{
	real = cm->calls;
	cm->calls.create_id = timed_create;
	cm->calls.destroy_id = timed_destroy;
	cm->calls.listen = timed_listen;
	cm->calls.resolve_addr = timed_resolve_addr;
	cm->calls.resolve_route = timed_resolve_route;
	cm->calls.connect = timed_connect;
	cm->calls.reject = timed_reject;
	cm->calls.get_cm_event = timed_get_event;
}

/* --- the callbacks: an answer is the question, each byte plus one --- */

static int on_question(void *arg, const uint8_t *question, unsigned int bytes, const struct cm_route *route,
		       uint8_t *answer)
{
	seen.questions++;
	seen.listener_arg = arg;
	seen.asked_bytes = bytes;
	seen.asked_route = *route;
	memcpy(seen.question, question, bytes);
	for (unsigned int i = 0; i < bytes; i++)
		answer[i] = question[i] + 1;
	if (seen.leave)
		cm_unlisten(&listener, seen.leave);
	seen.leave = NULL;
	return seen.refuse ? -1 : (int)bytes;
}

static union cm_address at(const char *text, uint16_t port);

static void on_answer(void *arg, int status, const uint8_t *answer, unsigned int bytes, const struct cm_route *route)
{
	seen.answers++;
	seen.rejected += status == -EPROTO;
	seen.ask_arg = arg;
	seen.status = status;
	seen.bytes = bytes;
	seen.routed = route;
	if (bytes)
		memcpy(seen.answer, answer, bytes);
	if (route)
		seen.route = *route;
	if (seen.again-- > 0) {
		union cm_address remote = at(there, PORT);

		assert_int_equal(cm_ask(&asker, NULL, &remote.any, "again", 5, now() + SOON, arg, NULL), 0);
	}
}

static void on_lost(void *arg)
{
	seen.losts++;
	seen.listener_arg = arg;
}

static int on_keep(void *arg, int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH);

	(void)arg;
	return high < 0 ? -errno : high;
}

static void on_drop(void *arg, int fd)
{
	(void)arg;
	close(fd);
}

static const struct cm_callbacks callbacks = {
	.question = on_question, .answer = on_answer, .lost = on_lost, .keep = on_keep, .drop = on_drop,
};

/* --- helpers --- */

static union cm_address at(const char *text, uint16_t port)
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

/* Open descriptors: all, or those with low numbers. */
static int descriptors(bool low)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int count = -1;	/* the folder itself */

	while ((entry = readdir(dir)) != NULL)
		count += entry->d_name[0] != '.' && (!low || atoi(entry->d_name) < HIGH);
	closedir(dir);
	return count;
}

static void step(struct cm *cm)
{
	cm_step(cm, now());
}

/* Until so many answers have come. */
static void run(int answers, double ms)
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

static int ask_from(struct cm *cm, const char *from, const char *to, uint16_t port, double ms)
{
	union cm_address local = from ? at(from, 99) : at("0.0.0.0", 0), remote = at(to, port);

	return cm_ask(cm, from ? &local.any : NULL, &remote.any, "question", 8, now() + ms, &seen, NULL);
}

/* Asks and waits for the end. */
static int ask(const char *from, const char *to, uint16_t port, double ms)
{
	int before = seen.answers, result = ask_from(&asker, from, to, port, ms);

	if (result)
		return result;
	run(before + 1, ms + SOON);
	if (seen.status == -ETIMEDOUT && ms >= SOON)
		print_message("# no answer from %s, %s\n", to, seen.routed ? "routed" : "not routed");
	assert_int_equal(seen.answers, before + 1);
	assert_ptr_equal(seen.ask_arg, &seen);
	return seen.status;
}

static void answered(const char *from, const char *to, uint16_t port)
{
	assert_int_equal(ask(from, to, port, SOON), 0);
	assert_int_equal(seen.bytes, 8);
	assert_memory_equal(seen.answer, "rvftujpo", 8);
	assert_int_equal(seen.asked_bytes, 8);
	assert_memory_equal(seen.question, "question", 8);
}

static struct cm_listener *listening(struct cm *cm, const char *address, uint16_t port, bool only_v6)
{
	union cm_address where = at(address, port);
	struct cm_listener *made = NULL;
	int result = cm_listen(cm, &where.any, only_v6, &made, &made);

	if (result)
		print_error("%s port %d: %s\n", address, port, cm->error);
	assert_int_equal(result, 0);
	return made;
}

static int listen_error(const char *address, uint16_t port, bool only_v6)
{
	union cm_address where = at(address, port);
	struct cm_listener *made;
	int result = cm_listen(&asker, &where.any, only_v6, NULL, &made);

	if (!result)
		cm_unlisten(&asker, made);
	return result;
}

static void open_both(void)
{
	if (cm_open(&asker, &callbacks, NULL)) {
		print_error("%s\n", asker.error);
		abort();
	}
	assert_int_equal(cm_open(&listener, &callbacks, NULL), 0);
	time_calls(&asker);
	time_calls(&listener);
}

static pid_t child;

static void end_child(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	child = 0;
}

static void close_both(void)
{
	cm_close(&asker);
	cm_close(&listener);
}

static int set_up(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	open_both();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (child > 0)
		end_child();
	close_both();
	print_message("# slowest call: %s, %.1f ms\n", seen.slowest_call, seen.slowest);
	return 0;
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

static void good_route(const struct cm_route *route, const char *device, const char *local, const char *peer)
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

/* --- who is asked and answers --- */

static void question_and_answer(void **state)
{
	struct cm_listener *one = listening(&listener, there, PORT, false);
	double since = now();

	(void)state;
	answered(here, there, PORT);
	print_message("# the first answer of all took %.0f ms\n", now() - since);
	good_route(&seen.route, "rxe0", here, there);
	good_route(&seen.asked_route, "rxe1", there, here);
	assert_int_equal(seen.route.peer.v4.sin_port, htons(PORT));
	print_message("# route: mtu %d sl %d tclass %d hops %d life %d flow %x; asked: mtu %d sl %d tclass %d hops %d\n",
		      128 << seen.route.mtu, seen.route.sl, seen.route.traffic_class, seen.route.hop_limit,
		      seen.route.packet_life_time, seen.route.flow_label, 128 << seen.asked_route.mtu,
		      seen.asked_route.sl, seen.asked_route.traffic_class, seen.asked_route.hop_limit);
	seen.refuse = 1;
	assert_int_equal(ask(here, there, PORT, SOON), -EPROTO);
	assert_int_equal(ask(here, there, PORT + 1, SOON), -ECONNREFUSED);
	cm_unlisten(&listener, one);
	assert_int_equal(ask(here, there, PORT, SOON), -ECONNREFUSED);
	assert_true(seen.routed);
	assert_int_equal(seen.questions, 2);
}

static void by_ipv6(void **state)
{
	(void)state;
	listening(&listener, there6, PORT, true);
	answered(here6, there6, PORT);
	good_route(&seen.route, "rxe0", here6, there6);
	good_route(&seen.asked_route, "rxe1", there6, here6);
}

static void lengths(void **state)
{
	union cm_address remote = at(there, PORT);
	uint8_t question[CM_QUESTION_MAX + 1];

	(void)state;
	memset(question, 5, sizeof(question));
	listening(&listener, there, PORT, false);
	for (int bytes = 0; bytes <= CM_QUESTION_MAX; bytes += 13) {
		assert_int_equal(cm_ask(&asker, NULL, &remote.any, question, bytes, now() + SOON, NULL, NULL), 0);
		run(seen.answers + 1, SOON);
		assert_int_equal(seen.status, 0);
		assert_int_equal(seen.asked_bytes, bytes);
		assert_int_equal(seen.bytes, bytes);
	}
	assert_int_equal(cm_ask(&asker, NULL, &remote.any, question, sizeof(question), now() + SOON, NULL, NULL),
			 -EMSGSIZE);
}

static void wildcards(void **state)
{
	struct cm_listener *one = listening(&listener, "0.0.0.0", PORT, false);

	(void)state;
	answered(here, there, PORT);
	good_route(&seen.asked_route, "rxe1", there, here);
	answered(there, here, PORT);
	good_route(&seen.asked_route, "rxe0", here, there);
	answered(NULL, there, PORT);
	assert_int_equal(ask(here6, there6, PORT, SOON), -EPROTO);
	cm_unlisten(&listener, one);

	one = listening(&listener, "::", PORT, false);
	answered(here, there, PORT);
	good_route(&seen.asked_route, "rxe1", there, here);
	answered(here6, there6, PORT);
	good_route(&seen.asked_route, "rxe1", there6, here6);
	assert_int_equal(listen_error("0.0.0.0", PORT, false), -EADDRINUSE);
	assert_int_equal(listen_error(there, PORT, false), -EADDRINUSE);
	cm_unlisten(&listener, one);

	one = listening(&listener, "::", PORT, true);
	assert_int_equal(ask(here, there, PORT, SOON), -EPROTO);
	answered(here6, there6, PORT);
	assert_int_equal(listen_error("0.0.0.0", PORT, false), 0);
	cm_unlisten(&listener, one);
}

static void mapped_addresses(void **state)
{
	(void)state;
	listening(&listener, "::ffff:10.77.0.2", PORT, false);
	answered("::ffff:10.77.0.1", "::ffff:10.77.0.2", PORT);
	good_route(&seen.route, "rxe0", here, there);
	answered(here, there, PORT);
}

static void callbacks_call(void **state)
{
	(void)state;
	seen.leave = listening(&listener, there, PORT, false);
	seen.again = 1;
	ask_from(&asker, here, there, PORT, SOON);
	run(2, 2 * SOON);
	assert_int_equal(seen.answers, 2);
	assert_int_equal(seen.questions, 1);
	assert_int_equal(seen.status, -ECONNREFUSED); /* the second time */
	listening(&listener, there, PORT, false);
	seen.again = 3;
	ask_from(&asker, here, there, PORT, SOON);
	run(6, 4 * SOON);
	assert_int_equal(seen.questions, 5);
	assert_int_equal(seen.status, 0);
	assert_memory_equal(seen.answer, "bhbjo", 5);
}

/* Whatever it is at, a cancelled ask does not come back. */
static void cancelled(void **state)
{
	union cm_address remote = at(there, PORT);
	struct cm_ask *one;

	(void)state;
	listening(&listener, there, PORT, false);
	for (int steps = 0; steps < 4; steps++) {
		assert_int_equal(cm_ask(&asker, NULL, &remote.any, "x", 1, now() + SOON, NULL, &one), 0);
		for (int i = 0; i < steps; i++) {
			poll(&(struct pollfd) { .fd = cm_fd(&asker), .events = POLLIN }, 1, 100);
			if (i < 2)
				step(&asker);
		}
		cm_cancel(&asker, one);
		run(1, 100);
		assert_int_equal(seen.answers, 0);
		assert_int_equal(cm_next_deadline(&asker), CM_NEVER);
	}
	answered(here, there, PORT);
}

/* --- who does not answer --- */

static void nobody_listens(void **state)
{
	double since = now();

	(void)state;
	assert_int_equal(ask(here, there, PORT, SOON), -ECONNREFUSED);
	print_message("# the first refusal took %.1f ms\n", now() - since);
	since = now();
	for (int i = 0; i < 50; i++)
		assert_int_equal(ask(here, there, PORT, SOON), -ECONNREFUSED);
	print_message("# a refusal takes %.2f ms\n", (now() - since) / 50);
}

static void black_hole(const char *where, const char *name)
{
	double since = now(), late;

	assert_int_equal(ask(here, where, PORT, 300), -ETIMEDOUT);
	late = now() - since - 300;
	print_message("# %s: %.1f ms after its deadline\n", name, late);
	assert_true(late >= 0 && late < SOON);
}

static void black_holes(void **state)
{
	(void)state;
	black_hole(nobody, "no such host");
	assert_false(seen.routed);
	black_hole(hole, "a host that says nothing");
	assert_true(seen.routed);
	for (int i = 0; i < 100; i++)
		assert_int_equal(ask_from(&asker, here, i % 2 ? hole : nobody, PORT, 300), 0);
	run(102, SOON);
	assert_int_equal(seen.answers, 102);
	assert_int_equal(seen.status, -ETIMEDOUT);
	listening(&listener, there, PORT, false);
	answered(here, there, PORT);
}

static void no_way(void **state)
{
	int result = ask(NULL, "127.0.0.1", PORT, SOON);

	(void)state;
	print_message("# 127.0.0.1: %s\n", strerror(-result));
	assert_true(result < 0);
	result = ask(NULL, "192.0.2.1", PORT, 500);
	print_message("# no route: %s\n", strerror(-result));
	assert_true(result < 0);
	assert_int_equal(listen_error("192.0.2.1", PORT, false), -EADDRINUSE);
	result = listen_error("127.0.0.1", PORT, false);
	print_message("# listen on 127.0.0.1: %s\n", strerror(-result));
}

/* A child that listens; returns when it does. */
static void child_listens(void)
{
	int ready[2];

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (!child) {
		cm_forget(&asker);
		cm_forget(&listener);
		if (cm_open(&listener, &callbacks, NULL))
			_exit(1);
		listening(&listener, there, PORT, false);
		if (write(ready[1], "!", 1) != 1)
			_exit(1);
		for (;;) {
			poll(&(struct pollfd) { .fd = cm_fd(&listener), .events = POLLIN }, 1, -1);
			cm_step(&listener, 0);
		}
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], (char[1]) { 0 }, 1), 1);
	close(ready[0]);
}

static void a_stopped_listener(void **state)
{
	double since;

	(void)state;
	child_listens();
	assert_int_equal(ask(here, there, PORT, SOON), 0);
	kill(child, SIGSTOP);
	since = now();
	assert_int_equal(ask(here, there, PORT, 500), -ETIMEDOUT);
	print_message("# stopped: %.1f ms after its deadline\n", now() - since - 500);
	for (int i = 0; i < 100; i++)
		assert_int_equal(ask_from(&asker, here, there, PORT, 500), 0);
	run(102, SOON);
	assert_int_equal(seen.answers, 102);
	print_message("# of 101 to who is stopped, %d were rejected\n", seen.rejected);
	kill(child, SIGCONT);
	since = now();
	assert_int_equal(ask(here, there, PORT, 10 * SOON), 0);
	print_message("# and when he goes on, an answer takes %.0f ms\n", now() - since);
	end_child();
	assert_int_equal(ask(here, there, PORT, SOON), -ECONNREFUSED);
}

static void another_process_listens(void **state)
{
	(void)state;
	child_listens();
	assert_int_equal(listen_error(there, PORT, false), -EADDRINUSE);
	assert_non_null(strstr(asker.error, "another process"));
	assert_int_equal(listen_error("0.0.0.0", PORT, false), -EADDRINUSE);
	assert_int_equal(listen_error("::", PORT, false), -EADDRINUSE);
	assert_int_equal(listen_error("::", PORT, true), 0);
	assert_int_equal(listen_error(here, PORT, false), 0);
	end_child();
	assert_int_equal(listen_error(there, PORT, false), 0);
}

/* A child of a process that has devices open asks and listens for itself. */
static void a_forks_child(void **state)
{
	int status = -1;
	pid_t pid;

	(void)state;
	listening(&listener, there, PORT, false);
	answered(here, there, PORT);
	pid = fork();
	if (!pid) {
		cm_forget(&asker);
		cm_forget(&listener);
		open_both();
		listening(&listener, there, PORT + 1, false);
		seen.answers = 0;
		_exit(ask(here, there, PORT + 1, SOON) ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	answered(here, there, PORT);
}

/* --- hostile peers, by hand --- */

static struct rdma_cm_event *event_of(struct cm *cm)
{
	struct rdma_cm_event *event = NULL;
	double until = now() + SOON;

	while (now() < until) {
		poll(&(struct pollfd) { .fd = cm_fd(cm), .events = POLLIN }, 1, 100);
		if (!cm->calls.get_cm_event(cm->channel, &event))
			return event;
	}
	return NULL;
}

static void expect(struct cm *cm, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = event_of(cm);

	assert_non_null(event);
	assert_int_equal(event->event, type);
	cm->calls.ack_cm_event(event);
}

/* A connect request with these bytes; how it was rejected. */
static int raw_question(const void *data, uint8_t bytes)
{
	union cm_address from = at(here, 0), to = at(there, PORT);
	struct rdma_conn_param param = { .private_data = data, .private_data_len = bytes, .qp_num = 0xf00001 };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	int status;

	assert_int_equal(asker.calls.create_id(asker.channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(asker.calls.resolve_addr(id, &from.any, &to.any, 1000), 0);
	expect(&asker, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(asker.calls.resolve_route(id, 1000), 0);
	expect(&asker, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(asker.calls.connect(id, &param), 0);
	for (double until = now() + SOON; now() < until;) {
		struct pollfd pfd = { .fd = cm_fd(&asker), .events = POLLIN };

		step(&listener);
		if (poll(&pfd, 1, 10) == 1)
			break;
	}
	event = event_of(&asker);
	assert_non_null(event);
	assert_int_equal(event->event, RDMA_CM_EVENT_REJECTED);
	status = event->status;
	asker.calls.ack_cm_event(event);
	asker.calls.destroy_id(id);
	return status;
}

static void garbage_questions(void **state)
{
	uint8_t data[56];

	(void)state;
	srandom(1);
	listening(&listener, there, PORT, false);
	assert_int_equal(raw_question(NULL, 0), 28);
	for (int i = 0; i < 40; i++) {
		for (unsigned int j = 0; j < sizeof(data); j++)
			data[j] = random();
		if (i % 2)
			memcpy(data, (uint8_t[]) { 'S', 'h', CM_KIND_QUESTION, 53 + i }, 4);
		assert_int_equal(raw_question(data, i < 3 ? i : (int)sizeof(data)), 28);
	}
	assert_int_equal(seen.questions, 0);
	answered(here, there, PORT);
}

static int strange_answer(const void *data, uint8_t bytes)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	int answers = seen.answers;

	assert_int_equal(ask_from(&asker, here, there, PORT, SOON), 0);
	for (int i = 0; i < 100 && !poll(&(struct pollfd) { .fd = cm_fd(&listener), .events = POLLIN }, 1, 10); i++)
		step(&asker);
	event = event_of(&listener);
	assert_non_null(event);
	assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	id = event->id;
	listener.calls.ack_cm_event(event);
	assert_int_equal(listener.calls.reject(id, data, bytes), 0);
	listener.calls.destroy_id(id);
	run(answers + 1, SOON);
	assert_int_equal(seen.answers, answers + 1);
	return seen.status;
}

static void garbage_answers(void **state)
{
	uint8_t data[148];

	(void)state;
	srandom(2);
	listening(&listener, there, PORT, false);
	assert_int_equal(strange_answer(NULL, 0), -EPROTO);
	for (int i = 0; i < 40; i++) {
		for (unsigned int j = 0; j < sizeof(data); j++)
			data[j] = random();
		if (i % 2)
			memcpy(data, (uint8_t[]) { 'S', 'h', CM_KIND_ANSWER, 145 + i }, 4);
		assert_int_equal(strange_answer(data, i < 3 ? i : (int)sizeof(data)), -EPROTO);
		assert_int_equal(seen.bytes, 0);
	}
	answered(here, there, PORT);
}

/* Somebody else's service, which wants to be connected. */
static void somebody_accepts(void **state)
{
	int (*accept_id)(struct rdma_cm_id *, struct rdma_conn_param *);
	struct rdma_conn_param param = { .qp_num = 5 };
	struct rdma_cm_event *event;
	void *symbol = dlsym(listener.library, "rdma_accept");

	(void)state;
	memcpy(&accept_id, &symbol, sizeof(symbol));
	listening(&listener, there, PORT, false);
	assert_int_equal(ask_from(&asker, here, there, PORT, SOON), 0);
	for (int i = 0; i < 100 && !poll(&(struct pollfd) { .fd = cm_fd(&listener), .events = POLLIN }, 1, 10); i++)
		step(&asker);
	event = event_of(&listener);
	assert_non_null(event);
	assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(accept_id(event->id, &param), 0);
	for (int i = 0; i < 100 && !seen.answers; i++) {
		poll(&(struct pollfd) { .fd = cm_fd(&asker), .events = POLLIN }, 1, 10);
		step(&asker);
	}
	assert_int_equal(seen.answers, 1);
	assert_int_equal(seen.status, -EPROTO);
	listener.calls.ack_cm_event(event);
}

/* A question that nobody answers is asked again. */
static void asked_again(void **state)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *held;
	double since = now();

	(void)state;
	listening(&listener, there, PORT, false);
	assert_int_equal(ask_from(&asker, here, there, PORT, 10 * SOON), 0);
	for (int i = 0; i < 100 && !poll(&(struct pollfd) { .fd = cm_fd(&listener), .events = POLLIN }, 1, 10); i++)
		step(&asker);
	event = event_of(&listener);
	assert_non_null(event);
	assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	held = event->id;
	listener.calls.ack_cm_event(event);
	run(1, 10 * SOON);
	assert_int_equal(seen.status, 0);
	assert_int_equal(seen.questions, 1);
	assert_true(now() - since > 999);
	print_message("# asked again, it took %.0f ms\n", now() - since);
	listener.calls.destroy_id(held);
}

/* --- many --- */

static void a_thousand_in_a_row(void **state)
{
	int before, low = descriptors(true);
	double since, each, worst = 0;

	(void)state;
	listening(&listener, there, PORT, false);
	answered(here, there, PORT);
	before = descriptors(false);
	since = now();
	for (int i = 0; i < 1000; i++) {
		each = now();
		answered(here, there, PORT);
		if (now() - each > worst)
			worst = now() - each;
	}
	print_message("# a question and its answer: %.2f ms, at worst %.1f ms\n", (now() - since) / 1000, worst);
	assert_int_equal(seen.questions, 1001);
	assert_int_equal(descriptors(false), before);
	assert_int_equal(descriptors(true), low);
}

static void many_at_once(void **state)
{
	int good = 0, busy = 0, other = 0, begun = 0, ended;

	(void)state;
	listening(&listener, there, PORT, false);
	for (int i = 0; i < 300; i++)
		begun += !ask_from(&asker, here, there, PORT, 20000);
	for (ended = 0; ended < begun;) {
		int before = seen.answers;

		run(before + 1, 20000);
		if (seen.answers == before)
			break;
		/* several may have come: the last one's status stands for them */
		if (!seen.status)
			good += seen.answers - before;
		else if (seen.status == -EPROTO)
			busy += seen.answers - before;
		else
			other += seen.answers - before;
		ended += seen.answers - before;
	}
	print_message("# 300 at once: about %d answered, %d rejected, %d otherwise (%s)\n", good, busy, other,
		      strerror(-seen.status));
	assert_int_equal(seen.answers, begun);
	answered(here, there, PORT);
}

static void nothing_is_left(void **state)
{
	int low, all;

	(void)state;
	set_up(state);
	listening(&listener, there, PORT, false);
	answered(here, there, PORT);
	close_both();
	low = descriptors(true);
	all = descriptors(false);
	for (int i = 0; i < 3; i++) {
		open_both();
		listening(&listener, "::", PORT, false);
		answered(here, there, PORT);
		ask_from(&asker, here, hole, PORT, SOON);
		close_both();
		assert_int_equal(descriptors(true), low);
		assert_int_equal(descriptors(false), all);
	}
}

/* A third device, with an address of its own. The command waits for us to end: rxe keeps what a process uses. */
static void a_device_goes(void **state)
{
	struct cm_listener *one = listening(&listener, third, PORT, false);

	(void)state;
	ask_from(&asker, third, "10.78.0.50", PORT, 20000);
	run(1, 500);
	assert_int_equal(seen.answers, 0);
	assert_int_equal(system("rdma link delete rxe2 &"), 0);
	run(1, SOON);
	assert_int_equal(seen.answers, 1);
	assert_int_equal(seen.status, -ENODEV);
	assert_int_equal(seen.losts, 1);
	cm_unlisten(&listener, one);
	listening(&listener, there, PORT, false);
	answered(here, there, PORT);
}

/* guest/cm.sh has hidden the library. */
static void without_the_library(void **state)
{
	int result = cm_open(&asker, &callbacks, NULL);

	(void)state;
	print_message("# %s\n", asker.error);
	assert_int_equal(result, -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int count, char **words)
{
	const struct CMUnitTest hidden[] = { cmocka_unit_test(without_the_library) };
	const struct CMUnitTest tests[] = {
		TEST(question_and_answer),
		TEST(by_ipv6),
		TEST(lengths),
		TEST(wildcards),
		TEST(mapped_addresses),
		TEST(callbacks_call),
		TEST(cancelled),
		TEST(nobody_listens),
		TEST(black_holes),
		TEST(no_way),
		TEST(a_stopped_listener),
		TEST(another_process_listens),
		TEST(a_forks_child),
		TEST(garbage_questions),
		TEST(garbage_answers),
		TEST(somebody_accepts),
		TEST(asked_again),
		TEST(a_thousand_in_a_row),
		TEST(many_at_once),
		cmocka_unit_test(nothing_is_left),
		TEST(a_device_goes),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (count > 1 && !strcmp(words[1], "hidden"))
		return cmocka_run_group_tests(hidden, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
