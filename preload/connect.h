/* SPDX-License-Identifier: MIT */
#ifndef SHUNT_PRELOAD_CONNECT_H
#define SHUNT_PRELOAD_CONNECT_H

#include "preload/process.h"

/*
 * A send with MSG_FASTOPEN, which connects. True: it is over, and *sent is its result. False: the socket is connected, or
 * none of ours, and *flags are those of a send that is still to be made. Sets errno.
 */
bool shunt_connect_sends(int fd, const struct msghdr *message, int *flags, ssize_t *sent);

#endif
