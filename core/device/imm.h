/* SPDX-License-Identifier: MIT */
/*
 * A device without WRITE_WITH_IMM, as a device that has it: iWARP has none (RFC 5040). The layer stands in for four rows
 * of context->ops and three of the device's table. The filter of faults goes in front of it (fault_device.h).
 *
 * A message is an RDMA_WRITE, and a SEND of 8 bytes behind it: the immediate, and how many bytes the WRITE has. A
 * message of no bytes is the SEND alone. A WRITE has been placed when the SEND behind it is delivered (RFC 5040, 5.5).
 *
 * A WR that is to say when it is complete has a READ of a word behind it, which says it. A
 * completion of iWARP itself only says that the bytes have been taken. Bytes kept until they have
 * arrived would be let go too early. So each message takes three slots of the send queue, and a QP
 * that fails flushes three completions for it.
 *
 * Each completion wakes the CQ's sleepers: siw (Linux 6.1) tells nobody of a SEND that is solicited.
 *
 * The receives of a lane get a buffer of 8 bytes each. The bytes of a peer there are hostile until checked.
 */
#ifndef SHUNT_CORE_DEVICE_IMM_H
#define SHUNT_CORE_DEVICE_IMM_H

#include <stddef.h>
#include <stdint.h>
#include "core/base/verbs.h"

struct shunt_device;

#define SHUNT_IMM_SLOTS 3 /* requests of the device for one of a lane's */
#define SHUNT_IMM_NOTE_BYTES 8 /* of the SEND */

/* Of a device: the calls that the layer stands in for. All zero: the device has no layer. */
struct shunt_imm_calls {
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
	int (*poll_cq)(struct ibv_cq *cq, int room, struct ibv_wc *wc);
	int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int cqe, void *cq_context,
				    struct ibv_comp_channel *channel, int comp_vector);
	struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
	int (*destroy_qp)(struct ibv_qp *qp);
	/* Memory where a SEND may land, NULL and errno. A test of the soft device replaces both: it takes them from its arena. */
	void *(*map)(struct ibv_pd *pd, size_t bytes);
	void (*unmap)(void *at, size_t bytes);
};

/*
 * Of a kind's open(), once device->context is there: puts the layer in front of the device. `verbs` is the device's own
 * table, of which three rows are changed. The cq_context of each CQ must be the device, the qp_context of a QP its lane
 * or NULL. 0 or -errno.
 */
int shunt_imm_attach(struct shunt_device *device, struct shunt_verbs *verbs);
/* Leaves of the device's limits what the layer leaves; without a layer, all. */
void shunt_imm_limit(const struct shunt_device *device, struct ibv_device_attr *limits);

#endif
