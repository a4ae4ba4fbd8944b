/* SPDX-License-Identifier: MIT */
/* An arrival wakes the one waiter that its immediate's entry names (core/device/soft/waiter.c). */
#include "tests/soft/rig.h"
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include "core/device/soft/device.h"

enum { ENTRIES = 16, STRIDE = 128, CHAIN = 12 };

struct bed {
	struct rig *rig;
	int fds[SOFT_WAITERS];
};

/* End b waits, and end a posts to it. */
static struct bed bed_make(void)
{
	struct bed bed = { .rig = rig_make(&(struct rig_options) { .receives = CHAIN }) };

	assert_int_equal(
		soft_waiters_make(bed.rig->b.pd, bed.rig->b.memory, STRIDE, ENTRIES, bed.fds), 0);
	assert_int_equal(soft_waiters_reach(bed.rig->a.qp, bed.fds), 0);
	return bed;
}

static void name(const struct bed *bed, uint32_t id, uint32_t waiter)
{
	memcpy(bed->rig->b.memory + id * STRIDE, &waiter, sizeof(waiter));
}

/* Arrivals with these numbers, of which the last is solicited. */
static void post(const struct bed *bed, const uint32_t *ids, int count)
{
	struct ibv_sge sge[CHAIN];
	struct ibv_send_wr wr[CHAIN], *bad;

	for (int i = 0; i < count; i++) {
		wr[i] = rig_write(&bed->rig->a, &bed->rig->b, &sge[i], 1,
				  IBV_WR_RDMA_WRITE_WITH_IMM, 0);
		wr[i].imm_data = htonl(ids[i]);
		wr[i].send_flags = i + 1 == count ? IBV_SEND_SOLICITED | IBV_SEND_SIGNALED : 0;
		wr[i].next = i + 1 == count ? NULL : &wr[i + 1];
	}
	assert_int_equal(rig_post(&bed->rig->a, wr, &bad), 0);
	rig_expect_count(bed->rig->a.send_cq, 1);
}

/* All sleep: the waiters, and a thread on the channel for solicited arrivals. */
static void sleep_all(const struct bed *bed)
{
	for (uint32_t i = 1; i <= SOFT_WAITERS; i++)
		soft_waiter_arm(bed->rig->b.context, i, true);
	assert_int_equal(ibv_req_notify_cq(bed->rig->b.recv_cq, 1), 0);
}

static bool takes(int fd)
{
	struct pollfd wanted = { .fd = fd, .events = POLLIN };

	return poll(&wanted, 1, 0) == 1;
}

/* Those that have been woken: bit 0 is the channel. Their events are taken, and all wake up. */
static uint32_t woken(const struct bed *bed)
{
	struct rig_end *end = &bed->rig->b;
	struct ibv_cq *cq;
	void *context;
	uint32_t who = 0;

	for (uint32_t i = 1; i <= SOFT_WAITERS; i++) {
		who |= (uint32_t)takes(soft_waiter_fd(end->context, i)) << i;
		soft_waiter_hear(end->context, i);
		soft_waiter_arm(end->context, i, false);
		assert_false(takes(soft_waiter_fd(end->context, i)));
	}
	if (!end->verbs->get_cq_event(end->channel, &cq, &context)) {
		end->verbs->ack_cq_events(cq, 1);
		who |= 1;
	}
	return who;
}

static uint32_t woken_by(const struct bed *bed, const uint32_t *ids, int count)
{
	post(bed, ids, count);
	rig_expect_count(bed->rig->b.recv_cq, count);
	rig_receives(&bed->rig->b, count);
	return woken(bed);
}

static uint32_t woken_by_one(const struct bed *bed, uint32_t id)
{
	return woken_by(bed, &id, 1);
}

static void the_named_one_wakes(void **state)
{
	struct bed bed = bed_make();

	(void)state;
	name(&bed, 3, 2);
	name(&bed, 4, SOFT_WAITERS);
	for (int i = 0; i < 2000; i++) {	/* more than a queue has room for */
		sleep_all(&bed);
		assert_int_equal(woken_by_one(&bed, i & 1 ? 3 : 4),
				 i & 1 ? 1u << 2 : 1u << SOFT_WAITERS);
	}
	rig_free(bed.rig);
}

static void others_wake_who_sleeps_on_the_channel(void **state)
{
	struct bed bed = bed_make();

	(void)state;
	name(&bed, 0, 2);	/* nobody is asked for that */
	name(&bed, 5, 0);
	name(&bed, 6, SOFT_WAITERS + 1);
	for (uint32_t id = 0; id < 3 * ENTRIES; id = id ? id + 1 : 5) {
		sleep_all(&bed);
		assert_int_equal(woken_by_one(&bed, id), 1);
	}
	rig_free(bed.rig);
}

/* It polls before it sleeps. */
static void nobody_wakes_who_is_awake(void **state)
{
	struct bed bed = bed_make();
	const uint32_t id = 3;

	(void)state;
	name(&bed, id, 2);
	assert_int_equal(ibv_req_notify_cq(bed.rig->b.recv_cq, 1), 0);
	assert_int_equal(woken_by_one(&bed, id), 0);
	assert_int_equal(soft_qp_counters(bed.rig->a.qp)->wakes, 0);
	rig_free(bed.rig);
}

static void a_chain_wakes_all_that_it_names(void **state)
{
	const uint32_t few[] = { 3, 4, 3 }, both[] = { 3, 5 },
		       many[CHAIN] = { 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3 };
	struct bed bed = bed_make();

	(void)state;
	name(&bed, 3, 1);
	name(&bed, 4, 2);
	sleep_all(&bed);
	assert_int_equal(woken_by(&bed, few, 3), 1 << 1 | 1 << 2);
	sleep_all(&bed);
	assert_int_equal(woken_by(&bed, both, 2), 1 << 1 | 1);
	sleep_all(&bed);	/* too many to know them: all */
	assert_int_equal(woken_by(&bed, many, CHAIN), ((2 << SOFT_WAITERS) - 1));
	rig_free(bed.rig);
}

static void rings_when_it_is_told(void **state)
{
	struct bed bed = bed_make();
	const uint32_t *rings = soft_qp_rings(bed.rig->a.qp);
	const uint32_t id = 3;

	(void)state;
	name(&bed, id, 2);
	sleep_all(&bed);
	post(&bed, &id, 1);
	if (*rig_model)	{	/* carried out later, and rings then */
		assert_int_equal(woken(&bed), 1 << 2);
		rig_free(bed.rig);
		return;
	}
	assert_false(takes(soft_waiter_fd(bed.rig->b.context, 2)));
	assert_int_not_equal(*rings, 0);
	soft_qp_ring(bed.rig->a.qp);
	assert_int_equal(*rings, 0);
	assert_int_equal(woken(&bed), 1 << 2);
	rig_free(bed.rig);
}

/* The peer's words about its entries, and its descriptors. */
static void lies_are_refused(void **state)
{
	struct bed bed = { .rig = rig_make(NULL) };
	struct soft_pd *pd = container_of(bed.rig->b.pd, struct soft_pd, ibv);
	struct segment_waiting *told = &((struct segment_header *)pd->segment)->waiting;
	struct segment_waiting good;
	int other[SOFT_WAITERS];

	(void)state;
	assert_int_equal(soft_waiters_reach(bed.rig->a.qp, bed.fds), -EPROTO);
	assert_int_equal(
		soft_waiters_make(bed.rig->b.pd, bed.rig->b.memory, STRIDE, ENTRIES, bed.fds), 0);
	good = *told;
	told->offset = pd->bytes;
	assert_int_equal(soft_waiters_reach(bed.rig->a.qp, bed.fds), -EPROTO);
	told->offset = UINT64_MAX - 3;
	assert_int_equal(soft_waiters_reach(bed.rig->a.qp, bed.fds), -EPROTO);
	*told = good;
	told->count = UINT32_MAX;
	assert_int_equal(soft_waiters_reach(bed.rig->a.qp, bed.fds), -EPROTO);
	*told = good;
	told->stride = 2;
	assert_int_equal(soft_waiters_reach(bed.rig->a.qp, bed.fds), -EPROTO);
	*told = good;
	memcpy(other, bed.fds, sizeof(other));
	other[SOFT_WAITERS - 1] = bed.rig->b.fds[0];
	assert_int_equal(soft_waiters_reach(bed.rig->a.qp, other), -EPROTO);
	assert_int_equal(soft_waiters_reach(bed.rig->a.qp, bed.fds), 0);
	told->offset = UINT64_MAX - 3;	/* too late */
	name(&bed, 3, 2);
	rig_receives(&bed.rig->b, 1);
	sleep_all(&bed);
	assert_int_equal(woken_by_one(&bed, 3), 1 << 2);
	rig_free(bed.rig);
}

RIG_TABLE(waiter, cmocka_unit_test(the_named_one_wakes),
	  cmocka_unit_test(others_wake_who_sleeps_on_the_channel),
	  cmocka_unit_test(nobody_wakes_who_is_awake),
	  cmocka_unit_test(a_chain_wakes_all_that_it_names),
	  cmocka_unit_test(rings_when_it_is_told), cmocka_unit_test(lies_are_refused));
