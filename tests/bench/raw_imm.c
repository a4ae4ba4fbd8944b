/* SPDX-License-Identifier: MIT */
/*
 * raw_imm server [-a ADDRESS] -P PORT		serves one client program
 * raw_imm client PORT rtt|rate [-a ADDRESS] [-n COUNT] [-s BYTES] [-w WINDOW]
 * -e: waits for events of the completion channel instead of polling  -v: counts its work requests and polls on stderr
 *
 * The yardstick for tests/bench/pp: what verbs alone do with the same messages. Each message is one WRITE_WITH_IMM of a
 * reliable connection into a slot of the peer's memory; the immediate is its number. Nothing copies or looks at the bytes.
 * - rtt: a message each way; prints nanoseconds for a round trip.
 * - rate: one way, at most WINDOW of them under way; prints messages a second, until the server has them all.
 *
 * The server returns slots and receives by an empty WRITE_WITH_IMM for each half window: its immediate is how many messages
 * it has taken. So a receive is always posted: RNR is an error.
 * A tenth of the messages is not timed and comes first.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <rdma/rdma_cma.h>
#include "tests/plain.h"

#define MOST_INLINE 128
#define BATCH 16 /* completions of one poll */

enum { RTT, RATE };

/* Private data of the connection: both ends describe their memory, and the client the rest. */
struct hello {
	uint64_t addr, count, untimed; /* count: with those that are not timed */
	uint32_t rkey, size, window, kind;
};

static struct counts {
	uint64_t posted, signaled, reaped, polls, empty, sleeps;
} n, before; /* before: as they were when the time began */

static struct rdma_cm_id *id;
static struct ibv_cq *cq;
static struct ibv_comp_channel *channel;
static struct ibv_mr *mr;
static struct hello plan, peer;
static int events, verbose;
static uint32_t inlined, sq_size;
static uint64_t received; /* messages, by their completions */
static uint64_t posted_again; /* receives, in place of those that messages have taken */
static uint32_t last_imm;
static uint64_t freed; /* slots of the send queue whose WR has completed */

static _Noreturn void wrong(const char *what, long value)
{
	fprintf(stderr, "raw_imm: %s: %ld\n", what, value);
	exit(1);
}

/* A receive has no buffer: a WRITE_WITH_IMM takes only its completion. */
static void post_receives(uint64_t count)
{
	struct ibv_recv_wr wr[BATCH], *bad;

	while (count) {
		uint64_t some = count < BATCH ? count : BATCH;

		for (uint64_t i = 0; i < some; i++)
			wr[i] = (struct ibv_recv_wr) { .next = i + 1 < some ? &wr[i + 1] : NULL };
		if (ibv_post_recv(id->qp, wr, &bad))
			die("ibv_post_recv");
		count -= some;
	}
}

static void post_again(void)
{
	post_receives(received - posted_again);
	posted_again = received;
}

static void take(const struct ibv_wc *wc)
{
	n.reaped++;
	if (wc->status != IBV_WC_SUCCESS)
		wrong(ibv_wc_status_str(wc->status), wc->wr_id);
	if (wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM) {
		freed = wc->wr_id;
		return;
	}
	received++;
	last_imm = ntohl(wc->imm_data);
}

static int poll_some(void)
{
	struct ibv_wc wc[BATCH];
	int some = ibv_poll_cq(cq, BATCH, wc);

	if (some < 0)
		wrong("ibv_poll_cq", some);
	n.polls++;
	n.empty += !some;
	for (int i = 0; i < some; i++)
		take(&wc[i]);
	return some;
}

/* Until there is a completion. Between arming and sleeping the queue is looked at once more. */
static void await_some(void)
{
	struct ibv_cq *which;
	void *context;

	while (!poll_some()) {
		if (!events)
			continue;
		if (ibv_req_notify_cq(cq, 0))
			die("ibv_req_notify_cq");
		if (poll_some())
			return;
		n.sleeps++;
		if (ibv_get_cq_event(channel, &which, &context))
			die("ibv_get_cq_event");
		ibv_ack_cq_events(which, 1);
	}
}

/* One message into the slot of its number; the last one that is in the queue is signaled before the queue is full. */
static void post(uint32_t imm, uint32_t size, int signaled)
{
	uint32_t slot = imm % plan.window;
	struct ibv_sge sge = { .addr = (uintptr_t)mr->addr + (size_t)slot * plan.size,
			       .length = size,
			       .lkey = mr->lkey };
	struct ibv_send_wr wr = { .wr_id = n.posted + 1,
				  .sg_list = &sge,
				  .num_sge = size > 0,
				  .imm_data = htonl(imm),
				  .opcode = IBV_WR_RDMA_WRITE_WITH_IMM },
			   *bad;

	while (n.posted - freed >= sq_size)
		await_some();
	signaled |= (n.posted + 1) % (sq_size / 4) == 0;
	wr.send_flags = (signaled ? IBV_SEND_SIGNALED : 0) |
			(size <= inlined ? IBV_SEND_INLINE : 0);
	wr.wr.rdma.remote_addr = peer.addr + (size_t)slot * plan.size;
	wr.wr.rdma.rkey = peer.rkey;
	if (ibv_post_send(id->qp, &wr, &bad))
		die("ibv_post_send");
	n.posted++;
	n.signaled += signaled;
}

/* Message number `which` (from 0) has come, and no other. */
static void expect(uint64_t which)
{
	while (received <= which)
		await_some();
	if (received != which + 1 || last_imm != (uint32_t)which)
		wrong("not the next message", last_imm);
	post_again();
}

/* The time, from here on, and the counts. */
static double begin(void)
{
	before = n;
	return now();
}

static double rtt(void)
{
	double start = begin();

	for (uint64_t i = 0; i < plan.count; i++) {
		if (i == plan.untimed)
			start = begin();
		post((uint32_t)i, plan.size, 0);
		expect(i);
	}
	return (now() - start) / (double)(plan.count - plan.untimed) * 1e9;
}

/* The immediate of the last message that came is how many the server has taken. */
static void await_credit(void)
{
	await_some();
	post_again();
}

static double rate(void)
{
	double start = begin();

	for (uint64_t i = 0; i < plan.count; i++) {
		while (i - last_imm >= plan.window)
			await_credit();
		if (i == plan.untimed)
			start = begin();
		post((uint32_t)i, plan.size, 0);
	}
	while (last_imm < plan.count)
		await_credit();
	return (double)(plan.count - plan.untimed) / (now() - start);
}

static void serve_rtt(void)
{
	for (uint64_t i = 0; i < plan.count; i++) {
		if (i == plan.untimed)
			begin();
		expect(i);
		post((uint32_t)i, plan.size, i + 1 == plan.count);
	}
}

/* Receives are there again before the client hears of it. */
static void serve_rate(void)
{
	uint32_t half = plan.window / 2;

	for (uint64_t told = 0; told < plan.count;) {
		uint64_t next = told + half < plan.count ? told + half : plan.count;

		if (told <= plan.untimed)
			begin();
		while (received < next)
			await_some();
		if (last_imm != (uint32_t)(received - 1))
			wrong("not the next message", last_imm);
		post_again();
		told = received;
		post((uint32_t)told, 0, told == plan.count);
	}
}

/* Memory, queues and receives: before the peer can send. */
static void make_queues(void)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 2 * plan.window,
			 .max_recv_wr = 2 * plan.window,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = plan.size <= MOST_INLINE ? plan.size : 0 }
	};
	size_t len = (size_t)plan.size * plan.window;
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);
	void *memory;

	inlined = attr.cap.max_inline_data;
	sq_size = attr.cap.max_send_wr;
	channel = ibv_create_comp_channel(id->verbs);
	cq = ibv_create_cq(id->verbs, (int)(4 * plan.window), NULL, channel, 0);
	if (!pd || !channel || !cq || posix_memalign(&memory, 4096, len))
		die("no queues");
	memset(memory, 1, len);
	attr.send_cq = attr.recv_cq = cq;
	mr = ibv_reg_mr(pd, memory, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!mr || rdma_create_qp(id, pd, &attr))
		die("no queue pair");
	post_receives(2 * plan.window);
	plan.addr = (uintptr_t)memory;
	plan.rkey = mr->rkey;
}

/* The peer's private data of the latest event. */
static struct hello heard(void)
{
	struct hello said;

	if (!id->event || id->event->param.conn.private_data_len < sizeof(said))
		wrong("the peer has said nothing", 0);
	memcpy(&said, id->event->param.conn.private_data, sizeof(said));
	return said;
}

static struct rdma_conn_param conn_param(void)
{
	return (struct rdma_conn_param) { .private_data = &plan,
					  .private_data_len = sizeof(plan),
					  .responder_resources = 1,
					  .initiator_depth = 1,
					  .retry_count = 6,
					  .rnr_retry_count = 0 };
}

static void serve(struct sockaddr_in *at)
{
	struct rdma_conn_param param;
	struct rdma_cm_id *listening;

	if (rdma_create_id(NULL, &listening, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listening, (struct sockaddr *)at) || rdma_listen(listening, 1) ||
	    rdma_get_request(listening, &id))
		die("rdma_listen");
	plan = peer = heard();
	if (plan.window < 8 || plan.window > 4096 || !plan.size || plan.size > 1 << 20)
		wrong("a plan that makes no sense", plan.window);
	make_queues();
	param = conn_param();
	if (rdma_accept(id, &param))
		die("rdma_accept");
	(plan.kind == RTT ? serve_rtt : serve_rate)();
	while (freed < n.posted) /* the last one, so that the client has it */
		await_some();
	rdma_disconnect(id);
}

static void ask(struct sockaddr_in *at)
{
	struct rdma_conn_param param;

	plan.untimed = plan.count / 10;
	plan.count += plan.untimed;
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, NULL, (struct sockaddr *)at, 5000) ||
	    rdma_resolve_route(id, 5000))
		die("rdma_resolve_addr");
	make_queues();
	param = conn_param();
	if (rdma_connect(id, &param))
		die("rdma_connect");
	peer = heard();
	printf("%.0f\n", (plan.kind == RTT ? rtt : rate)());
	rdma_disconnect(id);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = loopback(0);
	int c, bad = 0;

	plan = (struct hello) { .size = 8, .window = 64, .count = 2000 };
	while ((c = getopt(argc, argv, "a:P:n:s:w:ev")) != -1) {
		switch (c) {
		case 'a':
			bad |= inet_pton(AF_INET, optarg, &at.sin_addr) != 1;
			break;
		case 'P':
			at.sin_port = htons(atoi(optarg));
			break;
		case 'n':
			plan.count = strtoull(optarg, NULL, 10);
			break;
		case 's':
			plan.size = strtoul(optarg, NULL, 10);
			break;
		case 'w':
			plan.window = strtoul(optarg, NULL, 10);
			break;
		case 'e':
			events = 1;
			break;
		case 'v':
			verbose = 1;
			break;
		default:
			return 2;
		}
	}
	argc -= optind;
	argv += optind;
	if (!bad && argc == 1 && !strcmp(argv[0], "server")) {
		serve(&at);
	} else if (!bad && argc == 3 && !strcmp(argv[0], "client") &&
		   (!strcmp(argv[2], "rtt") || !strcmp(argv[2], "rate"))) {
		at.sin_port = htons(atoi(argv[1]));
		plan.kind = argv[2][1] == 't' ? RTT : RATE;
		ask(&at);
	} else {
		fprintf(stderr,
			"usage: raw_imm server -P PORT | client PORT rtt|rate [-n COUNT] [-s BYTES] [-w WINDOW] "
			"[-a ADDRESS] [-e] [-v]\n");
		return 2;
	}
	if (verbose)
		fprintf(stderr,
			"posted %" PRIu64 " signaled %" PRIu64 " completions %" PRIu64
			" polls %" PRIu64 " empty %" PRIu64 " sleeps %" PRIu64 "\n",
			n.posted - before.posted, n.signaled - before.signaled,
			n.reaped - before.reaped, n.polls - before.polls, n.empty - before.empty,
			n.sleeps - before.sleeps);
	return 0;
}
