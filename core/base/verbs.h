/* SPDX-License-Identifier: MIT */
/*
 * The device boundary: the verbs API itself.
 *
 * The calls that <infiniband/verbs.h> inlines reach a device through its struct ibv_context. They are ibv_post_send,
 * ibv_post_recv, ibv_poll_cq and ibv_req_notify_cq. The soft device fills `context->ops`, and the engine calls them
 * under their own names. The calls that libibverbs exports go through this table: filled by dlsym() for the verbs
 * device, by core/device/soft for soft. Signatures, results and errors are those of the ibv_*(3) manual pages.
 */
#ifndef SHUNT_CORE_BASE_VERBS_H
#define SHUNT_CORE_BASE_VERBS_H

#include <infiniband/verbs.h>

/* Attributes that modify_qp needs on the way to RTS, for an RC QP (ibv_modify_qp(3)). */
enum {
	SHUNT_TO_INIT = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	SHUNT_TO_RTR = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	SHUNT_TO_RTS = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		       IBV_QP_MAX_QP_RD_ATOMIC,
};

/* Send flags beside enum ibv_send_flags, for devices that copy the bytes of a WR themselves: how (core/base/copy.h). */
enum { SHUNT_SEND_PLAIN = 1 << 29, SHUNT_SEND_PAST = 1 << 30 };

/* A way to a peer, as the connection manager has found it: a device of ours, its port and the address there. */
struct shunt_way {
	char device[64];	/* ibv_get_device_name(3) */
	uint8_t port;
	union ibv_gid gid;
};

/*
 * A path to a peer: how the fabric wants a queue pair's packets marked, as the connection manager has resolved it. All
 * zero: the connection manager was not asked.
 */
struct shunt_path {
	uint16_t pkey;		/* host order; 0: the first partition of the port */
	uint16_t slid, dlid;	/* InfiniBand; else 0 */
	uint8_t sl, traffic_class, hop_limit;
	uint8_t mtu;		/* enum ibv_mtu; 0: not known */
	uint8_t here[16], there[16]; /* IP addresses of both ends (core/base/address.h) */
};

struct shunt_verbs {
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	int (*dealloc_pd)(struct ibv_pd *pd);
	struct ibv_mr *(*register_mr)(struct ibv_pd *pd, void *addr, size_t length, int access);
	int (*deregister_mr)(struct ibv_mr *mr);
	struct ibv_comp_channel *(*create_comp_channel)(struct ibv_context *context);
	int (*destroy_comp_channel)(struct ibv_comp_channel *channel);
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int cqe, void *cq_context,
				    struct ibv_comp_channel *channel, int comp_vector);
	int (*destroy_cq)(struct ibv_cq *cq);
	int (*get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
	void (*ack_cq_events)(struct ibv_cq *cq, unsigned int nevents);
	struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);
	int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
			struct ibv_qp_init_attr *init_attr);
	int (*destroy_qp)(struct ibv_qp *qp);
	int (*query_device)(struct ibv_context *context, struct ibv_device_attr *attr);
	int (*get_async_event)(struct ibv_context *context, struct ibv_async_event *event);
	void (*ack_async_event)(struct ibv_async_event *event);
};

#endif
