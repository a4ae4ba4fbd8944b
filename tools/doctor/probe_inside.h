/* SPDX-License-Identifier: MIT */
#ifndef SHUNT_TOOLS_PROBE_INSIDE_H
#define SHUNT_TOOLS_PROBE_INSIDE_H

#include "core/device/verbs/verbs.h"

enum {
	PROBE_DEPTH = 1024,	/* as a lane's queues, of which it uses one less */
	PROBE_LEAST = 64,	/* entries of the smallest queues */
	PROBE_INLINE = 256,	/* bytes that a lane asks for */
	PROBE_LANES = 4,	/* of a first link */
	PROBE_ENTRIES = 2 * PROBE_DEPTH * PROBE_LANES - 1,
	PROBE_BYTES = 5 << 20,	/* of its first memory: control lines and a block of rings */
};

struct probe {
	struct verbs_device device;
	struct ibv_device_attr told;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp[PROBE_LANES];	/* the first is connected to itself */
	struct ibv_mr *mr;
	char *memory;		/* PROBE_BYTES */
	uint32_t inline_bytes, depth; /* as got */
};

/* Makes the first queue pair anew, connected to itself. 0 or -errno. */
int shunt_probe_connect(struct probe *probe);

#endif
