/* SPDX-License-Identifier: MIT */
/*
 * shunt dump: the bytes of streams as packets. A process copies records into memory that this command has made
 * (listener.c, core/trace/tap.h). Connections give them sequence numbers (flow.c), and headers (frame.c). Packets that a
 * filter of libpcap lets through (filter.c) go into a file (pcapng.c).
 */
#ifndef SHUNT_TOOLS_DUMP_H
#define SHUNT_TOOLS_DUMP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>
#include "core/trace/tap.h"
#include "tools/ask/door.h"
#include "tools/dump/frame.h"
#include "tools/dump/pcapng.h"

/* --- listener.c --- */

struct listener {
	struct shunt_door door;
	int fd; /* of its control socket; -1: the process is gone */
	bool broken; /* it has written what no library writes */
	uint64_t bytes; /* of the ring */
	struct shunt_tap_page *page;
	struct shunt_tap_record *records;
	uint8_t *ring;
	uint64_t tail; /* as shunt_tap_at(): what has been read */
	struct shunt_tap_record next; /* the record there, if `ready` */
	bool ready;
	uint32_t interface;
	uint64_t packets; /* that were written */
	uint64_t dropped; /* that are known to be missing in the file */
	uint64_t told; /* of them: a packet behind them says so */
	uint64_t unseen; /* of them: the process did not have the bytes */
};

/* Has the process copy its streams into `bytes` bytes. False: it has been said why not. */
bool listener_begin(struct listener *listener, const struct shunt_door *wanted, uint64_t bytes);
/* The next record, if it is complete, is in `next`. */
bool listener_look(struct listener *listener);
/* Its bytes, which may change at any time. */
void listener_payload(const struct listener *listener, struct iovec piece[2]);
void listener_pass(struct listener *listener);
/* Packets that are missing, as far as the process says. */
uint64_t listener_dropped(const struct listener *listener);
void listener_end(struct listener *listener);

/* --- filter.c --- */

struct filter;

/* An expression in the language of tcpdump: pcap-filter(7). NULL: it has been said why. */
struct filter *filter_make(const char *expression);
bool filter_passes(const struct filter *filter, const struct pcapng_packet *packet);
void filter_free(struct filter *filter);

/* --- flow.c --- */

#define DUMP_FLOW_BUCKETS 65536u

struct flow;

struct dump {
	struct pcapng file;
	struct filter *filter; /* NULL: all packets */
	struct listener *listener;
	uint32_t listeners;
	int64_t wall; /* ns from CLOCK_MONOTONIC to CLOCK_REALTIME */
	bool immediately; /* each packet is written at once */
	struct flow *flow[DUMP_FLOW_BUCKETS];
	struct flow *by_born[DUMP_FLOW_BUCKETS]; /* the last one of each hash; NULL: none */
	uint32_t flows;
};

/* Writes the packets of a listener's next record. */
void flow_record(struct dump *dump, struct listener *listener);
/* The process of a listener is gone: so are its connections. */
void flow_over(struct dump *dump, const struct listener *listener);
void flow_free(struct dump *dump);

#endif
