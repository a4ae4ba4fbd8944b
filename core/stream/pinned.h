/* SPDX-License-Identifier: MIT */
/* A blocking send whose buffer the device fetches from (send_queue.h): when it pays, and until when the send waits. */
#ifndef SHUNT_CORE_STREAM_PINNED_H
#define SHUNT_CORE_STREAM_PINNED_H

#include "core/lane/send_queue.h"

/* May a buffer of engine.lanes.pin_from bytes or more be sent so, as things are? tx.lock held. */
bool shunt_pinned_pays(const struct shunt_stream *stream, int flags);
/* Registers the buffer for the stream's sends; false: it cannot be. tx.lock held until shunt_pinned_drop. */
bool shunt_pinned_take(struct shunt_stream *stream, struct shunt_pin *pin, const struct iovec *iov);
/* Waits until the device has fetched all that was posted from it; tx.lock is given up meanwhile. */
void shunt_pinned_drop(struct shunt_stream *stream);
/* All WRs from the program's buffer are complete, or will never be: its send is told, if there is one. */
void shunt_pinned_tell(struct shunt_stream *stream);
/* shunt_pinned_drop() for a thread that was cancelled in its send. tx.lock is not held. */
void shunt_pinned_cancelled(void *stream);

#endif
