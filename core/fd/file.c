/* SPDX-License-Identifier: MIT */
#include "core/fd/file.h"
#include "core/base/narrow.h"

static bool has_slot(struct shunt_files *files, size_t fd)
{
	return atomic_load_explicit(&files->slot[fd], memory_order_acquire) != NULL;
}

int shunt_files_next(struct shunt_files *files, int fd)
{
	size_t at = (size_t)(unsigned int)fd;

	while (at < files->limit) {
		size_t run = at / SHUNT_FILES_RUN;
		uint64_t runs = atomic_load(&files->used[run / 64]) >> run % 64;

		if (!runs) {
			at = (run / 64 + 1) * 64 * SHUNT_FILES_RUN;
		} else if (!(runs & 1)) {
			at = (run + (size_t)__builtin_ctzll(runs)) * SHUNT_FILES_RUN;
		} else {
			if (has_slot(files, at))
				return shunt_narrow_int(at);
			at++;
		}
	}
	return -1;
}
