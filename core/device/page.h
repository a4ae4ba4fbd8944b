/* SPDX-License-Identifier: MIT */
/*
 * A shared page: 4 KiB of 64-bit words that the peers of several links reach by RDMA atomics, and by nothing else. Each
 * link has a protection domain of its own, so the page is lent to each: every loan has a key.
 *
 * The owner makes a page on a device, lends it to links of that device, and tells each peer the loan's address and key.
 * Where `fd` is not -1 the peer needs that descriptor, too (SCM_RIGHTS), and maps the page with shunt_page_reach() before
 * it posts. A peer can spoil every word: peers that share a page trust each other, and the owner checks what it reads.
 */
#ifndef SHUNT_CORE_DEVICE_PAGE_H
#define SHUNT_CORE_DEVICE_PAGE_H

#include <stdatomic.h>
#include <stdint.h>
#include "core/base/verbs.h"

struct shunt_device;

enum { SHUNT_PAGE_BYTES = 4096, SHUNT_PAGE_WORDS = SHUNT_PAGE_BYTES / 8 };

struct shunt_page {
	struct shunt_device *device;	/* NULL: not made */
	_Atomic uint64_t *words;
	int fd;			/* the peer's way to it; the page's own. -1: the peer needs none */
	/* NULL: the CPU's atomics are the device's as well. Else as shunt_page_cas(), by the device. Service thread. */
	int (*cas)(struct shunt_page *page, uint32_t word, uint64_t *expected, uint64_t desired);
	void *own;		/* the kind's */
};

struct shunt_page_loan {
	struct ibv_mr *mr;	/* NULL: not lent */
	uint64_t address;	/* of word 0, as the peer says it in a WR */
	uint32_t rkey;
};

/* All words are 0. 0 or -errno; -EOPNOTSUPP: the device has no atomics. Service thread. */
int shunt_page_make(struct shunt_device *device, struct shunt_page *page);
/* No loan is left. Does nothing to a page that was not made, or whose making has failed. Service thread. */
void shunt_page_free(struct shunt_page *page);

/* To the link with this domain, whose QPs have IBV_ACCESS_REMOTE_ATOMIC. 0 or -errno. Service thread. */
int shunt_page_lend(struct shunt_page *page, struct ibv_pd *pd, struct shunt_page_loan *loan);
/* From here on the peer is refused (REM_ACCESS_ERR). To be called before the link's domain goes. */
void shunt_page_take_back(struct shunt_page *page, struct shunt_page_loan *loan);

/*
 * At the peer: WRs of this QP, and of all QPs that have the same peer, find the page. The descriptors stay the caller's.
 * It ends with the last of those QPs. 0; -EPROTO: that is no page; -EBUSY: the peer has one already; or -errno.
 */
int shunt_page_reach(struct shunt_device *device, struct ibv_qp *qp, const int *fds, int count);

/* The part of a QP's qp_access_flags that pages need: IBV_ACCESS_REMOTE_ATOMIC, or 0 where the device has no atomics. */
unsigned int shunt_page_access(const struct ibv_device_attr *limits);

/* --- the owner's own view; service thread --- */

/* A word as it is now, or was a moment ago. */
static inline uint64_t shunt_page_load(const struct shunt_page *page, uint32_t word)
{
	return atomic_load(&page->words[word]);
}

/*
 * Stores `desired` where the word is *expected. *expected is the word as it was before, so the caller knows from it
 * whether that has happened. 0 or -errno: the device did not answer, and the word may have changed or not.
 */
int shunt_page_cas(struct shunt_page *page, uint32_t word, uint64_t *expected, uint64_t desired);

#endif
