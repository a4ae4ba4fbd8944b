/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
/* Descriptors of the device, and the files of memory that it shares are made here. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/base/guard.h"
#include "core/device/soft/device.h"

#define SEGMENT_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

int soft_fd_keep(struct ibv_context *ibcontext, int fd)
{
	struct soft_context *context = container_of(ibcontext, struct soft_context, ibv);

	if (fd < 0 || !context->attr.keep)
		return fd;
	fd = context->attr.keep(context->attr.keep_arg, fd);
	if (fd >= 0)
		return fd;
	errno = -fd;
	return -1;
}

void soft_fd_drop(struct ibv_context *ibcontext, int fd)
{
	struct soft_context *context = container_of(ibcontext, struct soft_context, ibv);

	if (context->attr.keep)
		context->attr.drop(context->attr.keep_arg, fd);
	else
		close(fd);
}

/* Sealed so that neither side can take pages away under the other, or add a seal later. */
int soft_memfd(struct ibv_context *context, uint64_t bytes)
{
	int fd = memfd_create("shunt", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, SEGMENT_SEALS)) {
		int saved = errno;

		close(fd);
		errno = saved;
		return -1;
	}
	return soft_fd_keep(context, fd);
}

/* In two processes each with its own mapping, whose page faults decide. */
char *soft_segment_map(struct ibv_context *ibcontext, size_t bytes, int fd)
{
	const struct soft_context *context = container_of(ibcontext, struct soft_context, ibv);

	return context->attr.large ? shunt_guard_map_large(bytes, fd) : shunt_guard_map(bytes, fd);
}
