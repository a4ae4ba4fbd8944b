/* SPDX-License-Identifier: MIT */
/*
 * accept() that waits at a listener which may have births (core/stream/births.h). A thread in the kernel's accept() could not
 * be woken by one. So it waits in ppoll(), as a receive does, and the kernel's call is made when a connection is there.
 *
 * Another thread or process may take that connection in between, and the kernel's call would wait after all. Threads of this
 * process look and accept under the listener's rx.lock. A listener of which another process may have a copy gets no more
 * spares. Its kernel's call is made outside, where signals and cancellations end it.
 */
#ifndef SHUNT_CORE_ACCEPT_H
#define SHUNT_CORE_ACCEPT_H

struct shunt_engine;

/* A fork is due: from now on another process may accept at our listeners. No thread is about to do so when this returns. */
void shunt_accept_share(struct shunt_engine *engine);

#endif
