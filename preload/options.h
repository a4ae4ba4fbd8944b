/* SPDX-License-Identifier: MIT */
/*
 * The socket options of the kernel, a row each: what Shunt does beside the kernel's call.
 *
 * A connection on a link keeps its kernel socket, so most options are the kernel's alone: it checks the value, keeps it and
 * tells it. They say how packets are built, routed and sent again, and the bytes of a link are in no packet of the
 * connection. The engine serves those that a program sees in the results of its calls. A connection goes back to TCP only
 * where an option that is on does something to the bytes themselves, which no link does: it stamps, filters, signs or
 * delays them.
 */
#ifndef SHUNT_PRELOAD_OPTIONS_H
#define SHUNT_PRELOAD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum shunt_option_flag {
	SHUNT_OPTION_HEARD = 1 << 0,	/* the engine acts upon it: shunt_stream_option_changed() */
	SHUNT_OPTION_YOUNG = 1 << 1,	/* a young connection may have it, and needs no stream for it */
	SHUNT_OPTION_MARK = 1 << 2,	/* by these the engine proves possession: shunt_stream_option_begins() */
	SHUNT_OPTION_PACING = 1 << 3,	/* the kernel may have Shunt's value: shunt_stream_set_pacing() */
	SHUNT_OPTION_FREEZES = 1 << 4,	/* from then on the socket sends nothing: bytes for it come before */
	SHUNT_OPTION_TAKES = 1 << 5,	/* asking for it takes bytes out of the socket */
};

struct shunt_option {
	uint8_t flags;
	uint8_t needs;	/* enum shunt_needs (core/api.h): while it is on, the bytes must go by TCP; 0: they need not */
	bool (*is_on)(const void *value, socklen_t length);	/* NULL if `needs` is 0; the kernel has taken the value */
	int off_name, off;	/* set first while the stream goes back, so that it does not concern those bytes; 0: nothing is */
};

/* Of options that no row names, all fields are 0: they are the kernel's alone. */
const struct shunt_option *shunt_option_at(int level, int name);

#endif
