/* SPDX-License-Identifier: MIT */
/*
 * The connecting end. Each thread has an epoll set and connections of its own, and nothing is shared
 * while time is taken.
 */
#include "tools/perf/end/perf_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/ping/ping.h"
#include "tools/shunt.h"

#define SAMPLES (1 << 20)	/* of a flow, all threads together */

struct plan {
	union ping_address server;
	uint64_t warm_ns, measured_ns;
	uint64_t threads;
	uint32_t conns;
	struct perf_work work;
	struct perf_open open;
	struct perf_flow flows[PERF_FLOWS_MAX];
	size_t flow_count;
};

static int connect_to(const union ping_address *server)
{
	int on = 1, fd = socket(server->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, &server->any, ping_address_length(server)))
		perf_end_fail(fd < 0 ? PERF_END_FAILED : PERF_END_PEER, "cannot connect: %m");
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		perf_end_fail(PERF_END_FAILED, "TCP_NODELAY: %m");
	return fd;
}

static void greet(const struct plan *plan, struct perf_conn *conn, uint32_t index)
{
	struct perf_greeting greeting;
	char ready;

	perf_greeting_make(&greeting, &conn->flow->sizes);
	greeting.index = index;
	greeting.conns = plan->conns;
	greeting.work = plan->work;
	if (perf_talk_init(&conn->talk, PERF_AT_CLIENT, &greeting))
		perf_end_fail(PERF_END_FAILED, "out of memory");
	if (send(conn->fd, &greeting, sizeof(greeting), MSG_NOSIGNAL) != sizeof(greeting))
		perf_end_fail(PERF_END_PEER, "connection %u: greeting: %m", index);
	if (perf_greeting_waits(&greeting) &&
	    (recv(conn->fd, &ready, sizeof(ready), 0) != sizeof(ready) || ready != PERF_READY))
		perf_end_fail(PERF_END_PEER, "connection %u: the server did not become ready",
			      index);
	if (fcntl(conn->fd, F_SETFL, O_NONBLOCK))
		perf_end_fail(PERF_END_FAILED, "O_NONBLOCK: %m");
}

/* Connections go round the threads. */
static void connect_all(const struct plan *plan, struct perf_worker *workers)
{
	uint32_t index = 0;

	for (size_t f = 0; f < plan->flow_count; f++) {
		for (uint32_t i = 0; i < plan->flows[f].conns; i++, index++) {
			struct perf_conn *conn = calloc(1, sizeof(*conn));

			if (!conn || !(conn->stamps = calloc(plan->flows[f].depth, sizeof(uint64_t))))
				perf_end_fail(PERF_END_FAILED, "out of memory");
			conn->flow = &plan->flows[f];
			conn->fd = connect_to(&plan->server);
			greet(plan, conn, index);
			perf_worker_add(&workers[index % plan->threads], conn, f);
		}
	}
}

static void make_schedules(const struct plan *plan, struct perf_worker *workers)
{
	for (uint64_t i = 0; i < plan->threads; i++)
		perf_schedule_make(&workers[i].schedule, &plan->open, workers[i].open, plan->conns,
				   i, plan->threads);
}

static void *work(void *arg)
{
	perf_worker_run(arg);
	return NULL;
}

/* The first of them is this thread. */
static void run_workers(const struct plan *plan, struct perf_worker *workers)
{
	uint64_t start = perf_now();
	int rc;

	for (uint64_t i = 0; i < plan->threads; i++) {
		workers[i].begin = start + plan->warm_ns;
		workers[i].end = workers[i].begin + plan->measured_ns;
		perf_schedule_start(&workers[i].schedule, start);
	}
	for (uint64_t i = 1; i < plan->threads; i++) {
		rc = pthread_create(&workers[i].thread, NULL, work, &workers[i]);
		if (rc)
			perf_end_fail(PERF_END_FAILED, "cannot make a thread: %s", strerror(rc));
	}
	perf_worker_run(&workers[0]);
	for (uint64_t i = 1; i < plan->threads; i++)
		pthread_join(workers[i].thread, NULL);
}

static void put_latencies(json_t *object, struct perf_samples *all)
{
	static const struct {
		const char *name;
		double rank;
	} ranks[] = { { "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 }, { "p999", 0.999 } };

	json_object_set_new(object, "latencies", json_integer((json_int_t)all->seen));
	json_object_set_new(object, "kept", json_integer((json_int_t)all->kept));
	if (!all->kept)
		return;
	perf_samples_sort(all);
	for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++)
		json_object_set_new(object, ranks[i].name,
				    json_real((double)perf_samples_rank(all, ranks[i].rank) / 1e3));
	json_object_set_new(object, "max", json_real((double)all->max / 1e3));
}

static json_t *flow_json(const struct plan *plan, const struct perf_worker *workers, size_t flow)
{
	const struct perf_samples *samples[PERF_THREADS_MAX];
	json_int_t operations = 0, total = 0;
	struct perf_samples all;
	json_t *object;

	for (uint64_t i = 0; i < plan->threads; i++) {
		operations += (json_int_t)workers[i].tallies[flow].measured;
		total += (json_int_t)workers[i].tallies[flow].total;
		samples[i] = &workers[i].tallies[flow].samples;
	}
	object = json_pack("{s:I, s:I, s:I}", "operations", operations, "bytes",
			   operations * plan->flows[flow].sizes.request, "total", total);
	if (!object || perf_samples_merge(&all, samples, plan->threads))
		perf_end_fail(PERF_END_FAILED, "out of memory");
	put_latencies(object, &all);
	perf_samples_free(&all);
	return object;
}

/* Of both ends, as each of them counts. */
static json_t *lines_json(const struct plan *plan, const struct perf_worker *workers)
{
	struct perf_account sum = { 0 };

	for (uint64_t i = 0; i < plan->threads; i++) {
		for (const struct perf_conn *conn = workers[i].conns; conn; conn = conn->next) {
			perf_account_add(&sum, &conn->talk.account);
			perf_account_add(&sum, &conn->account);
		}
	}
	return json_pack("{s:I, s:I, s:I, s:I}", "touched", (json_int_t)sum.touched, "dummies",
			 (json_int_t)sum.dummies, "scanned", (json_int_t)sum.scanned, "checked",
			 (json_int_t)sum.checked);
}

/* The server's own account. Of its CPU time each connection has the run's so far. */
static json_t *served_json(const struct plan *plan, const struct perf_worker *workers)
{
	uint64_t requests = 0, cpu_ns = 0, switches = 0;

	for (uint64_t i = 0; i < plan->threads; i++) {
		for (const struct perf_conn *conn = workers[i].conns; conn; conn = conn->next) {
			const struct perf_account *account = &conn->account;

			requests += account->requests;
			cpu_ns = account->cpu_ns > cpu_ns ? account->cpu_ns : cpu_ns;
			switches = account->switches > switches ? account->switches : switches;
		}
	}
	return json_pack("{s:I, s:f, s:f}", "operations", (json_int_t)requests, "cpu",
			 (double)cpu_ns / 1e9, "switches", (double)switches);
}

static void report(const struct plan *plan, const struct perf_worker *workers,
		   const struct perf_usage *before)
{
	struct perf_usage after = perf_usage_now();
	json_t *flows = json_array(), *root;
	json_int_t late = 0, unsent = 0;

	for (size_t f = 0; f < plan->flow_count; f++)
		json_array_append_new(flows, flow_json(plan, workers, f));
	root = json_pack("{s:f, s:f, s:f, s:o, s:o}", "seconds", (double)plan->measured_ns / 1e9,
			 "cpu", after.cpu - before->cpu, "switches",
			 after.switches - before->switches, "lines", lines_json(plan, workers),
			 "flows", flows);
	for (uint64_t i = 0; i < plan->threads; i++) {
		late += (json_int_t)workers[i].schedule.late;
		unsent += (json_int_t)workers[i].schedule.unsent;
	}
	if (root)
		json_object_set_new(root, "served", served_json(plan, workers));
	if (root && plan->open.rate) {
		json_object_set_new(root, "late", json_integer(late));
		json_object_set_new(root, "unsent", json_integer(unsent));
	}
	if (!root || json_dumpf(root, stdout, JSON_COMPACT) || putchar('\n') < 0 || fflush(stdout))
		perf_end_fail(PERF_END_FAILED, "cannot write the result: %m");
	json_decref(root);
}

/* The flows that are left: 0, or -1. */
static int parse_flows(struct plan *plan, char **argv)
{
	uint64_t conns = 0;

	for (; argv[plan->flow_count]; plan->flow_count++) {
		struct perf_flow *flow = &plan->flows[plan->flow_count];

		if (plan->flow_count == PERF_FLOWS_MAX ||
		    perf_flow_parse(argv[plan->flow_count], flow))
			return -1;
		/* Swapped requests are counted in the tally after their flow's, which is there for them. */
		if ((plan->flow_count && !flow->conns) !=
		    (plan->flow_count && flow[-1].sizes.writes))
			return -1;
		conns += flow->conns;
	}
	if (!conns || conns > PERF_CONNS_MAX || plan->flows[plan->flow_count - 1].sizes.writes)
		return -1;
	plan->conns = (uint32_t)conns;
	if (plan->threads > conns)
		plan->threads = conns;
	return 0;
}

static int parse(struct plan *plan, int argc, char **argv)
{
	uint64_t port, warm_ms, measured_ms;

	if (argc < 9 || ping_address_parse(argv[1], &plan->server) ||
	    perf_number(argv[2], 1, 65535, &port) ||
	    perf_number(argv[3], 0, PERF_SECONDS_MAX * 1000, &warm_ms) ||
	    perf_number(argv[4], 1, PERF_SECONDS_MAX * 1000, &measured_ms) ||
	    perf_number(argv[5], 1, PERF_THREADS_MAX, &plan->threads) ||
	    perf_work_parse(&plan->work, argv[6]) || perf_open_parse(&plan->open, argv[7]))
		return -1;
	plan->server.v4.sin_port = htons((uint16_t)port); /* both families have it in one place */
	plan->warm_ns = warm_ms * 1000000;
	plan->measured_ns = measured_ms * 1000000;
	return parse_flows(plan, argv + 8);
}

/* Before the threads, as it may move. */
static void make_pattern(const struct plan *plan)
{
	for (size_t f = 0; f < plan->flow_count; f++) {
		const struct perf_sizes *sizes = &plan->flows[f].sizes;

		if (perf_pattern_make(sizes->request > sizes->reply ? sizes->request :
								      sizes->reply))
			perf_end_fail(PERF_END_FAILED, "out of memory");
	}
}

/* client ADDRESS PORT WARM-UP-MS MEASURED-MS THREADS WORK ARRIVALS FLOW… */
int perf_client(int argc, char **argv)
{
	static struct plan plan;
	struct perf_worker *workers;
	struct perf_usage before;

	if (parse(&plan, argc, argv))
		return EXIT_USAGE;
	make_pattern(&plan);
	/* Idle times are as long as they say, not up to 50 us longer. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	workers = calloc(plan.threads, sizeof(*workers));
	if (!workers)
		perf_end_fail(PERF_END_FAILED, "out of memory");
	for (uint64_t i = 0; i < plan.threads; i++)
		perf_worker_init(&workers[i], plan.flow_count, SAMPLES / plan.threads);
	before = perf_usage_now();
	connect_all(&plan, workers);
	make_schedules(&plan, workers);
	run_workers(&plan, workers);
	report(&plan, workers, &before);
	for (uint64_t i = 0; i < plan.threads; i++)
		perf_worker_free(&workers[i]);
	free(workers);
	return 0;
}
