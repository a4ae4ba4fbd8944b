/* SPDX-License-Identifier: MIT */
/* Connected TCP sockets that this process has from another one. */
#ifndef SHUNT_PRELOAD_INHERIT_H
#define SHUNT_PRELOAD_INHERIT_H

#include <sys/socket.h>
#include "core/base/reason.h"

/* When the library is loaded: those that exec has left open below SHUNT_INHERIT_NUMBERS. Others stay the kernel's. */
void shunt_inherit_begin(void);
#define SHUNT_INHERIT_NUMBERS 256

/* Descriptors that the kernel has put into a message of this process (SCM_RIGHTS). errno is kept. */
void shunt_inherit_received(const struct msghdr *message);

#endif
