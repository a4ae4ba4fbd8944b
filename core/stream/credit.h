/* SPDX-License-Identifier: MIT */
/* Room in the peer's ring, as its reader gives it. */
#ifndef SHUNT_CORE_STREAM_CREDIT_H
#define SHUNT_CORE_STREAM_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

struct shunt_stream;

/* The peer's reader has come so far. NULL, or what is wrong with that. group.lock held. */
const char *shunt_credit_heard(struct shunt_stream *stream,
			       uint64_t upto);
/* Bytes of the stage may have room in the ring now. group.lock held. */
void shunt_credit_go_on(struct shunt_stream *stream);
/* Room that the peer has not told us of: what its program has read, where the device shows that. */
void shunt_credit_look(struct shunt_stream *stream);
/*
 * The same, from any device: perhaps by a round trip. Service thread, tx.lock held.
 */
void shunt_credit_fetch(struct shunt_stream *stream);
/* A word that the peer has written in its line of the stream. False: it cannot be seen. */
bool shunt_credit_word(struct shunt_stream *stream, uint32_t word, uint64_t *value);

#endif
