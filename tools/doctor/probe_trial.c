/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/doctor/probe.h"
#include "tools/doctor/probe_inside.h"

enum { PATIENCE_MS = 100, ROUNDS = 1000, CHAIN = 64, LARGE = 65536 };

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Waits for so many completions. 0, -ETIME, or the status of one that failed. */
static int await(const struct probe *probe, int count)
{
	uint64_t until = now_ns() + PATIENCE_MS * 1000000ull;
	struct ibv_wc wc;

	while (count) {
		int got = ibv_poll_cq(probe->cq, 1, &wc);

		if (got < 0)
			return -EIO;
		if (got && wc.status != IBV_WC_SUCCESS)
			return (int)wc.status;
		count -= got;
		if (!got && now_ns() > until)
			return -ETIME;
	}
	return 0;
}

static struct ibv_send_wr write_wr(const struct probe *probe, struct ibv_sge *sge, uint32_t bytes,
				   unsigned int flags)
{
	struct ibv_send_wr wr = { .sg_list = sge, .num_sge = bytes ? 1 : 0, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				  .send_flags = flags };

	*sge = (struct ibv_sge) { (uintptr_t)probe->memory, bytes,
				  flags & IBV_SEND_INLINE ? 0 : probe->mr->lkey };
	wr.wr.rdma.remote_addr = (uintptr_t)probe->memory + LARGE;
	wr.wr.rdma.rkey = probe->mr->rkey;
	return wr;
}

/* 0 or an errno. The provider may say a negative one. */
static int post(const struct probe *probe, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int err = ibv_post_send(probe->qp[0], wr, &bad);

	return err < 0 ? -err : err;
}

static int post_receives(const struct probe *probe, int count)
{
	struct ibv_recv_wr *bad, receive = { 0 };
	int err = 0;

	while (count-- && !err)
		err = ibv_post_recv(probe->qp[0], &receive, &bad);
	return err < 0 ? -err : err;
}

/* One message to ourselves: its bytes are there. */
static int write_once(struct probe *probe, uint32_t bytes, unsigned int flags)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = write_wr(probe, &sge, bytes, flags | IBV_SEND_SIGNALED);
	int err = post_receives(probe, 1);

	memset(probe->memory, 0x5a, bytes);
	memset(probe->memory + LARGE, 0, bytes);
	err = err ? -err : -post(probe, &wr);
	if (!err)
		err = await(probe, 2);
	return err ? err : memcmp(probe->memory, probe->memory + LARGE, bytes) ? -EBADMSG : 0;
}

static int inline_word(struct probe *probe)
{
	return write_once(probe, 8, IBV_SEND_INLINE);
}

static int inline_most(struct probe *probe)
{
	return write_once(probe, probe->inline_bytes, IBV_SEND_INLINE);
}

static int fetched(struct probe *probe)
{
	return write_once(probe, LARGE, 0);
}

static int chained(struct probe *probe)
{
	struct ibv_send_wr wr[CHAIN];
	struct ibv_sge sge[CHAIN];
	int err = post_receives(probe, CHAIN);

	for (int i = 0; i < CHAIN; i++) {
		wr[i] = write_wr(probe, &sge[i], 8, i + 1 == CHAIN ? IBV_SEND_SIGNALED : 0);
		wr[i].next = i + 1 < CHAIN ? &wr[i + 1] : NULL;
	}
	err = err ? -err : -post(probe, &wr[0]);
	return err ? err : await(probe, CHAIN + 1);
}

/* As an idle lane asks whether its peer is there: without a key. */
static int no_bytes(struct probe *probe)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED };
	int err = -post(probe, &wr);

	return err ? err : await(probe, 1);
}

static int read_back(struct probe *probe)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = write_wr(probe, &sge, 8, IBV_SEND_SIGNALED);
	int err;

	wr.opcode = IBV_WR_RDMA_READ;
	err = -post(probe, &wr);
	return err ? err : await(probe, 1);
}

static int fetch_add(struct probe *probe)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = write_wr(probe, &sge, 8, IBV_SEND_SIGNALED);
	int err;

	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = (uintptr_t)probe->memory + LARGE;
	wr.wr.atomic.rkey = probe->mr->rkey;
	wr.wr.atomic.compare_add = 1;
	err = -post(probe, &wr);
	return err ? err : await(probe, 1);
}

/* As many as the queue was asked for, and then all of them at once. */
static int full_queue(struct probe *probe)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };
	int err = 0;

	for (uint32_t i = 1; i <= probe->depth && !err; i++) {
		wr.send_flags = i == probe->depth ? IBV_SEND_SIGNALED : 0;
		err = -post(probe, &wr);
	}
	return err ? err : await(probe, 1);
}

static int event(struct probe *probe)
{
	struct pollfd fd = { .fd = probe->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;
	int err = ibv_req_notify_cq(probe->cq, 0);

	err = err ? -err : no_bytes(probe);
	if (err)
		return err;
	if (poll(&fd, 1, PATIENCE_MS) != 1)
		return -ETIME;
	if (probe->device.verbs.get_cq_event(probe->channel, &cq, &context))
		return -errno;
	probe->device.verbs.ack_cq_events(cq, 1);
	return 0;
}

static const struct trial {
	const char *name;
	int (*run)(struct probe *probe);
	bool vital;	/* links need it */
} trials[] = {
	{ "8 bytes inline", inline_word, false },
	{ "as many bytes inline as it gave", inline_most, false },
	{ "64 KiB, which it fetches", fetched, true },
	{ "64 requests in a chain", chained, true },
	{ "a write of no bytes", no_bytes, true },
	{ "a read", read_back, true },
	{ "FETCH_ADD", fetch_add, false },
	{ "a full queue", full_queue, true },
	{ "an event", event, true },
};
enum { TRIALS = sizeof(trials) / sizeof(trials[0]) };

static bool applies(const struct probe *probe, const struct trial *trial)
{
	if (trial->run == fetch_add)
		return probe->told.atomic_cap != IBV_ATOMIC_NONE;
	return (trial->run != inline_word && trial->run != inline_most) || probe->inline_bytes >= 8;
}

static json_t *words_of(int result)
{
	static const char *const statuses[] = { [IBV_WC_LOC_LEN_ERR] = "local length error",
						[IBV_WC_LOC_QP_OP_ERR] = "local operation error",
						[IBV_WC_LOC_PROT_ERR] = "local protection error",
						[IBV_WC_WR_FLUSH_ERR] = "flushed",
						[IBV_WC_REM_INV_REQ_ERR] = "invalid request",
						[IBV_WC_REM_ACCESS_ERR] = "remote access error",
						[IBV_WC_REM_OP_ERR] = "remote operation error",
						[IBV_WC_RETRY_EXC_ERR] = "retries exceeded",
						[IBV_WC_RNR_RETRY_EXC_ERR] = "receiver not ready" };
	size_t status = result > 0 ? (size_t)result : 0;

	if (!result)
		return json_string("ok");
	if (result == -ETIME)
		return json_string("no completion");
	if (result == -EBADMSG)
		return json_string("other bytes arrived");
	if (result < 0)
		return json_sprintf("refused: %s", strerror(-result));
	return status < sizeof(statuses) / sizeof(statuses[0]) && statuses[status] ?
		       json_string(statuses[status]) :
		       json_sprintf("completion status %d", result);
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Of a message to ourselves, from posting until both completions are there, in ns. 0: none could be measured. */
static uint64_t median_ns(struct probe *probe)
{
	static uint64_t times[ROUNDS];
	unsigned int flags = probe->inline_bytes >= 8 ? IBV_SEND_INLINE : 0;

	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_sge sge;
		struct ibv_send_wr wr = write_wr(probe, &sge, 8, flags | IBV_SEND_SIGNALED);

		if (post_receives(probe, 1))
			return 0;
		times[i] = now_ns();
		if (post(probe, &wr) || await(probe, 2))
			return 0;
		times[i] = now_ns() - times[i];
	}
	qsort(times, ROUNDS, sizeof(times[0]), compare);
	return times[ROUNDS / 2];
}

/* Each on a queue pair that has not failed. An inline send that fails is done without. */
json_t *shunt_probe_trials(struct probe *probe)
{
	json_t *results = json_array();
	uint64_t ns;

	for (int i = 0; i < TRIALS; i++) {
		int result;

		if (!applies(probe, &trials[i]))
			continue;
		result = shunt_probe_connect(probe);
		if (!result)
			result = trials[i].run(probe);
		if (result && (trials[i].run == inline_word || trials[i].run == inline_most))
			probe->inline_bytes = 0;
		json_array_append_new(results, json_pack("{s:s, s:o, s:b, s:b}", "name",
							 trials[i].name, "result", words_of(result),
							 "ok", !result, "vital", trials[i].vital));
	}
	ns = shunt_probe_connect(probe) ? 0 : median_ns(probe);
	return json_pack("{s:o, s:I}", "trials", results, "round_trip_ns", (json_int_t)ns);
}
