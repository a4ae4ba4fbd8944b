/* SPDX-License-Identifier: MIT */
/*
 * Numbers in narrower types. A number that does not fit becomes the largest that does: right for the
 * limits and times that this is for. Elsewhere a cast stands beside the check that it needs.
 */
#ifndef SHUNT_CORE_BASE_NARROW_H
#define SHUNT_CORE_BASE_NARROW_H

#include <limits.h>
#include <stdint.h>

static inline uint32_t shunt_narrow_u32(uint64_t n)
{
	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static inline int shunt_narrow_int(uint64_t n)
{
	return n < INT_MAX ? (int)n : INT_MAX;
}

/* ms for a time-out that shall not end before so many ns are over. */
static inline int shunt_narrow_ms(uint64_t ns)
{
	return shunt_narrow_int(ns / 1000000 + 1);
}

/* Events of epoll for poll(), which has those that fit. */
static inline short shunt_narrow_poll(uint32_t events)
{
	return (short)(uint16_t)events;
}

#endif
