/* SPDX-License-Identifier: MIT */
/*
 * io_uring. A ring's operations reach the kernel past every call of libc. A read misses the link's
 * bytes, and a registration in an epoll set reports the kernel's bytes only. So each submission is looked at before
 * (preload/uring_watch.h), and a stream that it names is the kernel's. Where a ring cannot be watched, a process has
 * rings or streams on a link, not both, unless SHUNT_URING=allow says otherwise.
 */
#ifndef SHUNT_CORE_STREAM_URING_H
#define SHUNT_CORE_STREAM_URING_H

#include <stdbool.h>

struct shunt_engine;
struct shunt_stream;

/* SHUNT_URING's words. */
enum shunt_uring_choice { SHUNT_URING_WATCH, SHUNT_URING_DENY, SHUNT_URING_ALLOW, SHUNT_URING_TCP };

/* The fate of the process's rings. */
enum shunt_uring {
	SHUNT_URING_NONE,	/* none was asked for */
	SHUNT_URING_WATCHED,	/* there are some, and their submissions are looked at */
	SHUNT_URING_REFUSED,
	SHUNT_URING_IGNORED,	/* there may be one, and nothing follows from it */
	SHUNT_URING_RULES,	/* there may be one, and no stream is given to a link any more */
};

/* Says it in the log. `why`: a ring that should have been watched cannot be; NULL: none is to be. */
void shunt_uring_tell(enum shunt_uring uring, const char *why);
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
/* Are rings of this process no longer watched, and all its streams on TCP? Any thread. */
bool shunt_uring_rules(struct shunt_engine *engine);
/*
 * A ring is about to use the stream: it goes back to TCP, and never leaves it again. Waits for that (shunt_stream_bar()). A
 * listener may stay. 0 or -errno.
 */
int shunt_uring_bar(struct shunt_engine *engine, int fd, struct shunt_stream *stream, bool reads);

#endif
