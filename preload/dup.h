/* SPDX-License-Identifier: MIT */
#ifndef SHUNT_PRELOAD_DUP_H
#define SHUNT_PRELOAD_DUP_H

#include "preload/process.h"

/* Before a call that duplicates a stream. */
void shunt_dup_stream(int fd);

/* Before a call that duplicates fd, behind which is `file`: the number to give to the kernel. */
static SHUNT_INLINE int shunt_dup_from(int fd, struct shunt_file *file)
{
	if (likely(!file))
		return fd;
	if (file->kind == SHUNT_FILE_STREAM)
		shunt_dup_stream(fd);
	return shunt_is_own_fd(file) ? -1 : fd;
}

/* After it: writes down what the new number is. Returns `made`; errno is kept. */
int shunt_dup_made(int fd, struct shunt_file *file, int made);

#endif
