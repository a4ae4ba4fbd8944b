/* SPDX-License-Identifier: MIT */
/* The file of a running program, and the library among its mappings. */
#include "tools/doctor.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "tools/shunt.h"

#define NOTES_MAX 4096 /* bytes of a segment of notes that are looked at */
#define LIBRARY "/libshunt.so"
#define DELETED " (deleted)"

/* "Go\0\0", the owner of the note with the build id of Go's linker. */
static bool has_go_note(const char *notes, size_t bytes)
{
	while (bytes >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr header;
		size_t size;

		memcpy(&header, notes, sizeof(header));
		size = sizeof(header) + ((size_t)header.n_namesz + 3) / 4 * 4 +
		       ((size_t)header.n_descsz + 3) / 4 * 4;
		if (size > bytes)
			return false;
		if (header.n_namesz == 4 && !memcmp(notes + sizeof(header), "Go\0", 4))
			return true;
		notes += size;
		bytes -= size;
	}
	return false;
}

static bool is_go(int fd)
{
	char notes[NOTES_MAX];
	Elf64_Ehdr elf;

	if (pread(fd, &elf, sizeof(elf), 0) != sizeof(elf) || memcmp(elf.e_ident, ELFMAG, SELFMAG))
		return false;
	for (unsigned int i = 0; i < elf.e_phnum; i++) {
		Elf64_Phdr segment;
		ssize_t got;

		if (pread(fd, &segment, sizeof(segment),
			  (off_t)(elf.e_phoff + i * sizeof(segment))) != sizeof(segment))
			return false;
		if (segment.p_type != PT_NOTE)
			continue;
		got = pread(fd, notes,
			    segment.p_filesz < sizeof(notes) ? segment.p_filesz : sizeof(notes),
			    (off_t)segment.p_offset);
		if (got > 0 && has_go_note(notes, (size_t)got))
			return true;
	}
	return false;
}

/* AT_SECURE: exec(2) gave the process a user or rights that its starter had not, or only as its effective one. */
static bool is_secure(pid_t pid)
{
	FILE *file = shunt_proc_open(pid, "auxv");
	Elf64_auxv_t entry = { .a_type = AT_NULL };
	bool secure = false;

	while (file && fread(&entry, sizeof(entry), 1, file) == 1)
		secure |= entry.a_type == AT_SECURE && entry.a_un.a_val;
	if (file)
		fclose(file);
	return secure;
}

const char *shunt_doctor_program(pid_t pid)
{
	const char *why = NULL;
	char path[64];
	bool go;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	go = fd >= 0 && is_go(fd);
	if (fd >= 0)
		close(fd);
	if (go)
		return "it is a Go program, which makes its system calls itself";
	if (shunt_program_inspect(path, &why) != SHUNT_PROGRAM_OK)
		return why;
	if (is_secure(pid))
		return "it was started with rights of its own (AT_SECURE), so LD_PRELOAD is ignored";
	return NULL;
}

int shunt_doctor_library(pid_t pid, char *path, size_t room, bool *deleted)
{
	char *line = shunt_proc_line(pid, "maps", LIBRARY), *start, *end;

	*path = '\0';
	*deleted = false;
	if (!line)
		return errno ? -1 : 0;
	start = strchr(line, '/');
	line[strcspn(line, "\n")] = '\0';
	end = strstr(line, DELETED);
	*deleted = end && !end[strlen(DELETED)];
	if (*deleted)
		*end = '\0';
	snprintf(path, room, "%s", start ? start : "");
	free(line);
	return 1;
}
