/* SPDX-License-Identifier: MIT */
/*
 * Two connected ends for conformance tests, made through shunt_verbs. The tests know their device
 * only through struct rig_device, so a verbs device can be plugged in beside the soft one.
 */
#ifndef SHUNT_TESTS_SOFT_RIG_H
#define SHUNT_TESTS_SOFT_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "core/device/soft/soft.h"

struct rig_options {
	uint32_t send_wr, recv_wr, cqe; /* 0: 64, 64, 256 */
	uint32_t send_sge; /* 0: 4 */
	int sq_sig_all;
	int separate_cqs; /* send and receive completions apart */
	int receives; /* posted to each end at once, with wr_id 1000 + i */
	int access; /* of the memory; 0: everything */
	int qp_access; /* qp_access_flags; 0: everything */
	int no_timeout;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	int engine_thread;
	int real_time; /* other threads or processes take part: rig_clock does not tell the time */
	const char *model; /* NULL: rig_model */
	void (*settled)(void *arg); /* as in struct soft_attr */
	void *settled_arg;
};

/* A QP's address, for the peer. */
struct rig_address {
	struct soft_address soft;
	uint32_t qp_num, psn;
	union ibv_gid gid;
};

struct rig_end {
	const struct shunt_verbs *verbs;
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct ibv_qp_cap cap; /* as create_qp told */
	uint32_t psn; /* of the first thing that we shall send */
	struct rig_address peer;
	uint64_t delay; /* of the model */
	char *memory; /* MEMORY bytes, registered, remotely reachable */
	int fds[2]; /* the device's, to pass on */
};

enum { MEMORY = 256 << 10 };

struct rig {
	struct rig_end a, b;
	struct rig_options options;
};

/* How a device is known to differ from the soft one; docs/dev/DEVICES.md says why. */
enum rig_quirk {
	QUIRK_NO_BAD_WR = 1, /* a post that the state does not allow is refused, but bad_wr is not set */
	QUIRK_EARLY_SLOTS = 2, /* a slot is free when its WR is done, polled or not */
	QUIRK_NO_QP_EVENTS = 4, /* a responder that fails raises no asynchronous event */
	QUIRK_ACCESS_IS_REQUEST = 8, /* access that the QP does not grant is an invalid request */
	QUIRK_ANY_RECEIVE_ERROR = 16, /* a receive that cannot take a SEND: LOC_QP_OP_ERR and REM_OP_ERR, whyever */
	QUIRK_RECEIVE_IN_HAND = 32, /* of a WRITE_WITH_IMM that is refused: has the requester's status */
	QUIRK_MILD_OVERFLOW = 64, /* a CQ that overflows keeps what fits, and fails QPs by receives only */
	QUIRK_NO_LATE_FLUSH = 128, /* a receive that is posted in ERROR never completes */
	QUIRK_ALIGNED_POSTS = 256, /* post_send refuses an atomic that is not aligned */
	QUIRK_LKEY_IS_OPERATION = 512, /* a WR with a bad lkey: LOC_QP_OP_ERR */
	QUIRK_SEVEN_IS_FOREVER = 1024, /* a retry_cnt of 7 has no end */
	QUIRK_RESET_KEEPS_CQ = 2048, /* what has completed before a reset stays in the CQ */
};

/* A device, for the tests. */
struct rig_device {
	const char *name;
	/*
	 * It is asynchronous, and has its own time: WRs complete some time later, and rig_clock
	 * tells nothing. Chance decides which of two queues with one CQ completes first.
	 */
	bool real;
	unsigned int quirks; /* enum rig_quirk */
	struct ibv_context *(*open)(const struct soft_attr *attr, const struct shunt_verbs **verbs);
	void (*close)(struct ibv_context *context);
	void *(*memory)(struct ibv_pd *pd, size_t bytes); /* what a peer may reach */
	void (*release)(void *memory);
	int (*tell)(struct rig_end *end, struct rig_address *address, int fds[2]);
	int (*meet)(struct rig_end *end, const int fds[2]); /* end->peer is filled */
	void (*path)(struct rig_end *end, struct ibv_qp_attr *attr); /* to end->peer */
};
extern const struct rig_device rig_soft, rig_apart, rig_verbs;
extern const struct rig_device *rig_device;

static inline bool rig_quirk(enum rig_quirk quirk)
{
	return rig_device->quirks & quirk;
}

/* rig_verbs.c: which one; "A,B": one for each end; NULL: the first that is usable. */
extern const char *rig_verbs_name;

/* differences.c: why a test that is for the soft device alone is left out on others; NULL: it is not. */
const char *rig_left_out(const char *test);

extern uint64_t rig_clock; /* what soft_attr.now returns, in every rig */

/*
 * The cost model of every rig that does not ask for another. With one, each post by rig_post and
 * rig_one lets time pass until its WR is due. A rig in real time has the device's thread.
 */
extern const char *rig_model;

struct rig *rig_make(const struct rig_options *options);
void rig_free(struct rig *rig);
void rig_end_make(struct rig_end *end, const struct rig_options *options);
void rig_end_free(struct rig_end *end);
void rig_end_state(struct rig_end *end, const struct rig_options *options, enum ibv_qp_state state);
int rig_tell(struct rig_end *end, struct rig_address *address, int fds[2]);
int rig_meet(struct rig_end *end, const struct rig_address *address, const int fds[2]);
void rig_learn(struct rig_end *end, struct rig_end *peer); /* both in this process */
void rig_connect(struct rig *rig);

/* Post, and expect success. */
void rig_receive(struct rig_end *end, uint64_t wr_id, void *buffer, uint32_t bytes);
void rig_receives(struct rig_end *end, int count);
int rig_post(struct rig_end *end, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
struct ibv_send_wr rig_write(struct rig_end *from, struct rig_end *to, struct ibv_sge *sge, uint64_t wr_id,
			     enum ibv_wr_opcode opcode, uint32_t bytes);
/* One WR of `bytes` from offset 0 to offset 0, signaled. */
void rig_one(struct rig_end *from, struct rig_end *to, uint64_t wr_id, enum ibv_wr_opcode opcode,
	     uint32_t bytes);

enum { PATIENCE_MS = 60000 }; /* so long something may take to come from a real device: only what hangs does */
/* At most one completion; from a real device it may take so long. */
int rig_poll(struct ibv_cq *cq, struct ibv_wc *wc, uint64_t ms);
/* Polls exactly one completion, which must be there, and checks it. */
struct ibv_wc rig_expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status);
void rig_expect_none(struct ibv_cq *cq);
void rig_expect_not_yet(struct ibv_cq *cq); /* at this rig_clock; a real device's is not ours to stop */
void rig_expect_count(struct ibv_cq *cq, int count); /* so many, whatever they are */
/* Polls until one comes (other process or thread), then checks it. */
struct ibv_wc rig_await(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status);
bool rig_readable(int fd); /* now, or soon */
void rig_expect_async(struct rig_end *end, enum ibv_event_type type);
enum ibv_qp_state rig_state(struct rig_end *end);

/* So many WRITE_WITH_IMM from a to b one after the other, each taken by rig_expect or rig_await; 64 receives are posted. */
void rig_laps(struct rig *rig, uint64_t count,
	      struct ibv_wc (*taken)(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status));

void rig_expect_flushed(struct ibv_cq *cq, uint64_t wr_id);
void rig_peer_vanishes(struct rig *rig); /* b no longer answers a */
/*
 * a posts, b is silent: the first WR runs into the timeout, everything else is flushed. For a rig
 * with timeout 1 (8192 ns) and two retries: three times that.
 */
void rig_expect_silence(struct rig *rig);

/* The tests, a table per file. */
extern const struct CMUnitTest basic_tests[], error_tests[], event_tests[], process_tests[],
	fault_tests[], hostile_tests[], waiter_tests[], race_tests[], thread_tests[], model_tests[],
	shape_tests[], page_tests[], sink_tests[];
extern const size_t basic_count, error_count, event_count, process_count, fault_count,
	hostile_count, waiter_count, race_count, thread_count, model_count, shape_count, page_count,
	sink_count;

#define RIG_TABLE(name, ...) \
	const struct CMUnitTest name##_tests[] = { __VA_ARGS__ }; \
	const size_t name##_count = sizeof(name##_tests) / sizeof(name##_tests[0])

/* --- with the cost model; rig_clock is all the time there is --- */

struct rig *rig_modelled(const char *model);
/* Plain writes of `bytes` with wr_ids from `first` on, in one post_send, and no time passes. */
void rig_post_chain(struct rig *rig, uint64_t first, int count, uint32_t bytes);
/* The WR completes `ns` after `start`, and not earlier. */
void rig_expect_at(struct rig *rig, uint64_t start, uint64_t ns, uint64_t wr_id);

#endif
