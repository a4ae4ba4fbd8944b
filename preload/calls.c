/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <errno.h>
#include <gnu/lib-names.h>
#include "core/base/kernel_clock.h"
#include "preload/calls.h"

struct shunt_calls shunt_real;

static long missing(void)
{
	errno = ENOSYS;
	return -1;
}

static void *symbol_find(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (found)
		return found;
	dlerror();	/* the program shall not read our failure in its own dlerror() */
	return (void *)missing;
}

void *shunt_calls_of_libc(const char *name)
{
	void *libc = dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
	void *found = libc ? dlsym(libc, name) : NULL;

	if (!found)
		dlerror();
	return found;
}

/*
 * No lock and no "once": two threads that come here together, before any constructor, write the
 * same pointers. No memory is taken: an allocator may be calling, under its own lock.
 */
void shunt_calls_resolve(void)
{
	int saved = errno;

#define X(type, name, parameters) shunt_real.name = (type(*) parameters)symbol_find(#name);
	SHUNT_CALLS(X)
#undef X
	errno = saved;
}

void shunt_calls_find_clock(void)
{
	int (*clock)(clockid_t, struct timespec *), saved = errno;

	clock = (int (*)(clockid_t, struct timespec *))shunt_calls_of_libc("clock_gettime");
	if (clock)
		shunt_kernel_clock = clock;
	errno = saved;
}
