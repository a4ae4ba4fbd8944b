/* SPDX-License-Identifier: MIT */
/*
 * Bytes that travel past the engine. A program may reach the kernel's socket by a way that Shunt does not see: an
 * instruction of its own, a ring that nobody watches. If the link is the track then, TCP brings bytes that have no
 * place in the stream. They must not be lost in silence, so the stream ends with ECONNRESET at both ends.
 *
 * - The reader's end. While the link is the track and no HANDBACK is known, TCP has nothing to bring. The service
 *   thread watches the socket from the moment when the reader passes to the link. A HANDBACK is posted before the bytes
 *   behind it are written. But between hosts TCP may overtake it, and a resend after a failover may, too. So the bytes
 *   are looked at again, twice, before they count. In front of FIN they count at once where both ends are on one host.
 * - The sender's end. A program that is told of a reset, or closes behind one, has the kernel's count of its written
 *   bytes compared with the engine's. If the kernel has more, this process sends past Shunt. From then on its new
 *   connections stay on TCP.
 *
 * The looks are destroyed.c's. A receive that goes past Shunt takes no byte of the link's, and is not noticed.
 */
#ifndef SHUNT_CORE_STREAM_BYPASS_H
#define SHUNT_CORE_STREAM_BYPASS_H

#include "core/stream/stream.h"

struct shunt_engine;

/* The reader has passed a switch: on the link its socket is watched for bytes. rx.lock held. */
void shunt_bypass_watch(struct shunt_engine *engine, struct shunt_stream *stream);
/* Nothing is announced that TCP would bring, and the peer's end is not being moved. rx.lock held. */
bool shunt_bypass_is_links_alone(const struct shunt_stream *stream);
/* Bytes that the kernel's socket has to read. errno is kept. */
int shunt_bypass_unread(const struct shunt_stream *stream);
/* The reader is about to be told that the stream has ended in order. True: it has been reset instead. rx.lock held. */
bool shunt_bypass_before_end(struct shunt_stream *stream);
/* The peer has reset the stream: was that because this process sends past Shunt? One lock of the stream held. */
void shunt_bypass_compare(struct shunt_stream *stream);

#endif
