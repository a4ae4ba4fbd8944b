/* SPDX-License-Identifier: MIT */
/*
 * A large blocking send from the program's own buffer (dynMR, RB-10). The buffer is registered, the device reads from
 * it, and the call returns when it has. From which size on that is cheaper than a copy into registered memory is set,
 * or measured once (RB-11). Only for devices that do not carry everything inline.
 *
 * There is one buffer a call, one pin a stream; everything else takes the stage. A seat stays as long as there is a
 * pin, because the region is the link's.
 *
 * A READ by the receiver, from the sender's buffer into its own (XR-10, XR-11), was measured and not built.
 * tests/bench/one_copy.c does it with process_vm_readv, the only way between two processes of one host, against two
 * copies through a ring. One copy on one core is slower than two on two cores (EXPERIMENTS.md). Besides, a sender
 * that is read from must wait for a reader that may not come, which a kernel's sender does not.
 */
#ifndef SHUNT_CORE_LANE_ZERO_COPY_H
#define SHUNT_CORE_LANE_ZERO_COPY_H

#include "core/base/iov.h"
#include "core/base/verbs.h"
#include "core/link/seat.h"

#define SHUNT_ZERO_COPY_AUTO UINT64_MAX	/* SHUNT_MR_THRESHOLD=auto */

struct shunt_zero_copy {
	struct ibv_mr *mr;
	const char *at;
	size_t bytes;
	uint64_t from, to;	/* stream offsets: what was posted from it */
	const char *first;	/* the byte of it that is at `from` */
};

/* Bytes from which on a registration costs less than a copy; UINT64_MAX: it never does. */
uint64_t shunt_zero_copy_measure(const struct shunt_verbs *verbs, struct ibv_pd *pd, uint64_t (*now)(void));

/* The device has fetched everything. */
static inline bool shunt_zero_copy_fetched(const struct shunt_seat *seat)
{
	return !atomic_load(&seat->out.pinned_wr);
}

/* A piece at stream offset `offset` has been posted, with WR number `number`. lane.lock held. */
void shunt_zero_copy_posted(struct shunt_seat *seat, uint64_t number, uint64_t offset,
			    const struct ibv_sge *sge, bool is_inline);
/* Copies bytes of the stream from it, as shunt_send_buffer_copy(). Returns how many, at most to - from. tx.lock held. */
size_t shunt_zero_copy_copy(const struct shunt_seat *seat, uint8_t *out, uint64_t from,
			    uint64_t to);

/*
 * Another thread may be sending something else on the stream. Where what was posted may be needed again, it must
 * be one piece: what does not continue it takes the stage.
 */
static inline bool shunt_zero_copy_has(const struct shunt_seat *seat, const struct shunt_iov *from)
{
	const struct shunt_zero_copy *pin = seat->out.pin;

	return pin && from->iovcnt == 1 && from->iov->iov_base == pin->at &&
	       from->iov->iov_len == pin->bytes &&
	       (pin->from == pin->to || pin->to == atomic_load(&seat->out.staged));
}

#endif
