/* SPDX-License-Identifier: MIT */
/*
 * The sends of one stream that are followed and whose last byte has not been posted yet. The sender adds one under the
 * stream's tx.lock. The thread that posts takes them out under the lane's lock, in the order of their ends.
 */
#ifndef SHUNT_CORE_TRACE_PENDING_H
#define SHUNT_CORE_TRACE_PENDING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/base/lock.h"

#define SHUNT_TRACE_PENDING 16 /* more are lost */

struct shunt_pending {
	uint64_t id;
	uint64_t end; /* stream offset behind the last byte */
	uint64_t called; /* ns */
	uint64_t accepted; /* ns; 0: the call is not over */
	uint32_t bytes;
	bool answer;
};

struct shunt_pendings {
	struct shunt_lock lock; /* innermost */
	_Atomic uint64_t sends; /* that counted up to the last look; written under tx.lock, as the next five */
	_Atomic uint32_t granted; /* tx.trace.passes after that look */
	bool open; /* the call under way is followed: it was added last */
	bool chosen; /* as one in 2^K */
	bool lost; /* and there was no room for it */
	uint64_t answers; /* id that the call answers; 0: none */
	uint64_t last; /* end of the one that was added last */
	_Atomic uint64_t told; /* of `sends`: the book has them */
	uint32_t first; /* index of the oldest */
	_Atomic uint32_t count;
	struct shunt_pending of[SHUNT_TRACE_PENDING];
};

/* False: there is no room. Those whose ends are behind this one's have not ended as they said; *dropped counts them. */
bool shunt_pendings_add(struct shunt_pendings *pendings, const struct shunt_pending *pending,
			uint32_t *dropped);
/* The oldest, if it ends at `upto` or before. */
bool shunt_pendings_take(struct shunt_pendings *pendings, uint64_t upto,
			 struct shunt_pending *pending);
/* The call of the last one is over: bytes were accepted, and not posted. Nothing if it has been posted. */
void shunt_pendings_accept(struct shunt_pendings *pendings, uint64_t now);
/* The call of the last one was in vain. False: it is not there any more. */
bool shunt_pendings_withdraw(struct shunt_pendings *pendings);
/* All go; returns how many there were. */
uint32_t shunt_pendings_drop(struct shunt_pendings *pendings);

/* The end of the oldest; UINT64_MAX: none. */
uint64_t shunt_pendings_end(struct shunt_pendings *pendings);

/* Without the lock: the caller takes one out to be sure. */
static inline bool shunt_pendings_any(const struct shunt_pendings *pendings)
{
	return atomic_load_explicit(&pendings->count, memory_order_acquire) != 0;
}

#endif
