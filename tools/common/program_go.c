/* SPDX-License-Identifier: MIT */
/* Reads from a program's file what becomes of its system calls if Go's linker has made it. The library judges the same bytes. */
#include "tools/shunt.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/go/sites.h"

/* The headers are in the file: the image has been made of them. */
static bool is_dynamic(const uint8_t *file)
{
	Elf64_Ehdr elf;
	Elf64_Phdr header;

	memcpy(&elf, file, sizeof(elf));
	for (unsigned int i = 0; i < elf.e_phnum; i++) {
		memcpy(&header, file + elf.e_phoff + i * sizeof(header), sizeof(header));
		if (header.p_type == PT_INTERP)
			return true;
	}
	return false;
}

static const char *advice_of(enum shunt_go_verdict verdict)
{
	switch (verdict) {
	case SHUNT_GO_NO_CGO:
		return "; built with CGO_ENABLED=1 it is carried if it uses the package net or os/user";
	case SHUNT_GO_OTHER_MACHINE:
		return "";
	default:
		return "; report its version (docs/CARRIED.md)";
	}
}

static enum shunt_program_go judge(const uint8_t *file, size_t size, char *words, size_t room)
{
	char version[SHUNT_GO_VERSION];
	enum shunt_go_verdict verdict;
	struct shunt_go_image image;
	struct shunt_go_sites sites;
	uint64_t hint;
	bool go;

	if (!shunt_go_image_of_file(&image, file, size, &go) || !go)
		return SHUNT_PROGRAM_NOT_GO;
	hint = shunt_go_image_section(file, size, ".gopclntab");
	if (!hint)
		hint = shunt_go_image_section(file, size, ".data.rel.ro.gopclntab");
	shunt_go_version(&image, shunt_go_image_section(file, size, ".go.buildinfo"), version);
	if (!*version)
		snprintf(version, sizeof(version), "no version");
	verdict = shunt_go_sites_find(&sites, &image, hint);
	if (!is_dynamic(file))
		snprintf(
			words, room,
			"it is a Go program (%s), and statically linked; built with CGO_ENABLED=1, and without "
			"-extldflags=-static, it is carried if it uses the package net or os/user",
			version);
	else if (verdict != SHUNT_GO_KNOWN)
		snprintf(words, room, "it is a Go program (%s), and %s%s%.80s%s", version,
			 shunt_go_verdict_text(verdict), sites.function ? ": " : "",
			 sites.function ? sites.function : "", advice_of(verdict));
	else
		snprintf(words, room, "it is a Go program (%s), whose system calls are carried",
			 version);
	return verdict == SHUNT_GO_KNOWN && is_dynamic(file) ? SHUNT_PROGRAM_GO_CARRIED :
							       SHUNT_PROGRAM_GO_LEFT;
}

enum shunt_program_go shunt_program_go(const char *path, char *words, size_t room)
{
	enum shunt_program_go found = SHUNT_PROGRAM_NOT_GO;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *file = MAP_FAILED;
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0)
		file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (file == MAP_FAILED)
		return found;
	found = judge(file, (size_t)st.st_size, words, room);
	munmap(file, (size_t)st.st_size);
	return found;
}
