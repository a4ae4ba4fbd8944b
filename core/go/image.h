/* SPDX-License-Identifier: MIT */
/*
 * The bytes of an ELF program that is loaded, or lies in a file: its segments, and which part of them an address means.
 * The program is hostile input. Every reader asks shunt_go_image_at(), which answers for whole spans only.
 */
#ifndef SHUNT_CORE_GO_IMAGE_H
#define SHUNT_CORE_GO_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SHUNT_GO_SEGMENTS = 16 };

struct shunt_go_segment {
	uint64_t address;	/* of the first byte, as code of the program means it */
	uint64_t size;		/* bytes that the file has; memory behind them is zero and not here */
	const uint8_t *bytes;
	uint32_t flags;		/* PF_* */
};

struct shunt_go_image {
	struct shunt_go_segment segments[SHUNT_GO_SEGMENTS];
	unsigned int count;
	uint64_t low, high;	/* addresses of the program, with the memory behind its segments */
};

/*
 * Has the linker of Go made this program? One look at its headers and notes, which ld.so has read, too. `base`: where
 * address 0 of the headers lies in memory.
 */
bool shunt_go_image_is_go(const Elf64_Phdr *headers, unsigned int count, uintptr_t base);
/* The segments of the running program. */
void shunt_go_image_of_memory(struct shunt_go_image *image, const Elf64_Phdr *headers,
			      unsigned int count, uintptr_t base);
/* The segments of a program in a file that is mapped. False: it is no ELF program of this kind of machine. */
bool shunt_go_image_of_file(struct shunt_go_image *image, const uint8_t *file, uint64_t size,
			    bool *is_go);
/* The address of a section, as the headers have it; 0: no section has that name. */
uint64_t shunt_go_image_section(const uint8_t *file, uint64_t size, const char *name);

/* The bytes of [address, address + size); NULL: not all of them are in one segment. */
const uint8_t *shunt_go_image_at(const struct shunt_go_image *image, uint64_t address,
				 uint64_t size);
/* The segment of an address; NULL: none. */
const struct shunt_go_segment *shunt_go_image_segment(const struct shunt_go_image *image,
						      uint64_t address);

/* A word at any place, in this machine's order of bytes. */
static inline uint32_t shunt_go_u32(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

static inline uint64_t shunt_go_u64(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

#endif
