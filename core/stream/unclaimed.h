/* SPDX-License-Identifier: MIT */
/*
 * An accepted connection that nobody claims has a plain peer. A peer claims at its first use, so the clock starts with
 * the first byte, in either direction: SHUNT_CLAIM_MS later the connection is the kernel's, its calls go straight there,
 * and a late claim is refused. One that has carried no byte stays a candidate; it costs nothing.
 */
#ifndef SHUNT_CORE_STREAM_UNCLAIMED_H
#define SHUNT_CORE_STREAM_UNCLAIMED_H

#include "core/service.h"

struct shunt_task;

/* The stream's first byte goes or comes over TCP. rx.lock or tx.lock held. */
void shunt_unclaimed_begin(struct shunt_stream *stream);
/* Nobody has claimed it in time. Any lock may be held. */
bool shunt_unclaimed_is_over(struct shunt_stream *stream);
/* Gives those to the kernel. */
void shunt_unclaimed_run(struct shunt_task *task);

#endif
