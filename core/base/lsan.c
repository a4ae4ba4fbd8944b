/* SPDX-License-Identifier: MIT */
#include "core/base/lsan.h"
#include <sys/mman.h>

/* There only in a program that has LeakSanitizer (sanitizer/lsan_interface.h). */
void __lsan_register_root_region(const void *roots, size_t bytes) __attribute__((weak));
void __lsan_unregister_root_region(const void *roots, size_t bytes) __attribute__((weak));

void *shunt_lsan_map(size_t bytes)
{
	void *roots = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (roots == MAP_FAILED)
		return NULL;
	if (__lsan_register_root_region)
		__lsan_register_root_region(roots, bytes);
	return roots;
}

void shunt_lsan_unmap(void *roots, size_t bytes)
{
	if (__lsan_unregister_root_region)
		__lsan_unregister_root_region(roots, bytes);
	munmap(roots, bytes);
}
