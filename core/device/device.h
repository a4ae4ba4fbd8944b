/* SPDX-License-Identifier: MIT */
/*
 * A device as the engine sees it: the verbs API, and what the verbs API has no word for. There are two kinds;
 * the engine tells them apart by what they can do, never by name.
 *
 * Post, poll and arm go through context->ops under their own names. The rest goes through struct shunt_verbs. A
 * process opens a device when a link needs it (core/poll/group.c). That is the soft device, or an RDMA device for
 * each way that leads to a peer, eight at most. With several open, a sleeping thread sleeps on an epoll of all their
 * channels (group.bell). Queue pairs of two devices may have the same number, so a completion is known by its CQ and
 * that.
 */
#ifndef SHUNT_CORE_DEVICE_DEVICE_H
#define SHUNT_CORE_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include "core/base/reason.h"
#include "core/loop/loop.h"
#include "core/device/imm.h"
#include "core/base/verbs.h"
#include "shunt/wire.h"

struct shunt_fault;
struct shunt_group;
struct shunt_loop;
struct shunt_device_kind;
struct shunt_page;

/* The soft device, and RDMA devices: one for each way that leads to a peer. */
enum shunt_which { SHUNT_SOFT, SHUNT_VERBS, SHUNT_VERBS_LAST = SHUNT_VERBS + 7, SHUNT_DEVICES };

#define SHUNT_JOINS_LATER 1

/* Queues of the device, or memory regions for the rings of streams. */
enum shunt_short_of { SHUNT_SHORT_OF_QUEUES, SHUNT_SHORT_OF_RINGS };

struct shunt_device {
	bool open;
	uint64_t closed_until;			/* there was none: nobody looks again before; service thread */
	const struct shunt_device_kind *kind;
	struct ibv_context *context;
	const struct shunt_verbs *verbs;
	struct ibv_comp_channel *channel;	/* of all CQs */
	struct ibv_device_attr limits;
	uint8_t port;				/* of the device */
	bool gone;				/* it was removed or reset: nothing that it has can be used */
	bool marks_pages;			/* a fork's child has no page that is registered with it */
	bool by_cm; /* its queue pairs are connected by the connection manager alone: iWARP */
	uint32_t sq_depth, rq_depth;		/* of a lane's queues, powers of two; no more than the device has */
	uint32_t first_vector;			/* of its completion queues */
	uint32_t most_inline;			/* bytes that a WR of its queue pairs may carry; UINT32_MAX: as many as the kind has */
	struct shunt_source source;		/* of the service thread's epoll, where the kind has something to hear */
	struct shunt_loop *loop;
	struct shunt_group *group;		/* in which its CQs are polled */
	struct shunt_fault *fault;		/* may stand before it */
	const struct shunt_device_hooks *hooks;
	/* Of context->ops, where the filter of faults stands in for them (fault.h). */
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
	int (*poll_cq)(struct ibv_cq *cq, int room, struct ibv_wc *wc);
	struct shunt_imm_calls imm; /* where the device has no WRITE_WITH_IMM */
	void *own;				/* the kind's */
};

/* Calls of a device into rooms above it. */
struct shunt_device_hooks {
	/* It has been opened: faults may stand before it. group.lock held. */
	void (*opened)(struct shunt_device *device);
	/* The queue pair (NULL: each of the device) is of no use any more. Service thread, as is the next. */
	void (*failed)(struct shunt_device *device, const struct ibv_qp *qp, const char *why);
	/* A completion queue of it has lost completions. */
	void (*overflowed)(struct shunt_device *device, const struct ibv_cq *cq);
	/* It was removed or reset: no descriptor of it may be slept on. */
	void (*lost)(struct shunt_device *device);
	/* As SHUNT_JOINS_LATER has announced. */
	void (*joined)(struct shunt_device *device, const struct ibv_qp *qp);
};

/* Of the two kinds, as below. tools/plan/footprint.c plans by them. */
enum {
	SHUNT_SOFT_STREAMS = 65536,
	SHUNT_SOFT_CQ_LANES = 32, /* its queues take memory as they fill */
	SHUNT_VERBS_STREAMS = 8192,
	SHUNT_VERBS_LANES = 4, /* RB-21: an RNIC has several engines, and each QP has one of them */
	SHUNT_VERBS_CQ_LANES = 4, /* a first link's: its entries are pinned whether they are used or not */
	SHUNT_VERBS_INLINE = 256,
};

struct shunt_device_kind {
	const char *name;
	uint32_t number;	/* as HELLO says it */
	uint32_t streams;	/* control lines of a link; each is registered as long as the link lives */
	uint32_t lanes;		/* of a link, where `lanes` leaves it to us; 0: by who waits in the program */
	uint32_t cq_lanes;	/* for how many of them the first completion queue is made */
	uint32_t max_inline;	/* worth asking for in create_qp, which gives what it can */
	bool zero_based;	/* a peer calls the first byte of an arena 0, not by its address here */
	bool doubted;		/* its limits are tried when it is opened (selftest.h), and it rounds sizes up */
	bool anonymous;		/* its arenas are anonymous memory, so their blocks may have explicit huge pages */
	bool copies;		/* it copies what a WR carries itself, and knows SHUNT_SEND_PLAIN and SHUNT_SEND_PAST */

	/* Fills context, verbs and port; the device of that name, of a way, or whichever there is (NULL). 0, or -errno and words in `error`. */
	int (*open)(struct shunt_device *device, const char *name, const struct shunt_way *way, char *error,
		    size_t bytes);
	/* It is the device of this way. NULL: the kind has no ways. */
	bool (*leads)(const struct shunt_device *device, const struct shunt_way *way);
	void (*close)(struct shunt_device *device);
	/* The channel of all CQs; its descriptor is private and does not block. 0 or -errno. */
	int (*make_channel)(struct shunt_device *device);
	void (*free_channel)(struct shunt_device *device);
	/* In a fork's child: closes its copies of the descriptors, and nothing else. */
	void (*abandon)(struct shunt_device *device);

	/* Address space for the regions of a domain, page aligned, zero until touched; its size. */
	void *(*make_arena)(struct shunt_device *device, struct ibv_pd *pd, size_t *bytes);
	void (*free_arena)(struct shunt_device *device, void *arena, size_t bytes);
	/* Gives pages of it back to the system; they read as zero after. */
	int (*discard)(struct ibv_pd *pd, void *addr, size_t bytes);
	/* It can do so while a memory region has them. NULL: it cannot. */
	bool (*gives_pages)(struct ibv_pd *pd);
	/* Why there is no more of it. `error`: the device's, -errno. */
	enum shunt_cause (*shortage)(enum shunt_short_of what, int error);

	/*
	 * The address of a QP in INIT for the peer, and its descriptors (the device's). Returns the
	 * number of descriptors, or -errno. `address` has SHUNT_ADDRESS_BYTES.
	 */
	int (*tell)(struct shunt_device *device, struct ibv_qp *qp, void *address, int fds[2]);
	/* The index of a path's partition, which a QP has from INIT on; -ENOENT: the port has no part in it. NULL: it is 0. */
	int (*partition)(const struct shunt_device *device, const struct shunt_path *path);
	/*
	 * Connects a QP in INIT with what the peer has told, by this path. 0: it is in RTS. SHUNT_JOINS_LATER: the
	 * end that has told first is in RTS when hooks->joined says so. The other end is in RTS before the
	 * peer's first message comes. Or -errno.
	 */
	int (*join)(struct shunt_device *device, struct ibv_qp *qp, const struct shunt_path *path,
		    const void *address, const int *fds, int count);

	/*
	 * With limited address space (core/link/share.h). NULL, all of them: then such a process has no links of this
	 * kind. The size of the arenas of later domains. The bytes that a peer may map of a domain, arena included.
	 * The most bytes of a peer's segment to map (0: all), and the bytes that are mapped.
	 */
	void (*size_arena)(struct shunt_device *device, uint64_t bytes);
	uint64_t (*segment_bytes)(struct ibv_pd *pd);
	void (*map_most)(struct ibv_pd *pd, uint64_t bytes);
	uint64_t (*mapped)(struct ibv_qp *qp);

	/*
	 * The domain's peer is not trusted: what wakes it, and us, is theirs alone. Before `tell`. The channel's descriptor
	 * may be another afterwards, so shunt_devices_set_apart() is what is called. 0 or -errno. NULL, both: peers have no
	 * descriptors of the device's.
	 */
	int (*set_apart)(struct shunt_device *device, struct ibv_pd *pd);
	/*
	 * Waiters (core/poll/waiter.h): so many at most; the rest as in core/device/soft/soft.h. 0: the kind has none. Their
	 * descriptors are behind those of `tell`.
	 */
	uint32_t waiters;
	int (*make_waiters)(struct ibv_pd *pd, const void *entries, uint32_t stride, uint32_t count,
			    int *fds);
	int (*reach_waiters)(struct ibv_qp *qp, const int *fds);
	int (*waiter_fd)(struct ibv_context *context, uint32_t waiter);
	void (*hear_waiter)(struct ibv_context *context, uint32_t waiter);
	void (*arm_waiter)(struct ibv_context *context, uint32_t waiter, bool asleep);
	/* The descriptors of `tell` have been sent. */
	void (*told)(struct ibv_pd *pd);

	/*
	 * A page of words that peers of several links reach by RDMA atomics. The calls and the rules are in
	 * core/device/page.h. A device's make_page fills in the page, whose `device` is set already; lend_page sets
	 * errno where it says NULL.
	 */
	int (*make_page)(struct shunt_device *device, struct shunt_page *page);
	void (*free_page)(struct shunt_page *page);
	struct ibv_mr *(*lend_page)(struct shunt_page *page, struct ibv_pd *pd, uint64_t *address);
	int (*reach_page)(struct ibv_qp *qp, const int *fds, int count);

	/*
	 * The rest may be NULL. Frees the objects that `join` has made for the QP, and ends its
	 * connection; the QP is destroyed next.
	 */
	void (*part)(struct shunt_device *device, const struct ibv_qp *qp);
	/* The peer's process is gone: nothing that was posted will be answered. */
	void (*peer_gone)(struct ibv_qp *qp);
	/* Where we see the peer's memory; NULL: we do not. */
	const void *(*peek)(struct ibv_qp *qp, uint64_t remote_addr, uint32_t rkey, size_t bytes);
	/* All that was posted has been carried out. Without it, completions tell. */
	int (*settled)(struct ibv_qp *qp);
	/*
	 * From here on the QP does not wake the peer as it is posted to. Where this word is nonzero, `ring` does so. Any thread. NULL,
	 * both: it wakes nobody itself.
	 */
	const uint32_t *(*rings)(struct ibv_qp *qp);
	void (*ring)(struct ibv_qp *qp);
	/* Where the device counts the WRs that it has not carried out. */
	const uint32_t *(*backlog)(struct ibv_qp *qp);
};

struct shunt_files;

extern const struct shunt_device_kind shunt_device_soft;	/* shared memory, one host: core/device/soft */
extern const struct shunt_device_kind shunt_device_verbs;	/* RDMA devices: core/device/verbs */

#endif
