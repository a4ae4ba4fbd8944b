/* SPDX-License-Identifier: MIT */
/*
 * Files that are written for people in somebody else's process: the log and the statistics. The
 * folder may be open to other users. So the file must be a regular one of our own user, and no name
 * in it is followed elsewhere. Opening waits for no FIFO's reader and no lease. Allocates nothing.
 */
#ifndef SHUNT_CORE_BASE_OUTFILE_H
#define SHUNT_CORE_BASE_OUTFILE_H

#include <stddef.h>
#include <sys/types.h>

/* A descriptor to append to the file, which is made if it is missing; or -1, and *why is a phrase. */
int shunt_outfile_append(const char *path, const char **why);

/*
 * Puts a new file with these bytes in the place of `path`: a reader sees the old one or all of the new one. `writer` is
 * the write(2) to use. 0; or -1, *why is a phrase, and the old file stays.
 */
int shunt_outfile_replace(const char *path, const char *bytes, size_t length,
			  ssize_t (*writer)(int fd, const void *buffer, size_t length), const char **why);

#endif
