/* SPDX-License-Identifier: MIT */
/* A tar file of texts (POSIX.1, ustar), readable by its owner alone. */
#ifndef SHUNT_TOOLS_ARCHIVE_H
#define SHUNT_TOOLS_ARCHIVE_H

#include <stddef.h>
#include <stdio.h>

struct shunt_archive {
	FILE *file;
	const char *path;
};

/* Makes the file, which must not exist. 0 or -errno. */
int shunt_archive_begin(struct shunt_archive *archive, const char *path);
/* One file of the archive; its name has at most 99 bytes. An error shows at the end. */
void shunt_archive_add(struct shunt_archive *archive, const char *name, const char *text,
		       size_t length);
/* 0, or -errno: the file is gone. */
int shunt_archive_end(struct shunt_archive *archive);

#endif
