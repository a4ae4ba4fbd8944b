/* SPDX-License-Identifier: MIT */
/*
 * Abstract Unix names of the process alone. Engines under test use the names of the product, which other processes of
 * the machine may have too: bind() and connect() put a prefix before them that is this process's own.
 */
#ifndef SIM_NAMES_H
#define SIM_NAMES_H

#include <sys/socket.h>

/* As the calls of libc. What is no abstract Unix name is left as it is. */
int sim_names_bind(int fd, const struct sockaddr *address, socklen_t length);
int sim_names_connect(int fd, const struct sockaddr *address, socklen_t length);

#endif
