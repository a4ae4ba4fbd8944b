/* SPDX-License-Identifier: MIT */
/*
 * SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012), of whole words.
 * Without the key nothing about one hash follows from others. No lock.
 */
#ifndef SHUNT_CORE_BASE_SIPHASH_H
#define SHUNT_CORE_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t shunt_siphash(const uint64_t key[2], const uint64_t *words, size_t count);

#endif
