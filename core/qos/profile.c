/* SPDX-License-Identifier: MIT */
#include "core/qos/profile.h"
#include <errno.h>
#include "core/device/device.h"
#include "core/device/fault.h"
#include "core/device/itself.h"
#include "core/engine.h"
#include "core/fd/own_fds.h"
#include "core/qos/capacity.h"
#include "core/qos/tokens.h"

enum {
	SENDERS = 4, /* queue pairs: one uses one engine of an RNIC, which has several (RB-21) */
	CHAIN = 16, /* work requests of a post; the last is signaled */
	DEPTH = 2 * CHAIN, /* of a queue pair: the device has a chain while the next is posted */
	BLOCKS = 256, /* of a token each, that are read from; and as many that are written to */
	BYTES = 2 * BLOCKS * SHUNT_TOKEN_BYTES,
	ARENA = 4 << 20, /* address space, where the kind can be told */
	SAMPLES = 16, /* after one of warm-up, which touches the memory */
	SAMPLES_LEAST = 4,
	STUCK_MOST = 64, /* looks in a row at a clock that stands still */
	WORK_MOST = 1 << 21, /* looks and tokens in all; a clock that goes allows no more */
};

#define SAMPLE_NS 1000000ull
#define PATIENCE_NS 20000000ull

struct profile {
	struct shunt_device *device;
	struct shunt_itself_calls calls;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qps[SENDERS];
	uint32_t chain; /* CHAIN, or what the device's queues allow */
	uint32_t free[SENDERS]; /* chains that the queue pair has room for */
	char *arena;
	size_t arena_bytes;
	struct ibv_mr *mr;
	uint32_t block; /* the next, modulo BLOCKS */
	uint64_t done; /* tokens that were carried out */
	uint64_t now; /* at the last look */
	uint32_t stuck, looks;
};

/* --- what it needs --- */

static void make_senders(struct profile *profile)
{
	const struct shunt_verbs *verbs = profile->device->verbs;
	struct ibv_qp_init_attr init = { .send_cq = profile->cq,
					 .recv_cq = profile->cq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 2 * profile->chain,
						  .max_recv_wr = 1,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 } };

	for (int i = 0; i < SENDERS; i++) {
		struct ibv_qp_init_attr asked = init;

		profile->qps[i] = verbs->create_qp(profile->pd, &asked);
		profile->free[i] = 2;
	}
}

static int join_senders(struct profile *profile)
{
	int result = 0;

	for (int i = 0; i < SENDERS && !result; i++)
		result = profile->qps[i] ?
				 shunt_itself_join(profile->device, profile->qps[i],
						   IBV_ACCESS_REMOTE_WRITE) :
				 -ENOMEM;
	return result;
}

static int make_memory(struct profile *profile)
{
	struct shunt_device *device = profile->device;

	profile->arena_bytes = ARENA;
	profile->arena = device->kind->make_arena(device, profile->pd, &profile->arena_bytes);
	if (!profile->arena || profile->arena_bytes < BYTES)
		return -ENOMEM;
	if (!shunt_fault_denies(SHUNT_DENY_MR))
		profile->mr = device->verbs->register_mr(profile->pd, profile->arena, BYTES,
							 IBV_ACCESS_LOCAL_WRITE |
								 IBV_ACCESS_REMOTE_WRITE);
	return profile->mr ? 0 : -ENOMEM;
}

static int profile_make(struct profile *profile)
{
	struct shunt_device *device = profile->device;
	const struct shunt_verbs *verbs = device->verbs;
	uint32_t most = (uint32_t)device->limits.max_qp_wr;
	int result;

	profile->chain = most < DEPTH ? most / 2 : CHAIN;
	if (!profile->chain)
		return -EOPNOTSUPP;
	if (device->kind->size_arena) /* links say how large theirs are, each before it is made */
		device->kind->size_arena(device, ARENA);
	profile->pd = verbs->alloc_pd(device->context);
	if (!profile->pd)
		return -ENOMEM;
	profile->cq = verbs->create_cq(device->context, SENDERS * (DEPTH + 1), device, NULL, 0);
	if (!profile->cq)
		return -ENOMEM;
	result = make_memory(profile);
	if (result)
		return result;
	make_senders(profile);
	return join_senders(profile);
}

/* Work requests that are under way end with their queue pair, before the memory goes. */
static void profile_unmake(struct profile *profile)
{
	struct shunt_device *device = profile->device;
	const struct shunt_verbs *verbs = device->verbs;

	for (int i = 0; i < SENDERS; i++)
		if (profile->qps[i])
			verbs->destroy_qp(profile->qps[i]);
	if (profile->mr)
		verbs->deregister_mr(profile->mr);
	if (profile->arena)
		device->kind->free_arena(device, profile->arena, profile->arena_bytes);
	if (profile->cq)
		verbs->destroy_cq(profile->cq);
	if (profile->pd)
		verbs->dealloc_pd(profile->pd);
}

/* --- writing back to back --- */

static int post_chain(struct profile *profile, uint32_t sender)
{
	const struct shunt_device *device = profile->device;
	uint64_t base = device->kind->zero_based ? 0 : (uintptr_t)profile->arena;
	struct ibv_send_wr wrs[CHAIN], *bad;
	struct ibv_sge sges[CHAIN];

	for (uint32_t i = 0; i < profile->chain; i++) {
		uint64_t from = profile->block++ % BLOCKS * SHUNT_TOKEN_BYTES;
		bool last = i + 1 == profile->chain;

		sges[i] = (struct ibv_sge) { (uintptr_t)profile->arena + from, SHUNT_TOKEN_BYTES,
					     profile->mr->lkey };
		wrs[i] = (struct ibv_send_wr) {
			.wr_id = sender,
			.next = last ? NULL : &wrs[i + 1],
			.sg_list = &sges[i],
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = last ? IBV_SEND_SIGNALED : 0,
			.wr.rdma = { base + BLOCKS * SHUNT_TOKEN_BYTES + from, profile->mr->rkey },
		};
	}
	return profile->calls.post_send(profile->qps[sender], wrs, &bad) ? -EIO : 0;
}

/* Each queue pair gets what it has room for. */
static int post(struct profile *profile)
{
	int result = 0;

	for (uint32_t i = 0; i < SENDERS; i++)
		for (; profile->free[i] && !result; profile->free[i]--)
			result = post_chain(profile, i);
	return result;
}

/* Takes completions; without one, others get a turn of the processor. 0 or -EIO. */
static int completions_take(struct profile *profile)
{
	struct ibv_wc wcs[2 * SENDERS];
	int count = profile->calls.poll_cq(profile->cq, 2 * SENDERS, wcs);

	for (int i = 0; i < count; i++) {
		if (wcs[i].status != IBV_WC_SUCCESS || wcs[i].wr_id >= SENDERS)
			return -EIO;
		profile->free[wcs[i].wr_id]++;
		profile->done += profile->chain;
	}
	if (!count)
		profile->device->loop->fds->sys->yield();
	return count < 0 ? -EIO : 0;
}

/* False: the clock does not go. */
static bool look_at_clock(struct profile *profile)
{
	uint64_t now = profile->device->loop->fds->sys->now();

	profile->stuck = now == profile->now ? profile->stuck + 1 : 0;
	profile->now = now;
	return profile->stuck < STUCK_MOST && ++profile->looks + profile->done < WORK_MOST;
}

/* A sample ends with a completion. 0; -ETIMEDOUT or -EIO: none. */
static int sample(struct profile *profile, uint64_t until, uint64_t *rate)
{
	uint64_t since = profile->now, before = profile->done, sent = 0;

	while (!sent || profile->now - since < SAMPLE_NS) {
		int result = post(profile);

		if (!result)
			result = completions_take(profile);
		if (result)
			return result;
		if (!look_at_clock(profile) || profile->now >= until)
			return -ETIMEDOUT;
		sent = profile->done - before;
	}
	*rate = (uint64_t)((unsigned __int128)sent * 1000000000000ull / (profile->now - since));
	return 0;
}

/* How many there are, or -errno. */
static int take_samples(struct profile *profile, uint64_t rates[SAMPLES])
{
	uint64_t until, warm_up;
	int count = 0, result;

	profile->now = profile->device->loop->fds->sys->now();
	until = profile->now + PATIENCE_NS;
	result = sample(profile, until, &warm_up);
	while (!result && count < SAMPLES) {
		result = sample(profile, until, &rates[count]);
		count += !result;
	}
	return result == -ETIMEDOUT && count >= SAMPLES_LEAST ? count : result ? result : count;
}

/*
 * In a sample of less than half of the median this process did not run, or the modelled device's thread did not. That is
 * no measure of the device. Returns how many are left, more than half of them.
 */
static int drop_interrupted(uint64_t rates[SAMPLES], int count)
{
	for (int i = 1; i < count; i++) { /* the highest first */
		uint64_t rate = rates[i];
		int at = i;

		for (; at && rates[at - 1] < rate; at--)
			rates[at] = rates[at - 1];
		rates[at] = rate;
	}
	while (rates[count - 1] < rates[count / 2] / 2)
		count--;
	return count;
}

int shunt_profile(struct shunt_device *device, uint64_t *mean, uint64_t *sigma)
{
	struct profile profile = { .device = device, .calls = shunt_itself_calls(device) };
	uint64_t rates[SAMPLES];
	int result;

	shunt_own_fds_begin(device->loop->fds);
	result = profile_make(&profile);
	shunt_own_fds_end(device->loop->fds);
	if (!result)
		result = take_samples(&profile, rates);
	profile_unmake(&profile);
	if (result < 0)
		return result;
	shunt_capacity_profile(rates, (size_t)drop_interrupted(rates, result), mean, sigma);
	return 0;
}
