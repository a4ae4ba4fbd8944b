/* SPDX-License-Identifier: MIT */
#include "core/device/selftest.h"
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include "core/base/guard.h"
#include "core/base/log.h"
#include "core/device/device.h"
#include "core/device/itself.h"
#include "core/fd/own_fds.h"

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
#define PATIENCE 100000000ull	/* ns that one WR may take; a local device needs a few 1000 */
#define LEAST_DEPTH 64u		/* of `sq` and `rq` */
#define WORD 0x0102030405060708ull
#define IMMEDIATE 0x11223344u

enum { ENTRIES = 16, COMPLETIONS = 2 };	/* of the CQ; of a WRITE_WITH_IMM to oneself */

struct trial {
	struct shunt_device *device;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint64_t *word;		/* a page that the device may write */
	struct shunt_itself_calls calls;
};

/* --- how much of it --- */

/* Sizes that are worth having, down to a control word: what providers have is seldom a power of two. */
static const uint32_t inline_sizes[] = { 256, 192, 128, 96, 64, 48, 32, 16, 8 };
enum { SIZES = sizeof(inline_sizes) / sizeof(inline_sizes[0]) };

uint32_t shunt_selftest_less_inline(uint32_t bytes)
{
	for (int i = 0; i < SIZES; i++)
		if (inline_sizes[i] < bytes)
			return inline_sizes[i];
	return 0;
}

static int ask(struct trial *trial, uint32_t inline_bytes)
{
	struct shunt_device *device = trial->device;
	struct ibv_qp_init_attr init = {
		.send_cq = trial->cq, .recv_cq = trial->cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = (device->sq_depth - 1) * (device->imm.create_qp ? SHUNT_IMM_SLOTS : 1), .max_recv_wr = device->rq_depth, .max_send_sge = 1,
			 .max_recv_sge = 1, .max_inline_data = inline_bytes },
	};

	errno = EINVAL;
	trial->qp = device->verbs->create_qp(trial->pd, &init);
	if (!trial->qp)
		return -errno;
	device->most_inline = init.cap.max_inline_data < inline_bytes ? init.cap.max_inline_data :
									inline_bytes;
	return 0;
}

/* With less inline, and then with smaller queues. */
static int settle(struct trial *trial, uint32_t inline_bytes)
{
	struct shunt_device *device = trial->device;
	uint32_t bytes = inline_bytes;
	int result;

	for (;;) {
		result = ask(trial, bytes);
		if (result != -EINVAL)
			return result;
		if (bytes) {
			bytes = shunt_selftest_less_inline(bytes);
			continue;
		}
		if (device->sq_depth <= LEAST_DEPTH || device->rq_depth <= LEAST_DEPTH)
			return result;
		device->sq_depth /= 2;
		device->rq_depth = device->rq_depth < device->sq_depth ? device->rq_depth :
									 device->sq_depth;
		bytes = inline_bytes;
	}
}

/* --- does it carry what it takes --- */

/*
 * All of it arrives: the word, and the immediate data. The thread may not have run until the time was over, so the time
 * is taken before it looks.
 */
static bool completes(struct trial *trial)
{
	uint64_t (*clock)(void) = trial->device->loop->fds->sys->now;
	uint64_t until = clock() + PATIENCE, now;
	struct ibv_wc wc;
	int good = 0, count;

	do {
		now = clock();
		count = trial->calls.poll_cq(trial->cq, 1, &wc);
		if (count < 0 || (count && wc.status != IBV_WC_SUCCESS) ||
		    (count && wc.opcode & IBV_WC_RECV && wc.imm_data != htonl(IMMEDIATE)))
			return false;
		good += count;
		if (good == COMPLETIONS)
			return true;
		if (!count)
			sched_yield();
	} while (now < until);
	return false;
}

/* A control word to ourselves, as lanes send them: inline, or fetched from behind the place where it goes. */
static bool carries(struct trial *trial, bool is_inline)
{
	uint64_t word = WORD, *from = is_inline ? &word : &trial->word[1];
	struct ibv_sge sge = { (uintptr_t)from, sizeof(word), is_inline ? 0 : trial->mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM };
	struct ibv_recv_wr *refused, receive = { 0 };

	trial->word[1] = WORD;
	wr.send_flags = IBV_SEND_SIGNALED | (is_inline ? IBV_SEND_INLINE : 0);
	wr.imm_data = htonl(IMMEDIATE);
	wr.wr.rdma.remote_addr = (uintptr_t)trial->word;
	wr.wr.rdma.rkey = trial->mr->rkey;
	return !shunt_itself_join(trial->device, trial->qp, IBV_ACCESS_REMOTE_WRITE) &&
	       !ibv_post_recv(trial->qp, &receive, &refused) &&
	       !trial->calls.post_send(trial->qp, &wr, &bad) && completes(trial) &&
	       __atomic_load_n(trial->word, __ATOMIC_ACQUIRE) == WORD;
}

/* It takes bytes inline and does not send them, although it sends others: to itself, where there is a way to it. */
static bool inline_is_lost(struct trial *trial)
{
	uint32_t bytes = trial->device->most_inline;
	struct ibv_wc wc;

	if (!bytes || trial->device->by_cm || carries(trial, true))
		return false;
	trial->device->verbs->destroy_qp(trial->qp);
	trial->qp = NULL;
	while (trial->calls.poll_cq(trial->cq, 1, &wc) > 0)	/* not each provider takes those of a destroyed queue pair away */
		;
	return !ask(trial, bytes) && carries(trial, false);
}

/* --- making and unmaking --- */

static int prepare(struct trial *trial)
{
	const struct shunt_device *device = trial->device;
	const struct shunt_verbs *verbs = device->verbs;

	errno = ENOMEM;
	trial->calls = shunt_itself_calls(device);
	trial->word = shunt_guard_map(shunt_guard_page(), -1);
	if (trial->word)
		trial->pd = verbs->alloc_pd(device->context);
	if (trial->pd)
		trial->mr = verbs->register_mr(trial->pd, trial->word, shunt_guard_page(), ACCESS);
	if (trial->mr)
		trial->cq = verbs->create_cq(device->context, ENTRIES, trial->device, NULL, 0); /* imm.c asks it */
	return trial->cq ? 0 : -errno;
}

static void end(struct trial *trial)
{
	const struct shunt_verbs *verbs = trial->device->verbs;

	if (trial->qp)
		verbs->destroy_qp(trial->qp);
	if (trial->cq)
		verbs->destroy_cq(trial->cq);
	if (trial->mr)
		verbs->deregister_mr(trial->mr);
	if (trial->pd)
		verbs->dealloc_pd(trial->pd);
	if (trial->word)
		shunt_guard_unmap(trial->word, shunt_guard_page());
}

/* Queue pairs of iWARP cannot be connected to themselves by hand: they are believed. */
int shunt_selftest(struct shunt_device *device, uint32_t inline_bytes)
{
	struct trial trial = { .device = device };
	int result = prepare(&trial);

	if (!result)
		result = settle(&trial, inline_bytes);
	if (!result && inline_is_lost(&trial)) {
		shunt_log(SHUNT_LOG_WARN,
			  "device %s: bytes in a work request do not arrive, so it fetches them",
			  device->context->device->name);
		device->most_inline = 0;
	}
	end(&trial);
	return result;
}
