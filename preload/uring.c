/* SPDX-License-Identifier: MIT */
/*
 * Rings of io_uring: syscall() and the functions of liburing come here before a ring is made.
 * The latter are exported by name, because liburing makes its own system calls.
 */
#include <dlfcn.h>
#include <link.h>
#include "core/stream/uring.h"
#include "preload/rights.h"
#include "preload/uring.h"

static void uring_note(enum shunt_uring uring)
{
	bool news = atomic_exchange(&shunt_process.uring, (int)uring) != (int)uring;
	struct shunt_engine *engine = __atomic_load_n(&shunt_process.engine, __ATOMIC_SEQ_CST);

	if (engine)
		news = shunt_uring_set(engine, uring);
	if (news)
		shunt_uring_tell(uring);
}

/* Streams that never come to a link are seen by every ring. */
static bool uring_concerns(const struct shunt_config *config)
{
	const char *name;

	return config && shunt_config_device(config->device, &name) != SHUNT_DEVICE_NONE;
}

/* A ring made in a child of vfork() is for the program that it will become. */
bool shunt_uring_refused(void)
{
	const struct shunt_config *config = shunt_process_config();
	int saved = errno;

	if (!uring_concerns(config))
		return false;
	if (shunt_process_foreign())
		return config->uring == SHUNT_URING_DENY;
	switch ((enum shunt_uring_choice)config->uring) {
	case SHUNT_URING_DENY:
		uring_note(SHUNT_URING_REFUSED);
		break;
	case SHUNT_URING_ALLOW:
		uring_note(SHUNT_URING_IGNORED);
		break;
	case SHUNT_URING_TCP:
		uring_note(SHUNT_URING_RULES);
		shunt_rights_ring();
		break;
	}
	errno = saved;
	return config->uring == SHUNT_URING_DENY;
}

/*
 * liburing's function: behind this library in the global scope, or in the scope of a caller that was
 * loaded later. There it may be a copy of the caller's own.
 */
static void *find(const char *name, const void *caller)
{
	void *found = dlsym(RTLD_NEXT, name), *handle;
	struct link_map *map;
	Dl_info info;

	if (!found && dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) && *map->l_name) {
		handle = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
		if (handle) {
			found = dlsym(handle, name);
			dlclose(handle);	/* the caller keeps it loaded */
		}
	}
	dlerror();
	return found;
}

/* As liburing's do it, these return -errno and leave errno alone. */
#define RING_CALL(name, parameters, arguments)							\
	int name parameters									\
	{											\
		int (*call) parameters = shunt_uring_refused() ? NULL :				\
					 find(#name, __builtin_return_address(0));		\
												\
		return call ? call arguments : -ENOSYS;						\
	}

RING_CALL(io_uring_setup, (unsigned int entries, struct io_uring_params *params), (entries, params))
RING_CALL(io_uring_queue_init, (unsigned int entries, struct io_uring *ring, unsigned int flags),
	  (entries, ring, flags))
RING_CALL(io_uring_queue_init_params,
	  (unsigned int entries, struct io_uring *ring, struct io_uring_params *params),
	  (entries, ring, params))
RING_CALL(io_uring_queue_init_mem,
	  (unsigned int entries, struct io_uring *ring, struct io_uring_params *params, void *buffer, size_t bytes),
	  (entries, ring, params, buffer, bytes))
