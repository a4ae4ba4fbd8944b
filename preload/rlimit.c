/* SPDX-License-Identifier: MIT */
/*
 * RLIMIT_NPROC. An unprivileged user's process that sets it to 0 or 1 gets no new thread from then
 * on. So a service thread that is needed later starts before the call. Each thread of haproxy sets
 * it, after it has set users and no_new_privs. None may come to the kernel while another one still
 * looks for listeners.
 */
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "preload/calls.h"
#include "preload/confine.h"
#include "preload/touch.h"

#define NUMBERS 4096	/* where a listener is looked for: a new descriptor has the lowest number that is free */

static bool is_unknown_listener(int fd)
{
	struct shunt_file *file = shunt_files_get(shunt_process.files, fd);
	socklen_t length = sizeof(int);
	int listening = 0;

	return (!file || file->kind == SHUNT_FILE_CLOSED) &&
	       !real(getsockopt)(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) && listening &&
	       shunt_process_is_tcp(fd);
}

/*
 * Inherited or passed, and no connection was accepted there yet: they are offered now, not with their first connection. A
 * new worker of haproxy has all of its listeners from the former one. A chroot may lack /proc, so each number is asked for.
 */
static void adopt_unknown_listeners(void)
{
	for (int fd = STDERR_FILENO + 1; fd < NUMBERS; fd++)
		if (is_unknown_listener(fd))
			shunt_accept_adopt(fd);
}

/* The caller is one already. */
static bool forbids_threads(const struct rlimit64 *limit)
{
	return limit && !shunt_unreadable(limit, sizeof(*limit)) && limit->rlim_cur <= 1;
}

static void get_ready(void)
{
	int state = shunt_cancel_off();

	shunt_lock_take(&shunt_process.limits_lock);
	adopt_unknown_listeners();
	if (shunt_process_has_engine()) {
		shunt_begin_anew();
		shunt_engine_begin_early(shunt_process.engine);
	}
	shunt_lock_leave(&shunt_process.limits_lock);
	shunt_cancel_restore(state);
}

static void limit_look(pid_t pid, long resource, const void *limit)
{
	int saved = errno;

	if (likely(resource != RLIMIT_NPROC) || (pid && pid != getpid()) ||
	    shunt_process_foreign() || shunt_process_confined() || !forbids_threads(limit) ||
	    !shunt_process_enabled())
		return;
	shunt_inside_do(get_ready());
	errno = saved;
}

void shunt_rlimit_look(long number, long a, long b, long c)
{
	if (number == SYS_prlimit64)
		limit_look((pid_t)a, b, (const void *)c);
	else
		limit_look(0, a, (const void *)b);
}

/* AddressSanitizer's runtime calls them before it can look at memory: there they are libc's. */
#ifndef __SANITIZE_ADDRESS__

int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	limit_look(0, resource, limit);
	return real(setrlimit)(resource, limit);
}

int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit)
{
	limit_look(0, resource, limit);
	return real(setrlimit64)(resource, limit);
}

#endif

int prlimit(pid_t pid, enum __rlimit_resource resource, const struct rlimit *limit,
	    struct rlimit *old)
{
	limit_look(pid, resource, limit);
	return real(prlimit)(pid, resource, limit, old);
}

int prlimit64(pid_t pid, enum __rlimit_resource resource, const struct rlimit64 *limit,
	      struct rlimit64 *old)
{
	limit_look(pid, resource, limit);
	return real(prlimit64)(pid, resource, limit, old);
}
