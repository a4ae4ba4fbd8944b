/* SPDX-License-Identifier: MIT */
/*
 * Code of the running program that is replaced: go/ and gate_open.c do it. Memory that may be run stays so, and is writable
 * only meanwhile, if at all: where /proc/self/mem may be written it never is.
 */
#ifndef SHUNT_PRELOAD_GO_CODE_H
#define SHUNT_PRELOAD_GO_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shunt_code {
	int memory;	/* /proc/self/mem, or -1 */
};

void shunt_code_begin(struct shunt_code *code);
void shunt_code_end(struct shunt_code *code);
/* False: neither way is open, and nothing has changed. */
bool shunt_code_write(const struct shunt_code *code, uint8_t *at, const void *bytes, size_t count);
/*
 * Memory for code, executable and not writable: below `low`, and so near that a jump from there reaches [low, high).
 * NULL: there is none.
 */
uint8_t *shunt_code_pages(uint64_t low, uint64_t high, size_t bytes);
/* Is this the only thread? NULL, or why not. Call it before code is replaced. */
const char *shunt_code_is_alone(void);

/* Copies, and returns the end of the copy. */
uint8_t *shunt_code_put(uint8_t *at, const void *bytes, size_t count);
/* An operand of four bytes at `from`: how far from behind it to `to`. */
uint8_t *shunt_code_put_distance(uint8_t *at, uint64_t from, uint64_t to);

#endif
