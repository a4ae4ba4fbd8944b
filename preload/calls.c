/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <errno.h>
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

/*
 * No lock and no "once": two threads that come here together, before any constructor, write the
 * same pointers.
 */
void shunt_calls_resolve(void)
{
	int saved = errno;

#define X(type, name, parameters) shunt_real.name = (type(*) parameters)symbol_find(#name);
	SHUNT_CALLS(X)
#undef X
	errno = saved;
}
