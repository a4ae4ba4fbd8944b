/* SPDX-License-Identifier: MIT */
/*
 * dlmopen(): a name space has a C library of its own, in which no name of ours is found. Its system calls lead here all
 * the same (gate.h).
 *
 * The caller's object says where a library without a path is looked for. So the call is left by a jump where the caller
 * matters, and such a name space stays as it is.
 */
#include "preload/calls.h"
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include "preload/gate.h"

static bool has_paths(const struct link_map *caller)
{
	for (const ElfW(Dyn) *entry = caller->l_ld; entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == DT_RPATH || entry->d_tag == DT_RUNPATH)
			return true;
	return false;
}

static bool caller_matters(const char *file, const void *address)
{
	struct link_map *caller = NULL;
	Dl_info info;

	if (!file || strchr(file, '$'))
		return true;
	return !strchr(file, '/') && (!dladdr1(address, &info, (void **)&caller, RTLD_DL_LINKMAP) ||
				      !caller || has_paths(caller));
}

static void *open_space(Lmid_t space, const char *file, int mode)
{
	void *handle = real(dlmopen)(space, file, mode);
	struct link_map *map;

	if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map))
		return handle;
	while (map->l_prev)
		map = map->l_prev;
	shunt_gate_open_in(map);
	return handle;
}

#ifndef __clang__
__attribute__((optimize("O2")))
#endif
void *dlmopen(Lmid_t space, const char *file, int mode)
{
	if (!shunt_gate_is_open() || space == LM_ID_BASE ||
	    caller_matters(file, __builtin_return_address(0)))
		return real(dlmopen)(space, file, mode);
	return open_space(space, file, mode);
}
