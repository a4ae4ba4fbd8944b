/* SPDX-License-Identifier: MIT */
/*
 * Everything that Shunt's own code allocates passes by here, because the linker sends it (--wrap, preload/local.mk):
 * so SHUNT_FAULT can refuse it. Allocations of the program and its libraries do not.
 *
 * Our own memory comes from libc's own malloc, past an allocator of the program. That one may send on a connection
 * whose locks we hold. Even libc allocates by name inside fdopendir, getifaddrs, dlopen, pthread_create and qsort of
 * many. So those are called where no lock of a stream, a lane or a group is held. These are the service thread at its
 * work, listen, and the beginning of the engine or its threads. RDMA libraries allocate by name, too.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include "core/device/fault.h"
#include "preload/calls.h"
#include "preload/mlock.h"

/*
 * Memory comes from libc's own malloc() and goes back to libc's own free(). The names may be the program's. Its
 * allocator may send on a connection whose locks we hold. A build with a sanitizer keeps to the names, because the
 * sanitizer's allocator is before libc's.
 */
#ifndef __has_feature
#define __has_feature(feature) 0 /* clang's */
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
	__has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                     \
	__has_feature(memory_sanitizer)
#define BY_NAME 1
#else
#define BY_NAME 0
#endif

/* A row a function: type, name, parameters, arguments, what it is, what it returns if it is refused. */
#define ALLOCATORS(X)                                                                              \
	X(void *, malloc, (size_t bytes), (bytes), SHUNT_DENY_MALLOC, NULL)                        \
	X(void *, calloc, (size_t count, size_t bytes), (count, bytes), SHUNT_DENY_MALLOC, NULL)   \
	X(void *, realloc, (void *from, size_t bytes), (from, bytes), SHUNT_DENY_MALLOC, NULL)     \
	X(void *, aligned_alloc, (size_t align, size_t bytes), (align, bytes), SHUNT_DENY_MALLOC,  \
	  NULL)                                                                                    \
	X(int, posix_memalign, (void **to, size_t align, size_t bytes), (to, align, bytes),        \
	  SHUNT_DENY_MALLOC, ENOMEM)

#define OTHERS(X)                                                                                  \
	X(int, memfd_create, (const char *name, unsigned int flags), (name, flags), SHUNT_DENY_FD, \
	  -1)                                                                                      \
	X(int, eventfd, (unsigned int value, int flags), (value, flags), SHUNT_DENY_FD, -1)        \
	X(int, pthread_create,                                                                     \
	  (pthread_t * thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg),     \
	  (thread, attr, start, arg), SHUNT_DENY_THREAD, EAGAIN)

void __real_free(void *at);
void __wrap_free(void *at);

#define X(type, name, parameters, arguments, what, refused)                                        \
	type __real_##name parameters;                                                             \
	type __wrap_##name parameters;                                                             \
	static type(*libc_##name) parameters = __real_##name;
ALLOCATORS(X)
#undef X
static void (*libc_free)(void *at) = __real_free;

/* The names have given something, which they are to take back: a library has begun before us, and has used a socket. */
static _Atomic bool given;

void shunt_memory_resolve(void)
{
#if !BY_NAME
	bool all = !given && shunt_calls_of_libc("free");

#define X(type, name, parameters, arguments, what, refused) all = all && shunt_calls_of_libc(#name);
	ALLOCATORS(X)
#undef X
	if (!all)
		return;
#define X(type, name, parameters, arguments, what, refused)                                        \
	libc_##name = (type(*) parameters)shunt_calls_of_libc(#name);
	ALLOCATORS(X)
#undef X
	libc_free = (void (*)(void *))shunt_calls_of_libc("free");
#endif
}

#define X(type, name, parameters, arguments, what, refused)                                        \
	type __wrap_##name parameters                                                              \
	{                                                                                          \
		if (shunt_fault_denies(what))                                                      \
			return refused;                                                            \
		atomic_store(&given, true);                                                       \
		return libc_##name arguments;                                                      \
	}
ALLOCATORS(X)
#undef X

void __wrap_free(void *at)
{
	libc_free(at);
}

#define X(type, name, parameters, arguments, what, refused)	\
	type __real_##name parameters;				\
	type __wrap_##name parameters;				\
	type __wrap_##name parameters				\
	{							\
		if (shunt_fault_denies(what))			\
			return refused;				\
		return __real_##name arguments;			\
	}
OTHERS(X)
#undef X

void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	return shunt_fault_denies(SHUNT_DENY_MAP) ?
		       MAP_FAILED :
		       shunt_mlock_map(at, bytes, prot, flags, fd, offset);
}

int __real_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes)
{
	shunt_mlock_unmapped(at);
	return __real_munmap(at, bytes);
}
