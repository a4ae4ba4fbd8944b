/* SPDX-License-Identifier: MIT */
/*
 * The places where a Go program enters the kernel past libc, of those calls that concern a connection. They are known by
 * the names of their functions and the bytes around the SYSCALL instruction. A program with a call that
 * differs from the table in sites.c is left alone.
 *
 * Syscall6 of package runtime/internal/syscall serves the packages syscall, net and os from Go 1.19 on. Its package was
 * internal/runtime/syscall from 1.23 on, and is internal/runtime/syscall/linux since 1.26. Before 1.19 there were four
 * functions of package syscall. The runtime has functions of its own, one for each call.
 */
#ifndef SHUNT_CORE_GO_SITES_H
#define SHUNT_CORE_GO_SITES_H

#include "core/go/pclntab.h"

enum { SHUNT_GO_SITES = 24, SHUNT_GO_VERSION = 32 };

enum shunt_go_verdict {
	SHUNT_GO_KNOWN,
	SHUNT_GO_NO_TABLE,	/* no .gopclntab of a known form */
	SHUNT_GO_NO_CGO,	/* threads are not libc's */
	SHUNT_GO_NO_GATE,	/* no function of the names under which system calls are made */
	SHUNT_GO_OTHER_CODE,	/* a function has other bytes around its SYSCALL, or makes a call under a new name */
	SHUNT_GO_OTHER_MACHINE,	/* not x86-64 */
};

struct shunt_go_site {
	uint64_t address;	/* of the instruction before SYSCALL, which is replaced with it */
	uint8_t before;		/* bytes of that instruction */
	bool vfork;		/* behind SYSCALL is `push r12`, which is replaced, too */
};

struct shunt_go_sites {
	struct shunt_go_site site[SHUNT_GO_SITES];
	unsigned int count;
	const char *function;	/* of SHUNT_GO_OTHER_CODE and SHUNT_GO_NO_GATE: which, in the program's table or a constant */
};

/* Fills in the sites of the program. `hint`: where its table may begin, or 0. */
enum shunt_go_verdict shunt_go_sites_find(struct shunt_go_sites *sites,
					  const struct shunt_go_image *image, uint64_t hint);
/* A verdict in words, without the function's name. */
const char *shunt_go_verdict_text(enum shunt_go_verdict verdict);
/* The version of Go that has made the program, such as go1.19.8; "" where it does not say. `hint`: of its build info. */
void shunt_go_version(const struct shunt_go_image *image, uint64_t hint,
		      char version[SHUNT_GO_VERSION]);

#endif
