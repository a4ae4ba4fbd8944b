/* SPDX-License-Identifier: MIT */
/* The file of a running program, and the library among its mappings. */
#include "tools/doctor/doctor.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "tools/shunt.h"

#define LIBRARY "/libshunt.so"
#define DELETED " (deleted)"

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

const char *shunt_doctor_program(pid_t pid, const char **go)
{
	static char words[SHUNT_PROGRAM_WORDS];
	const char *why = NULL;
	char path[64];

	*go = NULL;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	switch (shunt_program_go(path, words, sizeof(words))) {
	case SHUNT_PROGRAM_GO_LEFT:
		return words;
	case SHUNT_PROGRAM_GO_CARRIED:
		*go = words;
		break;
	case SHUNT_PROGRAM_NOT_GO:
		break;
	}
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
