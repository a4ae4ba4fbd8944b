/* SPDX-License-Identifier: MIT */
#include "preload/go/code.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096
#define REACH 0x70000000UL /* of a jump, from anywhere in the program to the page */
#define STEP 0x10000UL /* between places that are tried for the page */
#define LEAST_ADDRESS 0x10000UL /* vm.mmap_min_addr as shipped */

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

void shunt_code_begin(struct shunt_code *code)
{
	code->memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
}

void shunt_code_end(struct shunt_code *code)
{
	if (code->memory >= 0)
		close(code->memory);
}

static bool by_protection(uint8_t *at, const void *bytes, size_t count)
{
	uint8_t *from = (uint8_t *)((uintptr_t)at & ~(uintptr_t)(PAGE - 1));
	size_t size = (size_t)(at + count - from);

	if (mprotect(from, size, PROT_READ | PROT_WRITE | PROT_EXEC))
		return false;
	memcpy(at, bytes, count);
	return !mprotect(from, size, PROT_READ | PROT_EXEC);
}

bool shunt_code_write(const struct shunt_code *code, uint8_t *at, const void *bytes, size_t count)
{
	if (code->memory >= 0 &&
	    pwrite(code->memory, bytes, count, (off_t)(uintptr_t)at) == (ssize_t)count)
		return !memcmp(at, bytes, count);
	return by_protection(at, bytes, count);
}

static uint8_t *try_pages(uint64_t address, size_t bytes)
{
	void *pages = mmap((void *)address, bytes, PROT_READ | PROT_EXEC,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (pages == MAP_FAILED || pages == (void *)address)
		return pages == MAP_FAILED ? NULL : pages;
	munmap(pages, bytes); /* Linux before 4.17 takes the address for a hint */
	return NULL;
}

/* A library's neighbourhood is where the kernel puts what has no address. */
static uint8_t *near(uint64_t low, uint64_t high, size_t bytes)
{
	uint8_t *pages = mmap(NULL, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			      0);
	uint64_t at = (uint64_t)(uintptr_t)pages;

	if (pages == MAP_FAILED)
		return NULL;
	if ((at < low ? high - at : at + bytes - low) < REACH)
		return pages;
	munmap(pages, bytes);
	return NULL;
}

uint8_t *shunt_code_pages(uint64_t low, uint64_t high, size_t bytes)
{
	uint64_t from = low & ~(STEP - 1);
	uint8_t *pages = near(low, high, bytes);

	for (uint64_t away = STEP;
	     !pages && from >= away + LEAST_ADDRESS && high - from + away < REACH; away += STEP) {
		pages = try_pages(from - away, bytes);
		if (!pages && errno != EEXIST)
			return NULL;
	}
	return pages;
}

const char *shunt_code_is_alone(void)
{
	struct stat tasks;

	if (stat("/proc/self/task", &tasks))
		return "/proc is not mounted";
	return tasks.st_nlink == 3 ? NULL : "another thread runs already";
}

uint8_t *shunt_code_put(uint8_t *at, const void *bytes, size_t count)
{
	memcpy(at, bytes, count);
	return at + count;
}

uint8_t *shunt_code_put_distance(uint8_t *at, uint64_t from, uint64_t to)
{
	int32_t distance = (int32_t)(to - (from + 4));

	return shunt_code_put(at, &distance, sizeof(distance));
}
