/* SPDX-License-Identifier: MIT */
#include "preload/go/go.h"
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/base/log.h"
#include "preload/go/code.h"

/* Where the linker has put sections of interest. The file says so; a program without such headers is searched. */
struct hints {
	uint64_t table, info;
};

/* False: no headers, or none that say where they are. */
static bool find_headers(const Elf64_Phdr **headers, unsigned int *count, uintptr_t *base)
{
	*headers = (const Elf64_Phdr *)getauxval(AT_PHDR);
	*count = *headers ? (unsigned int)getauxval(AT_PHNUM) : 0;
	for (unsigned int i = 0; i < *count; i++)
		if ((*headers)[i].p_type == PT_PHDR) {
			*base = (uintptr_t)*headers - (*headers)[i].p_vaddr;
			return true;
		}
	return false;
}

bool shunt_go_is_program(void)
{
	const Elf64_Phdr *headers;
	unsigned int count;
	uintptr_t base;

	return sizeof(void *) == 8 && find_headers(&headers, &count, &base) &&
	       shunt_go_image_is_go(headers, count, base);
}

static uint64_t section(const uint8_t *file, uint64_t size, const char *name, uintptr_t base)
{
	uint64_t address = shunt_go_image_section(file, size, name);

	return address ? address + base : 0;
}

/* The addresses found there are checked like anything else, so another file does no harm. */
static struct hints read_hints(uintptr_t base)
{
	struct hints hints = { 0, 0 };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *file = MAP_FAILED;
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0)
		file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (file == MAP_FAILED)
		return hints;
	hints.table = section(file, (uint64_t)st.st_size, ".gopclntab", base);
	if (!hints.table)
		hints.table = section(file, (uint64_t)st.st_size, ".data.rel.ro.gopclntab", base);
	hints.info = section(file, (uint64_t)st.st_size, ".go.buildinfo", base);
	munmap(file, (size_t)st.st_size);
	return hints;
}

/* Code is replaced under nobody's feet: the program has not begun, and no library has made a thread that might call it. */
static const char *prepare(const struct shunt_go_host *host, const struct shunt_go_sites *sites,
			   const struct shunt_go_image *image)
{
	const char *why = shunt_code_is_alone();

	if (why)
		return why;
	if (!shunt_go_entry_begin(host))
		return "there is no key for memory of its threads";
	return shunt_go_patch(sites, image, &why) ? NULL : why;
}

void shunt_go_begin(const struct shunt_go_host *host, bool wanted)
{
	char version[SHUNT_GO_VERSION];
	struct shunt_go_image image;
	struct shunt_go_sites sites;
	enum shunt_go_verdict verdict;
	const Elf64_Phdr *headers;
	struct hints hints;
	const char *why;
	unsigned int count;
	uintptr_t base;

	if (!find_headers(&headers, &count, &base))
		return;
	if (!wanted) {
		shunt_log_write(SHUNT_LOG_INFO, "this Go program stays on TCP: SHUNT_TUNE=go=off");
		return;
	}
	shunt_go_image_of_memory(&image, headers, count, base);
	hints = read_hints(base);
	shunt_go_version(&image, hints.info, version);
	verdict = shunt_go_sites_find(&sites, &image, hints.table);
	why = verdict == SHUNT_GO_KNOWN ? prepare(host, &sites, &image) :
					  shunt_go_verdict_text(verdict);
	if (why)
		shunt_log_write(SHUNT_LOG_INFO, "this Go program (%s) stays on TCP: %s%s%.80s",
				*version ? version : "no version", why, sites.function ? ": " : "",
				sites.function ? sites.function : "");
	else
		shunt_log_write(SHUNT_LOG_INFO,
				"this Go program (%s) is carried: %u places of system calls",
				*version ? version : "no version", sites.count);
}
