/* SPDX-License-Identifier: MIT */
/*
 * Numbers that look random (splitmix64): for salts and tortures, not for secrets. Any thread.
 */
#ifndef SHUNT_CORE_BASE_RANDOM_H
#define SHUNT_CORE_BASE_RANDOM_H

#include <stdint.h>

struct shunt_engine;

/* From 0 on, below `below`. */
uint32_t shunt_random(struct shunt_engine *engine, uint32_t below);

#endif
