/* SPDX-License-Identifier: MIT */
/*
 * The buffers of a call of the program, as far as they are still to be filled or sent.
 */
#ifndef SHUNT_CORE_BASE_IOV_H
#define SHUNT_CORE_BASE_IOV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include "core/base/copy.h"

#define SHUNT_IOV_BATCH 64	/* buffers of one system call at most */

struct shunt_iov {
	const struct iovec *iov;
	int iovcnt;
	size_t skip;		/* bytes of iov[0] that are behind us */
	size_t left;		/* bytes in all */
	bool cut;		/* the kernel was asked for less, and that much was there */
};

/* `bytes` are behind us now; also passes empty buffers. */
static inline void shunt_iov_advance(struct shunt_iov *to, size_t bytes)
{
	to->left -= bytes;
	to->skip += bytes;
	while (to->iovcnt && to->skip >= to->iov->iov_len) {
		to->skip -= to->iov->iov_len;
		to->iov++;
		to->iovcnt--;
	}
}

/* Copies `bytes` into the buffers, as *copy (SHUNT_COPY) says; there is room for them. */
static inline void shunt_iov_fill(struct shunt_iov *to, const uint8_t *from, size_t bytes,
				  const uint64_t *copy)
{
	while (bytes) {
		size_t part = to->iov->iov_len - to->skip;

		if (part > bytes)
			part = bytes;
		shunt_copy((char *)to->iov->iov_base + to->skip, from, part, copy);
		from += part;
		bytes -= part;
		shunt_iov_advance(to, part);
	}
}

/* The next `limit` bytes at most, as SHUNT_IOV_BATCH buffers at most. How many. */
static inline int shunt_iov_cut(const struct shunt_iov *of, uint64_t limit, struct iovec *iov)
{
	size_t skip = of->skip;
	int count = 0;

	for (int i = 0; i < of->iovcnt && limit && count < SHUNT_IOV_BATCH; i++) {
		size_t part = of->iov[i].iov_len - skip;

		if (part > limit)
			part = limit;
		iov[count++] = (struct iovec) { (char *)of->iov[i].iov_base + skip, part };
		limit -= part;
		skip = 0;
	}
	return count;
}

#endif
