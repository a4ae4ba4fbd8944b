/* SPDX-License-Identifier: MIT */
/*
 * Layout of a segment: the pages that the peer of a QP maps.
 *
 *   0                 header
 *   MR_OFFSET         table of memory regions     owner writes, poster reads
 *   QUEUE_OFFSET      receive sides of QPs        see struct segment_queue
 *   page aligned      arena                       the poster's WRITEs land here
 *
 * The layout is fixed by SEGMENT_VERSION, so a reader needs nothing but the size of the file and
 * the address it was sent. Both sides treat the other's words as hostile. The owner acts on private
 * copies of what it published; the poster bounds every offset by the size it has mapped.
 */
#ifndef SHUNT_CORE_DEVICE_SOFT_SHM_SEGMENT_H
#define SHUNT_CORE_DEVICE_SOFT_SHM_SEGMENT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define SEGMENT_MAGIC 0x45534853u /* "SHSE" */
#define SEGMENT_ADDRESS_MAGIC 0x41534853u /* "SHSA" */
#define SEGMENT_VERSION 1u

enum {
	SEGMENT_MR_OFFSET = 4096,
	SEGMENT_MR_BITS = 10, /* of a key: the slot; the others count how often it was used */
	SEGMENT_MR_SLOTS = 1 << SEGMENT_MR_BITS,
	SEGMENT_QUEUE_OFFSET = SEGMENT_MR_OFFSET + SEGMENT_MR_SLOTS * 32,
	SEGMENT_QUEUES = 64,
	SEGMENT_DEPTH_MAX = 1 << 18,
	SEGMENT_WAITERS = 4,
	SEGMENT_WAITER_MASK = (1 << 28) - 1, /* of an immediate: its entry */
};
#define SEGMENT_BYTES_MIN (1ull << 20)
#define SEGMENT_BYTES_MAX (64ull << 30)

/* One of the owner's waiters, in a line of its own. 1: it sleeps, and the poster that takes that rings for it. */
struct segment_waiter {
	_Alignas(64) _Atomic uint32_t armed;
};

/*
 * The waiter of each arrival, by its immediate. The low bits of that count entries, each `stride` bytes behind the one
 * before. An entry's first word is the number of a waiter, from 1 on, or 0: whoever sleeps on the channel. Number 0 has
 * no entry. All are 0 as long as the owner has no waiters.
 */
struct segment_waiting {
	uint64_t offset; /* of entry 0, in the segment */
	uint32_t stride, count;
};

struct segment_header {
	uint32_t magic;
	uint32_t version;
	uint64_t segment_bytes;
	struct segment_waiting waiting;
	struct segment_waiter waiters[SEGMENT_WAITERS];
};

/*
 * One memory region. `key` is stored last when a region appears and zeroed first when it goes, and a slot never sees
 * the same key twice. So a reader reads key, fields, key again: both equal is a true copy.
 */
struct segment_mr {
	_Atomic uint32_t key;
	_Atomic uint32_t access;
	_Atomic uint64_t address; /* as the owner calls it */
	_Atomic uint64_t length;
	_Atomic uint64_t offset; /* in the segment; SEGMENT_PAGE_OFFSET: in the shared page */
};

/*
 * The region lies in the page that the peer was given besides the segment (page.c), from its first byte on. No segment
 * has so many bytes (SEGMENT_BYTES_MAX).
 */
#define SEGMENT_PAGE_OFFSET (1ull << 63)
#define SEGMENT_PAGE_BYTES 4096u

/* A posted receive, for SENDs. Not rewritten while it stays the same. */
struct segment_rqe {
	_Atomic uint64_t offset; /* in the segment; SEGMENT_RQE_BAD: the receive's own lkey is wrong */
	_Atomic uint32_t length;
	uint32_t reserved;
};
#define SEGMENT_RQE_BAD UINT64_MAX

/*
 * One arrival, written by the poster. The k-th of a generation sits in slot k & (depth-1) and
 * carries seq == base + k + 1. Its stamp is stored last, so no head or tail is shared.
 */
struct segment_arrival {
	_Atomic uint64_t what; /* byte_len << 32 | imm_data */
	_Atomic uint64_t stamp; /* seq << 32 | status << 16 | SEGMENT_IMMEDIATE | opcode */
};
#define SEGMENT_IMMEDIATE 0x8000u

/*
 * The receive side of a QP, each line apart (128: adjacent lines are prefetched in pairs).
 * Followed by arrival[depth], then rqe[depth].
 */
struct segment_queue {
	/* Receives ever posted, published only for slots whose former arrival was polled. The
	 * poster reads it when its copy is used up. */
	_Alignas(128) _Atomic uint64_t posted;

	/* Read by the poster after every doorbell, written by the owner when it arms. */
	_Alignas(128) _Atomic uint32_t armed; /* enum segment_armed; taken to 0 by the poster that wakes */
	_Atomic uint32_t live; /* the generation while the QP is INIT, RTR or RTS, else 0 */
	_Atomic uint32_t access; /* qp_access_flags */
	_Atomic uint32_t fault; /* enum segment_fault, the poster's */
	_Atomic uint32_t generation; /* new after every RESET, so that a stale poster is known */
	_Atomic uint32_t rnr_timer; /* min_rnr_timer, as encoded in verbs */

	_Alignas(128) struct segment_arrival arrival[];
};

enum segment_armed { SEGMENT_DISARMED, SEGMENT_ARMED_SOLICITED, SEGMENT_ARMED_ANY };
enum segment_fault { SEGMENT_FAULT_NONE, SEGMENT_FAULT_ACCESS, SEGMENT_FAULT_REQUEST };

_Static_assert(sizeof(struct segment_mr) == 32, "segment layout");
_Static_assert(sizeof(struct segment_rqe) == 16, "segment layout");
_Static_assert(sizeof(struct segment_arrival) == 16, "segment layout");
_Static_assert(offsetof(struct segment_queue, arrival) == 256, "segment layout");

static inline uint64_t segment_queue_bytes(uint32_t depth)
{
	return sizeof(struct segment_queue) + (uint64_t)depth * 32;
}

static inline struct segment_rqe *segment_rqes(struct segment_queue *queue, uint32_t depth)
{
	return (struct segment_rqe *)(queue->arrival + depth);
}

static inline struct segment_mr *segment_mrs(void *segment)
{
	return (struct segment_mr *)((char *)segment + SEGMENT_MR_OFFSET);
}

/* Sequence numbers of different generations differ, and none is the 0 of an untouched slot. */
static inline uint32_t segment_base(uint32_t generation)
{
	return (generation & 0xfff) << 20;
}

#endif
