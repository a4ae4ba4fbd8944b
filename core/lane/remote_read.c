/* SPDX-License-Identifier: MIT */
/*
 * Reads back the bytes written to the peer's ring: from memory if the device shows it, otherwise by RDMA READ. The
 * peer does not notice. For a retirement, so it may take a round trip; the lane is kept meanwhile.
 */
#include "core/lane/remote_read.h"
#include "core/base/config.h"
#include "core/base/fault_rules.h"
#include "core/base/sys.h"
#include "core/device/fault.h"
#include "core/lane/lane.h"
#include <sched.h>
#include <string.h>
#include "core/lane/wr.h"
#include "core/link/link.h"
#include "core/poll/group.h"

/* Where the bytes from `from` on lie in the peer's memory; *bytes: how many of `to` are there in one piece. */
static uint64_t place(const struct shunt_seat_out *out, uint64_t from, uint64_t to, uint32_t *bytes,
		      uint32_t *rkey)
{
	bool old = from < out->ring.from && out->ring.old_bytes;
	uint32_t size = old ? out->ring.old_bytes : out->ring.bytes,
		 at = (uint32_t)(from & (size - 1));
	uint64_t end = old && out->ring.from < to ? out->ring.from : to;

	*bytes = size - at < end - from ? size - at : (uint32_t)(end - from);
	*rkey = old ? out->ring.old_rkey : out->ring.rkey;
	return (old ? out->ring.old_address : out->ring.address) + at;
}

/* A peer that does not answer keeps this thread once, and no other time. */
static bool await(struct shunt_lane *lane, uint64_t number)
{
	struct shunt_group *group = lane->group;
	uint64_t until = group->sys->now() + group->config->dead_ms * 1000000;

	while (atomic_load(&lane->retired) < number) {
		if (group->sys->now() >= until)
			shunt_link_fail(lane->link, "the peer's device does not answer");
		if (atomic_load(&lane->failed))
			return false;
		if (!shunt_group_poll(group))
			sched_yield();
	}
	return true;
}

static bool read_piece(struct shunt_lane *lane, const struct ibv_mr *mr, void *out, uint64_t addr, uint32_t rkey,
		       uint32_t bytes)
{
	uint64_t number;

	return shunt_wr_read(lane, &(struct ibv_sge) { (uintptr_t)out, bytes, mr->lkey }, addr, rkey, &number) &&
	       await(lane, number);
}

/* The answer comes into this end's line, which is registered, at the word of DATA: no peer writes that one. */
bool shunt_remote_read_word(struct shunt_seat *seat, uint32_t word, uint64_t *value)
{
	struct shunt_lane *lane = seat->lane;
	uint64_t *to = &seat->control->word[SHUNT_IMM_DATA];
	uint64_t at = lane->peer_controls + seat->peer_id * sizeof(struct shunt_control) + word * sizeof(*to);

	if (!read_piece(lane, lane->link->arena.lines, to, at, lane->rkey, sizeof(*to)))
		return false;
	*value = __atomic_load_n(to, __ATOMIC_ACQUIRE);
	return true;
}

/* The answer of an iWARP peer writes into the buffer as any of its WRITEs would (RFC 5040, 5.2.4). */
static int access_of(const struct shunt_device *device)
{
	return device->by_cm ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE :
			       IBV_ACCESS_LOCAL_WRITE;
}

static bool read_ring(struct shunt_seat *seat, uint8_t *out, uint64_t from, uint64_t to)
{
	struct shunt_lane *lane = seat->lane;
	const struct shunt_verbs *verbs = lane->link->device->verbs;
	struct ibv_mr *mr = shunt_fault_denies(SHUNT_DENY_MR) ?
				    NULL :
				    verbs->register_mr(lane->link->pd, out, to - from,
						       access_of(lane->link->device));
	bool good = mr != NULL;

	while (good && from < to) {
		uint32_t bytes, rkey;
		uint64_t addr = place(&seat->out, from, to, &bytes, &rkey);

		good = read_piece(lane, mr, out, addr, rkey, bytes);
		out += bytes;
		from += bytes;
	}
	if (mr)
		verbs->deregister_mr(mr);
	return good;
}

bool shunt_remote_read_ring(struct shunt_seat *seat, uint8_t *out, uint64_t from, uint64_t to)
{
	struct shunt_lane *lane = seat->lane;
	const struct shunt_device_kind *kind = lane->link->device->kind;

	if (!kind->peek || lane->retains)
		return read_ring(seat, out, from, to);
	while (from < to) {
		uint32_t bytes, rkey;
		uint64_t addr = place(&seat->out, from, to, &bytes, &rkey);
		const void *seen = kind->peek(lane->qp, addr, rkey, bytes);

		if (!seen)
			return false;
		memcpy(out, seen, bytes);
		out += bytes;
		from += bytes;
	}
	return true;
}
