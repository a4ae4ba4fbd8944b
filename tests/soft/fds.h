/* SPDX-License-Identifier: MIT */
/* Two descriptors beside a message, as the soft device wants them passed. */
#ifndef SHUNT_TESTS_SOFT_FDS_H
#define SHUNT_TESTS_SOFT_FDS_H

#include <stdbool.h>
#include <stddef.h>

/* Has all of it been sent? -1 for a device that passes none. */
bool fds_send(int socket, const void *message, size_t bytes, const int fds[2]);
bool fds_receive(int socket, void *message, size_t bytes, int fds[2]);

#endif
