/* SPDX-License-Identifier: MIT */
/*
 * The kernel says which process may attach to which (ptrace(2), PTRACE_MODE_ATTACH_REALCREDS). Nothing is attached, read or
 * changed. Both functions are rows of struct shunt_sys, so that tests can answer for the kernel.
 */
#ifndef SHUNT_CORE_BASE_ATTACH_H
#define SHUNT_CORE_BASE_ATTACH_H

#include <sys/types.h>

/* 0: this process may attach to that one. -errno: it may not, or the kernel does not say. */
int shunt_attach_ask(pid_t pid);

enum shunt_yama {
	SHUNT_YAMA_NONE, /* no Yama, or its scope is 0: the same for both directions */
	SHUNT_YAMA_RELATIVES, /* scope 1: a descendant, or a process that has asked for it; and with CAP_SYS_PTRACE */
	SHUNT_YAMA_CAPABLE, /* scope 2: with CAP_SYS_PTRACE */
	SHUNT_YAMA_NOBODY, /* scope 3, or /proc does not say */
};

/* kernel.yama.ptrace_scope (Documentation/admin-guide/LSM/Yama.rst). Makes a descriptor for an instant. */
enum shunt_yama shunt_attach_yama(void);

#endif
