/* SPDX-License-Identifier: MIT */
/* Made-up headers of Ethernet, IP and TCP for bytes that never were in a packet. Checksums are right. */
#ifndef SHUNT_TOOLS_DUMP_FRAME_H
#define SHUNT_TOOLS_DUMP_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include "shunt/wire.h"

#define FRAME_HEADERS_MOST 128

enum frame_flag {
	FRAME_FIN = 0x01,
	FRAME_SYN = 0x02,
	FRAME_RST = 0x04,
	FRAME_PSH = 0x08,
	FRAME_ACK = 0x10
};

struct frame {
	const struct shunt_tuple *tuple; /* of the process that is dumped; ports in network order */
	bool out; /* from its local end */
	uint32_t sequence, acknowledged;
	uint8_t flags; /* enum frame_flag */
	struct iovec payload[2]; /* together at most SHUNT_TAP_MOST bytes */
};

/* Writes the headers; returns their bytes. */
size_t frame_headers(const struct frame *frame, uint8_t to[FRAME_HEADERS_MOST]);

#endif
