/* SPDX-License-Identifier: MIT */
#include "core/lane/fault_device.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include "core/base/deadline.h"
#include "core/lane/roster.h"
#include "core/poll/group.h"
#include "core/base/config.h"
#include "core/base/sys.h"
#include "core/loop/loop.h"
#include "core/link/link.h"
#include "core/lane/lane_serve.h"
#include "core/base/fault_rules.h"
#include "core/device/fault.h"

#define POOL 4096	/* completions that are held back at most; more stay in their CQs, which may overflow */

struct shunt_fault_held {
	struct shunt_fault_held *next;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	uint64_t due;		/* UINT64_MAX: when the rules change */
};

/* Where rules strike; NULL: of no lane. */
#define at(lane)                                                                                   \
	((lane) ? &(struct shunt_fault_at){ (lane)->serial,                                        \
					    atomic_load_explicit(&(lane)->window.posted,           \
								 memory_order_relaxed) } :         \
		  NULL)

/* Something is to be looked at then. */
static void look_at(struct shunt_group *group, uint64_t when)
{
	_Atomic uint64_t *at = &group->fault->due;
	uint64_t due = atomic_load(at);

	while ((!due || due > when) && !atomic_compare_exchange_weak(at, &due, when))
		;
	shunt_loop_wake(group->loop);
}

/* --- sending; lane.lock held --- */

/* Words that the receiver checks: a wrong one is seen to be wrong. */
static bool has_checked_word(const struct ibv_send_wr *wr)
{
	enum shunt_imm type = ntohl(wr->imm_data) >> SHUNT_IMM_SHIFT;

	return wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM && type != SHUNT_IMM_DATA && type != SHUNT_IMM_ROUND &&
	       type != SHUNT_IMM_RESET && type != SHUNT_IMM_RELEASE && type != SHUNT_IMM_BLOCKED;
}

/*
 * No seat has such a number, no offset is so large. A number that might be right would be no fault of a device but
 * a peer that lies, which can send any bytes it likes.
 */
static int corrupt(struct shunt_lane *lane, const struct ibv_send_wr *wr, uint32_t what, struct ibv_send_wr **bad)
{
	struct ibv_send_wr altered = *wr, *ignored;
	struct ibv_sge sge = wr->num_sge ? wr->sg_list[0] : (struct ibv_sge) { 0 };
	uint64_t word;
	int result;

	altered.next = NULL;
	if (what == SHUNT_CORRUPT_IMM) {
		altered.imm_data ^= htonl(SHUNT_IMM_STREAM_MASK & ~(SHUNT_IMM_STREAM_MASK >> 1));
	} else {
		word = *(const uint64_t *)(uintptr_t)sge.addr ^ 1ull << 63;
		sge.addr = (uintptr_t)&word;
		altered.sg_list = &sge;
	}
	result = lane->link->device->post_send(lane->qp, &altered, &ignored);
	if (result)
		*bad = (struct ibv_send_wr *)wr;
	return result;
}

/* From here on nothing reaches the peer, and nothing completes. */
static void mute(struct shunt_lane *lane, const struct ibv_send_wr *wr)
{
	struct shunt_group *group = lane->group;

	lane->mute_wr = wr->wr_id;
	atomic_store(&lane->mute_since, group->sys->now());
	look_at(group, lane->mute_since + group->config->dead_ms * 1000000);
}

enum strike { NONE, KILL, POST, DROP, IMM, WORD };

static enum strike strike_at(struct shunt_lane *lane, const struct ibv_send_wr *wr)
{
	struct shunt_fault *fault = lane->group->fault;
	uint64_t ns;

	if (shunt_fault_strikes(fault, SHUNT_FAULT_KILL, SHUNT_FAULT_ANY, at(lane), &ns))
		return KILL;
	if (shunt_fault_strikes(fault, SHUNT_FAULT_POST, SHUNT_FAULT_ANY, at(lane), &ns))
		return POST;
	if (shunt_fault_strikes(fault, SHUNT_FAULT_DROP, SHUNT_FAULT_ANY, at(lane), &ns))
		return DROP;
	if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM &&
	    shunt_fault_strikes(fault, SHUNT_FAULT_CORRUPT, SHUNT_CORRUPT_IMM, at(lane), &ns))
		return IMM;
	if (has_checked_word(wr) &&
	    shunt_fault_strikes(fault, SHUNT_FAULT_CORRUPT, SHUNT_CORRUPT_WORD, at(lane), &ns))
		return WORD;
	return NONE;
}

/* One WR that is struck. It is not linked to any other. */
static int suffer(struct shunt_lane *lane, enum strike strike, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ibv_qp_attr dead = { .qp_state = IBV_QPS_ERR };
	struct shunt_device *device = lane->link->device;

	switch (strike) {
	case KILL:
		device->verbs->modify_qp(lane->qp, &dead, IBV_QP_STATE);
		break;
	case POST:
		*bad = wr;
		return ENOMEM;
	case DROP:
		mute(lane, wr);
		return 0;
	case IMM:
		return corrupt(lane, wr, SHUNT_CORRUPT_IMM, bad);
	case WORD:
		return corrupt(lane, wr, SHUNT_CORRUPT_WORD, bad);
	case NONE:
		break;
	}
	return device->post_send(lane->qp, wr, bad);
}

/* Posts [from, to) alone; the links of the list are as before after it. */
static int post_part(struct shunt_lane *lane, struct ibv_send_wr *from, struct ibv_send_wr *last, enum strike strike,
		     struct ibv_send_wr **bad)
{
	struct ibv_send_wr *next = last->next;
	int result;

	last->next = NULL;
	result = suffer(lane, strike, from, bad);
	last->next = next;
	return result;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct shunt_lane *lane = qp->qp_context;
	struct ibv_send_wr *first = wr, *before = NULL, *next;
	int result = 0;

	for (; wr && !result && !atomic_load(&lane->mute_since); wr = next) {
		enum strike strike = strike_at(lane, wr);

		next = wr->next;
		if (strike == NONE) {
			before = wr;
			continue;
		}
		if (before)
			result = post_part(lane, first, before, NONE, bad);
		if (!result)
			result = post_part(lane, wr, wr, strike, bad);
		first = next;
		before = NULL;
	}
	if (result || !before || atomic_load(&lane->mute_since))
		return result;
	return post_part(lane, first, before, NONE, bad);
}

/* --- completions; group.lock held --- */

/*
 * Of a lane that has failed nothing is held back: its end is told by what the device gives back. It may fail at any
 * moment, so that is decided once a poll: later completions must not overtake earlier ones.
 */
static void look_at_lanes(struct shunt_group *group)
{
	for (struct shunt_lane *lane = group->lanes; lane; lane = lane->next_in_group)
		lane->unheld = atomic_load(&lane->failed);
}

static bool may_come(struct shunt_group *group, const struct shunt_fault_held *held, uint64_t now)
{
	struct shunt_lane *lane = shunt_roster_find(group, held->cq, held->wc.qp_num);

	return held->due <= now || !lane || lane->unheld;
}

/* In the order in which they came. Returns how many. */
static int give_held(struct shunt_group *group, struct ibv_cq *cq, int room, struct ibv_wc *wc)
{
	struct shunt_fault *fault = group->fault;
	uint64_t now = group->sys->now();
	struct shunt_fault_held **at = &fault->first, *held;
	int count = 0;

	fault->last = NULL;
	while ((held = *at)) {
		if (held->cq == cq && count < room && may_come(group, held, now)) {
			struct shunt_lane *lane = shunt_roster_find(group, held->cq,
								    held->wc.qp_num);

			if (lane) {
				lane->held_until = held->due <= now ? held->due : now;
				wc[count++] = held->wc;
			}
			*at = held->next;
			held->next = fault->spare;
			fault->spare = held;
			fault->room++;
			continue;
		}
		if (held->due != UINT64_MAX && held->due > now)
			look_at(group, held->due);
		fault->last = held;
		at = &held->next;
	}
	return count;
}

/* When the last of the QP that is held back may come: nothing may overtake it. 0: none is. */
static uint64_t behind(const struct shunt_fault *fault, const struct ibv_cq *cq, uint32_t qp_num)
{
	uint64_t due = 0;

	for (const struct shunt_fault_held *held = fault->first; held; held = held->next)
		if (held->cq == cq && held->wc.qp_num == qp_num)
			due = held->due;
	return due;
}

static bool completion_hold(struct shunt_group *group, struct ibv_cq *cq, const struct ibv_wc *wc,
			    uint64_t due)
{
	struct shunt_fault *fault = group->fault;
	struct shunt_fault_held *held = fault->spare;

	if (!held)
		return false;
	group->waiters.held = true;
	fault->spare = held->next;
	*held = (struct shunt_fault_held) { .cq = cq, .wc = *wc, .due = due };
	if (fault->last)
		fault->last->next = held;
	else
		fault->first = held;
	fault->last = held;
	fault->room--;
	if (due != UINT64_MAX)
		look_at(group, due);
	return true;
}

/* True: it is seen later. */
static bool held_back(struct shunt_group *group, struct ibv_cq *cq, const struct ibv_wc *wc)
{
	struct shunt_lane *lane = shunt_roster_find(group, cq, wc->qp_num);
	uint64_t due = behind(group->fault, cq, wc->qp_num), mine = 0, ns;

	if (!lane || lane->unheld)
		return false;
	if (shunt_fault_strikes(group->fault, SHUNT_FAULT_DELAY, SHUNT_FAULT_ANY, at(lane), &ns) ||
	    shunt_fault_strikes(group->fault, SHUNT_FAULT_STALL, SHUNT_FAULT_ANY, at(lane), &ns))
		mine = ns ? group->sys->now() + ns : UINT64_MAX;
	if (mine > due)
		due = mine;
	return due && completion_hold(group, cq, wc, due);
}

/* Not more is taken from the CQ than could be held back: it would overtake what is. */
static int poll_cq(struct ibv_cq *cq, int room, struct ibv_wc *wc)
{
	struct shunt_device *device = cq->cq_context;
	struct shunt_group *group = device->group;
	int count, came, wanted;

	look_at_lanes(group);
	count = give_held(group, cq, room, wc);
	do {
		wanted = room - count < group->fault->room ? room - count : group->fault->room;
		came = wanted ? device->poll_cq(cq, wanted, wc + count) : 0;
		if (came < 0)
			return count ? count : came;
		for (int i = 0, from = count; i < came; i++)
			if (!held_back(group, cq, &wc[from + i]))
				wc[count++] = wc[from + i];
	} while (came && came == wanted);
	return count;
}

/* --- life --- */

/* Completions that are held back may come. False: none is. group.lock held. */
static bool release(struct shunt_fault *fault)
{
	bool any = false;

	for (struct shunt_fault_held *held = fault->first; held; held = held->next) {
		any |= held->due != 0;
		held->due = 0;
	}
	return any;
}

/* As a device does when nobody has answered it. */
static void lane_give_up(struct shunt_group *group, struct shunt_lane *lane)
{
	struct ibv_wc wc = { .wr_id = lane->mute_wr, .status = IBV_WC_RETRY_EXC_ERR, .qp_num = lane->qp->qp_num };
	struct ibv_qp_attr dead = { .qp_state = IBV_QPS_ERR };

	completion_hold(group, lane->qp->send_cq, &wc, 1);
	lane->link->device->verbs->modify_qp(lane->qp, &dead, IBV_QP_STATE);
}

/* WRs that vanished have been waited for long enough. group.lock held. */
static void expire(struct shunt_group *group, uint64_t now)
{
	uint64_t wait = group->config->dead_ms * 1000000;

	for (struct shunt_lane *lane = group->lanes; lane; lane = lane->next_in_group) {
		uint64_t since = atomic_load(&lane->mute_since);

		if (!since || atomic_load(&lane->failed))
			continue;
		if (since + wait <= now)
			lane_give_up(group, lane);
		else
			look_at(group, since + wait);
	}
}

void shunt_fault_device_empty(struct shunt_fault *fault)
{
	fault->first = fault->last = fault->spare = NULL;
	fault->room = 0;
	for (; fault->pool && fault->room < POOL; fault->room++) {
		fault->pool[fault->room].next = fault->spare;
		fault->spare = &fault->pool[fault->room];
	}
}

static bool make_pool(struct shunt_fault *fault)
{
	if (fault->pool)
		return true;
	fault->pool = calloc(POOL, sizeof(*fault->pool));
	shunt_fault_device_empty(fault);
	return fault->pool;
}

void shunt_fault_device_attach(struct shunt_device *device)
{
	struct ibv_context_ops *ops = &device->context->ops;
	struct shunt_fault *fault = device->fault;

	if (ops->post_send == post_send || !atomic_load(&fault->plan) || !make_pool(fault))
		return;
	device->post_send = ops->post_send;
	device->poll_cq = ops->poll_cq;
	__atomic_store_n(&ops->poll_cq, poll_cq, __ATOMIC_RELEASE);
	__atomic_store_n(&ops->post_send, post_send, __ATOMIC_RELEASE);
}

/* A thread inside the filter still finds the device's own calls. */
void shunt_fault_device_detach(struct shunt_device *device)
{
	struct ibv_context_ops *ops = &device->context->ops;

	if (ops->post_send != post_send)
		return;
	__atomic_store_n(&ops->post_send, device->post_send, __ATOMIC_RELEASE);
	__atomic_store_n(&ops->poll_cq, device->poll_cq, __ATOMIC_RELEASE);
}

/* --- the rules change, and time passes --- */

int shunt_fault_device_set(struct shunt_group *group, const char *text, char *error, size_t bytes)
{
	struct shunt_fault *fault = group->fault;
	struct shunt_fault_plan plan;
	int result = shunt_fault_parse(text, &plan, error, bytes);

	if (result)
		return result;
	if (!group->loop->manual)	/* a simulated engine shares its process with another */
		shunt_fault_set_memory(text);
	shunt_fault_put_in_force(fault, &plan);
	shunt_lock_take(&group->lock);
	release(fault);
	for (int i = 0; i < SHUNT_DEVICES; i++)
		if (group->devices[i].open)
			shunt_fault_device_attach(&group->devices[i]);
	shunt_lock_leave(&group->lock);
	look_at(group, group->sys->now());
	return 0;
}

bool shunt_fault_device_hurries(struct shunt_group *group)
{
	bool any;

	if (!atomic_load_explicit(&group->fault->plan, memory_order_relaxed))
		return false;
	shunt_lock_take(&group->lock);
	any = release(group->fault);
	shunt_lock_leave(&group->lock);
	return any;
}

/* The filter is not needed any more. group.lock held. */
static void take_down(struct shunt_group *group)
{
	if (atomic_load(&group->fault->plan) || group->fault->first)
		return;
	for (struct shunt_lane *lane = group->lanes; lane; lane = lane->next_in_group)
		if (atomic_load(&lane->mute_since))
			return;
	for (int i = 0; i < SHUNT_DEVICES; i++)
		if (group->devices[i].open)
			shunt_fault_device_detach(&group->devices[i]);
}

/* The peer sees an engine that does not answer, as one does that is stopped or starved. */
static void freeze(struct shunt_group *group)
{
	struct timespec left;
	uint64_t ns, until;

	if (!shunt_fault_strikes(group->fault, SHUNT_FAULT_FREEZE, SHUNT_FAULT_ANY, NULL, &ns) ||
	    group->loop->manual)
		return;
	until = group->sys->now() + ns;
	while (group->sys->now() < until)
		group->sys->ppoll(NULL, 0, shunt_deadline_left(group->sys, until, &left), NULL);
}

void shunt_fault_device_run(struct shunt_task *task)
{
	struct shunt_fault *fault = shunt_loop_owner(task, struct shunt_fault, task);
	struct shunt_group *group = fault->group;
	uint64_t due;

	if (atomic_load_explicit(&fault->plan, memory_order_relaxed))
		freeze(group);
	due = atomic_load_explicit(&fault->due, memory_order_relaxed);
	if (due && due <= group->sys->now()) {
		atomic_store(&fault->due, 0);
		shunt_lock_take(&group->lock);
		expire(group, group->sys->now());
		shunt_lock_leave(&group->lock);
		shunt_group_poll_fully(group);
		shunt_lock_take(&group->lock);
		take_down(group);
		shunt_lock_leave(&group->lock);
		due = atomic_load(&fault->due);
	}
	if (due)
		shunt_task_at(task, due);
}
