/* SPDX-License-Identifier: MIT */
#include "core/base/guard.h"
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

size_t shunt_guard_page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

size_t shunt_guard_cost(void)
{
	return 2 * shunt_guard_page();
}

static size_t rounded(size_t bytes)
{
	size_t page = shunt_guard_page();

	return (bytes + page - 1) / page * page;
}

/* Over the middle of what has been reserved. */
static int fill(void *at, size_t bytes, int fd)
{
	int flags = MAP_FIXED | MAP_NORESERVE | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);

	if (mmap(at, bytes, PROT_READ | PROT_WRITE, flags, fd, 0) == MAP_FAILED)
		return -errno;
	/* A child's write would take the page from an RDMA device (PF-46). */
	return madvise(at, bytes, MADV_DONTFORK) || madvise(at, bytes, MADV_DONTDUMP) ? -errno : 0;
}

void *shunt_guard_map(size_t bytes, int fd)
{
	size_t page = shunt_guard_page(), all = rounded(bytes) + shunt_guard_cost();
	char *reserved;
	int result;

	if (all < bytes) {
		errno = ENOMEM;
		return NULL;
	}
	reserved = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (reserved == MAP_FAILED)
		return NULL;
	result = fill(reserved + page, rounded(bytes), fd);
	if (!result)
		return reserved + page;
	munmap(reserved, all);
	errno = -result;
	return NULL;
}

void shunt_guard_unmap(void *at, size_t bytes)
{
	munmap((char *)at - shunt_guard_page(), rounded(bytes) + shunt_guard_cost());
}

void shunt_guard_inside(void *at)
{
	mprotect(at, shunt_guard_page(), PROT_NONE);
}
