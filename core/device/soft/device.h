/* SPDX-License-Identifier: MIT */
/* The objects of the soft device and what its files call of each other. */
#ifndef SHUNT_CORE_DEVICE_SOFT_DEVICE_H
#define SHUNT_CORE_DEVICE_SOFT_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include "core/device/soft/lock.h"
#include "core/device/soft/shm_segment.h"
#include "core/device/soft/soft.h"

/* Descriptors of the device, through soft_attr.keep and .drop. -1 and errno. */
int soft_fd_keep(struct ibv_context *context, int fd);
void soft_fd_drop(struct ibv_context *context, int fd);
/* Maps a segment: ours, or a peer's. NULL and errno. */
char *soft_segment_map(struct ibv_context *context, size_t bytes, int fd);

#define container_of(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))

enum {
	SOFT_MAX_SGE = 16,
	SOFT_MAX_MESSAGE = 1 << 30, /* bytes of one WR; byte_len of a peer beyond it is a lie */
	SOFT_REMOTES = 8, /* the peer's regions that a QP remembers, by the low bits of their keys */
};

struct soft_event { /* an asynchronous event that waits for get_async_event */
	struct soft_event *next;
	struct ibv_async_event event;
};

struct soft_nic { /* the modelled device */
	struct soft_lock lock;
	struct soft_gauges gauges;
	struct soft_sink *sink; /* own_sink, or mapped */
	struct soft_sink own_sink;
};

struct soft_context {
	struct ibv_context ibv;
	struct ibv_device device;
	struct soft_attr attr; /* defaults filled in; arena_bytes: of the next domain */
	struct soft_lock async_lock; /* events */
	struct soft_event *events;
	struct soft_lock list_lock; /* qps: held while the thread works on them */
	struct soft_qp *qps;
	_Atomic uint32_t next_qp_num;
	struct soft_thread *thread; /* SD-14; NULL in inline mode */
	struct soft_nic nic;
	struct soft_lock waiters_lock;
	struct soft_pd *waited; /* domains whose peers ring for single waiters */
	uint32_t waited_count;
	_Atomic int waiter_set[SEGMENT_WAITERS]; /* epoll sets of those domains' bells; -1 */
};

/* A peer's segment as mapped here; shared by the QPs of one PD that import it. */
struct soft_peer {
	struct soft_peer *next;
	uint64_t device, inode;
	uint32_t users;
	uint64_t bytes; /* mapped: the segment's beginning, or all of it */
	char *base;
	_Atomic(char *) page; /* SEGMENT_PAGE_BYTES that the peer shares besides it; NULL: none. Set once, never changed */
	struct segment_waiting waiting; /* as it was when we could first ring; no entries: we cannot */
	int waiter_fd[SEGMENT_WAITERS]; /* the peer's bells; set before `waiting` */
};

/* A pair of sockets by which one peer wakes us (bell.c). */
struct soft_bell {
	int fd, handle; /* ours, and the peer's until it is sent; -1 */
	uint32_t most; /* armings that the peer may use before the queue is emptied */
	_Atomic uint32_t rings; /* that it has used since */
};

struct soft_mr {
	struct ibv_mr ibv;
};

struct soft_pd {
	struct ibv_pd ibv;
	struct soft_lock lock; /* everything below but the contents of `mrs` */
	int fd;
	uint64_t bytes; /* of the segment */
	uint64_t queue_bytes; /* from one queue to the next */
	uint64_t arena_offset;
	uint64_t map_most; /* bytes of a peer's segment; 0: all */
	char *segment;
	uint32_t generation[SEGMENT_QUEUES]; /* of the QP that has the queue; even after it has left */
	uint64_t queues_used; /* bit i: queue i */
	uint32_t mr_used, qp_used;
	uint32_t mr_next; /* where to look for a free slot first */
	struct soft_peer *peers;
	bool apart; /* the peer is not trusted; set before the peer is told of the domain, as are the next */
	struct soft_bell bell;
	struct ibv_comp_channel *channel; /* whose set the bell is in */
	struct soft_bell waiters[SEGMENT_WAITERS];
	uint32_t waiters_armed; /* bit i: waiters[i], by us; context.waiters_lock, as is the next */
	struct soft_pd *next_waited; /* of the context */
	uint32_t mr_count[SEGMENT_MR_SLOTS]; /* uses of each slot: the upper bits of its next key */
	struct segment_mr mrs[SEGMENT_MR_SLOTS]; /* private, all regions; read without the lock */
};

/* A region that was looked up, valid as long as its slot still carries the key. */
struct soft_region {
	uint32_t key;
	uint32_t access;
	uint64_t address, length, offset;
	char *at; /* of a peer's region: its first byte as mapped here */
	struct segment_mr *slot;
};

struct soft_channel {
	struct ibv_comp_channel ibv;
	struct soft_lock lock; /* cqs, refcnt */
	struct soft_cq *cqs;
	int event_fd; /* trusted peers have it, too */
	_Atomic int set; /* epoll set of that and of domains' bells, and ibv.fd then; -1: no peer is kept apart */
};

struct soft_wc { /* a completed send that waits in the CQ's ring */
	struct soft_qp *qp;
	uint64_t wr_id;
	uint64_t sq_end; /* polling it frees the SQ up to here */
	uint32_t byte_len;
	uint16_t opcode, status;
};

struct soft_qps { /* a list of QPs that is walked on every poll; each knows its place in it */
	struct soft_qp **at;
	uint32_t count, room;
};

struct soft_cq {
	struct ibv_cq ibv;
	struct soft_cq *next; /* of the channel */

	_Alignas(64) struct soft_lock lock; /* polling, and the two lists */
	struct soft_qps receivers; /* QPs with this recv_cq */
	struct soft_qps senders; /* QPs with this send_cq that are not in `receivers` */
	uint32_t turn; /* the receiver to look at first: nobody starves */
	uint64_t sends, receives; /* that the queues attached may have waiting */
	bool may_overflow; /* the queues attached could hold more than `cqe` */
	_Atomic uint32_t busy; /* attached QPs with WRs that wait to be executed */
	_Atomic uint32_t overflow; /* enum soft_overflow */

	/* Completed sends: pushed under sq_lock, so only ring_lock can guard them. */
	_Alignas(64) struct soft_lock ring_lock;
	_Atomic uint32_t waiting; /* entries in the ring */
	uint32_t head; /* of the oldest */
	uint32_t room; /* 2^n, grows up to the next */
	uint32_t reserved; /* 2^n, for what the queues attached can have waiting */
	struct soft_wc *ring;
	_Atomic uint32_t waiting_receives; /* as of the last poll, where may_overflow */

	_Alignas(64) _Atomic uint32_t armed; /* enum segment_armed, for completions of our own */
	_Atomic uint32_t fired; /* an event that get_cq_event has not yet delivered */
};

enum { SOFT_RANG = 8 };

enum soft_overflow { SOFT_FITS, SOFT_OVERFLOWED, SOFT_OVERFLOW_DONE };

struct soft_pending { /* a WR that could not be executed when it was posted */
	struct ibv_send_wr wr;
	struct ibv_sge sge[SOFT_MAX_SGE];
	void *payload; /* of an inline WR */
	uint64_t sq_end;
	uint64_t bytes;
	uint64_t due; /* by the model; 0: at once */
	uint64_t posted_bytes; /* as the model counts them, also of a WR that is flushed */
	uint64_t unreachable_at; /* when it first found nobody; 0: has not */
	uint64_t rnr_at; /* when its RNR timer runs out; 0: has met none */
	uint32_t rnr_tries;
};

/* Why post_send cannot take the straight way; 0 while everything is normal. */
enum soft_slow {
	SOFT_SLOW_STATE = 1, /* not RTS */
	SOFT_SLOW_PENDING = 2, /* WRs wait, so later ones have to queue behind them */
	SOFT_SLOW_FAULT = 4, /* a test asked for trouble */
	SOFT_SLOW_THREAD = 8, /* WRs are always executed by the thread */
	SOFT_SLOW_GONE = 16, /* the peer's process has died */
	SOFT_SLOW_FAIL_POST = 32, /* one of the next posts is to fail */
	SOFT_SLOW_MODEL = 64, /* WRs are executed when the model says */
};

struct soft_rqe { /* the owner's copy of a posted receive's buffer */
	uint64_t address;
	uint32_t length, lkey;
};

struct soft_qp {
	struct ibv_qp ibv;
	struct soft_context *context;
	struct soft_pd *pd;
	struct soft_cq *send_cq, *recv_cq;
	struct soft_qp *next, **at; /* of the context; and what points to this one there */
	uint32_t place; /* in the list of its recv_cq */
	uint32_t send_place; /* in the list of its send_cq, where that is another */
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr; /* as last modified */
	uint32_t queue_index;
	_Atomic uint32_t fault; /* enum soft_fault */
	_Atomic uint32_t fail_post;
	struct soft_trace *trace;	/* ring of trace_entries, or NULL */
	uint32_t trace_entries;
	uint64_t traced;

	/* The send side, under sq_lock. */
	_Alignas(64) struct soft_lock sq_lock;
	_Atomic uint32_t slow;
	_Atomic uint32_t state; /* enum ibv_qp_state; ibv.state is its copy for the user */
	uint32_t sq_depth;
	uint32_t max_inline;
	bool sq_sig_all;
	bool rang; /* arrivals were written since the last doorbell */
	bool rang_solicited;
	uint32_t rang_count; /* immediates since the last solicited one; beyond SOFT_RANG: too many to know them */
	uint32_t rang_for[SOFT_RANG];
	bool rings_later; /* soft_qp_rings() */
	_Atomic uint32_t rings; /* whom it is to wake then */
	int wake_fd;
	bool wake_by_packet; /* it is a socket (bell.c), not an eventfd */
	uint32_t peer_mask, peer_base, peer_generation;
	uint64_t sq_posted;
	uint64_t peer_posted; /* last seen */
	uint64_t written; /* arrivals written */
	struct segment_queue *peer_queue;
	struct soft_peer *peer;
	struct soft_region remote[SOFT_REMOTES], local; /* last hits */
	struct soft_pending *pending; /* ring of sq_depth, allocated when first needed */
	uint32_t pending_head, pending_count;
	uint64_t unit_until; /* the model's, under nic.lock: when its unit is through with what is posted */
	uint64_t sink_until; /* the same: when the peer's node is through with what this QP has posted */
	_Atomic uint32_t settle_asked; /* somebody waits for pending_count to be 0 */

	_Alignas(64) struct soft_counters counters;
	_Alignas(64) _Atomic uint64_t sq_freed; /* stored by pollers */

	/* The receive side: posting under rq_lock, polling under recv_cq->lock. */
	_Alignas(64) struct soft_lock rq_lock;
	bool rq_buffers; /* a receive with a buffer was ever posted */
	uint32_t rq_mask;
	uint32_t generation, base;
	struct segment_queue *queue;
	uint64_t *rq_wr_id;
	struct soft_rqe *rq_buffer;
	_Atomic uint64_t rq_posted;
	_Alignas(64) _Atomic uint64_t rq_polled;
	_Atomic uint32_t rq_broken; /* in ERROR: what arrived is delivered, then the rest is flushed */
	bool rq_closed; /* nothing that arrives is believed any more */
	uint64_t rq_seen; /* arrivals counted for the overflow of the CQ */
	bool rq_faulted; /* the peer's fault word has been acted upon */
	uint32_t armed; /* what we last stored in queue->armed and have not seen taken */
};

#define soft_load(object) atomic_load_explicit(object, memory_order_relaxed)
#define soft_store(object, value) atomic_store_explicit(object, value, memory_order_relaxed)
#define soft_load_acquire(object) atomic_load_explicit(object, memory_order_acquire)
#define soft_store_release(object, value) atomic_store_explicit(object, value, memory_order_release)

/* Counters have one writer at a time but are read without a lock. */
static inline void soft_qp_count(uint64_t *counter, uint64_t by)
{
	__atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + by, __ATOMIC_RELAXED);
}

/* Acquires the payload and `what`, which arrival_write() in execute.c stored before the stamp. */
static inline bool soft_arrival_is_there(const struct soft_qp *qp, uint64_t k, uint64_t *stamp)
{
	struct segment_arrival *arrival = &qp->queue->arrival[k & qp->rq_mask];

	*stamp = soft_load_acquire(&arrival->stamp);
	return (uint32_t)(*stamp >> 32) == (uint32_t)(qp->base + k + 1);
}

/*
 * Nothing has come, and neither end has failed. Most looks find no more than that, and a process has a QP for each
 * peer. Loads as soft_receive_poll() does. recv_cq->lock held.
 */
static inline bool soft_receive_is_quiet(const struct soft_qp *qp)
{
	uint32_t failed = soft_load_acquire(&qp->queue->fault) | soft_load_acquire(&qp->rq_broken);
	uint64_t stamp;

	return !failed && !soft_arrival_is_there(qp, soft_load(&qp->rq_polled), &stamp);
}

/* context.c */
extern const struct shunt_verbs soft_verbs;
void soft_async_push(struct soft_context *context, enum ibv_event_type type, void *element);
void soft_async_forget(struct soft_context *context, const void *element);

/* pd.c */
/* A memfd of this size that nobody can resize, kept. -1 and errno. */
int soft_memfd(struct ibv_context *context, uint64_t bytes);
struct ibv_pd *soft_alloc_pd(struct ibv_context *context);
int soft_dealloc_pd(struct ibv_pd *pd);
int soft_queue_take(struct soft_pd *pd, uint32_t *index);
void soft_queue_give(struct soft_pd *pd, uint32_t index);
struct segment_queue *soft_queue_at(struct soft_pd *pd, uint32_t index);

/* mr.c */
struct ibv_mr *soft_register_mr(struct ibv_pd *pd, void *addr, size_t length, int access);
/* A shared page instead of memory that the domain's peer may reach by its segment. NULL and errno. */
struct ibv_mr *soft_register_page(struct ibv_pd *pd, void *page, int access);
int soft_deregister_mr(struct ibv_mr *mr);
bool soft_region_find(struct segment_mr *table, uint32_t key, struct soft_region *region);
bool soft_local_find(struct soft_qp *qp, const struct ibv_sge *sge, uint32_t access);
char *soft_remote_find(struct soft_qp *qp, uint64_t address, uint32_t rkey, uint64_t bytes,
		       uint32_t access);
uint64_t soft_receive_find(struct soft_pd *pd, const struct ibv_sge *sge);

/* peer.c */
void soft_peer_drop(struct soft_qp *qp);
void soft_peer_wake(struct soft_qp *qp, uint32_t whom);

/* waiter.c */
void soft_waiters_init(struct soft_context *context);
void soft_waiters_fini(struct soft_context *context);
void soft_waiters_close(struct soft_pd *pd);
void soft_waiters_forget(const struct soft_pd *pd, struct soft_peer *peer);
/*
 * Whom the QP's arrivals since the last time concern, by bits from 1 on. *others: some concern whoever sleeps on the
 * channel. Behind a full fence. sq_lock held.
 */
uint32_t soft_waiters_due(struct soft_qp *qp, bool *others);
void soft_waiters_wake(const struct soft_qp *qp, uint32_t waiters);

/* channel.c */
struct ibv_comp_channel *soft_create_comp_channel(struct ibv_context *context);
int soft_destroy_comp_channel(struct ibv_comp_channel *channel);
int soft_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
void soft_ack_cq_events(struct ibv_cq *cq, unsigned int nevents);
void soft_channel_kick(struct ibv_comp_channel *channel);
int soft_eventfd_add(int fd);
/* Sleepers on the channel wake when a packet comes there. 0 or -errno. */
int soft_channel_gather(struct ibv_comp_channel *channel, int bell);
void soft_channel_leave(struct ibv_comp_channel *channel, int bell);

/* bell.c */
/* A peer has used an arming of a QP of the domain. recv_cq->lock held. */
void soft_bell_rang(struct soft_pd *pd);
void soft_bell_close(struct soft_pd *pd);
int soft_bell_make(struct ibv_context *context, struct soft_bell *bell);
void soft_bell_count(struct ibv_context *context, struct soft_bell *bell);
/* In the set of its sleepers no more. */
void soft_bell_drop(struct ibv_context *context, struct soft_bell *bell, int set);
bool soft_bell_is_one(struct ibv_context *context, int fd);
void soft_bell_ring(struct ibv_context *context, int fd);

/* cq.c */
struct ibv_cq *soft_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			      struct ibv_comp_channel *channel, int comp_vector);
int soft_destroy_cq(struct ibv_cq *cq);
int soft_cq_attach(struct soft_qp *qp);
/* Memory for so many completed sends that wait. 0 or ENOMEM. */
int soft_cq_reserve(struct soft_cq *cq, uint64_t sends);
/* A CQ that is armed is armed for a QP that joins it, or begins anew, too. recv_cq->lock held. */
void soft_cq_cover(struct soft_qp *qp);
void soft_cq_detach(struct soft_qp *qp);
void soft_cq_lock_both(struct soft_qp *qp);
void soft_cq_unlock_both(struct soft_qp *qp);
void soft_cq_busy(struct soft_qp *qp, int change);
void soft_cq_notify(struct soft_cq *cq, bool solicited);
int soft_req_notify_cq(struct ibv_cq *cq, int solicited_only);

/* complete.c */
bool soft_cq_push(struct soft_cq *cq, const struct soft_wc *wc);
int soft_cq_pop(struct soft_cq *cq, int count, struct ibv_wc *wc);
void soft_cq_clean(struct soft_cq *cq, const struct soft_qp *qp);
int soft_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc);

/* receive.c */
int soft_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int soft_receive_poll(struct soft_qp *qp, int count, struct ibv_wc *wc);
uint64_t soft_receive_count(struct soft_qp *qp);
void soft_receive_reset(struct soft_qp *qp);

/* qp.c, state.c */
struct ibv_qp *soft_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int soft_destroy_qp(struct ibv_qp *qp);
int soft_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);
int soft_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		  struct ibv_qp_init_attr *init_attr);
void soft_qp_break(struct soft_qp *qp); /* → ERROR; sq_lock held */
void soft_qp_break_unlocked(struct soft_qp *qp);

/* execute.c: one WR. An enum ibv_wc_status, or one of these. */
enum soft_outcome { SOFT_RNR = 0x1000, SOFT_UNREACHABLE, SOFT_FAULTED };
int soft_execute(struct soft_qp *qp, const struct ibv_send_wr *wr, uint64_t bytes);

/* send.c */
int soft_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
void soft_send_done(struct soft_qp *qp, const struct ibv_send_wr *wr, uint64_t bytes,
		    uint64_t sq_end, int status);
uint32_t soft_send_ring(struct soft_qp *qp);

/* pending.c */
int soft_pending_add(struct soft_qp *qp, const struct ibv_send_wr *wr, uint64_t bytes, int outcome,
		     bool doorbell);
void soft_pending_progress(struct soft_qp *qp);
void soft_pending_flush(struct soft_qp *qp);
void soft_pending_poll(struct soft_qp *qp);
void soft_pending_free(struct soft_qp *qp);
uint64_t soft_pending_due(struct soft_qp *qp);

/* nic.c */
/* The blocks that the model charges for: each started 4 KiB is one. Words and atomics are free. */
static inline uint64_t soft_nic_blocks(uint64_t bytes)
{
	return bytes <= 8 ? 0 : (bytes + 4095) / 4096;
}

uint64_t soft_nic_enter(struct soft_qp *qp, uint64_t bytes, bool doorbell);
void soft_nic_register(struct soft_context *context, const void *addr, size_t length);
void soft_nic_leave(struct soft_context *context, uint64_t bytes);

/* sink.c */
/* 0 or an errno. */
int soft_sink_open(struct soft_context *context);
void soft_sink_close(struct soft_context *context);
/* Bytes that the node is still to deal with, in whole 4 KiB. nic.lock held. */
uint64_t soft_sink_queue(const struct soft_context *context, uint64_t now);
void soft_sink_take(struct soft_qp *qp, uint64_t now, uint64_t bytes);

/* thread.c */
int soft_thread_start(struct soft_context *context);
void soft_thread_stop(struct soft_context *context);
void soft_thread_kick(struct soft_context *context);

#endif
