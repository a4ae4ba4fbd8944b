/* SPDX-License-Identifier: MIT */
/*
 * Sent bytes may have to be sent again over TCP (lane.retains), so the kernel's socket must not end before the link
 * has brought everything. The program's shutdown() and close() of it are carried out on a descriptor of our own, when
 * FIN has arrived.
 *
 * Where no descriptor is left, shutdown waits for FIN on the program's own. Bytes that come for a program that has
 * closed meanwhile are refused with a reset, as the kernel does. Otherwise two such ends would wait for each other
 * for ever.
 */
#ifndef SHUNT_CORE_STREAM_DEFERRED_FIN_H
#define SHUNT_CORE_STREAM_DEFERRED_FIN_H

#include "core/lane/lane_serve.h"
#include "core/stream/stream.h"

/*
 * Keeps the socket `fd` until then. If no descriptor is free now, one is taken later, unless the program is `closing`
 * its own. False: there is no need, or no descriptor. tx.lock held, before FIN is queued.
 */
bool shunt_deferred_fin_keep(struct shunt_stream *stream, int fd, bool closing);
/* There may be one now. */
void shunt_deferred_fin_again(struct shunt_stream *stream);
/* FIN may have arrived. lane.lock held. True: not yet. */
bool shunt_deferred_fin_look(struct shunt_stream *stream);
/* The link brings nothing more: what TCP has to carry instead, then the end. Both locks held. */
void shunt_deferred_fin_resume(struct shunt_stream *stream);
/* The kernel's socket, which the program may have closed; less than 0: it is gone. tx.lock held. */
static inline int shunt_deferred_fin_fd(const struct shunt_stream *stream)
{
	return stream->fd >= 0 ? stream->fd : stream->seat->out.fin_later.fd;
}

/* TCP's backlog has been written, for which the end had to wait, too. tx.lock held. */
static inline void shunt_deferred_fin_written(struct shunt_stream *stream)
{
	if (shunt_seat_fin_is_due(&stream->seat->out))
		shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_DONE);
}

#endif
