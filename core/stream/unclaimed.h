/* SPDX-License-Identifier: MIT */
/*
 * An accepted connection that nobody claims has a plain peer. A peer claims at its first use, so the clock starts
 * with the first byte, in either direction. claim_ms later the connection is the kernel's, its calls go
 * straight there, and a late claim is refused. One that has carried no byte stays a candidate; it costs nothing.
 *
 * A peer on another host claims a connection only once it has lasted (short_lived.h), which may be much later than
 * its first byte. There the clock starts anew behind so many transfers that the peer must have seen it last, too.
 */
#ifndef SHUNT_CORE_STREAM_UNCLAIMED_H
#define SHUNT_CORE_STREAM_UNCLAIMED_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/reason.h"
#include "core/stream/streams.h"

struct shunt_engine;
struct shunt_stream;

struct shunt_unclaimed_look {	/* begins with `now`, and next as SHUNT_NEVER */
	uint64_t now, next;	/* next: when the first of the others is due */
	struct shunt_sweep sweep;
};

/* The stream's first byte goes or comes over TCP. rx.lock or tx.lock held. */
void shunt_unclaimed_begin(struct shunt_stream *stream);
/* An acceptor that was excused has carried more over TCP. rx.lock or tx.lock held. */
void shunt_unclaimed_goes_on(struct shunt_stream *stream);
/* Its time is over, and its peer is on another host: the clock starts anew, once. Service thread. */
bool shunt_unclaimed_excuses(struct shunt_stream *stream);
/* Nobody has claimed it in time. Any lock may be held. */
bool shunt_unclaimed_is_over(struct shunt_stream *stream);
/* The next one of those; NULL: none left, and look->next is known. Held as by shunt_streams_next(). */
struct shunt_stream *shunt_unclaimed_next(struct shunt_engine *engine,
					  struct shunt_unclaimed_look *look);
/* Claims come to the owner of the address, who does not hear of what we have. */
enum shunt_cause shunt_unclaimed_reason(const struct shunt_stream *stream);

#endif
