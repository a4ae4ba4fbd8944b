/* SPDX-License-Identifier: MIT */
/* mmap(): the memory of rings of io_uring. Allocators call it before any constructor, and inside dlsym(). */
#include <sys/mman.h>
#include <sys/syscall.h>
#include "preload/process.h"
#include "preload/uring.h"

/* Without libc's function, which is looked for meanwhile. */
static void *map_plainly(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = flags;
	register long r8 __asm__("r8") = fd;
	register long r9 __asm__("r9") = offset;
	long made;

	__asm__ volatile("syscall"
			 : "=a"(made)
			 : "a"(SYS_mmap), "D"(at), "S"(bytes), "d"((long)prot), "r"(r10), "r"(r8),
			   "r"(r9)
			 : "rcx", "r11", "memory");
	if (made < 0 && made > -4096) {
		errno = (int)-made;
		return MAP_FAILED;
	}
	return (void *)made;
#else
	return real(mmap)(at, bytes, prot, flags, fd, offset);
#endif
}

static inline void *map_noted(void *made, int fd, off_t offset)
{
	if (unlikely(fd >= 0) && made != MAP_FAILED && shunt_uring_watching())
		shunt_uring_mapped(fd, offset, made);
	return made;
}

void *mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	if (unlikely(!shunt_real.mmap))
		return map_plainly(at, bytes, prot, flags, fd, offset);
	return map_noted(real(mmap)(at, bytes, prot, flags, fd, offset), fd, offset);
}

void *mmap64(void *at, size_t bytes, int prot, int flags, int fd, off64_t offset)
{
	if (unlikely(!shunt_real.mmap64))
		return map_plainly(at, bytes, prot, flags, fd, offset);
	return map_noted(real(mmap64)(at, bytes, prot, flags, fd, offset), fd, offset);
}
