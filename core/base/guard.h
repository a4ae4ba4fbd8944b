/* SPDX-License-Identifier: MIT */
/*
 * Mappings that a device or another process writes to: our arenas, segments of peers, shared pages. A page on each side of
 * such a mapping may not be touched, so a byte beyond its end is a SIGSEGV and no neighbour's. A child has no use for
 * the mapping (MADV_DONTFORK). A core dump of the program has no room for it, and nothing of a peer's payload
 * (MADV_DONTDUMP).
 */
#ifndef SHUNT_CORE_BASE_GUARD_H
#define SHUNT_CORE_BASE_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define SHUNT_GUARD_LARGE (2ull << 20) /* bytes of a huge page */

/* Zeroes that are backed on touch; or, where fd is not -1, the beginning of that file, shared. NULL and errno. */
void *shunt_guard_map(size_t bytes, int fd);
void shunt_guard_unmap(void *at, size_t bytes);
/*
 * As shunt_guard_map(), aligned to SHUNT_GUARD_LARGE and with madvise(MADV_HUGEPAGE). The kernel's settings for
 * anonymous and shared memory decide (/sys/kernel/mm/transparent_hugepage).
 */
void *shunt_guard_map_large(size_t bytes, int fd);
/*
 * A part of an anonymous mapping, in multiples of SHUNT_GUARD_LARGE, gets explicit huge pages; or -errno, and it has
 * ordinary ones. All of them are there on success, so none is missing later (SIGBUS). It reads as zero either way.
 * -EFAULT: it has neither, and may not be touched.
 */
int shunt_guard_set_huge(void *at, size_t bytes);
/* The part gives its pages back, and gets ordinary ones on touch. 0 or -errno. */
int shunt_guard_set_ordinary(void *at, size_t bytes);
/* The pages on both sides together: address space that counts against RLIMIT_AS. */
size_t shunt_guard_cost(void);
/*
 * Forbids the page at `at`, page aligned and inside of a mapping of shunt_guard_map(). It stays a part of the mapping. A
 * kernel that cannot leaves the page as it is.
 */
void shunt_guard_inside(void *at);
size_t shunt_guard_page(void);
/*
 * A file of another process that can never give us SIGBUS: sealed at this size, and made of ordinary pages. A hugetlb
 * memfd carries the same seals, but its pages may not exist.
 */
bool shunt_guard_is_safe(int fd, uint64_t bytes, struct stat *stat);

#endif
