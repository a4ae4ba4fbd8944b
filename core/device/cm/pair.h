/* SPDX-License-Identifier: MIT */
/*
 * Queue pairs that the connection manager connects itself. An iWARP device knows no other way: nobody can lead its
 * queue pair to RTS by hand. The queue pairs stay the caller's, made with ibv_create_qp(3) in a context of its own.
 *
 * One end expects the other, which shows a word of chance; each word is good for one queue pair,
 * and once. The expecting end learns of a connection after its queue pair may send. So no message
 * of the connecting end can come too early for it.
 *
 * Both ends call these from the thread of cm_step(). Callbacks (struct cm_callbacks) come from
 * within cm_step(). `joined` comes exactly once for each pair that was not dropped before, with 0
 * or -errno. After a `joined` of 0, `parted` comes at most once: the connection has ended. Neither
 * callback drops the pair, and both may.
 *
 * Sources: rdma_connect(3), rdma_accept(3): "qp_num specifies the QP number associated with the connection"; RFC 5044 (MPA).
 */
#ifndef SHUNT_CORE_DEVICE_CM_PAIR_H
#define SHUNT_CORE_DEVICE_CM_PAIR_H

#include "core/device/cm/cm.h"

#define CM_WORD 16 /* bytes */

/*
 * Expected pairs come in at a local address, at the first free port from `first` to `last`. Those are in host order,
 * 0: the system chooses; *port is in network order. cm_unlisten() ends it. 0, or -errno and cm->error.
 */
int cm_pair_listen(struct cm *cm, const union cm_address *at, uint16_t first, uint16_t last,
		   struct cm_listener **listener, uint16_t *port);
/* The queue pair of this number is for the peer at that address (without a port) with this word. 0 or -ENOMEM. */
int cm_pair_expect(struct cm *cm, const union cm_address *peer, uint32_t qp_num,
		   const uint8_t word[CM_WORD], void *arg, struct cm_pair **pair);
/* Connects the queue pair to the one that is expected there. 0, or -errno: there will be no callback. */
int cm_pair_connect(struct cm *cm, const union cm_address *local, const union cm_address *peer,
		    uint32_t qp_num, const uint8_t word[CM_WORD], void *arg, struct cm_pair **pair);
/* Ends it, and its connection, without a callback. The queue pair fails, if it was connected. */
void cm_pair_drop(struct cm *cm, struct cm_pair *pair);

#endif
