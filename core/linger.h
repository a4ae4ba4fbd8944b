/*
 * Where what was sent may still have to be sent again over TCP (lane.retains), the kernel's socket must not
 * end before the link has brought everything: the program's shutdown() and close() of it are carried out, on a
 * descriptor of our own, when FIN has arrived.
 */
#ifndef SHUNT_CORE_LINGER_H
#define SHUNT_CORE_LINGER_H

#include "core/stream.h"

/* Keeps the socket `fd` until then. False: there is no need, or no descriptor. tx.lock held, before FIN is queued. */
bool shunt_linger_keep(struct shunt_stream *stream, int fd);
/* FIN may have arrived. lane.lock held. True: not yet. */
bool shunt_linger_look(struct shunt_stream *stream);
/* The link is dead: what has to be sent again is sent, then the end. tx.lock held. */
void shunt_linger_resume(struct shunt_stream *stream);
/* The link is dead, and nothing can be sent again. */
void shunt_linger_end(struct shunt_stream *stream);

#endif
