/* SPDX-License-Identifier: MIT */
#include "core/base/space.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define GRAIN (64ull << 10)	/* in which HELLO counts, too; pages of every architecture */

/* The first field of /proc/self/statm, in pages (proc(5)). 0: it cannot be read. */
static uint64_t pages_mapped(void)
{
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	char text[128];
	ssize_t bytes;

	if (fd < 0)
		return 0;
	bytes = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (bytes <= 0)
		return 0;
	text[bytes] = 0;
	return strtoull(text, NULL, 10);
}

bool shunt_space_is_limited(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY;
}

struct shunt_space shunt_space_read(void)
{
	struct shunt_space space = { .limit = SHUNT_SPACE_UNLIMITED };
	struct rlimit limit;
	uint64_t pages;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return space;
	pages = pages_mapped();
	space.limit = limit.rlim_cur;
	space.present = pages ? pages * (uint64_t)sysconf(_SC_PAGESIZE) : space.limit;
	return space;
}

uint64_t shunt_space_spare(const struct shunt_space *space, uint64_t taken)
{
	uint64_t program = space->present > taken ? space->present - taken : 0;
	uint64_t left = space->limit > program ? space->limit - program : 0;

	if (space->limit == SHUNT_SPACE_UNLIMITED)
		return SHUNT_SPACE_UNLIMITED;
	left /= SHUNT_SPACE_PART;
	return left > taken ? left - taken : 0;
}

uint64_t shunt_space_thread(uint64_t spare)
{
	if (spare >= SHUNT_SPACE_THREAD + SHUNT_SPACE_HEAP + SHUNT_SPACE_LINK)
		return SHUNT_SPACE_THREAD + SHUNT_SPACE_HEAP / 2;
	return spare >= SHUNT_SPACE_THREAD + SHUNT_SPACE_LINK ? SHUNT_SPACE_THREAD : 0;
}

bool shunt_space_link(uint64_t spare, uint64_t arena, struct shunt_space_share *share)
{
	uint64_t bytes = spare / 2 < SHUNT_SPACE_LINK ? SHUNT_SPACE_LINK : spare / 2;

	*share = (struct shunt_space_share) { .arena = arena };
	if (spare == SHUNT_SPACE_UNLIMITED)
		return true;
	if (spare < SHUNT_SPACE_LINK)
		return false;
	bytes -= SHUNT_SPACE_FRONT;
	if (share->arena > bytes / 4)	/* the peer's segment has more in it that is no ring */
		share->arena = bytes / 4 / GRAIN * GRAIN;
	share->maps = (bytes - share->arena) / GRAIN * GRAIN;
	return true;
}
