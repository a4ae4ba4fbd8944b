/* SPDX-License-Identifier: MIT */
/*
 * A fuzzer is a program that libFuzzer gives inputs (configure --enable-fuzz), or that reads them from files (main.c).
 * Most inputs are scripts: what is left of the bytes decides what happens next, and no byte means 0.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Holds for every input. */
#define fuzz_check(condition)								\
	do {										\
		if (__builtin_expect(!(condition), 0)) {				\
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);	\
			abort();							\
		}									\
	} while (0)

struct fuzz_input {
	const uint8_t *at, *end;
};

static inline bool fuzz_more(const struct fuzz_input *in)
{
	return in->at < in->end;
}

static inline uint8_t fuzz_byte(struct fuzz_input *in)
{
	return fuzz_more(in) ? *in->at++ : 0;
}

/* 0 … below-1; below is at most 256. */
static inline unsigned int fuzz_below(struct fuzz_input *in, unsigned int below)
{
	return fuzz_byte(in) % below;
}

/* The next bytes, zeros where there are none. */
static inline void fuzz_take(struct fuzz_input *in, void *to, size_t bytes)
{
	size_t left = in->end - in->at, part = bytes < left ? bytes : left;

	memset(to, 0, bytes);
	if (part)
		memcpy(to, in->at, part);
	in->at += part;
}

static inline uint32_t fuzz_u32(struct fuzz_input *in)
{
	uint32_t value;

	fuzz_take(in, &value, sizeof(value));
	return value;
}

static inline uint64_t fuzz_u64(struct fuzz_input *in)
{
	uint64_t value;

	fuzz_take(in, &value, sizeof(value));
	return value;
}

#endif
