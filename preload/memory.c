/* SPDX-License-Identifier: MIT */
/*
 * Everything that Shunt's own code allocates passes by here, because the linker sends it (--wrap, preload/local.mk):
 * so SHUNT_FAULT can refuse it. Allocations of the program and its libraries do not.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include "core/device/fault.h"

/* A row a function: type, name, parameters, arguments, what it is, what it returns if it is refused. */
#define ALLOCATORS(X)									\
	X(void *, malloc, (size_t bytes), (bytes), SHUNT_DENY_MALLOC, NULL)		\
	X(void *, calloc, (size_t count, size_t bytes), (count, bytes), SHUNT_DENY_MALLOC, NULL) \
	X(void *, realloc, (void *from, size_t bytes), (from, bytes), SHUNT_DENY_MALLOC, NULL) \
	X(void *, aligned_alloc, (size_t align, size_t bytes), (align, bytes), SHUNT_DENY_MALLOC, NULL) \
	X(int, posix_memalign, (void **to, size_t align, size_t bytes), (to, align, bytes), SHUNT_DENY_MALLOC, ENOMEM) \
	X(void *, mmap, (void *at, size_t bytes, int prot, int flags, int fd, off_t offset),	\
	  (at, bytes, prot, flags, fd, offset), SHUNT_DENY_MAP, MAP_FAILED)		\
	X(int, memfd_create, (const char *name, unsigned int flags), (name, flags), SHUNT_DENY_FD, -1) \
	X(int, eventfd, (unsigned int value, int flags), (value, flags), SHUNT_DENY_FD, -1) \
	X(int, pthread_create, (pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg), \
	  (thread, attr, start, arg), SHUNT_DENY_THREAD, EAGAIN)

#define X(type, name, parameters, arguments, what, refused)	\
	type __real_##name parameters;				\
	type __wrap_##name parameters;				\
	type __wrap_##name parameters				\
	{							\
		if (shunt_fault_denies(what))			\
			return refused;				\
		return __real_##name arguments;			\
	}
ALLOCATORS(X)
#undef X
