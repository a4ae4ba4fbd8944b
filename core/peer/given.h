/* SPDX-License-Identifier: MIT */
/*
 * A stream that its peer has taken back to TCP, as before exec or before it is passed on. Another process may use that end from
 * then on. As soon as all of both directions is on TCP and the seat is free, this end is a candidate again. It has its
 * place from the kernel (core/stream/doubt.h), because the other process knows nothing else.
 *
 * Until the peer has released the seat, or its link is dead, something may still name it. The stream is looked at again
 * after a while, which doubles.
 */
#ifndef SHUNT_CORE_PEER_GIVEN_H
#define SHUNT_CORE_PEER_GIVEN_H

struct shunt_task;

/* Streams of which that is true, and what becomes of them. Service thread. */
void shunt_given_run(struct shunt_task *task);

#endif
