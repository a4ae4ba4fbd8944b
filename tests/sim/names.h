/* SPDX-License-Identifier: MIT */
/*
 * Abstract Unix names of the process alone. Engines under test use the names of the product, which other processes of
 * the machine may have too. So bind() and connect() put a prefix of this process before them.
 */
#ifndef SIM_NAMES_H
#define SIM_NAMES_H

#include <sys/socket.h>

/* As the calls of libc. Other addresses stay as they are. */
int sim_names_bind(int fd, const struct sockaddr *address, socklen_t length);
int sim_names_connect(int fd, const struct sockaddr *address, socklen_t length);

#endif
