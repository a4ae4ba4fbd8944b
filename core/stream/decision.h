/* SPDX-License-Identifier: MIT */
/*
 * A connection in the log. At info it is each decision about it: a link carries it, or the reason why none does. At
 * debug it is each step of its claim. Both ends name it alike, "FROM to AT", the connecting end first.
 */
#ifndef SHUNT_CORE_STREAM_DECISION_H
#define SHUNT_CORE_STREAM_DECISION_H

#include "core/base/log.h"
#include "core/base/reason.h"
#include "shunt/wire.h"

struct shunt_link;
struct shunt_stream;
struct shunt_tuple;

/* Its link carries it from now on. Any lock may be held, as below. */
void shunt_decision_linked(struct shunt_stream *stream);
/* It is the kernel's for good. */
void shunt_decision_plain(struct shunt_stream *stream, enum shunt_cause cause);
/* A peer's claim is refused. */
void shunt_decision_refused(const struct shunt_link *link, const struct shunt_tuple *claimed, enum shunt_refusal why);
/* The claimant's reason for a refusal's code. */
enum shunt_cause shunt_decision_told(uint32_t why);

/* A step of its claim, or of a peer's claim. Arguments are not evaluated where nobody wants them. */
#define shunt_decision_step(stream, ...)                                        \
	do {                                                                    \
		if (shunt_log_wants(SHUNT_LOG_DEBUG))                           \
			shunt_decision_say(SHUNT_LOG_DEBUG, stream, __VA_ARGS__); \
	} while (0)
#define shunt_decision_claim(link, tuple, what)                                 \
	do {                                                                    \
		if (shunt_log_wants(SHUNT_LOG_DEBUG))                           \
			shunt_decision_say_claim(link, tuple, what);            \
	} while (0)

/* A message about the stream, if that level is wanted. Any lock may be held. */
void shunt_decision_say(enum shunt_log_level level, struct shunt_stream *stream, const char *format,
			...) __attribute__((format(printf, 3, 4)));
void shunt_decision_say_claim(const struct shunt_link *link, const struct shunt_tuple *claimed, const char *what);

#endif
