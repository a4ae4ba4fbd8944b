/*
 * Two connected ends for conformance tests, made through shunt_verbs by a device that the tests
 * know only through struct rig_device: a verbs device can be plugged in beside the soft one.
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
#include "core/soft/soft.h"

struct rig_options {
	uint32_t send_wr, recv_wr, cqe; /* 0: 64, 64, 256 */
	int sq_sig_all;
	int separate_cqs; /* send and receive completions apart */
	int receives; /* posted to each end at once, with wr_id 1000 + i */
	int access; /* qp_access_flags and of the memory; 0: everything */
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	int engine_thread;
	int real_time; /* other threads or processes take part: rig_clock does not tell the time */
	const char *model; /* NULL: rig_model */
	void (*settled)(void *arg); /* as in struct soft_attr */
	void *settled_arg;
};

struct rig_end {
	const struct shunt_verbs *verbs;
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint64_t delay; /* of the model */
	char *memory; /* MEMORY bytes, registered, remotely reachable */
	int fds[2]; /* the device's, to pass on */
};

enum { MEMORY = 256 << 10 };

struct rig {
	struct rig_end a, b;
	struct rig_options options;
};

/* What a device has to be able to do for the tests. */
struct rig_device {
	const char *name;
	struct ibv_context *(*open)(const struct soft_attr *attr, const struct shunt_verbs **verbs);
	void (*close)(struct ibv_context *context);
	void *(*memory)(struct ibv_pd *pd, size_t bytes); /* what a peer may reach */
	int (*learn)(struct ibv_qp *qp, struct ibv_qp *peer); /* both in this process */
};
extern const struct rig_device rig_soft;
extern const struct rig_device *rig_device;

extern uint64_t rig_clock; /* what soft_attr.now returns, in every rig */

/*
 * The cost model of every rig that does not ask for another. With one, time passes until a WR is
 * due whenever one is posted by rig_post and rig_one; a rig in real time has the device's thread.
 */
extern const char *rig_model;

struct rig *rig_make(const struct rig_options *options);
void rig_free(struct rig *rig);
void rig_end_make(struct rig_end *end, const struct rig_options *options);
void rig_end_free(struct rig_end *end);
void rig_end_state(struct rig_end *end, const struct rig_options *options, enum ibv_qp_state state);
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

/* Polls exactly one completion, which must be there, and checks it. */
struct ibv_wc rig_expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status);
void rig_expect_none(struct ibv_cq *cq);
/* Polls until one comes (other process or thread), then checks it. */
struct ibv_wc rig_await(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status);
bool rig_readable(int fd);
void rig_expect_async(struct rig_end *end, enum ibv_event_type type);
enum ibv_qp_state rig_state(struct rig_end *end);

void rig_expect_flushed(struct ibv_cq *cq, uint64_t wr_id);
/*
 * a posts, b is silent: the first WR runs into the timeout, everything else is flushed. For a rig
 * with timeout 1 (8192 ns) and two retries: three times that.
 */
void rig_expect_silence(struct rig *rig);

/* The tests, a table per file. */
extern const struct CMUnitTest basic_tests[], error_tests[], event_tests[], process_tests[],
	fault_tests[], hostile_tests[], race_tests[], thread_tests[], model_tests[], shape_tests[];
extern const size_t basic_count, error_count, event_count, process_count, fault_count,
	hostile_count, race_count, thread_count, model_count, shape_count;

#define RIG_TABLE(name, ...) \
	const struct CMUnitTest name##_tests[] = { __VA_ARGS__ }; \
	const size_t name##_count = sizeof(name##_tests) / sizeof(name##_tests[0])

#endif
