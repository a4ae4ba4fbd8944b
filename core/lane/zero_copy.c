/* SPDX-License-Identifier: MIT */
#include "core/lane/zero_copy.h"
#include <string.h>
#include <sys/mman.h>

#define SMALLEST (64 << 10)	/* of the sizes that are measured */
#define LARGEST (4 << 20)
#define ROUNDS 3

/* The shortest of a few times; `to` NULL: of registering [from, +bytes). */
static uint64_t cost(const struct shunt_verbs *verbs, struct ibv_pd *pd, uint64_t (*now)(void), void *to,
		     void *from, size_t bytes)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start = now(), took;
		struct ibv_mr *mr;

		if (to) {
			memcpy(to, from, bytes);
		} else {
			mr = verbs->register_mr(pd, from, bytes, 0);
			if (!mr)
				return UINT64_MAX;
			verbs->deregister_mr(mr);
		}
		took = now() - start;
		if (took < least)
			least = took;
	}
	return least;
}

uint64_t shunt_zero_copy_measure(const struct shunt_verbs *verbs, struct ibv_pd *pd, uint64_t (*now)(void))
{
	char *memory = mmap(NULL, 2 * LARGEST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t from = UINT64_MAX;

	if (memory == MAP_FAILED)
		return UINT64_MAX;
	for (size_t bytes = SMALLEST; bytes <= LARGEST && from == UINT64_MAX; bytes *= 2) {
		memset(memory, 1, bytes);
		if (cost(verbs, pd, now, NULL, memory, bytes) < cost(verbs, pd, now, memory + LARGEST, memory, bytes))
			from = bytes;
	}
	munmap(memory, 2 * LARGEST);
	return from;
}
