/* SPDX-License-Identifier: MIT */
/*
 * Writing on our own behalf in somebody else's process. A failed write (RLIMIT_FSIZE, a reader that
 * has gone) is an error for us and not a signal for the program.
 */
#ifndef SHUNT_CORE_BASE_WRITE_NOSIG_H
#define SHUNT_CORE_BASE_WRITE_NOSIG_H

#include <stddef.h>
#include <sys/types.h>

/* As write(2), by way of `call`; never SIGXFSZ or SIGPIPE. Async-signal-safe. */
ssize_t shunt_write_nosig(ssize_t (*call)(int fd, const void *buffer, size_t bytes), int fd,
			  const void *buffer, size_t bytes);

#endif
