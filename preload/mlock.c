/* SPDX-License-Identifier: MIT */
/*
 * mlockall(). Our mappings are large and mostly untouched; locked, each of their pages would be there. They stay out of
 * what the program locks.
 *
 * MCL_CURRENT locks all that is mapped, so ours are unlocked again. First everything is locked on fault only, so that the
 * kernel brings in no page of ours meanwhile.
 *
 * MCL_FUTURE locks what will be mapped, and brings its pages in. But a mapping that has been unlocked stays unlocked while
 * mremap() makes it longer. The longer part counts neither as locked nor against RLIMIT_MEMLOCK.
 */
#include "preload/process.h"
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "core/base/guard.h"
#include "preload/mlock.h"

/* The linker's names for the calls that memory.c stands before. */
void *__real_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t bytes);

#define AREAS 4096 /* further ones may be locked */

/* Our mappings. No lock, because a fork must not find it taken: an entry is taken by storing its address. */
static struct area {
	_Atomic uintptr_t at; /* 0: free */
	_Atomic size_t bytes;
} areas[AREAS];
/* MCL_FUTURE is on. Also in the child of a fork, where it is not: that costs three system calls a mapping. */
static _Atomic bool future;

static void area_add(void *at, size_t bytes)
{
	for (unsigned int i = 0; i < AREAS; i++) {
		uintptr_t none = 0;

		if (atomic_load(&areas[i].at) ||
		    !atomic_compare_exchange_strong(&areas[i].at, &none, (uintptr_t)at))
			continue;
		atomic_store(&areas[i].bytes, bytes);
		return;
	}
}

void shunt_mlock_unmapped(void *at)
{
	for (unsigned int i = 0; i < AREAS; i++) {
		uintptr_t this = (uintptr_t)at;

		if (atomic_load(&areas[i].at) != this)
			continue;
		atomic_store(&areas[i].bytes, 0);
		atomic_compare_exchange_strong(&areas[i].at, &this, 0);
		return;
	}
}

static bool is_ours(uintptr_t at)
{
	for (unsigned int i = 0; i < AREAS; i++) {
		uintptr_t from = atomic_load(&areas[i].at);

		if (from && at - from < atomic_load(&areas[i].bytes))
			return true;
	}
	return false;
}

static void unlock_ours(void)
{
	for (unsigned int i = 0; i < AREAS; i++)
		if (atomic_load(&areas[i].at))
			munlock((void *)atomic_load(&areas[i].at), atomic_load(&areas[i].bytes));
}

/* One page, unlocked, made as long as is wanted: then it may be touched. */
static void *map_unlocked(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	size_t page = shunt_guard_page();
	void *seed = __real_mmap(NULL, page, PROT_NONE, flags & ~MAP_FIXED, fd, offset), *made;
	int saved;

	if (seed == MAP_FAILED)
		return seed;
	if (munlock(seed, page))
		goto fail;
	made = flags & MAP_FIXED ? mremap(seed, page, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) :
				   mremap(seed, page, bytes, MREMAP_MAYMOVE);
	if (made == MAP_FAILED)
		goto fail;
	if (!mprotect(made, bytes, prot))
		return made;
	seed = made;
	page = bytes;
fail:
	saved = errno;
	__real_munmap(seed, page);
	errno = saved;
	return MAP_FAILED;
}

/* Anonymous memory that is shared has its size from mmap() and cannot become longer. */
static bool grows(int flags)
{
	return (flags & (MAP_SHARED | MAP_ANONYMOUS)) != (MAP_SHARED | MAP_ANONYMOUS);
}

void *shunt_mlock_map(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	bool apart = unlikely(atomic_load(&future));
	void *made = apart && grows(flags) ? map_unlocked(at, bytes, prot, flags, fd, offset) :
					     __real_mmap(at, bytes, prot, flags, fd, offset);

	if (made == MAP_FAILED)
		return made;
	if (apart && !grows(flags))
		munlock(made, bytes);
	if (!(flags & MAP_FIXED)) /* else it lies in one of ours */
		area_add(made, bytes);
	return made;
}

/* --- what is the program's --- */

/* Bytes of /proc/self/maps, one after another. */
struct maps {
	int fd;
	ssize_t have, at;
	char text[4096];
};

/* -1: the end. */
static int next(struct maps *maps)
{
	if (maps->at == maps->have) {
		maps->have = real(syscall)(SYS_read, maps->fd, maps->text, sizeof(maps->text));
		maps->at = 0;
		if (maps->have <= 0)
			return -1;
	}
	return maps->text[maps->at++];
}

/* A number of hexadecimal digits, and the character behind it. */
static uintptr_t number(struct maps *maps)
{
	uintptr_t value = 0;

	for (;;) {
		int c = next(maps);

		if (c >= '0' && c <= '9')
			value = value << 4 | (uintptr_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			value = value << 4 | (uintptr_t)(c - 'a' + 10);
		else
			return value;
	}
}

/* Locks and brings in all that is not ours. As by the kernel, no page that cannot be had is an error. */
static void lock_the_rest(struct maps *maps)
{
	for (int c = 0; c >= 0;) {
		uintptr_t from = number(maps), to = number(maps);

		if (to > from && !is_ours(from))
			mlock((void *)from, to - from);
		while ((c = next(maps)) >= 0 && c != '\n')
			;
	}
}

/* The kernel has said yes to MCL_ONFAULT, which the program did not ask for. */
static int bring_in(int flags)
{
	struct maps maps = { .fd = -1 };
	int result;

	maps.fd = (int)real(syscall)(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (maps.fd < 0) {
		result = real(mlockall)(flags);
		unlock_ours();
		return result;
	}
	lock_the_rest(&maps);
	real(syscall)(SYS_close, maps.fd);
	return flags & MCL_FUTURE ? real(mlockall)(MCL_FUTURE) : 0;
}

static int lock_all(int flags)
{
	int result, saved = errno;

	if (!shunt_process_has_engine() || shunt_process_foreign())
		goto plain;
	if (flags & MCL_FUTURE)
		atomic_store(&future, true);
	if (!(flags & MCL_CURRENT))
		goto plain;
	result = real(mlockall)(flags | MCL_ONFAULT);
	if (result && errno == EINVAL)
		goto plain; /* also before Linux 4.4 */
	if (result)
		return result;
	unlock_ours();
	if (!(flags & MCL_ONFAULT))
		result = bring_in(flags);
	errno = saved;
	return result;
plain:
	atomic_store(&future, flags & MCL_FUTURE);
	return real(mlockall)(flags);
}

int mlockall(int flags)
{
	return shunt_inside(lock_all(flags));
}

int munlockall(void)
{
	if (!shunt_process_foreign())
		atomic_store(&future, false);
	return real(munlockall)();
}
