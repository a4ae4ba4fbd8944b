/* SPDX-License-Identifier: MIT */
#include "core/base/attach.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/uio.h>
#include <unistd.h>

#define KERNEL "/proc/sys/kernel"
#define NOWHERE (UINTPTR_MAX - (1ul << 20))	/* an address of the kernel's: no process has memory there */

/*
 * process_vm_readv(2) asks before it looks at an address. EFAULT: it was allowed. pidfd_getfd(2) would say the same, but
 * filters of services and containers forbid it, and it needs a descriptor.
 */
int shunt_attach_ask(pid_t pid)
{
	char byte;
	struct iovec to = { &byte, 1 }, from = { (void *)NOWHERE, 1 };

	if (process_vm_readv(pid, &to, 1, &from, 1, 0) >= 0 || errno == EFAULT)
		return 0;
	return -errno;
}

/* A /proc that has processes alone (subset=pid) does not say whether there is a Yama. */
static enum shunt_yama without(int error)
{
	return error == ENOENT && !access(KERNEL, F_OK) ? SHUNT_YAMA_NONE : SHUNT_YAMA_NOBODY;
}

enum shunt_yama shunt_attach_yama(void)
{
	int fd = open(KERNEL "/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	char scope;
	ssize_t got;

	if (fd < 0)
		return without(errno);
	got = read(fd, &scope, 1);
	close(fd);
	if (got != 1 || scope < '0' || scope > '2')
		return SHUNT_YAMA_NOBODY;
	return (enum shunt_yama)(scope - '0');
}
