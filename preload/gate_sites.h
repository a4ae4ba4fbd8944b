/* SPDX-License-Identifier: MIT */
/*
 * The SYSCALL instructions of a C library: those in functions that make calls on descriptors, by the library's own table
 * of symbols. SYSCALL itself stays where it is, so that an unwinder, a debugger and a handler of cancellations find a
 * waiting thread in the library's function. One to three instructions before it are replaced, of shapes that are
 * known, if no jump of the function may lead between them. A jump to SYSCALL makes the call as before.
 */
#ifndef SHUNT_PRELOAD_GATE_SITES_H
#define SHUNT_PRELOAD_GATE_SITES_H

#include <stdbool.h>
#include <stdint.h>

struct link_map;

enum { SHUNT_GATE_SITES = 160 };

struct shunt_gate_site {
	uint8_t *at; /* the first byte that is replaced */
	uint8_t *syscall; /* and the instruction behind the last */
	bool tests; /* it begins with a look at a flag and a jump (SHUNT_GATE_TEST bytes), which lead elsewhere */
};

/* cmpb $0, flag(%rip); je somewhere */
enum { SHUNT_GATE_TEST = 9 };

struct shunt_gate_sites {
	struct shunt_gate_site site[SHUNT_GATE_SITES];
	unsigned int count;
	/* Functions, or instructions in them, that are not as they are known. */
	unsigned int unknown;
	/* A function without which nothing may be replaced, and that is not known; NULL: none. */
	const char *lacking;
};

/* Adds those of a library that is loaded. `whole`: it has all functions; those of a part are looked at as far as they are there. */
void shunt_gate_sites_find(struct shunt_gate_sites *sites, const struct link_map *library,
			   bool whole);
/* Have they been replaced? */
bool shunt_gate_sites_replaced(const struct link_map *library);

#endif
