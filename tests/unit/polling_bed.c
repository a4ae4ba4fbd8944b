/* SPDX-License-Identifier: MIT */
#include "tests/unit/polling_bed.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include "core/stream/sleep.h"

#define ARRIVALS 8192
#define CHANNEL_FD 900
#define WAKER_FD 901
#define CLOCK_NS 20
#define HANDLING_NS 300		/* of one message, by the program */
#define WAKE_NS 15000

struct arrival {
	uint64_t at;
	uint8_t cq, stream;
};

struct shunt_engine engine;
struct shunt_stream streams[2];
struct shunt_seat seats[2];
struct shunt_lane lane;
struct cq cqs[SHUNT_CQS_MAX];
int arrival_count, arrived, sleeps, hang_ups;
uint64_t clock_now, moments, race_moment;
static struct ibv_context context;
static struct ibv_comp_channel channel = { .fd = CHANNEL_FD };
static struct arrival arrivals[ARRIVALS];
static int kicks;

/* --- the device --- */

void put(int cq, int stream)
{
	cqs[cq].waiting[stream]++;
	cqs[cq].fired |= cqs[cq].armed;
	cqs[cq].armed = false;
}

void pass(uint64_t ns)
{
	clock_now += ns;
	if (++moments == race_moment)
		put(0, 0);
	while (arrived < arrival_count && arrivals[arrived].at <= clock_now) {
		put(arrivals[arrived].cq, arrivals[arrived].stream);
		arrived++;
	}
}

static int poll_cq(struct ibv_cq *ibv, int count, struct ibv_wc *wc)
{
	struct cq *cq = (struct cq *)ibv;
	int n = 0;

	pass(POLL_NS);
	for (int i = 1; i >= 0; i--)
		for (; cq->waiting[i] && n < count; cq->waiting[i]--) {
			wc[n++] = (struct ibv_wc) { .opcode = IBV_WC_RDMA_WRITE };
			stream_arrive(&streams[i]);
			shunt_sleep_notify(&streams[i], EPOLLIN);
		}
	return n;
}

static int req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	(void)solicited_only;
	pass(POLL_NS);
	((struct cq *)ibv)->armed = true;
	return 0;
}

static int get_cq_event(struct ibv_comp_channel *on, struct ibv_cq **cq, void **cq_context)
{
	(void)on;
	pass(POLL_NS);
	*cq_context = NULL;
	for (int i = 0; i < SHUNT_CQS_MAX; i++) {
		if (!cqs[i].fired)
			continue;
		cqs[i].fired = false;
		*cq = &cqs[i].ibv;
		return 0;
	}
	errno = EAGAIN;
	return -1;
}

static void ack_cq_events(struct ibv_cq *cq, unsigned int count)
{
	(void)cq;
	(void)count;
}

const struct shunt_verbs verbs = { .get_cq_event = get_cq_event, .ack_cq_events = ack_cq_events };

bool event_waits(void)
{
	for (int i = 0; i < SHUNT_CQS_MAX; i++)
		if (cqs[i].fired)
			return true;
	return false;
}

int left_in_cqs(void)
{
	int left = 0;

	for (int i = 0; i < SHUNT_CQS_MAX; i++)
		left += cqs[i].waiting[0] + cqs[i].waiting[1];
	return left;
}

/* --- the system --- */

static uint64_t now(void)
{
	pass(CLOCK_NS);
	return clock_now;
}

/* A sleep: until an event, or the timeout. A sleeper that nothing would ever wake is a fault. */
static int sys_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	uint64_t until = timeout ? clock_now + timeout->tv_sec * 1000000000ull + timeout->tv_nsec : UINT64_MAX;

	(void)mask;
	pass(CLOCK_NS);
	sleeps++;
	while (!event_waits() && arrived < arrival_count && arrivals[arrived].at < until)
		pass(arrivals[arrived].at - clock_now);
	for (nfds_t i = 0; i < count; i++)
		fds[i].revents = fds[i].fd == CHANNEL_FD && event_waits() ? POLLIN : 0;
	if (event_waits()) {
		pass(WAKE_NS);
		return 1;
	}
	if (!timeout)
		hang_ups++;
	clock_now = timeout ? until : clock_now;
	return 0;
}

static ssize_t sys_write(int fd, const void *buffer, size_t bytes)
{
	(void)fd;
	(void)buffer;
	kicks++;
	return bytes;
}

static ssize_t sys_read(int fd, void *buffer, size_t bytes)
{
	(void)fd;
	memset(buffer, 0, bytes);
	return bytes;
}

uint64_t others_ns;

static int yield(void)
{
	pass(others_ns);
	return 0;
}

static const struct shunt_sys sys = { .now = now, .ppoll = sys_ppoll, .write = sys_write, .read = sys_read, .yield = yield };

/* --- a bed for one run --- */

void make(int mode)
{
	memset(&engine, 0, sizeof(engine));
	shunt_lock_rank(&engine.group.lock, SHUNT_RANK_GROUP);
	shunt_lock_rank(&engine.streams_lock, SHUNT_RANK_STREAMS);
	shunt_lock_rank(&engine.fds.wakers.lock, SHUNT_RANK_WAKERS);
	memset(cqs, 0, sizeof(cqs));
	shunt_config_defaults(&engine.config);
	memset(&shunt_thread, 0, sizeof(shunt_thread));
	lane.group = &engine.group;
	stream_make(&streams[0], &seats[0], &lane, true);
	stream_make(&streams[1], &seats[1], &lane, true);
	shunt_engine_surround(&engine, &sys);
	engine.group.hooks = &shunt_engine_hooks;
	engine.config.poll = mode;
	engine.fds.wakers.fd[0] = WAKER_FD;
	engine.fds.wakers.count = 1;
	context.ops.poll_cq = poll_cq;
	context.ops.req_notify_cq = req_notify_cq;
	for (int i = 0; i < SHUNT_CQS_MAX; i++) {
		cqs[i].ibv.context = &context;
		engine.group.cqs.of[i] = &cqs[i].ibv;
	}
	engine.group.cqs.count = 1;
	engine.group.devices[SHUNT_SOFT].channel = &channel;
	engine.group.devices[SHUNT_SOFT].open = true;
	engine.group.devices[SHUNT_SOFT].kind = &shunt_device_verbs;	/* it has no waiters */
	engine.group.bell = channel.fd;
	engine.group.devices[SHUNT_SOFT].verbs = &verbs;
	engine.group.devices[SHUNT_SOFT].context = &context;
	engine.group.open = true;
	clock_now = 1000000;
	arrival_count = arrived = kicks = sleeps = hang_ups = 0;
	moments = race_moment = others_ns = 0;
}

void arrive(uint64_t at, int cq, int stream)
{
	arrivals[arrival_count++] = (struct arrival) { 1000000 + at, cq, stream };
}

void load(int trains, uint64_t rest, int bursts, uint64_t gap, int messages, uint64_t spacing)
{
	uint64_t at = 50000;

	for (int t = 0; t < trains; t++, at += rest)
		for (int b = 0; b < bursts; b++, at += gap)
			for (int m = 0; m < messages; m++, at += spacing)
				arrive(at, 0, 0);
}

void receive_all(void)
{
	uint64_t wanted = arrival_count, turns = 0, got;

	while (stream_offset(&streams[0], STREAM_READ) < wanted) {
		got = stream_take_all(&streams[0]);
		if (got) {
			pass(got * HANDLING_NS);
			continue;
		}
		shunt_thread_begin();
		assert_int_equal(shunt_wait_stream(&streams[0], EPOLLIN, SHUNT_NEVER), 0);
		assert_int_equal(hang_ups, 0);
		assert_true(++turns < 1000000);
	}
}
