/* SPDX-License-Identifier: MIT */
/*
 * Numbers that look random (splitmix64): for salts and tortures, not for secrets. Any thread.
 */
#ifndef SHUNT_CORE_BASE_RANDOM_H
#define SHUNT_CORE_BASE_RANDOM_H

#include <stdint.h>

/* From 0 on, below `below`. */
uint32_t shunt_random(_Atomic uint64_t *state, uint32_t below);

#endif
