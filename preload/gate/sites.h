/* SPDX-License-Identifier: MIT */
/*
 * The SYSCALL instructions of a C library: those in functions that make calls on descriptors, by the library's own table
 * of symbols. Two shapes are known:
 *
 *	mov eax, n; syscall		the first is replaced; a jump to the second makes the call as before
 *	syscall; cmp rax, -4095 or so	both are replaced, if no jump of the function may lead to the second
 */
#ifndef SHUNT_PRELOAD_GATE_SITES_H
#define SHUNT_PRELOAD_GATE_SITES_H

#include <stdbool.h>
#include <stdint.h>

struct link_map;

enum { SHUNT_GATE_SITES = 160 };

enum shunt_gate_shape { SHUNT_GATE_NUMBER = 5, SHUNT_GATE_COMPARE = 8 };	/* bytes that are replaced */

struct shunt_gate_site {
	uint8_t *at;	/* the first byte that is replaced */
	enum shunt_gate_shape shape;
};

struct shunt_gate_sites {
	struct shunt_gate_site site[SHUNT_GATE_SITES];
	unsigned int count;
	unsigned int unknown;	/* functions, or instructions in them, that are not as they are known */
	const char *lacking;	/* a function without which nothing may be replaced, and that is not known; NULL: none */
};

/* Adds those of a library that is loaded. `whole`: it has all functions; those of a part are looked at as far as they are there. */
void shunt_gate_sites_find(struct shunt_gate_sites *sites, const struct link_map *library, bool whole);

#endif
