/* SPDX-License-Identifier: MIT */
/*
 * The soft device: RC verbs over shared memory, for two processes of one host (FEATURES SD-01…15).
 *
 * A protection domain owns one sealed memfd, its *segment*. The segment has the queues of its QPs, its table of
 * memory regions, and an arena in which regions are registered. The peer of a QP maps the segment, or as much of its
 * beginning as it has address space for. A domain belongs to one link and no third process ever maps its segment.
 * Remote access (rkey) is possible only to memory inside the arena, and to pages that several domains share
 * (soft_page_make). Memory elsewhere may be registered for local use (lkey). Everything that is read from a peer's
 * segment is hostile until checked.
 *
 * A QP is wired to its peer by exchanging a `struct soft_address` and two descriptors (soft_qp_export /
 * soft_qp_import). Then modify_qp brings it up: INIT → RTR → RTS.
 */
#ifndef SHUNT_CORE_DEVICE_SOFT_SOFT_H
#define SHUNT_CORE_DEVICE_SOFT_SOFT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/base/soft_model.h"
#include "core/base/verbs.h"

struct shunt_sys;

/* The node that clients share; mapped from the file. */
struct soft_sink {
	_Atomic uint64_t busy_until; /* by the clock of all of them */
	_Atomic uint64_t extra; /* ns for each 4 KiB, besides `sink`; 1 s at most */
};

/* How a device is made. Zero in any field means the default in brackets. */
struct soft_attr {
	uint32_t max_qp_wr;	/* work requests in one SQ or RQ, rounded up to 2^n [4096] */
	uint32_t max_qp;	/* QPs of one domain: each has a queue in front of the arena, used or not [64, the most] */
	uint32_t max_cqe;	/* entries of one CQ [65536] */
	uint32_t max_inline;	/* bytes that IBV_SEND_INLINE may carry [1 GiB - 1] */
	uint64_t arena_bytes;	/* address space of a domain's arena, backed on touch [1 GiB] */
	bool large;		/* segments, and those of peers as mapped here, ask for transparent huge pages [no] */
	int zero_based;		/* 1: a peer calls the first byte of an arena 0. 0: as its owner does, which tells
				 * the peer where the arena lies in this process [0] */
	int engine_thread;	/* 0: the poster executes its own WRs during post_send (default); 1: a
				 * thread of the device executes them later (SD-14) */
	struct soft_model model; /* [off]. Without engine_thread, WRs are carried out when they are due
				 * and their QP is posted to or a CQ of it is polled */
	uint64_t (*now)(void);	/* nanoseconds, for retry and RNR timers and the model [CLOCK_MONOTONIC] */
	/*
	 * Calls for the device's descriptors. A new one is moved by keep: the new number, or -errno and fd is closed.
	 * A kept one is closed by drop. [as they are; close]
	 */
	int (*keep)(void *arg, int fd);
	void (*drop)(void *arg, int fd);
	/* Closes a kept one in whose queue a peer may have left descriptors, which may take long. [drop] */
	void (*let_go)(void *arg, int fd);
	void *keep_arg;
	const struct shunt_sys *sys;	/* for sockets and epoll sets (bell.c) [libc's] */
	/* With engine_thread: a QP of which soft_qp_settled() has said no has become settled. Called by
	 * the thread with locks of the device held: it may not call the device. [nobody is told] */
	void (*settled)(void *arg);
	void *settled_arg;
};

/* Opens the device; *verbs receives the table of its calls. NULL and errno on failure. */
struct ibv_context *soft_open(const struct soft_attr *attr, const struct shunt_verbs **verbs);
void soft_close(struct ibv_context *context);

/* The arena of a domain: page aligned, zero until touched. */
void *soft_arena(struct ibv_pd *pd, size_t *bytes);

/* The size of the arenas of the domains that are made from now on, instead of attr.arena_bytes. One thread. */
void soft_size_arena(struct ibv_context *context, uint64_t bytes);
/* Bytes of the domain's segment: the arena, and what lies before it. */
uint64_t soft_segment_bytes(struct ibv_pd *pd);
/*
 * Segments of peers that are imported from now on are mapped up to so many bytes; 0: whole. A WR to a region that ends
 * beyond them fails with REM_ACCESS_ERR, as does a key that the peer does not have. The table of regions is always
 * mapped. soft_qp_import() says -ENOSPC where the QP's queue is not.
 */
void soft_map_most(struct ibv_pd *pd, uint64_t bytes);
/* Bytes of the peer's segment that are mapped; 0: none was imported. */
uint64_t soft_qp_mapped(struct ibv_qp *qp);

/* Gives the pages of [addr, addr+bytes) of the arena back to the system; they read as zero after. */
int soft_arena_discard(struct ibv_pd *pd, void *addr, size_t bytes);
/* Rings may do so. That is no use for memory that a stranger reaches, and for huge pages only blocks do. */
bool soft_arena_gives_pages(struct ibv_pd *pd);

/*
 * A page of words that peers of several domains share, zero at first. It is a sealed memfd of the
 * device's; *page is its mapping here. 0 or -errno.
 */
int soft_page_make(struct ibv_context *context, int *fd, void **page);
void soft_page_free(struct ibv_context *context, int fd, void *page);
/* A key of the page for the domain's peer, to whom its first byte is 0; for RDMA atomics alone. NULL and errno. */
struct ibv_mr *soft_page_lend(struct ibv_pd *pd, void *page);
/*
 * The peer of a QP (soft_qp_import) has sent us its page. The seals, the size and the kind of file are checked, and fd
 * stays the caller's. The page is unmapped with the peer's segment. 0; -EPROTO: that is no page; -EBUSY: the peer has
 * one already; -ENOTCONN: there is no peer; or -errno.
 */
int soft_page_reach(struct ibv_qp *qp, int fd);

/* A QP's address for the peer; travels in a rendezvous message as it stands. */
struct soft_address {
	uint32_t magic;
	uint32_t qp_num;
	uint64_t queue_offset;	/* of the QP's receive side in the segment */
	uint64_t segment_bytes;
	uint32_t rq_depth;
	uint32_t reserved;
};

/* The descriptor by which trusted peers wake the channel's sleepers: its own, as long as no domain is set apart. */
int soft_channel_event_fd(struct ibv_comp_channel *channel);
/*
 * The domain's peer is not trusted. It wakes us through sockets of this domain's own (bell.c). No call is made on the
 * domain's memory file, because the peer could hold it up, so its pages are not given back. Before
 * soft_qp_export(); again: nothing. The channel's descriptor may be another afterwards. 0 or -errno.
 */
int soft_pd_set_apart(struct ibv_pd *pd, struct ibv_comp_channel *channel);
/*
 * Waiters: up to SOFT_WAITERS threads or epoll sets of this process that sleep each on a descriptor of its own. An
 * arrival wakes the one that the entry of its immediate names, and only where the entry is 0 whoever sleeps on the
 * channel. So no thread is woken to wake another (waiter.c). Waiters have numbers from 1 on.
 */
#define SOFT_WAITERS 4
#define SOFT_WAITED 16	/* domains that have bells for them: each takes SOFT_WAITERS descriptors, and as many at the peer */
/*
 * The domain's peer is to have bells for them; entry 0 is at `entries` in its arena. *fds: SOFT_WAITERS descriptors for
 * the peer, until soft_pd_told(). Before it is told of the domain. 0; -ENOBUFS: there are enough such domains; or -errno.
 */
int soft_waiters_make(struct ibv_pd *pd, const void *entries, uint32_t stride, uint32_t count,
		      int fds[SOFT_WAITERS]);
/* The peer's, of a QP that has imported it. fds are duplicated. 0; -EPROTO: they are no bells; -ENOMEM: no descriptors. Again: nothing. */
int soft_waiters_reach(struct ibv_qp *qp, const int fds[SOFT_WAITERS]);
/* A descriptor that the waiter sleeps on. The next takes its events. */
int soft_waiter_fd(struct ibv_context *context, uint32_t waiter);
void soft_waiter_hear(struct ibv_context *context, uint32_t waiter);
/* It falls asleep after another poll, or has woken. */
void soft_waiter_arm(struct ibv_context *context, uint32_t waiter, bool asleep);

/* The peer has been sent the descriptors that soft_qp_export() gave for a domain that is set apart. */
void soft_pd_told(struct ibv_pd *pd);

/*
 * The QP's address and its two descriptors. The segment (a sealed memfd) is fds[0]. By fds[1] the peer wakes its receive
 * CQ's completion channel. It is an eventfd of all trusted peers, or a socket of the domain's alone; -1: no channel.
 * They stay the device's; pass them with SCM_RIGHTS.
 */
int soft_qp_export(struct ibv_qp *qp, struct soft_address *address, int fds[2]);

/*
 * Maps the peer's segment after checking its seals, size and layout. fds are duplicated as needed and
 * stay the caller's. 0 or -errno (-EPROTO: what the peer sent is not a segment). To be called in
 * INIT, before RTR. Importing several QPs of one peer segment maps it once.
 */
int soft_qp_import(struct ibv_qp *qp, const struct soft_address *address, const int fds[2]);

/* The peer's process is gone (its link's socket closed): WRs time out as if nobody answered (SD-09). */
void soft_qp_peer_gone(struct ibv_qp *qp);

/*
 * Where this process sees the peer's memory that the peer calls `remote_addr` (a copy that an RDMA
 * READ would fetch, without the READ). NULL if [remote_addr, +bytes) is not readable under rkey.
 */
const void *soft_qp_peek(struct ibv_qp *qp, uint64_t remote_addr, uint32_t rkey, size_t bytes);

/* Every WR that post_send took has been executed: its bytes are in the peer's memory. */
int soft_qp_settled(struct ibv_qp *qp);

/*
 * From here on post_send wakes nobody. Where it would have, this word is nonzero until soft_qp_ring(), which any thread may
 * call. A WR that is carried out later still rings by itself.
 */
const uint32_t *soft_qp_rings(struct ibv_qp *qp);
void soft_qp_ring(struct ibv_qp *qp);

/* Where the QP counts the WRs that post_send took and that have not been executed. Read atomically. */
const uint32_t *soft_qp_backlog(struct ibv_qp *qp);

/* Counted per QP; exact (SD-04). Read without a lock by statistics. */
struct soft_counters {
	uint64_t doorbells;	/* calls of post_send */
	uint64_t wr;		/* work requests posted to the SQ */
	uint64_t wr_bytes;
	uint64_t inline_wr;
	uint64_t signaled;
	uint64_t rnr;		/* times a WR found no posted receive */
	uint64_t wakes;		/* system calls made to wake the peer */
	_Alignas(64) uint64_t arrivals;	/* receive completions polled; senders write the others */
};
const struct soft_counters *soft_qp_counters(struct ibv_qp *qp);

/* Gauges of the modelled device; all zero while the model is off. */
struct soft_gauges {
	uint64_t wr, wr_max;	/* outstanding now, and at most */
	uint64_t bytes, bytes_max; /* of the same */
	uint64_t misses;	/* WRs posted beyond the cache */
	uint64_t pauses;	/* WRs posted beyond the queue */
	uint64_t busy_ns;	/* that the pipeline has worked or will have for what is posted */
	uint64_t busy_until;	/* by attr.now: when it is through with what is posted */
	uint64_t due;		/* the same: when the WR that was posted last will be complete */
	uint64_t mr_ns;		/* that registrations have taken */
};
void soft_read_gauges(struct ibv_context *context, struct soft_gauges *gauges);

/* Faults that a test injects below the engine (SD-12, XR-37), per QP; atomic stores. */
enum soft_fault {
	SOFT_FAULT_NONE = 0,
	SOFT_FAULT_STALL,	/* WRs are accepted but not executed until NONE is set again */
	SOFT_FAULT_DROP,	/* WRs vanish: after (retry_cnt+1) * timeout the QP fails with RETRY_EXC */
	SOFT_FAULT_KILL,	/* the QP goes to ERROR now */
};
void soft_qp_fault(struct ibv_qp *qp, enum soft_fault fault);

/* post_send fails with ENOMEM at WR number `nth` from now (1 = the next); 0 switches it off (PF-10). */
void soft_qp_fail_post(struct ibv_qp *qp, unsigned int nth);

struct soft_trace {	/* one WR that post_send has taken (SD-13) */
	uint64_t time;		/* by attr.now */
	uint64_t doorbell;	/* which post_send call: WRs of one chain have the same */
	uint64_t wr_id;
	uint32_t qp_num;
	uint32_t bytes;
	uint32_t opcode;	/* enum ibv_wr_opcode */
	uint32_t flags;		/* enum ibv_send_flags */
	uint32_t imm_data;	/* in network order, if the opcode has one */
};

/*
 * For tests: from now on WR number n is recorded in ring[n % entries], n counting from 0. `ring` is the
 * caller's and stays until it is replaced; NULL ends it. Not while another thread posts.
 */
void soft_qp_trace(struct ibv_qp *qp, struct soft_trace *ring, uint32_t entries);

#endif
