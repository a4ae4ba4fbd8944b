/* SPDX-License-Identifier: MIT */
/* A program asks for a ring of io_uring (core/stream/uring.h). */
#ifndef SHUNT_PRELOAD_URING_H
#define SHUNT_PRELOAD_URING_H

#include <stdbool.h>

/*
 * Before a ring is made. True: it shall not be made. False with SHUNT_URING=tcp: the streams that were
 * on links have gone back to TCP. errno is kept.
 */
bool shunt_uring_refused(void);

#endif
