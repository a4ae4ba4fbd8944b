/* SPDX-License-Identifier: MIT */
/* Room in the peer's ring, as its reader gives it. group.lock held. */
#ifndef SHUNT_CORE_STREAM_CREDIT_H
#define SHUNT_CORE_STREAM_CREDIT_H

#include <stdint.h>

struct shunt_engine;
struct shunt_stream;

/* The peer's reader has come so far. NULL, or what is wrong with that. */
const char *shunt_credit_heard(struct shunt_engine *engine, struct shunt_stream *stream,
			       uint64_t upto);
/* Bytes of the stage may have room in the ring now. */
void shunt_credit_go_on(struct shunt_engine *engine, struct shunt_stream *stream);

#endif
