/* SPDX-License-Identifier: MIT */
#ifndef SHUNT_CORE_BASE_SOFT_MODEL_H
#define SHUNT_CORE_BASE_SOFT_MODEL_H

#include <stdint.h>

/*
 * The costs of an RNIC (RB-27, XR-E5): the soft device is far faster, so the shapes of the papers' figures do not
 * show on it. With the model on, a WR is carried out and completes when the modelled device would have come to it,
 * instead of during post_send. All times in ns; 0 of anything is free or without limit.
 *
 * field      of each                       connectx3  where the number is from
 * doorbell   call of post_send             100        assumption: a write to the device's registers
 * wqe        WR, chained or not            30         assumption: 33 million messages a second
 * gbit       byte: 8 / gbit ns             56         announcement of the NIC: FDR InfiniBand
 * delay      WR, not in the pipeline       850        the same: less than 1 µs
 * cache      WRs outstanding               128        assumption: puts RDMAbox's peak (Fig. 1) at 4 threads
 * miss       WR beyond the cache           400        assumption: a read over PCIe, part of it hidden
 * qp         WR of the same QP             0          off; one unit of the NIC works on a QP, its WRs in order
 * queue      bytes outstanding             0          off; a buffer on the way, as in X-RDMA's incast (Fig. 10)
 * pause      WR beyond the queue           0          off; how long a pause frame stops the sender
 * mr         registration of memory        20000      assumption; with `page` it costs as much as a copy at
 * page       4 KiB page of it              320        928 KB where a core copies 10 GB/s (RDMAbox, Fig. 5)
 * block      started 4 KiB                0          off; the NIC's own share of a request, where rates are scaled down
 * sink       started 4 KiB, at the peer    0          off; the node's share of a request, as in Haechi's capacity
 *
 * A WR is outstanding from post_send until it is carried out, over all QPs of the context. Of n outstanding WRs, n -
 * cache are not in the cache: that share of `miss` is what each costs that is posted then. The rest of a chain is
 * fetched together with its head, so a doorbell is paid once.
 *
 * `qp` is a second limit, each QP's own: a WR takes its unit `qp`, and what the cache costs, after the QP's last one.
 * Whichever is later, that or the pipeline, counts. So one QP alone does not use the whole device: a QP of an RNIC is
 * served by one processing unit. (Kalia et al., Design Guidelines for High Performance RDMA Systems, ATC 2016.)
 *
 * `sink` is a third limit, the receiving node's. All contexts that name the same `sinkfile` share one node, whatever
 * process they are in. Without a file each context has a node of its own. A WR of more than 8 bytes takes it `sink`
 * for each 4 KiB that it starts; words and atomics take nothing. So the node's capacity in WRs of 4 KiB is 10^9 /
 * sink a second. That of a client alone is 10^9 / wqe, or 10^9 / (wqe + 32768 / gbit). `block` counts as `sink` does,
 * at the NIC of the sender. So words and atomics stay free where requests take long.
 *
 * With `sink`, `queue` is the buffer before that node: the bytes that it has not dealt with, of all its senders.
 *
 * The file has two words (struct soft_sink). The second is added to `sink`, and may be changed at any time: that is
 * congestion, which comes and goes. To make each 4 KiB take 500 ns longer:
 *   python3 -c 'import struct; f = open("PATH", "r+b"); f.seek(8); f.write(struct.pack("=Q", 500))'
 */
enum { SOFT_SINKFILE = 108 };

struct soft_model {
	int on;
	uint64_t doorbell, wqe, gbit, delay, cache, miss, qp, queue, pause, mr, page, sink, block;
	char sinkfile[SOFT_SINKFILE]; /* "": none; absolute, made where it is missing (0600), the process's user's own */
};

/*
 * "" is off. A preset (connectx3), "key=value,…" over a model in which all is free, or both:
 * "connectx3,cache=64". The value of queue takes the suffixes K, M, G; sinkfile is a path without
 * commas. 0, or -EINVAL and *model as it was.
 */
int soft_model_parse(const char *text, struct soft_model *model);

#endif
