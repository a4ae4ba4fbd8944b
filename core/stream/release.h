/* SPDX-License-Identifier: MIT */
/* When a stream leaves its seat though the peer, which is gone, will not say that it has. */
#ifndef SHUNT_CORE_STREAM_RELEASE_H
#define SHUNT_CORE_STREAM_RELEASE_H

#include <stdbool.h>

struct shunt_stream;

/* The program has sent bytes that the peer may not have. tx.lock held. */
bool shunt_streams_owes(const struct shunt_stream *stream);
/* The program has closed the stream: unless the peer may lack bytes, the broken link need not keep it. tx.lock held. */
void shunt_streams_let_go(struct shunt_stream *stream);
/* It has nothing of the link any more: if that is dead, its seat goes. tx.lock held. */
void shunt_streams_leave_dead(struct shunt_stream *stream);

#endif
