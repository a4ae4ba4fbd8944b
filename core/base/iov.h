/* SPDX-License-Identifier: MIT */
/* The buffers of a call of the program, as far as they are still to be filled or sent. */
#ifndef SHUNT_CORE_BASE_IOV_H
#define SHUNT_CORE_BASE_IOV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include "core/base/copy.h"

#define SHUNT_IOV_BATCH 64	/* buffers of one system call at most */

/* `skip` and `left` apart: what changes both must not become one wide load of what was just stored in two. */
struct shunt_iov {
	const struct iovec *first; /* of the call: nothing before it is ours */
	const struct iovec *iov;
	size_t skip;		/* bytes of iov[0] that are behind us */
	int iovcnt;
	bool cut;		/* the kernel was asked for less, and that much was there */
	bool bad; /* the last copy has met memory that is not there: EFAULT */
	size_t left;		/* bytes in all */
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

/* In place: a structure that is returned is copied, with the same wide loads. */
static inline void shunt_iov_begin(struct shunt_iov *all, const struct iovec *iov, int iovcnt)
{
	size_t left = 0;

	for (int i = 0; i < iovcnt; i++)
		left += iov[i].iov_len;
	for (; iovcnt && !iov->iov_len; iov++)
		iovcnt--;
	all->first = all->iov = iov;
	all->skip = 0;
	all->iovcnt = iovcnt;
	all->cut = false;
	all->bad = false;
	all->left = left;
}

/* Not behind us any more: so many bytes that were. A program that has changed its array meanwhile may have fewer. */
static inline void shunt_iov_go_back(struct shunt_iov *of, size_t bytes)
{
	of->left += bytes;
	while (bytes > of->skip && of->iov > of->first) {
		bytes -= of->skip;
		of->iov--;
		of->iovcnt++;
		of->skip = of->iov->iov_len;
	}
	of->skip -= bytes < of->skip ? bytes : of->skip;
}

/* The rest of the first buffer, at most `most` bytes of it: it is behind us now. False: there is none. Empty ones were passed. */
static inline bool shunt_iov_next(struct shunt_iov *of, size_t most, struct iovec *part)
{
	if (!of->iovcnt || !most)
		return false;
	*part = (struct iovec) { (char *)of->iov->iov_base + of->skip,
				 of->iov->iov_len - of->skip };
	if (part->iov_len > most)
		part->iov_len = most;
	shunt_iov_advance(of, part->iov_len);
	return true;
}

/* Copies `bytes` into the buffers, as *copy says, a word of SHUNT_TUNE; there is room for them. False: a fault. */
static inline bool shunt_iov_fill(struct shunt_iov *to, const uint8_t *from, size_t bytes,
				  const uint64_t *copy)
{
	struct iovec part;

	for (; shunt_iov_next(to, bytes, &part); from += part.iov_len, bytes -= part.iov_len)
		if (__builtin_expect(!shunt_copy(part.iov_base, from, part.iov_len, copy), 0))
			return false;
	return true;
}

/* The next `limit` bytes at most, as SHUNT_IOV_BATCH buffers at most. How many. */
static inline int shunt_iov_cut(const struct shunt_iov *of, uint64_t limit, struct iovec *iov)
{
	struct shunt_iov rest = *of;
	int count = 0;

	for (; count < SHUNT_IOV_BATCH && shunt_iov_next(&rest, limit, &iov[count]); count++)
		limit -= iov[count].iov_len;
	return count;
}

#endif
