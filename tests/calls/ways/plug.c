/* SPDX-License-Identifier: MIT */
/* A plug-in: the calls as its own names have them, which RTLD_DEEPBIND and dlmopen() make libc's. */
#include "tests/calls/ways/ways.h"

void ways_calls(struct ways_calls *calls);

void ways_calls(struct ways_calls *calls)
{
#define X(type, name, parameters) calls->name = name;
	WAYS_CALLS(X)
#undef X
}
