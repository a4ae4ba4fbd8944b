/* SPDX-License-Identifier: MIT */
/*
 * Memory regions that a peer may reach. The soft device shares nothing but the arena of a domain; a card reaches any
 * memory. So registering replaces the region's pages by pages of the arena, at the program's own address.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "core/base/guard.h"
#include "tests/fake/fake.h"

#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

struct stand_in {	/* of pages */
	struct stand_in *next;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	char *from;		/* as the program has them */
	size_t bytes;
	uint64_t offset;	/* in the arena */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stand_in *stand_ins;	/* sorted by offset */

/* The first gap of the domain's arena that has so many bytes, and its place in the list. */
static struct stand_in **gap(const struct ibv_pd *pd, size_t bytes, uint64_t *offset)
{
	struct stand_in **at;

	*offset = 0;
	for (at = &stand_ins; *at; at = &(*at)->next) {
		if ((*at)->pd != pd)
			continue;
		if ((*at)->offset - *offset >= bytes)
			break;
		*offset = (*at)->offset + (*at)->bytes;
	}
	return at;
}

static bool is_taken(const char *from, size_t bytes)
{
	for (const struct stand_in *at = stand_ins; at; at = at->next)
		if (from < at->from + at->bytes && at->from < from + bytes)
			return true;
	return false;
}

/* Whole pages, also those of which an arena has nothing handed out: it has poisoned them for AddressSanitizer. */
__attribute__((no_sanitize("address"))) static void copy_pages(void *to, const void *from,
							       size_t bytes)
{
	volatile uint64_t *out = to;
	const volatile uint64_t *in = from;

	for (size_t i = 0; i < bytes / sizeof(*out); i++)
		out[i] = in[i];
}

/* Other pages at `from`, of a file or of nobody (-1), with what was there before. */
static int replace(char *from, size_t bytes, int fd, uint64_t offset)
{
	int flags = MAP_FIXED | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);
	char *copy = malloc(bytes);

	if (!copy)
		return ENOMEM;
	copy_pages(copy, from, bytes);
	if (mmap(from, bytes, PROT_READ | PROT_WRITE, flags, fd, (off_t)offset) == MAP_FAILED) {	/* cppcheck-suppress leakReturnValNotUsed */
		free(copy);
		return errno;
	}
	copy_pages(from, copy, bytes);
	free(copy);
	return fd >= 0 && madvise(from, bytes, MADV_DONTFORK) ? errno : 0;	/* a child would write into them */
}

/* The region's address is the program's, not the arena's. Nobody knows its key yet. */
static void rename_region(struct soft_pd *pd, struct ibv_mr *mr, void *addr)
{
	uint32_t slot = mr->lkey & (SEGMENT_MR_SLOTS - 1);

	atomic_store(&pd->mrs[slot].address, (uintptr_t)addr);
	atomic_store(&segment_mrs(pd->segment)[slot].address, (uintptr_t)addr);
	mr->addr = addr;
}

static struct ibv_mr *register_shared(struct soft_pd *pd, char *addr, size_t length, int access)
{
	uintptr_t page = shunt_guard_page(), begin = (uintptr_t)addr & ~(page - 1);
	size_t bytes = ((uintptr_t)addr + length - begin + page - 1) & ~(page - 1), room;
	struct stand_in *made, **at;
	char *arena = soft_arena(&pd->ibv, &room);
	uint64_t offset;

	at = gap(&pd->ibv, bytes, &offset);
	made = offset + bytes <= room && !is_taken((char *)begin, bytes) ?
		       calloc(1, sizeof(*made)) :
		       NULL;
	if (!made) {
		errno = ENOMEM;
		return NULL;
	}
	errno = replace((char *)begin, bytes, pd->fd, pd->arena_offset + offset);
	if (!errno)
		made->mr = soft_register_mr(&pd->ibv, arena + offset + ((uintptr_t)addr - begin),
					    length, access);
	if (!made->mr) {
		free(made);
		return NULL;
	}
	rename_region(pd, made->mr, addr);
	made->pd = &pd->ibv;
	made->from = (char *)begin;
	made->bytes = bytes;
	made->offset = offset;
	made->next = *at;
	*at = made;
	return made->mr;
}

struct ibv_mr *fake_register(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *mr;

	errno = fake_lock(length);
	if (errno)
		return NULL;
	pthread_mutex_lock(&lock);
	mr = access & REMOTE ?
		     register_shared(container_of(pd, struct soft_pd, ibv), addr, length, access) :
		     soft_register_mr(pd, addr, length, access);
	pthread_mutex_unlock(&lock);
	if (!mr)
		fake_unlock(length);
	return mr;
}

int fake_deregister(struct ibv_mr *mr)
{
	struct stand_in **at, *found;
	int err = 0;

	fake_unlock(mr->length);
	pthread_mutex_lock(&lock);
	for (at = &stand_ins; *at && (*at)->mr != mr; at = &(*at)->next)
		;
	found = *at;
	soft_deregister_mr(mr);
	if (found) {
		*at = found->next;
		err = replace(found->from, found->bytes, -1, 0);
		free(found);
	}
	pthread_mutex_unlock(&lock);
	return err;
}
