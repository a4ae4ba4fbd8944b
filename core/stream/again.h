/* SPDX-License-Identifier: MIT */
/*
 * Bytes that the link was to carry and that the peer wants over TCP. After RETIRE its reader has not taken them,
 * after a queue pair's death (RESUME) they have not arrived. The peer says from where.
 */
#ifndef SHUNT_CORE_STREAM_AGAIN_H
#define SHUNT_CORE_STREAM_AGAIN_H

#include "core/stream/stream.h"

struct shunt_engine;

extern const char shunt_again_wrong[];	/* why a link is distrusted after -EPROTO */

/* Room for so many bytes behind what is to be written to TCP; NULL: no memory. tx.lock held. */
uint8_t *shunt_again_add(struct shunt_tx *tx, size_t bytes);
void shunt_again_free(struct shunt_stream *stream);
/*
 * Everything from stream offset `from` on becomes TCP's. tx.lock and lane.lock held. 0, or -errno:
 * -EPROTO where no honest peer asks for that, another where it cannot be had.
 *
 * With `answer` only if that is sent (shunt_link_send_now): a peer that has ended the link meanwhile reads its ring. Then
 * -EAGAIN, or -EPIPE.
 */
int shunt_again_take_back(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t from,
			  const struct shunt_message *answer);

#endif
