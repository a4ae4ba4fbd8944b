/* SPDX-License-Identifier: MIT */
/*
 * The memory order that the soft device is built on (core/device/soft/lock.h), a pattern a test: two threads, two
 * cores, random delays. All barriers are the device's own; the tests only look at what comes out.
 *
 * The stress cannot show everything. x86 reorders a store with a later load and nothing else:
 * - arming, break and settling are such pairs. Without the barrier of the posting or asking side, x86 fails here. The
 *   other side's barrier doubles a lock's exchange there, and only aarch64 needs it;
 * - messages, words and regions rest on releases and acquires, which are plain moves on x86. A store or check at the
 *   wrong place fails here; a missing release fails on aarch64 alone, or where the compiler has moved a store;
 * - the lock fails everywhere without its exchange. ThreadSanitizer sees a lock without its release or acquire. It sees
 *   nothing of messages: an end writes them by its own mapping, so at other addresses than the reader's.
 * The emulator qemu-user runs aarch64 code by x86 loads and stores. It shows that the atomics work, and the reordering that x86
 * has. It never shows another one. A test ends after LITMUS_MS (1500) or LITMUS_ROUNDS.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "core/device/soft/lock.h"
#include "tests/soft/rig.h"

enum { RECEIVES = 64, LINES = 24, MESSAGE = LINES * 64, JIT = 200, REGIONS = 8, REGION = 4096, SLOTS = 1024 };
enum { WORD_AT = MEMORY - 64 };	/* of what the other end writes as a single word */

/* One run of a pattern. */
struct duel {
	struct rig *rig;
	void (*left)(struct duel *duel, uint64_t round);	/* in a thread of its own */
	void (*right)(struct duel *duel, uint64_t round);
	bool (*held)(struct duel *duel, uint64_t round);	/* between rounds, alone: did the pattern hold? */
	_Atomic uint64_t arrived;	/* calls of meet() */
	_Atomic bool over;
	struct ibv_wc wc[8];	/* of the right side */
	int found;		/* that are filled */
};

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static uint64_t most_rounds = UINT64_MAX, most_ms = 1500;

static void read_setting(const char *name, uint64_t *setting)
{
	if (getenv(name))
		*setting = strtoull(getenv(name), NULL, 10);
}

/* False: this test has run long enough. */
static bool goes_on(uint64_t round, uint64_t begun)
{
	return round <= most_rounds && (round % 64 || now_ms() - begun < most_ms);
}

static void relax(uint64_t spins)
{
	if (spins % 1024)
		soft_relax();
	else
		sched_yield();	/* cores may be few */
}

/* Some steps, other ones on each side and in each round. */
static void dawdle(uint64_t round, uint64_t salt)
{
	uint64_t steps = ((round * 2 + salt) * 2654435761u >> 7) % JIT;

	for (volatile uint64_t i = 0; i < steps; i++)
		;
}

/* Both sides leave together. */
static void meet(struct duel *duel)
{
	uint64_t until = (atomic_fetch_add(&duel->arrived, 1) / 2 + 1) * 2;

	for (uint64_t spins = 1; atomic_load(&duel->arrived) < until; spins++)
		relax(spins);
}

/* With one core to run on, the sides take turns, and race for nothing. */
static void pin(int which)
{
	cpu_set_t allowed, one;

	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE && which >= 0; cpu++)
		if (CPU_ISSET(cpu, &allowed) && !which--)
			CPU_SET(cpu, &one);
	if (CPU_COUNT(&one))
		sched_setaffinity(0, sizeof(one), &one);
}

static void *left_main(void *arg)
{
	struct duel *duel = arg;

	pin(1);
	for (uint64_t round = 1;; round++) {
		meet(duel);
		if (atomic_load(&duel->over))
			return NULL;
		dawdle(round, 1);
		duel->left(duel, round);
		meet(duel);
	}
}

static void fight(struct duel *duel, const char *name)
{
	uint64_t round, begun = now_ms(), broken = 0;
	cpu_set_t before;
	pthread_t left;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(pthread_create(&left, NULL, left_main, duel), 0);
	pin(0);
	for (round = 1; !broken && goes_on(round, begun); round++) {
		meet(duel);
		dawdle(round, 0);
		duel->right(duel, round);
		meet(duel);
		if (!duel->held(duel, round))
			broken = round;
	}
	atomic_store(&duel->over, true);
	meet(duel);
	pthread_join(left, NULL);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	printf("# %s: %llu rounds\n", name, (unsigned long long)round - 1);
	if (broken)
		fail_msg("%s did not hold in round %llu", name, (unsigned long long)broken);
}

/* Two sides that run at their own pace, each until it is done. The right one is the caller. */
static void race(void *(*left)(void *), void (*right)(struct duel *duel), struct duel *duel)
{
	cpu_set_t before;
	pthread_t thread;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(pthread_create(&thread, NULL, left, duel), 0);
	pin(0);
	right(duel);
	atomic_store(&duel->over, true);
	pthread_join(thread, NULL);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

/* Posts one WR from `payload`, without the rig: assertions are not for a second thread. False: no slot is free. */
static bool post(struct rig_end *from, struct rig_end *to, void *payload, uint32_t bytes, uint64_t at,
		 enum ibv_wr_opcode opcode, uint64_t number, unsigned int flags)
{
	struct ibv_sge sge = { (uint64_t)(uintptr_t)payload, bytes, 0 };
	struct ibv_send_wr wr = { .wr_id = number, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
				  .imm_data = (uint32_t)number, .send_flags = IBV_SEND_INLINE | flags }, *bad;

	wr.wr.rdma.remote_addr = (uint64_t)(uintptr_t)to->memory + at;
	wr.wr.rdma.rkey = to->mr->rkey;
	return !ibv_post_send(from->qp, &wr, &bad);
}

static void fill(uint64_t *payload, uint64_t number)
{
	for (size_t i = 0; i < MESSAGE / sizeof(*payload); i++)
		payload[i] = number;
}

static bool is_filled(const char *payload, uint64_t number)
{
	const uint64_t *word = (const uint64_t *)(const void *)payload;

	for (size_t i = 0; i < MESSAGE / sizeof(*word); i++)
		if (word[i] != number)
			return false;
	return true;
}

static struct ibv_wc forget(struct rig_end *end)
{
	struct ibv_wc wc = { 0 }, last = { 0 };
	struct ibv_cq *cq;
	void *context;

	while (ibv_poll_cq(end->recv_cq, 1, &wc) == 1)
		last = wc;
	while (!end->verbs->get_cq_event(end->channel, &cq, &context))
		;
	return last;
}

static bool has_event(struct rig_end *end)
{
	struct ibv_cq *cq;
	void *context;

	return !end->verbs->get_cq_event(end->channel, &cq, &context);
}

/* --- payload before arrival, and a slot that is free before it is filled again --- */

static enum ibv_wr_opcode message_opcode;

static void *say_all(void *arg)
{
	static uint64_t payload[MESSAGE / sizeof(uint64_t)];
	struct duel *duel = arg;
	struct ibv_wc wc[16];

	pin(1);
	for (uint64_t k = 0; !atomic_load(&duel->over); k++) {
		fill(payload, k);
		while (!post(&duel->rig->a, &duel->rig->b, payload, MESSAGE, k % RECEIVES * MESSAGE, message_opcode, k,
			     k % 16 ? 0 : IBV_SEND_SIGNALED) && !atomic_load(&duel->over))
			if (!ibv_poll_cq(duel->rig->a.send_cq, 16, wc))
				relax(k);
	}
	return NULL;
}

static void receive_at(struct rig_end *end, uint64_t k)
{
	bool needs_buffer = message_opcode == IBV_WR_SEND_WITH_IMM;

	rig_receive(end, k, needs_buffer ? end->memory + k % RECEIVES * MESSAGE : NULL, needs_buffer ? MESSAGE : 0);
}

static void hear_all(struct duel *duel)
{
	struct rig_end *end = &duel->rig->b;
	uint64_t k, spins, begun = now_ms();
	struct ibv_wc wc;

	for (k = 0; goes_on(k + 1, begun); k++) {
		for (spins = 1; !ibv_poll_cq(end->recv_cq, 1, &wc); spins++)
			relax(spins);
		if (wc.imm_data != (uint32_t)k || wc.wr_id != k || !is_filled(end->memory + k % RECEIVES * MESSAGE, k)) {
			duel->found = -1;
			break;
		}
		dawdle(k, 0);
		receive_at(end, k + RECEIVES);
	}
	printf("# %llu messages\n", (unsigned long long)k);
}

static void messages(enum ibv_wr_opcode opcode)
{
	struct duel duel = { .rig = rig_make(NULL) };

	message_opcode = opcode;
	for (uint64_t k = 0; k < RECEIVES; k++)
		receive_at(&duel.rig->b, k);
	race(say_all, hear_all, &duel);
	rig_free(duel.rig);
	if (duel.found)
		fail_msg("a message was polled whose bytes are of another");
}

static void payload_before_arrival(void **state)
{
	(void)state;
	messages(IBV_WR_RDMA_WRITE_WITH_IMM);
}

static void buffer_read_before_it_is_posted(void **state)
{
	(void)state;
	messages(IBV_WR_SEND_WITH_IMM);
}

/* --- a word without an arrival: what was written before it, and what was read before it --- */

static bool await_word(struct duel *duel, struct rig_end *end, uint64_t value)
{
	uint64_t *word = (uint64_t *)(void *)(end->memory + WORD_AT);

	for (uint64_t spins = 1; __atomic_load_n(word, __ATOMIC_ACQUIRE) != value; spins++) {
		if (atomic_load(&duel->over))
			return false;
		relax(spins);
	}
	return true;
}

static void tell_word(struct rig_end *from, struct rig_end *to, uint64_t value)
{
	struct ibv_wc wc[16];

	while (!post(from, to, &value, sizeof(value), WORD_AT, IBV_WR_RDMA_WRITE, value, value % 16 ? 0 : IBV_SEND_SIGNALED))
		ibv_poll_cq(from->send_cq, 16, wc);
}

static void *write_words(void *arg)
{
	static uint64_t payload[MESSAGE / sizeof(uint64_t)];
	struct duel *duel = arg;
	struct rig_end *from = &duel->rig->a, *to = &duel->rig->b;
	struct ibv_wc wc[16];

	pin(1);
	for (uint64_t k = 1;; k++) {
		fill(payload, k);
		while (!post(from, to, payload, MESSAGE, 0, IBV_WR_RDMA_WRITE, k, 0))
			ibv_poll_cq(from->send_cq, 16, wc);
		tell_word(from, to, k);
		if (!await_word(duel, from, k))
			return NULL;
	}
}

static void read_words(struct duel *duel)
{
	uint64_t k, begun = now_ms();

	for (k = 1; !duel->found && goes_on(k, begun); k++) {
		await_word(duel, &duel->rig->b, k);
		if (!is_filled(duel->rig->b.memory, k))
			duel->found = -1;
		tell_word(&duel->rig->b, &duel->rig->a, k);
	}
	printf("# %llu words\n", (unsigned long long)k - 1);
}

static void word_behind_its_bytes(void **state)
{
	struct duel duel = { .rig = rig_make(NULL) };

	(void)state;
	race(write_words, read_words, &duel);
	rig_free(duel.rig);
	if (duel.found)
		fail_msg("a word was seen before the bytes that it tells of");
}

/* --- arming against an arrival, and against a completion of our own --- */

/* The right side has just dirtied the lines: our stores stay in the store buffer for long. */
static void post_message(struct duel *duel, uint64_t round)
{
	static char payload[MESSAGE];

	post(&duel->rig->a, &duel->rig->b, payload, MESSAGE, 0, IBV_WR_RDMA_WRITE_WITH_IMM, round, 0);
}

static void post_signaled(struct duel *duel, uint64_t round)
{
	static char payload[MESSAGE];

	post(&duel->rig->a, &duel->rig->b, payload, MESSAGE, 0, IBV_WR_RDMA_WRITE, round, IBV_SEND_SIGNALED);
}

static void arm_and_look(struct duel *duel, struct rig_end *end)
{
	ibv_req_notify_cq(end->recv_cq, 0);
	duel->found = ibv_poll_cq(end->recv_cq, 1, duel->wc);
}

static void arm_for_arrival(struct duel *duel, uint64_t round)
{
	(void)round;
	arm_and_look(duel, &duel->rig->b);
}

static void arm_for_completion(struct duel *duel, uint64_t round)
{
	(void)round;
	arm_and_look(duel, &duel->rig->a);
}

/* Found by the look, or told of: else a thread that went to sleep now would sleep for ever. */
static bool arrival_found_or_told(struct duel *duel, uint64_t round)
{
	struct rig_end *end = &duel->rig->b;
	bool held = duel->found || has_event(end);

	forget(end);
	rig_receive(end, round, NULL, 0);
	if (round % 32 == 0) {
		post(&duel->rig->a, end, &round, sizeof(round), WORD_AT, IBV_WR_RDMA_WRITE, 0, IBV_SEND_SIGNALED);
		forget(&duel->rig->a);
	}
	memset(end->memory, (int)round, MESSAGE);
	return held;
}

static bool completion_found_or_told(struct duel *duel, uint64_t round)
{
	bool held = duel->found || has_event(&duel->rig->a);

	forget(&duel->rig->a);
	memset(duel->rig->b.memory, (int)round, MESSAGE);
	return held;
}

static void arming_against_arrival(void **state)
{
	struct rig_options options = { .receives = RECEIVES };
	struct duel duel = { .rig = rig_make(&options), .left = post_message, .right = arm_for_arrival,
			     .held = arrival_found_or_told };

	(void)state;
	fight(&duel, __func__);
	rig_free(duel.rig);
}

static void arming_against_completion(void **state)
{
	struct duel duel = { .rig = rig_make(NULL), .left = post_signaled, .right = arm_for_completion,
			     .held = completion_found_or_told };

	(void)state;
	fight(&duel, __func__);
	rig_free(duel.rig);
}

/* --- a queue pair breaks: against a WR that succeeds, and against a receive that is posted --- */

enum { FEW = 4 };	/* receives */

static void set_error(struct rig_end *end)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	end->verbs->modify_qp(end->qp, &attr, IBV_QP_STATE);
}

/* b stays in INIT: arrivals are taken from there on, and nothing has to be mapped. */
static void start_anew(struct rig *rig)
{
	rig_end_state(&rig->b, &rig->options, IBV_QPS_RESET);
	rig_end_state(&rig->b, &rig->options, IBV_QPS_INIT);
	rig_receives(&rig->b, FEW);
	rig_end_state(&rig->a, &rig->options, IBV_QPS_RESET);
	rig_end_state(&rig->a, &rig->options, IBV_QPS_INIT);
	rig_learn(&rig->a, &rig->b);
	rig_end_state(&rig->a, &rig->options, IBV_QPS_RTR);
	rig_end_state(&rig->a, &rig->options, IBV_QPS_RTS);
}

static void break_and_poll(struct duel *duel, uint64_t round)
{
	(void)round;
	set_error(&duel->rig->b);
	duel->found = ibv_poll_cq(duel->rig->b.recv_cq, 8, duel->wc);
}

static void post_certain(struct duel *duel, uint64_t round)
{
	static char payload[MESSAGE];

	post(&duel->rig->a, &duel->rig->b, payload, MESSAGE, 0, IBV_WR_RDMA_WRITE_WITH_IMM, round, IBV_SEND_SIGNALED);
}

/* All receives have completed by then, the first perhaps with the message. */
static bool success_was_polled(struct duel *duel, uint64_t round)
{
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };
	bool succeeded = ibv_poll_cq(duel->rig->a.send_cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS;
	bool held = duel->found == FEW && (!succeeded || duel->wc[0].status == IBV_WC_SUCCESS);

	start_anew(duel->rig);
	memset(duel->rig->b.memory, (int)round, MESSAGE);
	return held;
}

static void success_against_break(void **state)
{
	struct rig_options options = { .receives = FEW };
	struct duel duel = { .rig = rig_make(&options), .left = post_certain, .right = break_and_poll,
			     .held = success_was_polled };

	(void)state;
	fight(&duel, __func__);
	rig_free(duel.rig);
}

static void post_one_receive(struct duel *duel, uint64_t round)
{
	struct ibv_recv_wr wr = { .wr_id = round }, *bad;

	ibv_post_recv(duel->rig->b.qp, &wr, &bad);
}

static void break_alone(struct duel *duel, uint64_t round)
{
	(void)round;
	set_error(&duel->rig->b);
}

/* Nothing polls, so both sides have found the CQ armed; one of them must have seen the other. */
static bool flush_was_told(struct duel *duel, uint64_t round)
{
	struct rig_end *end = &duel->rig->b;
	bool held = has_event(end);

	(void)round;
	rig_end_state(end, &duel->rig->options, IBV_QPS_RESET);
	rig_end_state(end, &duel->rig->options, IBV_QPS_INIT);
	forget(end);
	ibv_req_notify_cq(end->recv_cq, 0);
	return held;
}

static void receive_against_break(void **state)
{
	struct duel duel = { .rig = rig_make(NULL), .left = post_one_receive, .right = break_alone,
			     .held = flush_was_told };

	(void)state;
	ibv_req_notify_cq(duel.rig->b.recv_cq, 0);
	fight(&duel, __func__);
	rig_free(duel.rig);
}

/* --- the lock: what one holder leaves, the next finds --- */

static struct {
	struct soft_lock lock;
	uint64_t first;
	char line[128];
	uint64_t second;	/* as `first`, whenever the lock is free */
	_Atomic uint64_t torn;
} guarded;

static void guard_once(uint64_t i)
{
	if (i % 3 || !soft_trylock(&guarded.lock))
		soft_lock(&guarded.lock);
	if (guarded.first != guarded.second)
		atomic_fetch_add(&guarded.torn, 1);
	guarded.first++;
	dawdle(i, 0);
	guarded.second++;
	soft_unlock(&guarded.lock);
}

static void *guard_left(void *arg)
{
	struct duel *duel = arg;
	uint64_t i = 0;

	pin(1);
	for (; !atomic_load(&duel->over); i++)
		guard_once(i);
	atomic_store(&duel->arrived, i);
	return NULL;
}

static void guard_right(struct duel *duel)
{
	uint64_t i, begun = now_ms();

	for (i = 0; goes_on(i + 1, begun); i++)
		guard_once(i);
	duel->wc[0].wr_id = i;
}

static void lock_hands_over(void **state)
{
	struct duel duel = { 0 };

	(void)state;
	race(guard_left, guard_right, &duel);
	printf("# %llu sections\n", (unsigned long long)guarded.first);
	assert_int_equal(guarded.torn, 0);
	assert_int_equal(guarded.first, duel.arrived + duel.wc[0].wr_id);
}

/* --- regions: a key is never found with the bounds of its successor --- */

static _Atomic uint64_t region_now;	/* key << 32 | which of REGIONS */

static void *change_regions(void *arg)
{
	struct duel *duel = arg;
	struct rig_end *end = &duel->rig->b;

	pin(1);
	for (uint64_t i = 0; !atomic_load(&duel->over) && i < 1 << 21; i++) {	/* a slot's keys are 4 million */
		struct ibv_mr *mr = end->verbs->register_mr(end->pd, end->memory + i % REGIONS * REGION, REGION,
							    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);

		if (!mr)
			return NULL;
		atomic_store(&region_now, (uint64_t)mr->rkey << 32 | i % REGIONS);
		dawdle(i, 1);
		end->verbs->deregister_mr(mr);
	}
	return NULL;
}

static void peek_regions(struct duel *duel)
{
	const struct rig_end *from = &duel->rig->a, *to = &duel->rig->b;
	uint64_t k, hits = 0, begun = now_ms();

	for (k = 1; !duel->found && goes_on(k, begun); k++) {
		uint64_t word = atomic_load(&region_now);

		for (uint32_t which = 0; which < REGIONS; which++) {
			const uint32_t *seen = soft_qp_peek(from->qp, (uint64_t)(uintptr_t)to->memory + which * REGION,
							    word >> 32, REGION);

			hits += seen != NULL;
			if (seen && (which != (uint32_t)word || *seen != which))
				duel->found = -1;
		}
	}
	printf("# %llu looks, %llu found their region\n", (unsigned long long)k - 1, (unsigned long long)hits);
}

static void key_with_its_own_bounds(void **state)
{
	static struct ibv_mr *others[SLOTS];
	struct duel duel = { .rig = rig_make(NULL) };
	struct rig_end *end = &duel.rig->b;
	size_t count = 0;

	(void)state;
	for (uint32_t i = 0; i < REGIONS; i++)
		memcpy(end->memory + i * REGION, &i, sizeof(i));
	/* All slots but one, which so has each key of the test. */
	while (count < SLOTS && (others[count] = end->verbs->register_mr(end->pd, end->memory, 1, 0)) != NULL)
		count++;
	assert_true(count > 0);
	end->verbs->deregister_mr(others[--count]);
	race(change_regions, peek_regions, &duel);
	while (count)
		end->verbs->deregister_mr(others[--count]);
	rig_free(duel.rig);
	if (duel.found)
		fail_msg("a key was found with the bounds of another");
}

/* --- the device's thread: who asks whether all is carried out, is told --- */

static _Atomic uint64_t told;

static void note_settled(void *arg)
{
	(void)arg;
	atomic_fetch_add(&told, 1);
}

static void settled_against_asking(void **state)
{
	struct rig_options options = { .engine_thread = 1, .settled = note_settled };
	struct rig *rig = rig_make(&options);
	static char payload[MESSAGE];
	uint64_t *word = (uint64_t *)(void *)(rig->b.memory + WORD_AT);
	uint64_t round, asked = 0, begun = now_ms();

	(void)state;
	for (round = 1; goes_on(round, begun); round++) {
		uint64_t before = atomic_load(&told), value = round, spins, since;

		post(&rig->a, &rig->b, &value, sizeof(value), WORD_AT, IBV_WR_RDMA_WRITE, round, 0);
		post(&rig->a, &rig->b, payload, MESSAGE, 0, IBV_WR_RDMA_WRITE, round, IBV_SEND_SIGNALED);
		/* The second WR is being carried out now: we ask while it ends. */
		for (spins = 1; __atomic_load_n(word, __ATOMIC_ACQUIRE) != round; spins++)
			relax(spins);
		dawdle(round, 0);
		if (!soft_qp_settled(rig->a.qp)) {
			asked++;
			since = now_ms();
			for (spins = 1; atomic_load(&told) == before; spins++) {
				relax(spins);
				if (spins % 1024 == 0 && now_ms() - since > 20000)
					fail_msg("nobody was told in round %llu", (unsigned long long)round);
			}
		}
		for (spins = 1; __atomic_load_n(soft_qp_backlog(rig->a.qp), __ATOMIC_ACQUIRE); spins++)
			relax(spins);
		forget(&rig->a);
	}
	printf("# %llu rounds, %llu of which were told\n", (unsigned long long)round - 1, (unsigned long long)asked);
	rig_free(rig);
}

/* litmus [PATTERN]: only the tests of a cmocka pattern, as in `litmus 'arming*'`. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(payload_before_arrival),
		cmocka_unit_test(buffer_read_before_it_is_posted),
		cmocka_unit_test(word_behind_its_bytes),
		cmocka_unit_test(arming_against_arrival),
		cmocka_unit_test(arming_against_completion),
		cmocka_unit_test(success_against_break),
		cmocka_unit_test(receive_against_break),
		cmocka_unit_test(lock_hands_over),
		cmocka_unit_test(key_with_its_own_bounds),
		cmocka_unit_test(settled_against_asking),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	read_setting("LITMUS_ROUNDS", &most_rounds);
	read_setting("LITMUS_MS", &most_ms);
	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
