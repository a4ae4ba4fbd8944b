/* SPDX-License-Identifier: MIT */
/*
 * A client process of `shunt perf qos`. A request begins at its intended time, whether or not the socket takes it
 * then. Its latency counts from there, so a pause of the server is not omitted. Constant rate intends the requests of
 * a period at equal distances. Burst intends one whenever fewer than `depth` are outstanding, until the period's
 * demand is used up; what was not begun when the period ends lapses.
 */
#include "tools/perf/qos/perf_qos.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tools/shunt.h"

#define SAMPLES_MAX (1 << 20)

static struct client {
	/* from the command line */
	uint64_t port, index, clients, pattern, demand, depth, request, reply;
	uint64_t period_ns, warm, periods;
	uint64_t start; /* CLOCK_MONOTONIC, ns, the same for all clients */
	int fd;
	uint64_t begun, sent, done; /* requests */
	uint64_t tx, rx; /* bytes */
	uint64_t written; /* bytes of the request under way */
	uint64_t period, left; /* burst: the period that began last, its requests not begun */
	uint64_t *stamps; /* burst: intended times, a ring of the depth */
	uint64_t completed[PERF_QOS_PERIODS_MAX];
	double sum_ns;
	struct perf_samples samples;
	uint8_t buffer[64 << 10];
} client;

/* ---- the parent ---- */

static void say(const char *line)
{
	if (write(SHUNT_CHILD_FD, line, strlen(line)) != (ssize_t)strlen(line))
		perf_end_fail(PERF_END_FAILED, "cannot tell the parent: %m");
}

static void hear(char line[24])
{
	size_t have = 0;

	while (have < 23 && read(SHUNT_CHILD_FD, line + have, 1) == 1 && line[have] != '\n')
		have++;
	line[have] = '\0';
}

/* ---- requests ---- */

/* All periods end then, with those of the warm-up. */
static uint64_t last_moment(void)
{
	return client.start + (client.warm + client.periods) * client.period_ns;
}

/* The clients' requests are spread over the distance, so that equal clients do not send at once. */
static uint64_t constant_time(uint64_t request)
{
	uint64_t in_period = (request % client.demand) * client.clients + client.index;

	return client.start + request / client.demand * client.period_ns +
	       client.period_ns * in_period / (client.demand * client.clients);
}

static uint64_t intended_time(uint64_t request)
{
	return client.pattern == PERF_QOS_CONSTANT ? constant_time(request) :
						     client.stamps[request % client.depth];
}

static void begin_constant(uint64_t now)
{
	uint64_t all = (client.warm + client.periods) * client.demand;

	while (client.begun < all && constant_time(client.begun) <= now)
		client.begun++;
}

static void begin_burst(uint64_t now)
{
	uint64_t period = (now - client.start) / client.period_ns;

	if (period >= client.warm + client.periods)
		return;
	if (client.period != period) {
		client.period = period;
		client.left = client.demand;
	}
	for (; client.left && client.begun - client.done < client.depth; client.left--)
		client.stamps[client.begun++ % client.depth] = now;
}

static void begin(uint64_t now)
{
	if (now < client.start || !client.demand)
		return;
	if (client.pattern == PERF_QOS_CONSTANT)
		begin_constant(now);
	else
		begin_burst(now);
}

/* Whether the socket took all requests that have begun. */
static bool flush(void)
{
	while (client.sent < client.begun) {
		const uint8_t *bytes = perf_pattern((uint32_t)client.index, PERF_REQUESTS,
						    client.tx);
		ssize_t sent = send(client.fd, bytes, client.request - client.written,
				    MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN)
			return false;
		if (sent < 0)
			perf_end_fail(PERF_END_PEER, "send: %m");
		client.tx += (uint64_t)sent;
		client.written += (uint64_t)sent;
		if (client.written == client.request) {
			client.written = 0;
			client.sent++;
		}
	}
	return true;
}

/* ---- answers ---- */

static void complete(uint64_t now)
{
	uint64_t period = (now - client.start) / client.period_ns;
	uint64_t latency = now - intended_time(client.done++);

	if (period < client.warm || period >= client.warm + client.periods)
		return;
	client.completed[period - client.warm]++;
	client.sum_ns += (double)latency;
	perf_samples_add(&client.samples, latency);
}

/* Whether there may be more. */
static bool take_answers(void)
{
	ssize_t got = recv(client.fd, client.buffer, sizeof(client.buffer), 0);
	uint64_t now;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got <= 0)
		perf_end_fail(PERF_END_PEER, got ? "recv: %m" : "the server closed the connection");
	if (memcmp(perf_pattern((uint32_t)client.index, PERF_REPLIES, client.rx), client.buffer,
		   (size_t)got))
		perf_end_fail(PERF_END_FAILED, "connection %u: a byte of the replies is wrong",
			      (uint32_t)client.index);
	client.rx += (uint64_t)got;
	now = perf_now();
	while (client.done < client.rx / client.reply) {
		if (client.done == client.sent)
			perf_end_fail(PERF_END_FAILED, "an answer without a request");
		complete(now);
	}
	return got == sizeof(client.buffer);
}

/* ---- time ---- */

/* When a request may begin that no answer announces. */
static uint64_t next_moment(uint64_t now)
{
	uint64_t next = client.start;

	if (now >= client.start && client.pattern == PERF_QOS_CONSTANT && client.demand)
		next = constant_time(client.begun);
	else if (now >= client.start)
		next += ((now - client.start) / client.period_ns + 1) * client.period_ns;
	return next < last_moment() ? next : last_moment();
}

static void await(uint64_t now, bool blocked)
{
	struct pollfd fd = { .fd = client.fd, .events = blocked ? POLLIN | POLLOUT : POLLIN };
	uint64_t next = next_moment(now), wait = next > now ? next - now : 0;
	struct timespec timeout = { .tv_sec = (time_t)(wait / 1000000000),
				    .tv_nsec = (long)(wait % 1000000000) };

	if (ppoll(&fd, 1, now < last_moment() ? &timeout : NULL, NULL) < 0 && errno != EINTR)
		perf_end_fail(PERF_END_FAILED, "ppoll: %m");
}

static void run_periods(void)
{
	bool blocked = false;

	for (;;) {
		uint64_t now = perf_now();

		begin(now);
		blocked = !flush();
		if (now >= last_moment() && client.done == client.begun)
			return;
		await(now, blocked);
		while (take_answers())
			;
	}
}

/* ---- the connection ---- */

/* Requests lie at multiples of their size in the stream, as records of a store do: no ring's end divides one. */
static void greet(void)
{
	const struct perf_sizes sizes = { .request = (uint32_t)client.request,
					  .reply = (uint32_t)client.reply };
	struct perf_greeting greeting;
	size_t size = sizeof(greeting) + client.request - 1;
	uint8_t *bytes;

	size -= size % client.request;
	perf_greeting_make(&greeting, &sizes);
	greeting.index = (uint32_t)client.index;
	greeting.skip = (uint32_t)(size - sizeof(greeting));
	bytes = calloc(1, size);
	if (!bytes)
		perf_end_fail(PERF_END_FAILED, "out of memory");
	memcpy(bytes, &greeting, sizeof(greeting));
	if (send(client.fd, bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
		perf_end_fail(PERF_END_PEER, "cannot greet: %m");
	free(bytes);
}

static void connect_and_greet(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)client.port) };
	int on = 1;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	client.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (client.fd < 0)
		perf_end_fail(PERF_END_FAILED, "socket: %m");
	if (connect(client.fd, (struct sockaddr *)&address, sizeof(address)) ||
	    setsockopt(client.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		perf_end_fail(PERF_END_PEER, "cannot connect: %m");
	greet();
	if (fcntl(client.fd, F_SETFL, O_NONBLOCK))
		perf_end_fail(PERF_END_FAILED, "O_NONBLOCK: %m");
}

/* The server answers the end of requests with their number. */
static void finish(void)
{
	struct perf_account account;
	ssize_t got;

	if (shutdown(client.fd, SHUT_WR) || fcntl(client.fd, F_SETFL, 0))
		perf_end_fail(PERF_END_PEER, "shutdown: %m");
	got = recv(client.fd, &account, sizeof(account), MSG_WAITALL);
	if (got != sizeof(account))
		perf_end_fail(PERF_END_PEER, "the server's count: %m");
	if (account.requests != client.done)
		perf_end_fail(PERF_END_FAILED, "the server had %llu requests and answered %llu",
			      (unsigned long long)account.requests,
			      (unsigned long long)client.done);
	close(client.fd);
}

/* ---- the report ---- */

static double rank_us(double p)
{
	return (double)perf_samples_rank(&client.samples, p) / 1e3;
}

static void report(double cpu)
{
	json_t *completed = json_array(), *root;

	for (uint64_t i = 0; i < client.periods; i++)
		json_array_append_new(completed, json_integer((json_int_t)client.completed[i]));
	root = json_pack("{s:o, s:I, s:f}", "completed", completed, "all", (json_int_t)client.done,
			 "cpu", cpu);
	if (root && client.samples.seen) {
		double mean = client.sum_ns / (double)client.samples.seen / 1e3;
		json_t *latency;

		perf_samples_sort(&client.samples);
		latency = json_pack("{s:f, s:f, s:f, s:f, s:f}", "mean", mean, "p50", rank_us(0.5),
				    "p99", rank_us(0.99), "p99.9", rank_us(0.999), "max",
				    (double)client.samples.max / 1e3);
		json_object_set_new(root, "latency_us", latency);
	}
	if (!root || json_dumpf(root, stdout, JSON_COMPACT) || putchar('\n') < 0 || fflush(stdout))
		perf_end_fail(PERF_END_FAILED, "cannot write the result: %m");
	json_decref(root);
}

/* ---- all of it ---- */

void perf_qos_client_arguments(const struct perf_qos_plan *plan, const char *port, uint32_t index,
			       char text[PERF_QOS_CLIENT_ARGUMENTS][24])
{
	const uint64_t numbers[PERF_QOS_CLIENT_ARGUMENTS - 1] = {
		index,	       plan->clients, plan->pattern,   plan->demands[index], plan->depth,
		plan->request, plan->reply,   plan->period_ms, plan->warm,	     plan->periods,
	};

	snprintf(text[0], 24, "%s", port);
	for (size_t i = 1; i < PERF_QOS_CLIENT_ARGUMENTS; i++)
		snprintf(text[i], 24, "%llu", (unsigned long long)numbers[i - 1]);
}

static int parse(int argc, char **argv)
{
	uint64_t period_ms;
	const struct {
		uint64_t *number, min, max;
	} words[PERF_QOS_CLIENT_ARGUMENTS] = {
		{ &client.port, 1, 65535 },
		{ &client.index, 0, PERF_QOS_CLIENTS_MAX - 1 },
		{ &client.clients, 1, PERF_QOS_CLIENTS_MAX },
		{ &client.pattern, PERF_QOS_BURST, PERF_QOS_CONSTANT },
		{ &client.demand, 0, PERF_QOS_DEMAND_MAX },
		{ &client.depth, 1, PERF_DEPTH_MAX },
		{ &client.request, 1, PERF_MESSAGE_MAX },
		{ &client.reply, 1, PERF_MESSAGE_MAX },
		{ &period_ms, 1, PERF_SECONDS_MAX * 1000 },
		{ &client.warm, 0, PERF_QOS_PERIODS_MAX },
		{ &client.periods, 1, PERF_QOS_PERIODS_MAX },
	};

	if (argc != PERF_QOS_CLIENT_ARGUMENTS + 1)
		return -1;
	for (size_t i = 0; i < PERF_QOS_CLIENT_ARGUMENTS; i++)
		if (perf_number(argv[i + 1], words[i].min, words[i].max, words[i].number))
			return -1;
	client.period_ns = period_ms * 1000000;
	client.period = UINT64_MAX;
	return 0;
}

static void allocate(void)
{
	uint64_t samples = (client.demand + client.depth) * client.periods;

	client.stamps = calloc(client.depth, sizeof(client.stamps[0]));
	if (!client.stamps ||
	    perf_samples_init(&client.samples, samples < SAMPLES_MAX ? samples : SAMPLES_MAX))
		perf_end_fail(PERF_END_FAILED, "out of memory");
}

/* qos PORT INDEX CLIENTS PATTERN DEMAND DEPTH REQUEST REPLY PERIOD-MS WARM-UP-PERIODS PERIODS */
int perf_qos_client(int argc, char **argv)
{
	struct perf_usage before;
	double cpu;
	char line[24];

	if (parse(argc, argv))
		return EXIT_USAGE;
	if (perf_pattern_make(client.request))
		perf_end_fail(PERF_END_FAILED, "out of memory");
	/* A request begins when it is intended, not up to 50 us later. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	allocate();
	connect_and_greet();
	say("ready\n");
	hear(line);
	client.start = strtoull(line, NULL, 10);
	if (!client.start)
		return PERF_END_PEER;
	before = perf_usage_now();
	run_periods();
	cpu = perf_usage_now().cpu - before.cpu;
	say("done\n");
	hear(line);
	finish();
	report(cpu);
	perf_samples_free(&client.samples);
	free(client.stamps);
	return 0;
}
