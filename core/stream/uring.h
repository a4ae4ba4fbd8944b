/* SPDX-License-Identifier: MIT */
/*
 * io_uring. A ring's operations reach the kernel past every call of libc. A read misses the link's
 * bytes, and a registration in an epoll set reports the kernel's bytes only. So a process has rings
 * or streams on a link, not both, unless SHUNT_URING=allow says otherwise.
 */
#ifndef SHUNT_CORE_STREAM_URING_H
#define SHUNT_CORE_STREAM_URING_H

#include <stdbool.h>

struct shunt_engine;

/* SHUNT_URING's words. */
enum shunt_uring_choice { SHUNT_URING_DENY, SHUNT_URING_ALLOW, SHUNT_URING_TCP };

/* The fate of the process's rings. */
enum shunt_uring {
	SHUNT_URING_NONE,	/* none was asked for */
	SHUNT_URING_REFUSED,
	SHUNT_URING_IGNORED,	/* there may be one, and nothing follows from it */
	SHUNT_URING_RULES,	/* there may be one, and no stream is given to a link any more */
};

/* Says it in the log. */
void shunt_uring_tell(enum shunt_uring uring);
/*
 * The state only rises. True: it was lower before. Streams that are first used after
 * SHUNT_URING_RULES stay on TCP. Any thread.
 */
bool shunt_uring_set(struct shunt_engine *engine, enum shunt_uring uring);
/* For statistics. */
const char *shunt_uring_text(enum shunt_uring uring);
/*
 * No stream may be given to a link. Looks for rings that were made past the boundary, at most once
 * a second. If it finds one, the streams that are on links begin to leave them. Service thread.
 */
bool shunt_uring_forbids(struct shunt_engine *engine);

#endif
