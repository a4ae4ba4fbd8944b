/* SPDX-License-Identifier: MIT */
/* When the gate is opened, for which libraries, and what is written into them. */
#include "preload/gate.h"
#include <dlfcn.h>
#include <errno.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "core/base/log.h"
#include "preload/calls.h"
#include "preload/go/code.h"
#include "preload/gate_sites.h"
#include "preload/process.h"

static bool tried, open_now;

bool shunt_gate_is_open(void)
{
	return open_now;
}

#ifdef __x86_64__

#define TRAMPOLINE 40 /* bytes of each */
#define PAGE 4096

/* The page begins with the address of shunt_gate_enter(), to which the trampolines jump. */
enum { HEAD = 16 };

static uint64_t trampoline_at(uint8_t *page, unsigned int place)
{
	return (uint64_t)page + HEAD + (uint64_t)place * TRAMPOLINE;
}

/* The test, whose two places are as far from here as they were from there. */
static uint8_t *put_test(uint8_t *at, uint64_t here, const uint8_t *from)
{
	uint64_t there = (uint64_t)from;
	int32_t flag;

	memcpy(&flag, from + 2, sizeof(flag));
	at = shunt_code_put(at, from, 2);
	flag = (int32_t)(there + 7 + (uint64_t)(int64_t)flag - (here + 7));
	at = shunt_code_put(at, &flag, sizeof(flag));
	at = shunt_code_put(at, "\0\x0f\x84", 3);
	return shunt_code_put_distance(at, here + 9,
				       there + SHUNT_GATE_TEST + (uint64_t)(int8_t)from[8]);
}

/* The instructions that are replaced; lea SYSCALL, %rcx; jmp *(page). */
static void make_trampoline(uint8_t *copy, uint8_t *page, unsigned int place,
			    const struct shunt_gate_site *site)
{
	uint64_t trampoline = trampoline_at(page, place);
	uint8_t *start = copy + (trampoline - (uint64_t)page), *at = start;
	const uint8_t *from = site->at;

	if (site->tests) {
		at = put_test(at, trampoline, from);
		from += SHUNT_GATE_TEST;
	}
	at = shunt_code_put(at, from, (size_t)(site->syscall - from));
	at = shunt_code_put(at, "\x48\x8d\x0d", 3);
	at = shunt_code_put_distance(at, trampoline + (uint64_t)(at - start),
				     (uint64_t)site->syscall);
	at = shunt_code_put(at, "\xff\x25", 2);
	shunt_code_put_distance(at, trampoline + (uint64_t)(at - start), (uint64_t)page);
}

/* Instructions behind the jump that have their bytes yet are never come to. */
static void put_jump(uint8_t *copy, uint8_t *page, unsigned int place,
		     const struct shunt_gate_site *site)
{
	memset(copy, 0x90, (size_t)(site->syscall - site->at));
	copy = shunt_code_put(copy, "\xe9", 1);
	shunt_code_put_distance(copy, (uint64_t)site->at + 1, trampoline_at(page, place));
}

/* All jumps in one page by one write. `place` is the first of them, and becomes the first of the next page. */
static bool make_jumps(const struct shunt_code *code, uint8_t *page, unsigned int *place,
		       const struct shunt_gate_sites *sites)
{
	const struct shunt_gate_site *site = &sites->site[*place];
	uint8_t *from = site->at, *end = from, copy[2 * PAGE];
	unsigned int last = *place;

	for (; last < sites->count &&
	       (uintptr_t)sites->site[last].at / PAGE == (uintptr_t)from / PAGE;
	     last++)
		end = sites->site[last].syscall;
	memcpy(copy, from, (size_t)(end - from));
	for (; *place < last; ++*place, site++)
		put_jump(copy + (site->at - from), page, *place, site);
	return shunt_code_write(code, from, copy, (size_t)(end - from));
}

static int compare(const void *a, const void *b)
{
	const struct shunt_gate_site *left = a, *right = b;

	return left->at < right->at ? -1 : left->at > right->at;
}

/* NULL, or why nothing was replaced, or not all. */
static const char *replace(const struct shunt_code *code, struct shunt_gate_sites *sites)
{
	void (*enter)(void) = shunt_gate_enter;
	unsigned int place = 0;
	uint8_t copy[(HEAD + SHUNT_GATE_SITES * TRAMPOLINE + PAGE - 1) / PAGE * PAGE], *page;

	qsort(sites->site, sites->count, sizeof(*sites->site), compare);
	page = shunt_code_pages((uint64_t)sites->site[0].at,
				(uint64_t)sites->site[sites->count - 1].at, sizeof(copy));
	if (!page)
		return "there is no memory near it for code";
	memset(copy, 0xcc, sizeof(copy));
	memcpy(copy, &enter, sizeof(enter));
	for (unsigned int i = 0; i < sites->count; i++)
		make_trampoline(copy, page, i, &sites->site[i]);
	if (!shunt_code_write(code, page, copy, sizeof(copy))) {
		munmap(page, sizeof(copy));
		return "its code cannot be changed: writing to /proc/self/mem is refused, and mprotect is";
	}
	while (place < sites->count)
		if (!make_jumps(code, page, &place, sites))
			return "part of its code cannot be changed";
	return NULL;
}

static bool has_name(const struct link_map *library, const char *part)
{
	return library->l_name && strstr(library->l_name, part);
}

/* Tools that replace the same code, or watch it. */
static const char *watcher(const struct link_map *libraries)
{
	static const char *const parts[] = { "/vgpreload", "/librrpreload", "/libasan.",
					     "/libtsan.",  "/libubsan.",    "/liblsan." };
	static const char *const inits[] = { "__asan_init", "__tsan_init", "__msan_init" };

	if (secure_getenv("RUNNING_UNDER_RR"))
		return "rr records it";
	for (; libraries; libraries = libraries->l_next)
		for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
			if (has_name(libraries, parts[i]))
				return "valgrind, rr or a sanitizer is at work";
	for (size_t i = 0; i < sizeof(inits) / sizeof(*inits); i++)
		if (dlsym(RTLD_DEFAULT, inits[i]))
			return "valgrind, rr or a sanitizer is at work";
	dlerror();
	return NULL;
}

/* Also when a link map of another namespace is given. NULL, or why not. */
static const char *open_in(const struct link_map *libraries)
{
	struct shunt_gate_sites sites = { .count = 0 };
	struct shunt_code code;
	const char *why;

	for (; libraries; libraries = libraries->l_next)
		if (has_name(libraries, "/" LIBC_SO))
			shunt_gate_sites_find(&sites, libraries, true);
		else if (has_name(libraries, "/" LIBPTHREAD_SO))
			shunt_gate_sites_find(&sites, libraries, false); /* up to glibc 2.33 */
	if (sites.lacking || !sites.count) {
		shunt_log_write(
			SHUNT_LOG_INFO,
			"calls that do not come by name are not carried: this C library has code that is not known: %s",
			sites.lacking ? sites.lacking : "all of it");
		return "";
	}
	shunt_code_begin(&code);
	why = replace(&code, &sites);
	shunt_code_end(&code);
	if (!why)
		shunt_log_write(
			SHUNT_LOG_INFO,
			"calls that do not come by name are carried: %u places in the C library, %u functions are not known",
			sites.count, sites.unknown);
	return why;
}

static const char *open_all(bool alone)
{
	const char *why = alone ? shunt_code_is_alone() : NULL;
	struct link_map *first;
	void *program;

	if (why)
		return why;
	program = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);
	if (!program || dlinfo(program, RTLD_DI_LINKMAP, &first))
		return "its libraries are not known";
	why = watcher(first);
	if (why)
		return why;
	why = open_in(first);
	if (!why) {
		shunt_gate_use_thunks();
		open_now = true;
	}
	return why;
}

void shunt_gate_open(bool alone)
{
	const char *why;
	int saved = errno;

	if (tried)
		return;
	tried = true;
	why = open_all(alone);
	if (why && *why)
		shunt_log_write(SHUNT_LOG_INFO,
				"calls that do not come by name are not carried: %s", why);
	errno = saved;
}

void shunt_gate_open_in(const struct link_map *first)
{
	const struct link_map *library = first;
	const char *why;
	int saved = errno;

	while (library && !has_name(library, "/" LIBC_SO))
		library = library->l_next;
	if (library && !shunt_gate_sites_replaced(library)) {
		why = open_in(first);
		if (why && *why)
			shunt_log_write(
				SHUNT_LOG_INFO,
				"calls that come from a name space of its own are not carried: %s",
				why);
	}
	errno = saved;
}

void shunt_gate_begin(void)
{
	const struct shunt_config *config;
	const char *wanted = secure_getenv("SHUNT_GATE");

	if (!wanted || strcmp(wanted, "calls"))
		return;
	config = shunt_process_config();
	if (config && config->gate == SHUNT_GATE_CALLS)
		shunt_gate_open(true);
}

#else

void shunt_gate_open(bool alone)
{
	(void)alone;
}

void shunt_gate_begin(void)
{
}

void shunt_gate_open_in(const struct link_map *first)
{
	(void)first;
}

#endif
