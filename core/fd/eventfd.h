/* SPDX-License-Identifier: MIT */
/* Is a descriptor an eventfd? Asked where there is no /proc, and without a word to the file's own server. */
#ifndef SHUNT_CORE_FD_EVENTFD_H
#define SHUNT_CORE_FD_EVENTFD_H

#include <stdbool.h>

/*
 * `context`: of io_setup(2), 0 at first. It stays for the next question, because its end takes the kernel
 * some 30 ms, and belongs to this process alone. False also if the kernel cannot be asked. errno is kept.
 */
bool shunt_eventfd_is(unsigned long *context, int fd);

#endif
