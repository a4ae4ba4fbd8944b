/* SPDX-License-Identifier: MIT */
/* The stubs, and the jumps to them. */
#include "preload/go/go.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __x86_64__

#define PAGE 4096
#define STUB 64		/* bytes of each */
#define JUMP 5		/* bytes of a jump */
#define REACH 0x70000000UL	/* of a jump, from anywhere in the program to the page */
#define STEP 0x10000UL	/* between places that are tried for the page */
#define LEAST_ADDRESS 0x10000UL	/* vm.mmap_min_addr as shipped */

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* How a page begins. Stubs jump to these addresses, which are those of shunt_go_pass() until all sites lead here. */
struct cells {
	void (*enter)(void), (*vfork)(void);
};

struct writer {
	int memory;	/* /proc/self/mem, or -1 */
};

/* Memory that may be run stays so, and is writable only meanwhile, if at all. */
static bool by_protection(uint8_t *at, const void *bytes, size_t count)
{
	uint8_t *from = (uint8_t *)((uintptr_t)at & ~(uintptr_t)(PAGE - 1));
	size_t size = (size_t)(at + count - from);

	if (mprotect(from, size, PROT_READ | PROT_WRITE | PROT_EXEC))
		return false;
	memcpy(at, bytes, count);
	return !mprotect(from, size, PROT_READ | PROT_EXEC);
}

static bool write_code(const struct writer *writer, uint8_t *at, const void *bytes, size_t count)
{
	if (writer->memory >= 0 &&
	    pwrite(writer->memory, bytes, count, (off_t)(uintptr_t)at) == (ssize_t)count)
		return !memcmp(at, bytes, count);
	return by_protection(at, bytes, count);
}

static uint8_t *try_page(uint64_t address)
{
	void *page = mmap((void *)address, PAGE, PROT_READ | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (page == MAP_FAILED || page == (void *)address)
		return page == MAP_FAILED ? NULL : page;
	munmap(page, PAGE);	/* Linux before 4.17 takes the address for a hint */
	return NULL;
}

/* Below the program, where nothing of its own comes to lie. The heap is above it. */
static uint8_t *make_page(const struct shunt_go_image *image)
{
	uint64_t low = image->low & ~(STEP - 1);
	uint8_t *page = NULL;

	for (uint64_t away = STEP;
	     !page && low >= away + LEAST_ADDRESS && image->high - low + away < REACH;
	     away += STEP) {
		page = try_page(low - away);
		if (!page && errno != EEXIST)
			return NULL;
	}
	return page;
}

static uint8_t *put(uint8_t *at, const void *bytes, size_t count)
{
	memcpy(at, bytes, count);
	return at + count;
}

/* How far from behind an operand of four bytes at `from` to `to`. */
static uint8_t *put_distance(uint8_t *at, uint64_t from, uint64_t to)
{
	int32_t distance = (int32_t)(to - (from + 4));

	return put(at, &distance, sizeof(distance));
}

static size_t length(const struct shunt_go_site *site)
{
	return site->before + (site->vfork ? 4U : 2U);
}

/*
 * The instruction before SYSCALL; lea 6(%rip), %rcx; jmp *cell; SYSCALL, which rcx points to; a jump back. A vfork's child has
 * left the word of its thread, which is its parent's, too, with an exec that does not return. So its stub clears it.
 */
static void make_stub(uint8_t *copy, uint64_t page, unsigned int place,
		      const struct shunt_go_site *site)
{
	uint64_t offset = (uint64_t)(place + 1) * STUB, stub = page + offset;
	uint8_t *start = copy + offset, *at = put(start, (const void *)site->address, site->before);
	int32_t busy = shunt_go_busy_offset();

	at = put(at, "\x48\x8d\x0d\6\0\0\0\xff\x25", 9);
	at = put_distance(at, stub + (uint64_t)(at - start),
			  page + (site->vfork ? offsetof(struct cells, vfork) :
						offsetof(struct cells, enter)));
	at = put(at, "\x0f\x05", 2);
	if (site->vfork) {
		at = put(at, "\x64\x48\xc7\x04\x25", 5);	/* movq $0, %fs:busy */
		at = put(at, &busy, sizeof(busy));
		at = put(at, "\0\0\0\0\x41\x54", 6);		/* push %r12 */
	}
	at = put(at, "\xe9", 1);
	put_distance(at, stub + (uint64_t)(at - start), site->address + length(site));
}

static bool make_jump(const struct writer *writer, uint64_t page, unsigned int place,
		      const struct shunt_go_site *site)
{
	uint8_t jump[8] = { 0xe9, 0, 0, 0, 0, 0x90, 0x90, 0x90 };

	put_distance(jump + 1, site->address + 1, page + (uint64_t)(place + 1) * STUB);
	return write_code(writer, (uint8_t *)site->address, jump, length(site));
}

/* The cells come last: a site that leads to its stub before has the system call there, as it had. */
static const char *make_all(const struct writer *writer, const struct shunt_go_sites *sites,
			    const struct shunt_go_image *image)
{
	const struct cells passing = { shunt_go_pass, shunt_go_pass },
			   entering = { shunt_go_enter, shunt_go_enter_vfork };
	uint8_t *page = make_page(image), copy[PAGE];

	_Static_assert((SHUNT_GO_SITES + 1) * STUB <= PAGE, "all stubs are in one page");
	if (!page)
		return "there is no memory near it for code";
	memset(copy, 0xcc, sizeof(copy));
	memcpy(copy, &passing, sizeof(passing));
	for (unsigned int i = 0; i < sites->count; i++)
		make_stub(copy, (uint64_t)page, i, &sites->site[i]);
	if (!write_code(writer, page, copy, sizeof(copy))) {
		munmap(page, PAGE);
		return "its code cannot be changed: writing to /proc/self/mem is refused, and mprotect is";
	}
	for (unsigned int i = 0; i < sites->count; i++)
		if (!make_jump(writer, (uint64_t)page, i, &sites->site[i]))
			return "part of its code cannot be changed";
	return write_code(writer, page, &entering, sizeof(entering)) ?
		       NULL :
		       "its code cannot be changed again";
}

bool shunt_go_patch(const struct shunt_go_sites *sites, const struct shunt_go_image *image,
		    const char **why)
{
	struct writer writer = { open("/proc/self/mem", O_RDWR | O_CLOEXEC) };

	*why = make_all(&writer, sites, image);
	if (writer.memory >= 0)
		close(writer.memory);
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
