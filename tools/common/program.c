/* SPDX-License-Identifier: MIT */
/* Reads from a program's file whether a library can be preloaded into it. */
#include "tools/shunt.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#else
#define OUR_MACHINE EM_NONE
#endif

static int is_program(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || access(path, X_OK))
		return -EACCES;
	return 0;
}

/* As execvp() looks for it: 0, -ENOENT, or -EACCES where there is only something not executable. */
int shunt_program_find(const char *name, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH");
	int found = -ENOENT;

	if (strchr(name, '/')) {
		if (snprintf(path, PATH_MAX, "%s", name) >= PATH_MAX)
			return -ENAMETOOLONG;
		return is_program(path);
	}
	if (!dirs)
		dirs = "/bin:/usr/bin";
	for (; *name; dirs++) {
		int len = (int)strcspn(dirs, ":"), rc;

		if (snprintf(path, PATH_MAX, "%.*s%s%s", len, dirs, len ? "/" : "", name) < PATH_MAX) {
			rc = is_program(path);
			if (!rc)
				return 0;
			if (rc == -EACCES)
				found = rc;
		}
		dirs += len;
		if (!*dirs)
			break;
	}
	return found;
}

static enum shunt_program_kind inspect_interpreter(int fd, off_t offset, const char **why)
{
	char interpreter[256] = "";

	if (pread(fd, interpreter, sizeof(interpreter) - 1, offset) > 0 &&
	    strstr(interpreter, "/ld-musl")) {
		*why = "it uses another C library, musl";
		return SHUNT_PROGRAM_FOREIGN;
	}
	return SHUNT_PROGRAM_OK;
}

static enum shunt_program_kind inspect_elf(int fd, const Elf64_Ehdr *elf, const char **why)
{
	if (elf->e_ident[EI_CLASS] != ELFCLASS64) {
		*why = "it is a 32-bit program";
		return SHUNT_PROGRAM_FOREIGN;
	}
	if (OUR_MACHINE != EM_NONE && elf->e_machine != OUR_MACHINE) {
		*why = "it is made for another architecture";
		return SHUNT_PROGRAM_FOREIGN;
	}
	for (unsigned int i = 0; i < elf->e_phnum; i++) {
		Elf64_Phdr segment;

		if (pread(fd, &segment, sizeof(segment),
			  (off_t)(elf->e_phoff + i * sizeof(segment))) != sizeof(segment))
			return SHUNT_PROGRAM_OK;
		if (segment.p_type == PT_INTERP)
			return inspect_interpreter(fd, (off_t)segment.p_offset, why);
	}
	*why = "it is statically linked";
	return SHUNT_PROGRAM_STATIC;
}

/* "#!interpreter argument" → interpreter. */
static int script_interpreter(char *head, ssize_t len, char path[PATH_MAX])
{
	char *name;

	head[len] = '\0';
	name = head + 2 + strspn(head + 2, " \t");
	name[strcspn(name, " \t\n")] = '\0';
	return *name && snprintf(path, PATH_MAX, "%s", name) < PATH_MAX ? 0 : -1;
}

static int is_privileged(int fd, const struct stat *st, const char **why)
{
	if (st->st_mode & S_ISUID)
		*why = "it is setuid";
	else if ((st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
		*why = "it is setgid";
	else if (fgetxattr(fd, "security.capability", NULL, 0) > 0)
		*why = "its file carries capabilities";
	else
		return 0;
	return 1;
}

static enum shunt_program_kind inspect(const char *path, const char **why, int depth)
{
	union {
		Elf64_Ehdr elf;
		char text[256];
	} head;
	enum shunt_program_kind kind = SHUNT_PROGRAM_OK;
	char interpreter[PATH_MAX];
	struct stat st;
	ssize_t len;
	/* O_PATH would serve for the mode of an unreadable program, but not for its capabilities. */
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		if (!stat(path, &st) && is_privileged(-1, &st, why))
			return SHUNT_PROGRAM_PRIVILEGED;
		return SHUNT_PROGRAM_OK;
	}
	len = pread(fd, head.text, sizeof(head.text) - 1, 0);
	if (len > 2 && !memcmp(head.text, "#!", 2)) {
		/* The mode that counts is the interpreter's. */
		if (depth < 4 && !script_interpreter(head.text, len, interpreter))
			kind = inspect(interpreter, why, depth + 1);
	} else if (!fstat(fd, &st) && is_privileged(fd, &st, why)) {
		kind = SHUNT_PROGRAM_PRIVILEGED;
	} else if (len >= (ssize_t)sizeof(head.elf) && !memcmp(head.text, ELFMAG, SELFMAG)) {
		kind = inspect_elf(fd, &head.elf, why);
	}
	close(fd);
	return kind;
}

enum shunt_program_kind shunt_program_inspect(const char *path, const char **why)
{
	return inspect(path, why, 0);
}
