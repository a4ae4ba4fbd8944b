/* SPDX-License-Identifier: MIT */
/* Streams whose first byte has another offset than 0: as if TCP had carried so much before. */
#ifndef SIM_START_H
#define SIM_START_H

#include <stdint.h>

#define SIM_OFFSETS (1ull << 62)	/* no stream has as many bytes */

/* `before` bytes before 2^32 (`border` 1) or before the end of all offsets (2); else 0. */
static inline uint64_t sim_start(unsigned int border, uint64_t before)
{
	return border == 1 ? (1ull << 32) - before : border == 2 ? SIM_OFFSETS - before : 0;
}

#endif
