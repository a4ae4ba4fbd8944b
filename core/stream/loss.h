/* SPDX-License-Identifier: MIT */
/*
 * A stream whose link is dead: what the two ends can still see of each other's progress, and what is lost with the link.
 */
#ifndef SHUNT_CORE_STREAM_LOSS_H
#define SHUNT_CORE_STREAM_LOSS_H

#include <stdbool.h>

struct shunt_stream;

/* The link is dead: both directions go on over TCP. */
void shunt_loss_detach(struct shunt_stream *stream);
/* The peer may see how far our program has sent, also what it thinks has arrived. tx.lock held. */
void shunt_loss_tell(struct shunt_stream *stream);
/* Bytes are lost: `error` for the program (0: as a reset), and TCP does not go on behind the hole. Both locks held. */
void shunt_loss_end(struct shunt_stream *stream, int error);
/* The same of a stream that the program has closed: what TCP has to carry, then the end, or a reset. Both locks held. */
void shunt_loss_closed(struct shunt_stream *stream);

#endif
