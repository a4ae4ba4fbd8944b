/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "core/device/page_verbs.h"
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include "core/base/guard.h"
#include "core/device/device.h"
#include "core/device/itself.h"
#include "core/device/page.h"
#include "core/base/log.h"
#include "core/fd/own_fds.h"

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define PATIENCE 100000000ull	/* ns that one atomic of our own may take; a local device needs a few 1000 */

/* A queue pair that is connected to itself, and what it needs; of the service thread. */
struct loop {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *page, *result;
	uint64_t *before;	/* where the device puts what the word was: behind the page */
	uint64_t posted;	/* wr_id of the last atomic */
	bool failed;		/* an atomic was not answered, or with an error: the queue pair is of no use any more */
	struct shunt_itself_calls calls;
};

/* --- one atomic --- */

/*
 * Completions of WRs that were given up before belong to a queue pair that has failed: there are none. The thread may not
 * have run until the time was over: so the time is taken before it looks.
 */
static int loop_await(struct shunt_device *device, struct loop *loop)
{
	uint64_t until = device->loop->fds->sys->now() + PATIENCE, now;
	struct ibv_wc wc;
	int count;

	for (;;) {
		now = device->loop->fds->sys->now();
		count = loop->calls.poll_cq(loop->cq, 1, &wc);
		if (count || now >= until)
			break;
		sched_yield();
	}
	return count == 1 && wc.status == IBV_WC_SUCCESS && wc.wr_id == loop->posted ? 0 : -EIO;
}

static int loop_cas(struct shunt_page *page, uint32_t word, uint64_t *expected, uint64_t desired)
{
	struct loop *loop = page->own;
	struct ibv_sge sge = { (uintptr_t)loop->before, sizeof(*loop->before), loop->result->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = ++loop->posted,
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
					.send_flags = IBV_SEND_SIGNALED };

	if (loop->failed)
		return -EIO;
	wr.wr.atomic.remote_addr = (uintptr_t)&page->words[word];
	wr.wr.atomic.rkey = loop->page->rkey;
	wr.wr.atomic.compare_add = *expected;
	wr.wr.atomic.swap = desired;
	if (loop->calls.post_send(loop->qp, &wr, &bad) || loop_await(page->device, loop)) {
		loop->failed = true;
		shunt_log(
			SHUNT_LOG_WARN,
			"device %s did not carry out an atomic of our own: a shared page stays as it is",
			page->device->context->device->name);
		return -EIO;
	}
	*expected = __atomic_load_n(loop->before, __ATOMIC_ACQUIRE);
	return 0;
}

/* --- making the loop --- */

static void loop_free(struct shunt_device *device, struct loop *loop)
{
	const struct shunt_verbs *verbs = device->verbs;

	if (loop->qp)
		verbs->destroy_qp(loop->qp);
	if (loop->result)
		verbs->deregister_mr(loop->result);
	if (loop->page)
		verbs->deregister_mr(loop->page);
	if (loop->cq)
		verbs->destroy_cq(loop->cq);
	if (loop->pd)
		verbs->dealloc_pd(loop->pd);
	free(loop);
}

static int loop_fill(struct shunt_device *device, struct loop *loop, const struct shunt_page *page)
{
	const struct shunt_verbs *verbs = device->verbs;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 } };

	loop->calls = shunt_itself_calls(device);
	loop->before = (uint64_t *)((char *)page->words + SHUNT_PAGE_BYTES);
	loop->pd = verbs->alloc_pd(device->context);
	loop->cq = verbs->create_cq(device->context, 2, device, NULL, 0);
	if (!loop->pd || !loop->cq)
		return -ENOMEM;
	loop->page = verbs->register_mr(loop->pd, (void *)page->words, SHUNT_PAGE_BYTES, ACCESS);
	loop->result = verbs->register_mr(loop->pd, loop->before, sizeof(*loop->before),
					  IBV_ACCESS_LOCAL_WRITE);
	if (!loop->page || !loop->result)
		return -ENOMEM;
	init.send_cq = init.recv_cq = loop->cq;
	loop->qp = verbs->create_qp(loop->pd, &init);
	return loop->qp ? shunt_itself_join(device, loop->qp, IBV_ACCESS_REMOTE_ATOMIC) : -ENOMEM;
}

static int loop_make(struct shunt_device *device, struct shunt_page *page)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	int result = loop ? loop_fill(device, loop, page) : -ENOMEM;

	if (!result) {
		page->own = loop;
		page->cas = loop_cas;
	} else if (loop) {
		loop_free(device, loop);
	}
	return result;
}

/* --- the page; a second one behind it is the loop's, and no peer's key reaches there --- */

int shunt_page_verbs_make(struct shunt_device *device, struct shunt_page *page)
{
	void *pages = shunt_guard_map(2 * SHUNT_PAGE_BYTES, -1);
	int result = 0;

	if (!pages)
		return -errno;
	page->words = pages;
	if (device->limits.atomic_cap != IBV_ATOMIC_GLOB)
		result = loop_make(device, page);
	if (!result)
		return 0;
	shunt_guard_unmap(pages, 2 * SHUNT_PAGE_BYTES);
	page->words = NULL;
	return result;
}

void shunt_page_verbs_free(struct shunt_page *page)
{
	if (page->own)
		loop_free(page->device, page->own);
	shunt_guard_unmap((void *)page->words, 2 * SHUNT_PAGE_BYTES);
}

struct ibv_mr *shunt_page_verbs_lend(struct shunt_page *page, struct ibv_pd *pd, uint64_t *address)
{
	*address = (uintptr_t)page->words;
	return page->device->verbs->register_mr(pd, (void *)page->words, SHUNT_PAGE_BYTES, ACCESS);
}

/* The device reaches it by address and key. */
int shunt_page_verbs_reach(struct ibv_qp *qp, const int *fds, int count)
{
	(void)qp, (void)fds;
	return count ? -EPROTO : 0;
}
