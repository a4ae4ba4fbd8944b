/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "core/base/guard.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mman.h>
#include <sys/mman.h>
#include <sys/vfs.h>
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

/* Over what has been reserved. `more`: further flags of mmap(). */
static int fill(void *at, size_t bytes, int fd, int more)
{
	int flags = MAP_FIXED | MAP_NORESERVE | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);

	if (mmap(at, bytes, PROT_READ | PROT_WRITE, flags | more, fd, 0) == MAP_FAILED)
		return -errno;
	/* A child's write would take the page from an RDMA device (PF-46). */
	return madvise(at, bytes, MADV_DONTFORK) || madvise(at, bytes, MADV_DONTDUMP) ? -errno : 0;
}

static void *reserve(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;	/* cppcheck-suppress memleak ; the caller has it */
}

/* With a page on each side; what lies between them begins at a multiple of `align`, at least a page. */
static char *reserve_aligned(size_t bytes, size_t align)
{
	size_t page = shunt_guard_page(), spare = align - page;
	char *reserved = reserve(bytes + spare), *at;

	if (!reserved || !spare)
		return reserved;
	at = (char *)(((uintptr_t)reserved + page + align - 1) & ~(align - 1)) - page;
	if (at != reserved)
		munmap(reserved, at - reserved);
	if (at != reserved + spare)
		munmap(at + bytes, reserved + spare - at);
	return at;
}

static void *map(size_t bytes, int fd, size_t align)
{
	size_t page = shunt_guard_page(), all = rounded(bytes) + shunt_guard_cost();
	char *reserved;
	int result;

	if (all < bytes || all + align < all) {
		errno = ENOMEM;
		return NULL;
	}
	reserved = reserve_aligned(all, align);
	if (!reserved)
		return NULL;
	result = fill(reserved + page, rounded(bytes), fd, 0);
	if (!result)
		return reserved + page;
	munmap(reserved, all);
	errno = -result;
	return NULL;
}

void *shunt_guard_map(size_t bytes, int fd)
{
	return map(bytes, fd, shunt_guard_page());
}

void *shunt_guard_map_large(size_t bytes, int fd)
{
	void *at = map(bytes, fd, SHUNT_GUARD_LARGE);

	if (at)
		madvise(at, rounded(bytes), MADV_HUGEPAGE); /* a kernel without them says EINVAL */
	return at;
}

/*
 * Pages are not reserved by mmap() but taken by madvise(): a reservation that fails leaves a hole, into which another
 * thread may map (MAP_FIXED). madvise() does so from Linux 5.14 on. Without it there are no explicit huge pages.
 */
int shunt_guard_set_huge(void *at, size_t bytes)
{
	int result = fill(at, bytes, -1, MAP_HUGETLB | MAP_HUGE_2MB);

	if (!result && madvise(at, bytes, MADV_POPULATE_WRITE))
		result = errno == EFAULT ? -ENOMEM : -errno; /* EFAULT: a page would be SIGBUS, so there are too few */
	if (result && shunt_guard_set_ordinary(at, bytes))
		return -EFAULT;
	return result;
}

int shunt_guard_set_ordinary(void *at, size_t bytes)
{
	return fill(at, bytes, -1, 0);
}

void shunt_guard_unmap(void *at, size_t bytes)
{
	munmap((char *)at - shunt_guard_page(), rounded(bytes) + shunt_guard_cost());
}

void shunt_guard_inside(void *at)
{
	mprotect(at, shunt_guard_page(), PROT_NONE);
}

bool shunt_guard_is_safe(int fd, uint64_t bytes, struct stat *stat)
{
	struct statfs fs;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW) ||
	    seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE))
		return false;
	return !fstatfs(fd, &fs) && fs.f_type == TMPFS_MAGIC && !fstat(fd, stat) &&
	       (uint64_t)stat->st_size == bytes;
}
