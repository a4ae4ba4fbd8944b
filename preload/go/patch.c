/* SPDX-License-Identifier: MIT */
/* The trampolines, and the jumps to them. */
#include "preload/go/go.h"
#include <sys/mman.h>
#include "preload/go/code.h"

#ifdef __x86_64__

#define PAGE 4096
#define TRAMPOLINE 64 /* bytes of each */
#define JUMP 5 /* bytes of a jump */

/* How a page begins. Trampolines jump to these addresses, which are those of shunt_go_pass() until all sites lead here. */
struct cells {
	void (*enter)(void), (*vfork)(void);
};

static size_t length(const struct shunt_go_site *site)
{
	return site->before + (site->vfork ? 4U : 2U);
}

/*
 * The instruction before SYSCALL; lea 6(%rip), %rcx; jmp *cell; SYSCALL, which rcx points to; a jump back. A vfork's child has
 * left the word of its thread, which is its parent's, too, with an exec that does not return. So its trampoline clears it.
 */
static void make_trampoline(uint8_t *copy, uint64_t page, unsigned int place,
			    const struct shunt_go_site *site)
{
	uint64_t offset = (uint64_t)(place + 1) * TRAMPOLINE, trampoline = page + offset;
	uint8_t *start = copy + offset,
		*at = shunt_code_put(start, (const void *)site->address, site->before);
	int32_t busy = shunt_go_busy_offset();

	at = shunt_code_put(at, "\x48\x8d\x0d\6\0\0\0\xff\x25", 9);
	at = shunt_code_put_distance(at, trampoline + (uint64_t)(at - start),
				     page + (site->vfork ? offsetof(struct cells, vfork) :
							   offsetof(struct cells, enter)));
	at = shunt_code_put(at, "\x0f\x05", 2);
	if (site->vfork) {
		at = shunt_code_put(at, "\x64\x48\xc7\x04\x25", 5); /* movq $0, %fs:busy */
		at = shunt_code_put(at, &busy, sizeof(busy));
		at = shunt_code_put(at, "\0\0\0\0\x41\x54", 6); /* push %r12 */
	}
	at = shunt_code_put(at, "\xe9", 1);
	shunt_code_put_distance(at, trampoline + (uint64_t)(at - start),
				site->address + length(site));
}

static bool make_jump(const struct shunt_code *writer, uint64_t page, unsigned int place,
		      const struct shunt_go_site *site)
{
	uint8_t jump[8] = { 0xe9, 0, 0, 0, 0, 0x90, 0x90, 0x90 };

	shunt_code_put_distance(jump + 1, site->address + 1,
				page + (uint64_t)(place + 1) * TRAMPOLINE);
	return shunt_code_write(writer, (uint8_t *)site->address, jump, length(site));
}

/* The cells come last: a site that leads to its trampoline before has the system call there, as it had. */
static const char *make_all(const struct shunt_code *writer, const struct shunt_go_sites *sites,
			    const struct shunt_go_image *image)
{
	const struct cells passing = { shunt_go_pass, shunt_go_pass },
			   entering = { shunt_go_enter, shunt_go_enter_vfork };
	uint8_t *page = shunt_code_pages(image->low, image->high, PAGE), copy[PAGE];

	_Static_assert((SHUNT_GO_SITES + 1) * TRAMPOLINE <= PAGE,
		       "all trampolines are in one page");
	if (!page)
		return "there is no memory near it for code";
	memset(copy, 0xcc, sizeof(copy));
	memcpy(copy, &passing, sizeof(passing));
	for (unsigned int i = 0; i < sites->count; i++)
		make_trampoline(copy, (uint64_t)page, i, &sites->site[i]);
	if (!shunt_code_write(writer, page, copy, sizeof(copy))) {
		munmap(page, PAGE);
		return "its code cannot be changed: writing to /proc/self/mem is refused, and mprotect is";
	}
	for (unsigned int i = 0; i < sites->count; i++)
		if (!make_jump(writer, (uint64_t)page, i, &sites->site[i]))
			return "part of its code cannot be changed";
	return shunt_code_write(writer, page, &entering, sizeof(entering)) ?
		       NULL :
		       "its code cannot be changed again";
}

bool shunt_go_patch(const struct shunt_go_sites *sites, const struct shunt_go_image *image,
		    const char **why)
{
	struct shunt_code writer;

	shunt_code_begin(&writer);
	*why = make_all(&writer, sites, image);
	shunt_code_end(&writer);
	return !*why;
}

#else

bool shunt_go_patch(const struct shunt_go_sites *sites, const struct shunt_go_image *image,
		    const char **why)
{
	(void)sites;
	(void)image;
	*why = shunt_go_verdict_text(SHUNT_GO_OTHER_MACHINE);
	return false;
}

#endif
