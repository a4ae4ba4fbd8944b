/* SPDX-License-Identifier: MIT */
/* The bytes that TCP has carried of a connection: a plain program sees by them whether its connection is on the link. */
#ifndef TESTS_CALLS_CARRIED_H
#define TESTS_CALLS_CARRIED_H

#include <stdint.h>

/* Bytes both ways, by the kernel's count (TCP_INFO, tcp(7)). */
uint64_t carried(int fd);

#endif
